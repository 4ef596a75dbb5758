"""List runtime skills, and show one in detail. Nothing is executed, and no use is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant, readable_partitions
from holdfast.domain.checks import MAX_QUERY_CHARS, checked_flag, checked_instance, checked_text, checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.runtime_api.skills import (
    RuntimeSkillDetailReport,
    RuntimeSkillDetailRequest,
    RuntimeSkillListReport,
    RuntimeSkillListRequest,
)
from holdfast.domain.runtime_skills import MAX_NAME_CHARS, NAME_PREFIX, SkillStatus, is_skill_name
from holdfast.domain.scope import Scope
from holdfast.domain.skill_lineage import trace_lineage
from holdfast.errors import InvalidInput, NotFound
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.skills.stored_skill import StoredSkill, all_skills, find_skill

MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class ListSkills(Read[Core, RuntimeSkillListReport]):
    """List the skills that this runtime can recall from: its own, its agent's and the shared ones."""

    action: ClassVar[Action] = Action.LIST_SKILLS
    governance: Governance
    request: RuntimeSkillListRequest

    def __post_init__(self) -> None:
        request = checked_instance(self.request, RuntimeSkillListRequest)
        if request.query is not None:
            checked_text(request.query, "query", max_chars=MAX_QUERY_CHARS)
        checked_flag(request.include_disabled, "include_disabled")
        checked_flag(request.include_retired, "include_retired")
        checked_whole(request.limit, "limit", 1, MAX_LISTED)

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> RuntimeSkillListReport:
        now, request = prepared.clock.now(), self.request
        wanted = (request.query or "").casefold().split()
        total = active = disabled = 0
        found = []
        for skill in all_skills(reader):
            status, enabled = skill.status(now), skill.state.enabled
            total += 1
            disabled += not enabled
            active += enabled and status is SkillStatus.ACTIVE and not skill.state.needs_approval
            shown = (enabled or request.include_disabled) and (
                status is not SkillStatus.RETIRED or request.include_retired
            )
            if shown and _has_words(skill, wanted):
                found.append(skill.summary(now))
        found.sort(key=lambda each: (each.updated_at, each.memory_id), reverse=True)
        return RuntimeSkillListReport(total, active, disabled, tuple(found[: request.limit]))

    def record_count(self, result: RuntimeSkillListReport) -> int:
        return len(result.runtime_skills)


def _has_words(skill: StoredSkill, words: list[str]) -> bool:
    text = f"{skill.state.name}\n{skill.content.topic}\n{skill.memory.text}".casefold() if words else ""
    return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class GetSkill(Read[Core, RuntimeSkillDetailReport]):
    """Show a skill with its history. The runtime's own comes before one of its agent, or a shared one, of the name."""

    action: ClassVar[Action] = Action.GET_SKILL
    governance: Governance
    request: RuntimeSkillDetailRequest

    def __post_init__(self) -> None:
        name = checked_text(checked_instance(self.request, RuntimeSkillDetailRequest).name, "name")
        if not is_skill_name(name):
            raise InvalidInput("name", f"must begin with {NAME_PREFIX} and have at most {MAX_NAME_CHARS} characters")

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.governance.identity.scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> RuntimeSkillDetailReport:
        own = self.scope.partition
        partitions = sorted(readable_partitions(self.scope), key=lambda each: (each != own, each.kind))
        skill = find_skill(reader, partitions, self.request.name)
        if skill is None:
            raise NotFound(f"there is no runtime skill {self.request.name!r:.120} in this memory; list them to see")
        now, content = prepared.clock.now(), skill.content
        revisions = reader.records.revisions(skill.memory.id)
        memories = [each for each in revisions if isinstance(each, MemoryRecord)]
        lineage = trace_lineage(skill.state.name, memories, skill.status(now)).newest
        return RuntimeSkillDetailReport(
            summary=skill.summary(now),
            summary_text=content.summary_text,
            procedure_text=content.procedure,
            raw_content=skill.memory.text,
            citations=content.citations,
            source=content.source,
            source_chat_id=content.source_chat_id,
            lineage=lineage.nodes,
            strategy_diffs=lineage.diffs,
            last_outcome_note=skill.state.last_outcome_note,
        )

    def record_count(self, result: RuntimeSkillDetailReport) -> int:
        return 1
