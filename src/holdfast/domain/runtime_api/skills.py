"""Requests and reports of runtime skills: written, listed, inspected, edited, switched and deleted, never executed.

Requests are not validated here; the verbs do so after authorization, so that a refusal leaves its audit row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from holdfast.domain.checks import checked_text
from holdfast.domain.ids import MemoryId
from holdfast.domain.presentable import Presentable
from holdfast.domain.runtime_skills import (
    MAX_CITATION_CHARS,
    MAX_CITATIONS,
    MAX_NAME_CHARS,
    MAX_SUMMARY_CHARS,
    MAX_TITLE_CHARS,
    ReuseOutcome,
    SkillSource,
    SkillStatus,
)
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.domain.skill_lineage import LineageNode, StrategyDiff
from holdfast.domain.times import checked_iso_time
from holdfast.errors import InvalidInput

# The reasons of reports, besides those of `SkillRejection`.
PROCEDURAL_MEMORY = "procedural_memory"
NOT_A_SKILL = "not_a_runtime_skill"
NO_SUCH_SKILL = "no_such_runtime_skill"
UNCHANGED = "unchanged"
DONE = "done"

# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuntimeSkillWrite(Presentable):
    """A procedure to keep. `content` is what to do, step by step; `summary` is what recall shows.

    A `name` that a skill of this memory has means that skill: it gets a revision. Without one, the title makes a name.
    """

    content: str
    name: Annotated[str | None, "The name of the skill to revise; without it, the title makes a name."] = None
    topic: Annotated[str, "What it is about, in a word or two."] = ""
    title: Annotated[str, "A short title."] = ""
    summary: Annotated[str, "What recall shows."] = ""
    citations: Annotated[Sequence[str], "Where it comes from."] = ()
    source_chat_id: Annotated[str | None, "The chat in which it was learned."] = None
    observed_at: Annotated[datetime | None, "When it was seen to work."] = None


def check_skill_write(write: RuntimeSkillWrite, place: str) -> None:
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


@dataclass(frozen=True, slots=True)
class ProceduralWrites:
    """Procedures from one source. Each is judged on its own."""

    writes: Sequence[RuntimeSkillWrite]
    source: SkillSource | str = SkillSource.MANUAL


class SkillAction(StrEnum):
    """The effect of one write. A merged one became a revision of a skill that says the same."""

    CREATED = "created"
    REVISED = "revised"
    MERGED = "merged"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class SkillWriteReport(Presentable):
    """The verdict on one write. `detail` is the name of the skill that holds it; None if it was rejected."""

    source: SkillSource
    action: SkillAction
    reason: str
    topic: str
    detail: str | None
    memory_id: MemoryId | None = None


@dataclass(frozen=True, slots=True)
class ProceduralEvolution(Presentable):
    """The verdicts on the skills of one call, in the order of the request."""

    source: SkillSource | None = None
    submitted: int = 0
    accepted: int = 0
    rejected: int = 0
    changed: bool = False
    reports: tuple[SkillWriteReport, ...] = ()

    @classmethod
    def of(cls, source: SkillSource, reports: Sequence[SkillWriteReport]) -> Self:
        rejected = sum(each.action is SkillAction.REJECTED for each in reports)
        changed = bool(promoted_names(reports))
        return cls(source, len(reports), len(reports) - rejected, rejected, changed, tuple(reports))


def promoted_names(reports: Sequence[SkillWriteReport]) -> tuple[str, ...]:
    """Return the names of the skills that are new, or have a new text."""
    same = (SkillAction.REJECTED, SkillAction.UNCHANGED)
    names = (each.detail for each in reports if each.action not in same)
    return tuple(dict.fromkeys(name for name in names if name is not None))


NO_EVOLUTION = ProceduralEvolution()


# --- use --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SkillReuse(Presentable):
    """The effect of a turn on the counts of a skill. `name` is as it was selected if there is no such skill."""

    name: str
    outcome: ReuseOutcome
    changed: bool
    reason: str


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuntimeSkillListRequest:
    """Skills with all words of the `query`, the newest first. Disabled and retired ones only on request."""

    query: str | None = None
    include_disabled: Annotated[bool, "Disabled skills, too."] = False
    include_retired: Annotated[bool, "Retired skills, too."] = False
    limit: Annotated[int, "At most so many skills."] = 50


@dataclass(frozen=True, slots=True)
class RuntimeSkillSummary(Presentable):
    """A skill in one line. One that `needs_approval` is not recalled before an operator enables it."""

    _summary = ("name", "status", "enabled", "quality_score")

    name: str
    title: str
    topic: str
    status: SkillStatus
    enabled: bool
    quality_score: int
    use_count: int
    validated_success_count: int
    mismatch_count: int
    revision_pending: bool
    updated_at: datetime
    last_used_at: datetime | None
    needs_approval: bool
    memory_id: MemoryId


@dataclass(frozen=True, slots=True)
class RuntimeSkillListReport(Presentable):
    """Skills that match. `total`, `active` and `disabled` count all skills that this runtime can read."""

    total: int
    active: int
    disabled: int
    runtime_skills: tuple[RuntimeSkillSummary, ...]


@dataclass(frozen=True, slots=True)
class RuntimeSkillDetailRequest:
    name: str


@dataclass(frozen=True, slots=True)
class RuntimeSkillDetailReport(Presentable):
    """All of a skill. `lineage` and `strategy_diffs` are the last eight, oldest first; `raw_content` is as stored."""

    summary: RuntimeSkillSummary
    summary_text: str
    procedure_text: str
    raw_content: str
    citations: tuple[str, ...]
    source: SkillSource
    source_chat_id: str | None
    lineage: tuple[LineageNode, ...]
    strategy_diffs: tuple[StrategyDiff, ...]
    last_outcome_note: str | None


# --- changing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuntimeSkillEditRequest:
    """A new revision of a skill. What is None stays as it is."""

    name: str
    title: Annotated[str | None, "The new title."] = None
    topic: Annotated[str | None, "The new topic."] = None
    summary: Annotated[str | None, "The new summary, which recall shows."] = None
    procedure: Annotated[str | None, "The new procedure: what to do, step by step."] = None
    edit_reason: Annotated[str | None, "The reason of the edit."] = None


@dataclass(frozen=True, slots=True)
class RuntimeSkillSetEnabledRequest:
    """Switch a skill on or off. Its text stays as it is."""

    name: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class RuntimeSkillDeleteRequest:
    """Delete a skill with all its revisions."""

    name: str


@dataclass(frozen=True, slots=True)
class RuntimeSkillMutationReport(Presentable):
    """The result of a change. If it was not accepted, nothing changed, and `reason` says why."""

    _summary = ("accepted", "changed", "name", "reason")

    accepted: bool
    changed: bool
    name: str
    operation: str
    reason: str
