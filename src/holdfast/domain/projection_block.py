"""Assembly of the memory block for a model: sections of lines, one record per line, within a budget.

Pure: the same records, messages and budget give the same block. A line has no line breaks, so it cannot imitate
another line or a heading. A shortened record is marked, and the audit has the reason for every omission.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from holdfast.domain.agent_skills import CUT, AgentSkillHit, ProjectedAgentSkill
from holdfast.domain.capabilities import Capability, Gate
from holdfast.domain.field_copies import copy_fields
from holdfast.domain.ids import MessageId
from holdfast.domain.lifecycle import Admission, ModeInput
from holdfast.domain.memory import GUARDED_PLANES, Plane
from holdfast.domain.presentable import Presentable
from holdfast.domain.recall_policy import Selection, select_hits
from holdfast.domain.reference_message import LABEL, bracket, origin, record_line
from holdfast.domain.results import Hit, HitKind
from holdfast.domain.runtime_api.tools import AgentToolHint, ProjectedAgentTool
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority
from holdfast.domain.visible_text import one_line

# A line whose text would be cut to less than this is left out instead.
LEAST_SHOWN_CHARS = 40
# One record, and one provenance, may fill at most this fraction (1/n) of the room for records.
_RECORD_SHARE = 2
_SOURCE_SHARE = 2
# The last messages may fill this fraction (1/n) of the room before the records are placed.
_RECENT_SHARE = 3
# Summaries of skills may fill this fraction (1/n) of it, and hints of tools this one. They crowd nothing out of it.
_SKILLS_SHARE = 6
_TOOLS_SHARE = 8


class SectionName(StrEnum):
    """The sections of a block."""

    MEMORIES = "memories"
    PROCEDURES = "procedures"
    EPISODES = "episodes"
    DOCUMENTS = "documents"
    PRIVATE = "private"
    EVIDENCE = "evidence"
    SKILLS = "agent_skills"
    TOOLS = "agent_tools"
    RECENT = "recent"


HEADINGS = {
    SectionName.MEMORIES: "## Memories",
    SectionName.PROCEDURES: "## Procedures",
    SectionName.EPISODES: "## Episodes",
    SectionName.DOCUMENTS: "## From documents",
    SectionName.PRIVATE: "## Private",
    SectionName.EVIDENCE: "## Said earlier in this conversation",
    SectionName.SKILLS: "## Skills of the host (summaries; only the host can run them)",
    SectionName.TOOLS: "## Tools that worked before (hints; only the host can permit and run them)",
    SectionName.RECENT: "## Last messages of this conversation",
}
_SECTION_OF = {
    Plane.LONG_TERM: SectionName.MEMORIES,
    Plane.SHARED_FACT: SectionName.MEMORIES,
    Plane.PROCEDURAL: SectionName.PROCEDURES,
    Plane.EPISODE: SectionName.EPISODES,
    Plane.RESOURCE: SectionName.DOCUMENTS,
    Plane.PRIVATE: SectionName.PRIVATE,
    Plane.SOUL_CANDIDATE: SectionName.PRIVATE,
}
# Messages are on no plane: sources of their own, for search hits and for the last messages.
TRANSCRIPT = "transcript"
RECENT = "recent_messages"
SKILLS = "agent_skills"
TOOLS = "agent_tools"
# A caveat shown after the role of a message.
_CAVEATS = {
    Authority.EXTERNAL_CONTENT: ", external content",
    Authority.ASSISTANT_SELF_CLAIM: ", about itself",
}


class OmissionReason(StrEnum):
    """The reason why a record was left out, or why a source contributed nothing."""

    NO_MATCH = "no_match"
    NO_CONVERSATION = "no_conversation"
    NOT_REQUESTED = "not_requested"
    PRIVATE_GATE = "private_gate_closed"
    BUDGET = "budget"
    SOURCE_SHARE = "source_share"
    COVERED = "covered_by_memory"
    BY_MESSAGE = "covered_by_message"
    FLOOR = "below_floor"
    SMALL_TALK = "small_talk"
    QUESTION = "only_asks"
    REPEATED = "repeated"
    OUTDATED = "outdated"
    RECENT = "among_the_last_messages"
    BROKEN = "broken_evidence"


# --- the private gate -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrivateGate(Presentable):
    """The decision whether memories of guarded planes may be shown: requested, and allowed by all four."""

    requested: bool
    privacy_policy_allowed: bool
    lifecycle_private_depth_allowed: bool
    runtime_private_context_allowed: bool
    foreground_disclosure_allowed: bool
    # The first condition that keeps it closed, or "allowed"; derived from the other fields.
    reason: str = field(init=False)

    def __post_init__(self) -> None:
        keeps_closed = {
            "not_requested": not self.requested,
            "privacy_policy": not self.privacy_policy_allowed,
            "runtime_private_context": not self.runtime_private_context_allowed,
            "foreground_disclosure": not self.foreground_disclosure_allowed,
            "lifecycle_private_depth": not self.lifecycle_private_depth_allowed,
        }
        object.__setattr__(self, "reason", next((name for name, holds in keeps_closed.items() if holds), "allowed"))

    @property
    def open(self) -> bool:
        return self.reason == "allowed"


def private_gate(requested: bool, capability: Capability, admission: Admission, mode: ModeInput) -> PrivateGate:
    """Decide the gate. `capability` is `project_private_planes`."""
    return PrivateGate(
        requested=requested,
        privacy_policy_allowed=capability.privacy,
        lifecycle_private_depth_allowed=admission.private_depth_allowed,
        runtime_private_context_allowed=capability.reason in (None, Gate.PRIVACY),
        foreground_disclosure_allowed=mode.foreground,
    )


# --- the block --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecentMessage(Presentable):
    """One of the conversation's last messages, as a model may see it."""

    id: MessageId
    role: Role
    text: str
    authority: Authority


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A record in the block. `text` is the part that is shown; `cut` if there is more."""

    id: str
    section: SectionName
    source: str
    text: str
    rendered: str
    cut: bool
    hit: Hit | None = None
    recent: RecentMessage | None = None
    skill: AgentSkillHit | None = None
    tool: AgentToolHint | None = None

    @property
    def chars(self) -> int:
        """Length including the line break."""
        return len(self.rendered) + 1


@dataclass(frozen=True, slots=True)
class SectionAudit(Presentable):
    name: SectionName
    chars: int
    included: bool


@dataclass(frozen=True, slots=True)
class SourceAudit(Presentable):
    """Candidates and selected records of one plane or of the transcript; the reason if none was selected."""

    plane: str
    backend: str
    candidate_count: int
    selected_count: int
    selected_ids: tuple[str, ...]
    miss_reason: OmissionReason | None


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """The block for a model and its lines. `text` is empty if there are none.

    `full` if a record found no room: lower-ranked ones would hardly have fitted either.
    """

    text: str
    lines: tuple[BlockLine, ...]
    omitted: dict[OmissionReason, int]
    missed: dict[str, OmissionReason]
    full: bool

    @property
    def is_truncated(self) -> bool:
        """True if a larger budget would have shown more."""
        return OmissionReason.BUDGET in self.omitted or any(line.cut for line in self.lines)

    def sections(self) -> tuple[SectionAudit, ...]:
        """Return the size of each section. Their sum and the label make up the block."""
        audits = (SectionAudit(name, _section_chars(self.lines, name), True) for name in SectionName)
        return tuple(part if part.chars else SectionAudit(part.name, 0, False) for part in audits)

    def lines_of(self, section: SectionName) -> tuple[BlockLine, ...]:
        return tuple(line for line in self.lines if line.section is section)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the text."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


SelectHits: TypeAlias = Callable[[Sequence[Hit]], Selection[Hit]]


def _select_hits(found: Sequence[Hit]) -> Selection[Hit]:
    # One source is limited by characters instead.
    return select_hits(found, len(found), max_source_share=1)


def assemble_block(
    found: Sequence[Hit],
    recent: Sequence[RecentMessage],
    source_chars: int,
    render_chars: int,
    select: SelectHits = _select_hits,
    skills: Sequence[AgentSkillHit] = (),
    tools: Sequence[AgentToolHint] = (),
) -> MemoryBlock:
    """Assemble a block of at most `render_chars` from at most `source_chars` of text.

    `found` is best first, `recent` oldest first. The last messages get up to a third of the room, skills up to a
    sixth, hints of tools up to an eighth, the records the rest, and then the messages what the records left. `select`
    chooses records as in `recall`. Sections and their lines are in the order of relevance.
    """
    room = _BlockBudget(max(0, render_chars - len(LABEL)), source_chars)
    lately = _recent_lines(recent, _BlockBudget(room.render // _RECENT_SHARE, room.source // _RECENT_SHARE))
    hints = [
        *_skill_lines(skills, _BlockBudget(room.render // _SKILLS_SHARE, room.source // _SKILLS_SHARE)),
        *_tool_lines(tools, _BlockBudget(room.render // _TOOLS_SHARE, room.source // _TOOLS_SHARE)),
    ]
    fill = _fill(found, room.without((*lately, *hints)), {line.id for line in lately}, select)
    others = (*fill.lines, *hints)
    lately = _recent_lines(recent, room.without(others), shown={line.id for line in fill.lines})
    lines = _by_section((*others, *lately))
    omitted = fill.omitted
    full = OmissionReason.BUDGET in omitted
    included = {line.id for line in lines}
    unshown = [message for message in recent if message.id not in included]
    if len(hints) < len(skills) + len(tools):
        omitted[OmissionReason.BUDGET] += len(skills) + len(tools) - len(hints)
    if unshown:
        omitted[OmissionReason.BUDGET] += len(unshown)
        fill.missed[RECENT] = OmissionReason.BUDGET
    return MemoryBlock(_render_lines(lines), tuple(lines), dict(omitted), fill.missed, full)


def source_of(hit: Hit) -> str:
    """Return the plane of a memory, or `transcript` for a message."""
    return TRANSCRIPT if hit.kind is HitKind.MESSAGE or hit.plane is None else hit.plane


def audit_sources(
    block: MemoryBlock, found: Iterable[Hit], recent: int, backend: str, gate: PrivateGate, *, in_conversation: bool
) -> tuple[SourceAudit, ...]:
    """Audit every plane, the transcript and the last messages, in a fixed order."""
    candidates = Counter(source_of(hit) for hit in found)
    candidates[RECENT] = recent
    absent: dict[str, OmissionReason] = {}
    if not gate.open:
        closed = OmissionReason.PRIVATE_GATE if gate.requested else OmissionReason.NOT_REQUESTED
        absent.update((plane.value, closed) for plane in GUARDED_PLANES)
    if not in_conversation:
        absent.update({TRANSCRIPT: OmissionReason.NO_CONVERSATION, RECENT: OmissionReason.NO_CONVERSATION})
    audits = []
    for name in (*(plane.value for plane in Plane), TRANSCRIPT, RECENT):
        taken = tuple(line.id for line in block.lines if line.source == name)
        why = None if taken else absent.get(name) or block.missed.get(name) or OmissionReason.NO_MATCH
        audits.append(SourceAudit(name, backend, candidates[name], len(taken), taken, why))
    return tuple(audits)


def audit_skills(block: MemoryBlock, skills: Iterable[AgentSkillHit]) -> tuple[ProjectedAgentSkill, ...]:
    """Audit the skills that matched: each with the length of its text in the block."""
    lines = {line.skill: line for line in block.lines if line.skill is not None}
    return tuple(
        copy_fields(
            ProjectedAgentSkill,
            skill,
            chars=len(lines[skill].text) if skill in lines else 0,
            cut=skill in lines and lines[skill].cut,
        )
        for skill in skills
    )


def audit_tools(block: MemoryBlock, tools: Iterable[AgentToolHint]) -> tuple[ProjectedAgentTool, ...]:
    """Audit the hints of tools: each with the length of its text in the block."""
    lines = {line.tool: line for line in block.lines if line.tool is not None}
    return tuple(
        copy_fields(
            ProjectedAgentTool,
            hint,
            chars=len(lines[hint].text) if hint in lines else 0,
            cut=hint in lines and lines[hint].cut,
        )
        for hint in tools
    )


# --- filling ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BlockBudget:
    """The remaining budget in characters: of the block, and of the source texts."""

    render: int
    source: int

    def without(self, lines: Sequence[BlockLine]) -> _BlockBudget:
        headings = sum(_heading_chars(name) for name in {line.section for line in lines})
        return _BlockBudget(
            self.render - headings - sum(line.chars for line in lines),
            self.source - sum(len(line.text) for line in lines),
        )


@dataclass(slots=True)
class _Fill:
    lines: list[BlockLine] = field(default_factory=list)
    omitted: Counter[OmissionReason] = field(default_factory=Counter)
    missed: dict[str, OmissionReason] = field(default_factory=dict)

    def leave_out(self, hit: Hit, why: OmissionReason) -> None:
        self.omitted[why] += 1
        self.missed.setdefault(source_of(hit), why)


def _fill(found: Sequence[Hit], room: _BlockBudget, recent: set[str], select: SelectHits) -> _Fill:
    fill = _Fill()
    others: list[Hit] = []
    for hit in found:
        if hit.kind is HitKind.MESSAGE and hit.id in recent:
            fill.leave_out(hit, OmissionReason.RECENT)
        else:
            others.append(hit)
    chosen = select(others)
    for hit, why in chosen.left_out:
        fill.leave_out(hit, OmissionReason(why.value))
    by_source, opened = Counter[str](), set[SectionName]()
    # A single record cannot crowd out others.
    widest = room.render // _RECORD_SHARE if len(found) > 1 else room.render
    share = room.render // _SOURCE_SHARE
    for hit in chosen.records:
        section = _section_of(hit)
        heading = 0 if section in opened else _heading_chars(section)
        line = _line_of(hit, section, min(widest, room.render - heading), room.source)
        if line is None:
            fill.leave_out(hit, OmissionReason.BUDGET)
            continue
        if hit.source is not None and by_source[hit.source] + line.chars > share:
            fill.leave_out(hit, OmissionReason.SOURCE_SHARE)
            continue
        if hit.source is not None:
            by_source[hit.source] += line.chars
        opened.add(section)
        fill.lines.append(line)
        room = _BlockBudget(room.render - heading - line.chars, room.source - len(line.text))
    return fill


def _section_of(hit: Hit) -> SectionName:
    if hit.kind is HitKind.MESSAGE or hit.plane is None:
        return SectionName.EVIDENCE
    return _SECTION_OF[hit.plane]


def _recent_lines(
    recent: Sequence[RecentMessage], room: _BlockBudget, shown: Set[str] = frozenset()
) -> list[BlockLine]:
    """Return the last messages that fit, from the end backwards, without those already shown."""
    left = _BlockBudget(room.render - _heading_chars(SectionName.RECENT), room.source)
    lines: list[BlockLine] = []
    for message in reversed(recent):
        if message.id in shown:
            continue
        line = _line_of_message(message, left.render, left.source)
        if line is None:
            break
        lines.append(line)
        left = _BlockBudget(left.render - line.chars, left.source - len(line.text))
        if line.cut:
            break
    return lines[::-1]


def _skill_lines(skills: Sequence[AgentSkillHit], room: _BlockBudget) -> list[BlockLine]:
    left = _BlockBudget(room.render - _heading_chars(SectionName.SKILLS), room.source)
    lines: list[BlockLine] = []
    for skill in skills:
        made = _line(bracket(f"skill {skill.name}", None), skill.snippet, left.render, left.source)
        if made is None:
            break
        lines.append(BlockLine(skill.id, SectionName.SKILLS, SKILLS, *made, skill=skill))
        left = _BlockBudget(left.render - lines[-1].chars, left.source - len(lines[-1].text))
    return lines


def _tool_lines(tools: Sequence[AgentToolHint], room: _BlockBudget) -> list[BlockLine]:
    left = _BlockBudget(room.render - _heading_chars(SectionName.TOOLS), room.source)
    lines: list[BlockLine] = []
    for hint in tools:
        made = _line(bracket(f"tool {hint.tool_id}", None), hint.reason, left.render, left.source)
        if made is None:
            break
        lines.append(BlockLine(hint.id, SectionName.TOOLS, TOOLS, *made, tool=hint))
        left = _BlockBudget(left.render - lines[-1].chars, left.source - len(lines[-1].text))
    return lines


def _by_section(lines: Sequence[BlockLine]) -> list[BlockLine]:
    """Sort into sections, in the order of their best records; the last messages come last."""
    order = {line.section: None for line in lines}
    return [line for section in order for line in lines if line.section is section]


# --- lines ------------------------------------------------------------------------------------------------------------


def _line_of(hit: Hit, section: SectionName, most: int, most_text: int) -> BlockLine | None:
    made = _line(origin(hit), hit.text, most, most_text)
    return None if made is None else BlockLine(hit.id, section, source_of(hit), *made, hit=hit)


def _line_of_message(message: RecentMessage, most: int, most_text: int) -> BlockLine | None:
    made = _line(f"[{message.role}{_CAVEATS.get(message.authority, '')}]", message.text, most, most_text)
    return None if made is None else BlockLine(message.id, SectionName.RECENT, RECENT, *made, recent=message)


def _line(begins: str, text: str, most: int, most_text: int) -> tuple[str, str, bool] | None:
    """Return the shown text, the rendered line, and whether it was cut; None if too little of it would be left.

    `most` includes the line break.
    """
    begins = record_line("-", begins, "")
    room = min(most - len(begins) - 1, most_text)
    if room <= 0:
        return None
    # A text may be very long. Invisible characters are dropped, so take somewhat more than fits.
    head = text[: 2 * room + 100]
    line = one_line(head)
    cut = len(line) > room or len(head) < len(text)
    if cut:
        if room < LEAST_SHOWN_CHARS + len(CUT):
            return None
        line = line[: room - len(CUT)].rstrip() + CUT
    return line, begins + line, cut


def _heading_chars(section: SectionName) -> int:
    return len(HEADINGS[section]) + 1


def _section_chars(lines: Iterable[BlockLine], name: SectionName) -> int:
    chars = sum(line.chars for line in lines if line.section is name)
    return chars + _heading_chars(name) if chars else 0


def _render_lines(lines: Sequence[BlockLine]) -> str:
    if not lines:
        return ""
    parts = [LABEL]
    for name, within in groupby(lines, key=attrgetter("section")):
        parts += [HEADINGS[name], *(line.rendered for line in within)]
    return "\n".join(parts)
