"""`write` of procedures: judge each, and store it as a new skill or as a revision of the one that says the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import check_metadata, checked_instance, checked_instances, checked_text
from holdfast.domain.governance import Governance
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane, Status, Trust
from holdfast.domain.runtime_api.skills import (
    PROCEDURAL_MEMORY,
    ProceduralEvolution,
    ProceduralWrites,
    RuntimeSkillWrite,
    SkillAction,
    SkillWriteReport,
    promoted_names,
)
from holdfast.domain.runtime_api.writing import MemoryWriteReport, MemoryWriteRequest, SemanticGovernance
from holdfast.domain.runtime_skills import (
    MAX_CITATION_CHARS,
    MAX_CITATIONS,
    MAX_NAME_CHARS,
    MAX_SUMMARY_CHARS,
    MAX_TITLE_CHARS,
    NAME_PREFIX,
    SLUG_CHARS,
    SkillContent,
    SkillSource,
    SkillState,
    first_line,
    is_skill_name,
    name_from,
)
from holdfast.domain.scope import MAX_PART_CHARS, Scope
from holdfast.domain.skill_checks import reject_procedure
from holdfast.domain.skill_lineage import is_near_duplicate, strategy_digest
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import InvalidInput
from holdfast.ports import NewRevision, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_revision
from holdfast.runtime.remember import current_memory, trust_of
from holdfast.runtime.revisions import time_after
from holdfast.runtime.skills.near_skills import find_near
from holdfast.runtime.skills.stored_skill import StoredSkill, find_skill, free_name, skill_of, store_state
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.conversation_address import StartedOperation

MAX_WRITES = 256
_CITED_MESSAGE = re.compile(r"(?:^|#message=)(msg_[0-9a-f]{32})$")


@dataclass(frozen=True, slots=True)
class SkillAuthor:
    """The author of skills, their owner, and the trust in them."""

    core: Core
    governance: Governance
    scope: Scope
    author: str
    trust: Trust
    now: datetime


@dataclass(frozen=True, slots=True)
class IndexedSkill:
    """A checked procedure with its index data, and the known skills near it."""

    name: str | None
    content: SkillContent
    entry: indexing.IndexedText
    near: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class _PreparedSkills:
    started: StartedOperation
    author: SkillAuthor
    skills: Sequence[IndexedSkill | SkillWriteReport]


@dataclass(frozen=True, slots=True)
class WriteSkills(Write[_PreparedSkills, MemoryWriteReport]):
    """Judge procedures, and write the accepted ones."""

    action: ClassVar[Action] = Action.WRITE
    scope: Scope
    governance: Governance
    writes: tuple[RuntimeSkillWrite, ...]
    source: SkillSource

    @classmethod
    def of(cls, governance: Governance, request: MemoryWriteRequest) -> WriteSkills:
        if request.given or request.extraction is not None:
            raise InvalidInput("skills", "give procedures, candidates or an extraction, only one of them")
        given = checked_instance(request.skills, ProceduralWrites, "skills")
        writes = checked_instances(given.writes, RuntimeSkillWrite, "writes")
        if not 0 < len(writes) <= MAX_WRITES:
            raise InvalidInput("writes", f"has {len(writes):,} entries; give 1 to {MAX_WRITES:,}")
        source = checked_member(SkillSource, given.source, "source")
        for place, write in enumerate(writes):
            _validate_write(write, f"writes[{place}]")
        return cls(governance.identity.scope, governance, writes, source)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedSkills:
        now = core.clock.now()
        author = SkillAuthor(core, self.governance, self.scope, str(grant.actor), trust_of(grant.actor), now)
        judged = [self._judge(write) for write in self.writes]
        named = zip((write.name for write in self.writes), judged, strict=True)
        contents = [(name, each) for name, each in named if isinstance(each, SkillContent)]
        indexed = iter(await _index_skills(core, grant, self.scope, contents))
        skills = [next(indexed) if isinstance(each, SkillContent) else each for each in judged]
        return _PreparedSkills(StartedOperation(core, self.action, now), author, skills)

    def _judge(self, write: RuntimeSkillWrite) -> SkillContent | SkillWriteReport:
        rejection = reject_procedure(write.content, self.governance.budget.source_chars)
        if rejection is not None:
            return SkillWriteReport(self.source, SkillAction.REJECTED, rejection, write.topic, None)
        procedure = write.content.strip()
        content = SkillContent(
            title=_one_line(write.title) or first_line(procedure),
            procedure=procedure,
            topic=_one_line(write.topic),
            summary=_one_line(write.summary),
            citations=tuple(write.citations),
            source=self.source,
            source_chat_id=write.source_chat_id,
            observed_at=write.observed_at and checked_iso_time(write.observed_at, "observed_at"),
        )
        check_metadata(content.metadata)
        return content

    def apply(self, transaction: Transaction, prepared: _PreparedSkills) -> MemoryWriteReport:
        written = [
            each if isinstance(each, SkillWriteReport) else _write_skill(transaction, prepared.author, each)
            for each in prepared.skills
        ]
        evolution = ProceduralEvolution.of(self.source, written)
        if evolution.changed:
            require_budget(transaction, self.governance)
        reasons = {each.reason for each in written}
        summary = f"{evolution.accepted} accepted, {evolution.rejected} rejected"
        return MemoryWriteReport(
            accepted=evolution.accepted > 0,
            changed=evolution.changed,
            operation="procedural",
            reason=reasons.pop() if len(reasons) == 1 else "mixed",
            lifecycle_report=prepared.started.report(summary, changed=evolution.changed),
            semantic_governance=SemanticGovernance(),
            procedural_evolution=evolution,
            procedural_evolution_reason=PROCEDURAL_MEMORY,
            procedural_promotions=promoted_names(written),
            procedural_promotions_reason=PROCEDURAL_MEMORY,
        )

    def has_work(self, core: Core, result: MemoryWriteReport) -> bool:
        return result.changed and not core.embedder.local

    def record_count(self, result: MemoryWriteReport) -> int:
        return len(result.procedural_promotions)

    def without_text(self, result: MemoryWriteReport) -> MemoryWriteReport:
        untitled = [replace(each, topic="", detail=None) for each in result.procedural_evolution.reports]
        evolution = replace(result.procedural_evolution, reports=tuple(untitled))
        return replace(result, procedural_evolution=evolution, procedural_promotions=())

    def with_text(self, reader: Reader, result: MemoryWriteReport) -> MemoryWriteReport:
        stored = zip(self.writes, result.procedural_evolution.reports, strict=True)
        named = [
            replace(each, topic=_one_line(write.topic), detail=_name_of(reader, each.memory_id))
            for write, each in stored
        ]
        evolution = replace(result.procedural_evolution, reports=tuple(named))
        return replace(result, procedural_evolution=evolution, procedural_promotions=promoted_names(named))


def _name_of(reader: Reader, memory_id: MemoryId | None) -> str | None:
    """Return the current name of a skill; None if it was deleted."""
    found = None if memory_id is None else skill_of(reader, memory_id)
    return None if found is None else found.state.name


def _validate_write(write: RuntimeSkillWrite, place: str) -> None:
    """Check all but the content, which has a verdict of its own."""
    limits = {"title": MAX_TITLE_CHARS, "topic": MAX_TITLE_CHARS, "summary": MAX_SUMMARY_CHARS}
    for name, most in limits.items():
        if getattr(write, name) != "":
            checked_text(getattr(write, name), f"{place}.{name}", max_chars=most)
    if write.name is not None:
        checked_text(write.name, f"{place}.name", max_chars=MAX_NAME_CHARS)
    if write.source_chat_id is not None:
        checked_text(write.source_chat_id, f"{place}.source_chat_id", max_chars=MAX_PART_CHARS)
    if write.observed_at is not None:
        checked_iso_time(write.observed_at, f"{place}.observed_at")
    citations = write.citations
    if isinstance(citations, str) or not isinstance(citations, Sequence) or len(citations) > MAX_CITATIONS:
        raise InvalidInput(f"{place}.citations", f"give a tuple of at most {MAX_CITATIONS} texts")
    for citation in citations:
        checked_text(citation, f"{place}.citations", max_chars=MAX_CITATION_CHARS)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- one skill --------------------------------------------------------------------------------------------------------


async def _index_skills(
    core: Core, grant: Grant, scope: Scope, contents: Sequence[tuple[str | None, SkillContent]]
) -> list[IndexedSkill]:
    """Index procedures with their names, and find the known skills near each. A known one completes what one lacks."""
    entries = await indexing.make_entries(core, [content.text for _, content in contents])

    def find(reader: Reader) -> list[tuple[StoredSkill | None, list[MemoryRecord]]]:
        return [
            (_find_named(reader, scope, name), find_near(core, reader, scope, content.text, entry))
            for (name, content), entry in zip(contents, entries, strict=True)
        ]

    known = await core.store.read(grant, find) if contents else []
    completed = [_complete(content, *each) for (_, content), each in zip(contents, known, strict=True)]
    entries = await indexing.make_entries(core, [content.text for content in completed])
    return [
        IndexedSkill(name, content, entry, tuple(each.id for each in near))
        for (name, _), content, entry, (_, near) in zip(contents, completed, entries, known, strict=True)
    ]


def _find_named(reader: Reader, scope: Scope, name: str | None) -> StoredSkill | None:
    """Find the skill to revise by its name, else by the name that a short title would get."""
    if name is None:
        return None
    found = find_skill(reader, [scope.partition], name) if is_skill_name(name) else None
    if found is None and len(name.removeprefix(NAME_PREFIX)) <= SLUG_CHARS:
        found = find_skill(reader, [scope.partition], name_from(name))
    return found if found is not None and _may_revise(found, scope) else None


def _may_revise(skill: StoredSkill, scope: Scope) -> bool:
    """True for a skill of exactly this scope. One that needs an approval is not approved by being written again."""
    return skill.memory.scope == scope and not skill.state.needs_approval


def _complete(content: SkillContent, named: StoredSkill | None, near: Sequence[MemoryRecord]) -> SkillContent:
    known = [*(() if named is None else (named.content,)), *(SkillContent.of(memory) for memory in near)]
    same = next((each for each in known if is_near_duplicate(each, content)), None)
    if same is not None:
        return content.completed_by(same)
    # Another procedure under the name of a skill has its title, but its summary would say what is no longer so.
    is_untitled = named is not None and content.title == first_line(content.procedure)
    return replace(content, title=named.content.title) if named is not None and is_untitled else content


def _write_skill(transaction: Transaction, author: SkillAuthor, skill: IndexedSkill) -> SkillWriteReport:
    """Store a procedure. A skill of this name, or that says the same, gets a revision; its earlier text stays in it."""
    named = _find_named(transaction, author.scope, skill.name)
    content, known = skill.content, named or _known_skill(transaction, author, skill)
    if known is not None:
        completed = content.completed_by(known.content)
        if strategy_digest(known.content) == strategy_digest(completed):
            return _report(content, SkillAction.UNCHANGED, known.state.name, known.memory.id)
        # Its text is indexed already, so title and summary stay.
        content = replace(completed, title=content.title, summary=content.summary)
    memory = _add_revision(transaction, author, replace(skill, content=content), known)
    if known is None:
        name = free_name(transaction, author.scope, skill.name or content.title)
        state, action = SkillState(name), SkillAction.CREATED
    else:
        state = known.state.with_new_text()
        action = SkillAction.MERGED if named is None else SkillAction.REVISED
    store_state(transaction, memory, state, author.now)
    return _report(content, action, state.name, memory.id)


def _report(content: SkillContent, action: SkillAction, name: str, memory_id: MemoryId) -> SkillWriteReport:
    return SkillWriteReport(content.source, action, PROCEDURAL_MEMORY, content.topic, name, memory_id)


def _known_skill(transaction: Transaction, author: SkillAuthor, skill: IndexedSkill) -> StoredSkill | None:
    """Return the skill to revise that has the same text, else a near-duplicate."""
    in_slot = transaction.records.in_slot(author.scope, _slot(skill.content))
    same = [in_slot.id] if isinstance(in_slot, MemoryRecord) else []
    found = (skill_of(transaction, memory_id) for memory_id in (*same, *skill.near))
    return next(
        (
            each
            for each in found
            if each is not None and _may_revise(each, author.scope) and is_near_duplicate(each.content, skill.content)
        ),
        None,
    )


def _slot(content: SkillContent) -> str:
    # The store keeps a digest of it.
    return f"skill/{strategy_digest(replace(content, title='', summary=''))}"


def _add_revision(
    transaction: Transaction, author: SkillAuthor, skill: IndexedSkill, known: StoredSkill | None
) -> MemoryRecord:
    core, old = author.core, None if known is None else known.memory
    revision = NewRevision(
        id=MemoryId(core.ids.new(ids.MEMORY)) if old is None else old.id,
        scope=author.scope,
        plane=Plane.PROCEDURAL,
        text=skill.content.text,
        trust=author.trust,
        status=Status.QUARANTINED,  # until its state is stored
        validity=ALWAYS,
        recorded_at=author.now if old is None else time_after(author.now, old),
        source=None,
        author=author.author,
        reason=None if old is None else "written again",
        evidence=_cited_messages(transaction, skill.content.citations),
        metadata=skill.content.metadata,
        analysis=skill.entry.analysis,
        vectors=skill.entry.vectors,
        supersedes=None if old is None else old.revision,
        slot=_slot(skill.content),
        by_runtime=True,
    )
    details = {"source": skill.content.source}
    add_revision(transaction, core, revision, details, merges=old is not None)
    if skill.entry.analysis.pieces and not skill.entry.vectors:
        enqueue_indexing(transaction, core, author.scope, (revision.id,))
    return current_memory(transaction, revision.id)


def _cited_messages(reader: Reader, citations: Sequence[str]) -> tuple[MessageId, ...]:
    """Return the messages of this memory that are cited by id. A skill goes with the messages it was learned from."""
    cited = [found.group(1) for citation in citations if (found := _CITED_MESSAGE.search(citation))]
    return tuple(MessageId(each) for each in dict.fromkeys(cited) if each in reader.records.messages(cited))
