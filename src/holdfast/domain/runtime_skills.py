"""Runtime skills: procedures that a runtime learned, kept as memories on the procedural plane. They are never executed.

The text of a skill, with its title and summary, is the text of the memory, so its revisions are the skill's history.
`SkillState` is what changes without a new text. Quality, status and visibility follow from both; nothing of them is
stored twice.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from holdfast.domain.checks import Metadata
from holdfast.domain.memory import MemoryRecord, Status
from holdfast.domain.times import checked_iso_time
from holdfast.errors import InvalidTimestamp

NAME_PREFIX = "runtime_skill__"
# The entry of metadata that only what was written as a skill has.
WRITTEN = "skill_source"
MAX_NAME_CHARS = 96
MAX_TITLE_CHARS = 200
MAX_SUMMARY_CHARS = 1_000
MAX_SUMMARY_LINE = 420
MAX_CITATIONS = 8
MAX_CITATION_CHARS = 256
MAX_NOTE_CHARS = 160
MAX_HITS = 4
# How often a use of one skill is counted.
USE_INTERVAL = timedelta(hours=6)
STALE_AFTER = timedelta(days=90)
# A skill with a pending revision and a lower quality, or so many more failures than successes, is not recalled.
LEAST_QUALITY = 20
MOST_FAILURES = 2
SLUG_CHARS = 48
_TAIL_CHARS = 8
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")
_FIRST_LINE_CHARS = 120


class SkillSource(StrEnum):
    """The origin of a written skill."""

    MANUAL = "manual"
    EXTRACTION = "extraction"
    TASK_LEARNING = "task_learning"
    PROGRAMMABLE_REASONING = "programmable_reasoning"


class SkillStatus(StrEnum):
    """The standing of a skill. Low-value and retired skills are not recalled. Disabling is apart from it."""

    ACTIVE = "active"
    STALE = "stale"
    LOW_VALUE = "low_value"
    RETIRED = "retired"


class ReuseOutcome(StrEnum):
    NEUTRAL = "neutral"
    SUCCEEDED = "succeeded"
    MISMATCH = "mismatch"


UNRECALLED = frozenset({SkillStatus.LOW_VALUE, SkillStatus.RETIRED})


# --- names ------------------------------------------------------------------------------------------------------------


def is_skill_name(name: str) -> bool:
    return name.startswith(NAME_PREFIX) and len(name) <= MAX_NAME_CHARS


def name_from(title: str, place: int = 1) -> str:
    """Return the name of a skill with this title or name; `place` tells skills with the same one apart."""
    folded = unicodedata.normalize("NFKD", title.removeprefix(NAME_PREFIX)).encode("ascii", "ignore").decode()
    slug = _NOT_IN_SLUG.sub("_", folded.casefold()).strip("_")[:SLUG_CHARS].strip("_") or "skill"
    return f"{NAME_PREFIX}{slug}" if place == 1 else f"{NAME_PREFIX}{slug}_{place}"


def name_of_unnamed(memory_id: str, content: SkillContent) -> str:
    """Return the name of a memory that was not written as a skill. The end of its id makes it unique."""
    return f"{name_from(content.title)}_{memory_id[-_TAIL_CHARS:].casefold()}"


# --- content ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SkillContent:
    """The text of a skill, and where it came from. Without a summary, the first line of the procedure stands for it."""

    title: str
    procedure: str
    topic: str = ""
    summary: str = ""
    citations: tuple[str, ...] = ()
    source: SkillSource = SkillSource.MANUAL
    source_chat_id: str | None = None
    observed_at: datetime | None = None

    @property
    def text(self) -> str:
        """The text of the memory, in which search finds all parts."""
        return f"{self._head}{self.procedure}"

    @property
    def _head(self) -> str:
        return "".join(f"{part}\n" for part in (self.title, self.summary) if part)

    @property
    def metadata(self) -> Metadata:
        parts = {
            "title": self.title,
            "topic": self.topic,
            "summary": self.summary,
            "citations": json.dumps(self.citations, ensure_ascii=False) if self.citations else "",
            WRITTEN: self.source.value,
            "source_chat_id": self.source_chat_id,
            "observed_at": self.observed_at and self.observed_at.isoformat(),
        }
        return {name: value for name, value in parts.items() if value}

    @property
    def summary_text(self) -> str:
        """The line that recall shows: the title, and the summary or the first line of the procedure."""
        shown = self.summary or first_line(self.procedure, MAX_SUMMARY_LINE)
        return shown if self.title == first_line(self.procedure) and not self.summary else f"{self.title}: {shown}"

    def completed_by(self, known: SkillContent) -> SkillContent:
        """Return the content as a revision of a known skill: parts that it lacks are those of the known one."""
        return replace(
            self,
            title=known.title if self.title == first_line(self.procedure) else self.title,
            topic=self.topic or known.topic,
            summary=self.summary or known.summary,
            citations=tuple(dict.fromkeys((*self.citations, *known.citations)))[:MAX_CITATIONS],
            source_chat_id=self.source_chat_id or known.source_chat_id,
        )

    @classmethod
    def of(cls, memory: MemoryRecord) -> Self:
        return cls.read(memory.text, memory.metadata)

    @classmethod
    def read(cls, text: str, known: Metadata) -> Self:
        """Read the content of a memory. One that was not written as a skill has its first line as the title."""
        texts = {name: str(known.get(name) or "") for name in ("title", "topic", "summary")}
        head = cls(procedure="", title=texts["title"], summary=texts["summary"])._head
        if not texts["title"] or not text.startswith(head):
            # Another verb wrote the text.
            return cls(title=texts["title"] or first_line(text), topic=texts["topic"], procedure=text)
        return cls(
            **texts,
            procedure=text.removeprefix(head),
            citations=_read_citations(known.get("citations")),
            source=_read_source(known.get(WRITTEN)),
            source_chat_id=None if (chat := known.get("source_chat_id")) is None else str(chat),
            observed_at=_read_time(known.get("observed_at")),
        )


def first_line(text: str, most: int = _FIRST_LINE_CHARS) -> str:
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


# Metadata may come from anywhere: a value that is none of ours counts as missing.


def _read_citations(value: object) -> tuple[str, ...]:
    try:
        found = json.loads(value) if isinstance(value, str) else ()
    except ValueError:
        return ()
    return tuple(str(each) for each in found[:MAX_CITATIONS]) if isinstance(found, list) else ()


def _read_source(value: object) -> SkillSource:
    return SkillSource(str(value)) if value in set(SkillSource) else SkillSource.MANUAL


def _read_time(value: object) -> datetime | None:
    try:
        return checked_iso_time(datetime.fromisoformat(value), "observed_at") if isinstance(value, str) else None
    except (ValueError, InvalidTimestamp):
        return None


# --- state ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SkillState:
    """The state of a skill that changes without a new text. `last_used_at` is the time of the last counted use.

    A skill that `needs_approval` was learned from external content, or on weak evidence: an operator enables it.
    """

    name: str
    enabled: bool = True
    needs_approval: bool = False
    revision_pending: bool = False
    use_count: int = 0
    validated_success_count: int = 0
    mismatch_count: int = 0
    last_used_at: datetime | None = None
    last_outcome_note: str | None = None

    def with_use(self, at: datetime, outcome: ReuseOutcome, note: str | None = None) -> SkillState:
        """Return the state after a use. A success ends a pending revision; a mismatch asks for one."""
        counted = self.last_used_at is None or at - self.last_used_at >= USE_INTERVAL
        succeeded, failed = outcome is ReuseOutcome.SUCCEEDED, outcome is ReuseOutcome.MISMATCH
        return replace(
            self,
            use_count=self.use_count + counted,
            last_used_at=at if counted else self.last_used_at,
            validated_success_count=self.validated_success_count + succeeded,
            mismatch_count=self.mismatch_count + failed,
            revision_pending=failed or (self.revision_pending and not succeeded),
            last_outcome_note=(note or "")[:MAX_NOTE_CHARS].strip() or self.last_outcome_note,
        )

    def with_new_text(self) -> SkillState:
        """Return the state after a new text: the revision that a mismatch asked for was made."""
        return replace(self, revision_pending=False)


def quality_of(content: SkillContent, state: SkillState) -> int:
    """Return the quality of a skill, 0 to 100: how well it is described, and how well it did."""
    lines = sum(bool(line.strip()) for line in content.procedure.splitlines())
    score = (
        20
        + 18 * bool(content.summary)
        + 10 * min(len(content.citations), 4)
        + 6 * min(state.use_count, 5)
        + 5 * min(state.validated_success_count, 4)
        + 14 * (lines >= 2)
        + 6 * (content.source_chat_id is not None)
        - 4 * min(state.mismatch_count, 3)
        - 6 * state.revision_pending
    )
    return max(0, min(100, score))


def status_of(content: SkillContent, state: SkillState, updated_at: datetime, now: datetime) -> SkillStatus:
    """Return the standing of a skill. Only a new text, a use or its outcome can end that it is of low value."""
    old = now - max(updated_at, state.last_used_at or updated_at) > STALE_AFTER
    failures = state.mismatch_count - state.validated_success_count
    if state.revision_pending and (failures >= MOST_FAILURES or quality_of(content, state) < LEAST_QUALITY):
        return SkillStatus.RETIRED if old else SkillStatus.LOW_VALUE
    return SkillStatus.STALE if old else SkillStatus.ACTIVE


def visibility_of(content: SkillContent, state: SkillState, at: datetime) -> Status:
    """Return the status of the memory: quarantined, so that nothing recalls it, unless the skill may be recalled.

    Time alone changes nothing of it.
    """
    recalled = state.enabled and not state.needs_approval and status_of(content, state, at, at) not in UNRECALLED
    return Status.ACCEPTED if recalled else Status.QUARANTINED
