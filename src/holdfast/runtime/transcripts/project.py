"""`project`: a bounded block of memory for a model, with an audit of its contents.

Ranks once over the records that a model in this conversation may see, adds the conversation's last messages in the
model's view, and combines them with `domain/projection_block.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, NamedTuple

from holdfast.domain.access import Action, Grant
from holdfast.domain.agent_skills import AgentSkillHit, reason_for_none
from holdfast.domain.checks import MAX_QUERY_CHARS, checked_flag, checked_instance, checked_text, checked_whole
from holdfast.domain.events import NAMED_IDS, EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import checked_id
from holdfast.domain.lifecycle import Admission, ModeInput, admit
from holdfast.domain.memory import GUARDED_PLANES
from holdfast.domain.profiles import Pressure, backend_of, render_budget, scale_budget
from holdfast.domain.projection_block import (
    MemoryBlock,
    OmissionReason,
    PrivateGate,
    RecentMessage,
    assemble_block,
    audit_skills,
    audit_sources,
    audit_tools,
    private_gate,
)
from holdfast.domain.recall_policy import Selection, check_floor
from holdfast.domain.redaction import TranscriptReplayAudit, redact_turns
from holdfast.domain.results import Hit
from holdfast.domain.runtime_api.retrieval import (
    MemoryProjectionReport,
    MemoryProjectionRequest,
    PrivateDisclosureIntegrity,
    ProjectionAudit,
    ProjectionContext,
    ProjectionFaithfulness,
    SourceAuthority,
)
from holdfast.domain.runtime_api.tools import AgentToolHint, ToolExperienceStatus
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import View
from holdfast.errors import StoreCorrupt
from holdfast.ports import RankedCandidates, Reader, Transaction
from holdfast.runtime.event_log import append_event, new_event_id
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.recall import select_loaded
from holdfast.runtime.search import PreparedQuery, QueryRead, to_hits
from holdfast.runtime.skills.recalled_skills import with_summaries
from holdfast.runtime.tools.hints import find_hints
from holdfast.runtime.transcripts.conversation_address import StartedOperation
from holdfast.runtime.transcripts.retrieval_context import (
    PreparedRetrieval,
    RetrievalContext,
    check_registries,
    drop_broken,
    to_recalled_record,
    validate_mode,
)

MAX_LEN = 10_000_000
MAX_RECENT = 1_000
# The minimum and the usual number of characters of a line in the block.
_SHORT_RECORD_CHARS, _RECORD_CHARS = 40, 100
_LEAST_RECORDS, _MOST_RECORDS = 8, 200


@dataclass(frozen=True, slots=True)
class RecentConversation:
    """The last messages of the conversation that a model may see, and the audit of the withheld ones.

    `broken` counts those that are left out because their turn is broken.
    """

    messages: tuple[RecentMessage, ...] = ()
    audit: TranscriptReplayAudit = field(default_factory=TranscriptReplayAudit)
    broken: int = 0


class ProjectionHits(NamedTuple):
    """The best hits, and the number of candidates."""

    hits: tuple[Hit, ...]
    candidates: int


@dataclass(frozen=True, slots=True)
class Project(QueryRead, Read[PreparedRetrieval, MemoryProjectionReport]):
    """Build the block. `last` is the conversation that the runtime committed last."""

    action: ClassVar[Action] = Action.PROJECT
    governance: Governance
    request: MemoryProjectionRequest
    last: MemoryScope | None = None
    scope: Scope = field(init=False)
    sight: RetrievalContext = field(init=False)
    mode: ModeInput = field(init=False)
    pressure: Pressure = field(init=False)

    def __post_init__(self) -> None:
        request = checked_instance(self.request, MemoryProjectionRequest)
        checked_text(request.user_query, "user_query", max_chars=MAX_QUERY_CHARS)
        checked_whole(request.system_max_len, "system_max_len", 1, MAX_LEN)
        checked_whole(request.recent_messages_limit, "recent_messages_limit", 0, MAX_RECENT)
        if request.provider_max_chars is not None:
            checked_whole(request.provider_max_chars, "provider_max_chars", 1, MAX_LEN)
        checked_flag(request.include_private, "include_private")
        check_registries(request.tool_registry_refs)
        check_floor(request.min_score)
        if request.audit_id is not None:
            checked_id(request.audit_id, "audit_id")
        mode, pressure = validate_mode(request.mode_input, request.pressure)
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "pressure", pressure)
        object.__setattr__(self, "sight", RetrievalContext.of(self.governance, request.scope, self.last))
        object.__setattr__(self, "scope", self.sight.scope)

    async def prepare(self, core: Core, grant: Grant) -> PreparedRetrieval:
        return await self.sight.prepare_query(core, grant, self.request.user_query)

    def apply(self, reader: Reader, prepared: PreparedRetrieval) -> MemoryProjectionReport:
        thread = self.sight.thread(reader)
        admission, gate = self._gate()
        lately = self._recent_messages(reader, thread)
        ranked = self._rank(reader, prepared, thread, gate)
        hints = find_hints(reader, self.governance, self.request.tool_registry_refs)
        block, found = self._block(reader, ranked, lately, prepared.skill_hits, hints)
        audit = self._audit(block, found, lately, gate, thread, prepared)
        status = ToolExperienceStatus.of(hints)
        audit = replace(audit, agent_tools=audit_tools(block, hints), agent_tools_reason=status.reason)
        private = sum(line.hit is not None and line.hit.plane in GUARDED_PLANES for line in block.lines)
        event_id = None if self.request.audit_id is None else new_event_id(prepared.core)
        started = StartedOperation(prepared.core, self.action, prepared.now, admission)
        cut = len(audit.cut_ids)
        source_ids = {hit.id for hit in found.hits} | {message.id for message in lately.messages}
        source_ids |= {skill.id for skill in prepared.skill_hits} | {hint.id for hint in hints}
        summary = f"{len(block.lines)} lines, {len(block.text)} of {audit.render_budget_chars} characters"
        return MemoryProjectionReport(
            system_memory_block=block.text,
            context=_context(block, lately),
            audit=audit,
            projection_faithfulness=ProjectionFaithfulness(
                lines=len(block.lines),
                whole=len(block.lines) - cut,
                cut=cut,
                faithful=all(line.id in source_ids for line in block.lines),
            ),
            private_disclosure_integrity=PrivateDisclosureIntegrity(private, kept=gate.open or private == 0),
            lifecycle_report=started.report(summary, event_id=event_id),
            agent_tool_hints=hints,
            tool_experience_status=status,
            reason=None if block.text else self._explain_empty(block, ranked),
        )

    def _explain_empty(self, block: MemoryBlock, ranked: RankedCandidates) -> str:
        if block.omitted.get(OmissionReason.BUDGET):
            return f"the block may have {self._budgets()[1]:,} characters, too few for any record"
        return self.sight.explain_nothing(ranked, self.request.min_score)

    def record_count(self, result: MemoryProjectionReport) -> int:
        return result.projection_faithfulness.lines

    def event_writer(self, core: Core, result: MemoryProjectionReport) -> Callable[[Transaction], None] | None:
        """Return what appends the event of an audited projection: it names the shown records, and holds no text."""
        if self.request.audit_id is None:
            return None
        shown = [str(each.id) for each in result.context.records]
        shown += [str(each.id) for each in result.context.recent_messages]
        details: Mapping[str, str | int | None] = {
            "audit_id": self.request.audit_id,
            "chars": result.audit.system_memory_chars,
            "records": len(shown),
            "private": result.private_disclosure_integrity.private_records,
            "ids": " ".join(shown[:NAMED_IDS]),
        }

        def append(transaction: Transaction) -> None:
            append_event(
                transaction,
                core,
                EventKind.PROJECTION,
                self.sight.thread(transaction) or self.scope,
                keep=self.governance.budget.events,
                details=details,
                event_id=result.lifecycle_report.event_id,
            )

        return append

    def _gate(self) -> tuple[Admission, PrivateGate]:
        admission = admit(self.action, self.mode, self.pressure)
        capability = self.governance.catalogue["project_private_planes"]
        return admission, private_gate(self.request.include_private, capability, admission, self.mode)

    def _budgets(self) -> tuple[int, int]:
        """The budgets of the source texts and of the block: the smallest limit, scaled down by the pressure."""
        request, profile = self.request, self.governance.profile
        render = render_budget(profile, request.system_max_len, request.provider_max_chars)
        return scale_budget(profile.budget.source_chars, self.pressure), scale_budget(render, self.pressure)

    def _rank(
        self, reader: Reader, prepared: PreparedQuery, thread: Scope | None, gate: PrivateGate
    ) -> RankedCandidates:
        _, render = self._budgets()
        top_k = max(_LEAST_RECORDS, min(_MOST_RECORDS, render // _SHORT_RECORD_CHARS))
        # Only facts that are valid now.
        options = self.sight.search_options(thread, top_k, prepared.now, private=gate.open)
        return prepared.core.searcher.rank(reader.index, self.scope, self.request.user_query, prepared.vector, options)

    def _block(
        self,
        reader: Reader,
        ranked: RankedCandidates,
        lately: RecentConversation,
        skills: tuple[AgentSkillHit, ...],
        tools: tuple[AgentToolHint, ...],
    ) -> tuple[MemoryBlock, ProjectionHits]:
        """Fetch texts until the block is full: first as many as usually suffice, then the rest."""
        source, render = self._budgets()
        enough = max(_LEAST_RECORDS, render // _RECORD_CHARS)
        found, broken = drop_broken(reader, to_hits(reader, ranked, places=slice(enough)))
        select = partial(self._select, reader)
        block = assemble_block(found, lately.messages, source, render, select, skills, tools)
        if not block.full and len(ranked.best) > enough:
            more, also_broken = drop_broken(reader, to_hits(reader, ranked, places=slice(enough, None)))
            found, broken = found + more, broken + also_broken
            block = assemble_block(found, lately.messages, source, render, select, skills, tools)
        if broken + lately.broken:
            block.omitted[OmissionReason.BROKEN] = broken + lately.broken
        return block, ProjectionHits(found, ranked.candidates)

    def _select(self, reader: Reader, hits: Sequence[Hit]) -> Selection[Hit]:
        # The block limits one source by characters.
        query, floor = self.request.user_query, self.request.min_score
        chosen = select_loaded(reader, hits, len(hits), query, floor, max_source_share=1)
        return replace(chosen, records=with_summaries(chosen.records))

    @property
    def _recent_limit(self) -> int:
        return min(self.request.recent_messages_limit, self.governance.budget.recent_messages)

    def _recent_messages(self, reader: Reader, thread: Scope | None) -> RecentConversation:
        limit = self._recent_limit
        if thread is None or not limit:
            return RecentConversation()
        try:
            # Every turn has at least one message, so `limit` turns hold the last `limit` messages.
            last = reader.transcripts.last_turns(thread, limit)
        except StoreCorrupt:
            # A turn among them cannot be read: show none, rather than a conversation with a gap.
            return RecentConversation(broken=1)
        shown = redact_turns(last, View.MODEL_CONTEXT, self.governance.budget.transcript)
        messages = [
            RecentMessage(message.id, message.role, message.text, message.authority)
            for turn in shown.turns
            for message in turn.messages
            if message.text is not None and message.authority is not None
        ]
        broken = reader.transcripts.resting_on_broken([message.id for message in messages]) if messages else ()
        sound = [message for message in messages if message.id not in broken]
        return RecentConversation(tuple(sound[-limit:]), shown.audit, len(messages) - len(sound))

    def _audit(
        self,
        block: MemoryBlock,
        found: ProjectionHits,
        lately: RecentConversation,
        gate: PrivateGate,
        thread: Scope | None,
        prepared: PreparedRetrieval,
    ) -> ProjectionAudit:
        identity = self.governance.identity
        source, render = self._budgets()
        backend = backend_of(prepared.core.store.location)
        return ProjectionAudit(
            projection_id=f"prj_{block.fingerprint[:32]}",
            profile=self.governance.profile.name,
            identity=identity,
            scope=self.sight.where,
            memory_space_id=identity.space,
            subject_id=identity.subject_id,
            conversation_id=None if thread is None else thread.conversation,
            pressure=self.pressure,
            source_budget_chars=source,
            render_budget_chars=render,
            system_memory_chars=len(block.text),
            injected=bool(block.text),
            truncated=block.is_truncated or found.candidates > len(found.hits),
            candidates=found.candidates,
            private_gate=gate,
            source_authority=_source_authority(block),
            sources=audit_sources(
                block, found.hits, len(lately.messages), backend, gate, in_conversation=thread is not None
            ),
            sections=block.sections(),
            cut_ids=tuple(line.id for line in block.lines if line.cut),
            omitted=block.omitted,
            recent_messages_limit=self._recent_limit,
            agent_skills=audit_skills(block, prepared.skill_hits),
            agent_skills_reason=reason_for_none(prepared.skills, prepared.skill_hits),
        )


def _context(block: MemoryBlock, lately: RecentConversation) -> ProjectionContext:
    return ProjectionContext(
        records=tuple(
            to_recalled_record(line.hit, line.text, cut=line.cut) for line in block.lines if line.hit is not None
        ),
        recent_messages=tuple(
            RecentMessage(line.recent.id, line.recent.role, line.text, line.recent.authority)
            for line in block.lines
            if line.recent is not None
        ),
        transcript=lately.audit,
        agent_skills=tuple(replace(line.skill, snippet=line.text) for line in block.lines if line.skill is not None),
        agent_tools=tuple(replace(line.tool, reason=line.text) for line in block.lines if line.tool is not None),
    )


def _source_authority(block: MemoryBlock) -> SourceAuthority:
    said = Counter(line.recent.authority.value for line in block.lines if line.recent is not None)
    trusted = (line.hit.trust for line in block.lines if line.hit is not None and line.hit.trust is not None)
    trust = Counter(map(str, trusted))
    return SourceAuthority(dict(sorted(said.items())), dict(sorted(trust.items())))
