"""Redaction of transcripts: the one place that decides it, for every view, message, host reference and label.

The tables `STATES`, `AUTHORITIES` and `REFERENCES` decide, with a cell per view. A value that they do not name is an
error, never shown. A budget can only show less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NamedTuple, TypeVar

from holdfast.domain.checks import checked_whole
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.presentable import Presentable
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    ConversationKey,
    HostOpaqueRef,
    HostRefVisibility,
    TranscriptMessage,
    TranscriptState,
    TranscriptTurn,
    View,
    checked_member,
)

MAX_BUDGET = 1_000_000

Cell = TypeVar("Cell")
Item = TypeVar("Item")


class RedactionReason(StrEnum):
    LIFECYCLE_MASKED = "lifecycle_masked"
    RAW_DELETED = "raw_deleted"
    PRIVATE_AUTHORITY = "private_authority"
    OPERATOR_ONLY = "operator_only"
    HOST_REF_VISIBILITY = "host_ref_visibility"
    HOST_REF_LABEL = "host_ref_label"
    PROFILE_BUDGET = "profile_budget"
    MODEL_CONTEXT_POLICY = "model_context_policy"


class RefShown(IntEnum):
    """The shown part of a host reference; a smaller value shows less."""

    NOTHING = 0
    WITHOUT_LABEL = 1
    WITH_LABEL = 2


class StateRule(NamedTuple):
    """The rule of a state in a view: the reason if no message is shown, and the most that is shown of a reference."""

    messages: RedactionReason | None
    references: RefShown


# --- the tables -------------------------------------------------------------------------------------------------------


def _row(*cells: Cell) -> dict[View, Cell]:
    return dict(zip(View, cells, strict=True))


_OPEN = StateRule(None, RefShown.WITH_LABEL)
# A reference only names an object of the host; its label is text, and may reveal content.
_MASK = StateRule(RedactionReason.LIFECYCLE_MASKED, RefShown.WITHOUT_LABEL)
_GONE = StateRule(RedactionReason.RAW_DELETED, RefShown.WITHOUT_LABEL)
# A model sees nothing of an archived turn, and nothing more once it is masked or deleted.
_AWAY = StateRule(RedactionReason.MODEL_CONTEXT_POLICY, RefShown.NOTHING)
_MASK_MODEL = StateRule(RedactionReason.LIFECYCLE_MASKED, RefShown.NOTHING)
_GONE_MODEL = StateRule(RedactionReason.RAW_DELETED, RefShown.NOTHING)

STATES: Mapping[TranscriptState, Mapping[View, StateRule]] = {
    #                                 raw    model        host   operator export
    TranscriptState.ACTIVE:      _row(_OPEN, _OPEN,       _OPEN, _OPEN, _OPEN),
    TranscriptState.ARCHIVED:    _row(_OPEN, _AWAY,       _OPEN, _OPEN, _OPEN),
    TranscriptState.MASKED:      _row(_MASK, _MASK_MODEL, _MASK, _MASK, _MASK),
    TranscriptState.RAW_DELETED: _row(_GONE, _GONE_MODEL, _GONE, _GONE, _GONE),
}  # fmt: skip

_SHOWN = None
_PRIVATE = RedactionReason.PRIVATE_AUTHORITY
_OPERATOR = RedactionReason.OPERATOR_ONLY

AUTHORITIES: Mapping[Authority, Mapping[View, RedactionReason | None]] = {
    #                                         raw     model     host      operator  export
    Authority.USER_ASSERTED:            _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.ASSISTANT_UTTERANCE:      _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.ASSISTANT_SELF_CLAIM:     _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.RUNTIME_OBSERVATION:      _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.WORLD_OBSERVATION:        _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.PROGRAM_MEMORY_CANONICAL: _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.ARCHIVE_EVIDENCE:         _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.SUBJECT_PROJECTION:       _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.SOUL_GOVERNANCE:          _row(_SHOWN, _PRIVATE,  _PRIVATE,  _PRIVATE,  _PRIVATE),
    Authority.PRIVATE_GARDEN_INTERNAL:  _row(_SHOWN, _PRIVATE,  _PRIVATE,  _PRIVATE,  _PRIVATE),
    Authority.OPERATOR_DIAGNOSTIC:      _row(_SHOWN, _OPERATOR, _OPERATOR, _OPERATOR, _OPERATOR),
    Authority.EXTERNAL_CONTENT:         _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
    Authority.LEGACY_TRANSCRIPT:        _row(_SHOWN, _SHOWN,    _SHOWN,    _SHOWN,    _SHOWN),
}  # fmt: skip

# Their messages are the operator's own, unless the host labels them with another authority.
OPERATOR_ROLES = frozenset({Role.TOOL, Role.SYSTEM})


def authority_reason(authority: Authority, role: Role, view: View) -> RedactionReason | None:
    """Return the reason why a view withholds a message of an open turn; None if it shows it."""
    # What plain `add` stored has no label.
    unlabelled = authority is Authority.LEGACY_TRANSCRIPT and role in OPERATOR_ROLES
    return AUTHORITIES[Authority.OPERATOR_DIAGNOSTIC if unlabelled else authority][view]


_NONE = RefShown.NOTHING
_BARE = RefShown.WITHOUT_LABEL
_FULL = RefShown.WITH_LABEL

REFERENCES: Mapping[HostRefVisibility, Mapping[View, RefShown]] = {
    #                                  raw    model  host   operator export
    HostRefVisibility.INTERNAL:       _row(_FULL, _NONE, _NONE, _NONE, _NONE),
    HostRefVisibility.HOST_UI:        _row(_FULL, _NONE, _FULL, _BARE, _NONE),
    HostRefVisibility.MODEL_CONTEXT:  _row(_FULL, _BARE, _NONE, _NONE, _NONE),
    HostRefVisibility.OPERATOR_AUDIT: _row(_FULL, _NONE, _NONE, _BARE, _NONE),
    HostRefVisibility.EXPORT:         _row(_FULL, _NONE, _BARE, _BARE, _BARE),
}  # fmt: skip


# --- budgets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TranscriptGovernanceBudget:
    """Limits of one response about transcripts. They cut what the tables allow, and never allow anything."""

    page_size: int
    host_refs_per_turn: int
    redaction_items: int
    derived_refs: int
    repair_issues: int

    def __post_init__(self) -> None:
        for part in fields(self):
            checked_whole(getattr(self, part.name), part.name, 1, MAX_BUDGET)

    def tighten(self, other: TranscriptGovernanceBudget) -> TranscriptGovernanceBudget:
        """Return the smaller value of each part: no request widens what a profile allows."""
        return TranscriptGovernanceBudget(
            *(min(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        )


def clip_items(items: Sequence[Item], most: int) -> tuple[tuple[Item, ...], bool]:
    """Return the first items that fit, and whether any were cut."""
    return tuple(items[:most]), len(items) > most


# --- redacted turns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TranscriptRedactionReportItem(Presentable):
    """A withheld message, host reference (by its index in the turn) or label, with the reason.

    If the reference itself is shown, the item means its label.
    """

    reason: RedactionReason
    turn_id: TurnId
    message_id: MessageId | None = None
    host_ref: int | None = None


@dataclass(frozen=True, slots=True)
class TranscriptReplayAudit(Presentable):
    """Totals and withheld counts, taken before any list is clipped, so that nothing is hidden."""

    turns: int = 0
    messages: int = 0
    redacted_messages: int = 0
    host_refs: int = 0
    redacted_host_refs: int = 0
    redacted_labels: int = 0

    def __add__(self, other: TranscriptReplayAudit) -> TranscriptReplayAudit:
        return TranscriptReplayAudit(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


@dataclass(frozen=True, slots=True)
class RedactedMessage(Presentable):
    """A message as a view shows it. A withheld one has a reason, but no text and no authority."""

    id: MessageId
    role: Role
    text: str | None
    authority: Authority | None
    redaction: RedactionReason | None = None


@dataclass(frozen=True, slots=True)
class RedactedHostRef(Presentable):
    """A host reference that a view shows, with its index in the turn. Its label is None if absent or withheld."""

    index: int
    ref: HostOpaqueRef


@dataclass(frozen=True, slots=True)
class RedactedTurn(Presentable):
    """One turn as a view shows it, with the list of what was withheld."""

    view: View
    id: TurnId
    sequence: int
    key: ConversationKey
    state: TranscriptState
    committed_at: datetime
    attribution: ActorAttribution
    messages: tuple[RedactedMessage, ...]
    host_refs: tuple[RedactedHostRef, ...]
    redactions: tuple[TranscriptRedactionReportItem, ...]
    audit: TranscriptReplayAudit
    profile_budget_applied: bool


@dataclass(frozen=True, slots=True)
class RedactedTranscriptSlice(Presentable):
    """Turns in one view. The redaction items of all turns together stay within the budget."""

    view: View
    turns: tuple[RedactedTurn, ...]
    audit: TranscriptReplayAudit
    profile_budget_applied: bool

    @property
    def redactions(self) -> tuple[TranscriptRedactionReportItem, ...]:
        return tuple(item for turn in self.turns for item in turn.redactions)


def redact_turn(turn: TranscriptTurn, view: View, budget: TranscriptGovernanceBudget) -> RedactedTurn:
    """Return `turn` as `view` shows it. Transcripts are only ever shown in this form, never as the turn itself."""
    return _redact(turn, checked_member(View, view, "view"), budget.host_refs_per_turn, budget.redaction_items)


def redact_turns(
    turns: Iterable[TranscriptTurn], view: View, budget: TranscriptGovernanceBudget
) -> RedactedTranscriptSlice:
    """Return a page of turns as `view` shows them, each as by `redact_turn`."""
    view = checked_member(View, view, "view")
    page, cut = clip_items(tuple(turns), budget.page_size)
    shown: list[RedactedTurn] = []
    room = budget.redaction_items
    for turn in page:
        shown.append(_redact(turn, view, budget.host_refs_per_turn, room))
        room -= len(shown[-1].redactions)
    audit = sum((turn.audit for turn in shown), TranscriptReplayAudit())
    return RedactedTranscriptSlice(view, tuple(shown), audit, cut or any(turn.profile_budget_applied for turn in shown))


def _redact(turn: TranscriptTurn, view: View, most_refs: int, most_items: int) -> RedactedTurn:
    rule = STATES[turn.state][view]
    messages = tuple(_message(message, rule, view) for message in turn.messages)
    withheld = [
        TranscriptRedactionReportItem(shown.redaction, turn.id, shown.id) for shown in messages if shown.redaction
    ]
    references = _references(turn, rule, view, most_refs)
    items, cut = clip_items([*withheld, *references.items], most_items)
    audit = TranscriptReplayAudit(
        turns=1,
        messages=len(messages),
        redacted_messages=len(withheld),
        host_refs=len(turn.host_refs),
        redacted_host_refs=len(turn.host_refs) - len(references.shown),
        redacted_labels=references.labels,
    )
    return RedactedTurn(
        view=view,
        id=turn.id,
        sequence=turn.sequence,
        key=turn.key,
        state=turn.state,
        committed_at=turn.committed_at,
        attribution=turn.attribution,
        messages=messages,
        host_refs=tuple(references.shown),
        redactions=items,
        audit=audit,
        profile_budget_applied=cut or references.cut,
    )


def _message(message: TranscriptMessage, rule: StateRule, view: View) -> RedactedMessage:
    # Look up always, so that an authority without a rule is an error in every state.
    by_authority = authority_reason(message.authority, message.role, view)
    reason = rule.messages or by_authority
    if reason is None and message.superseded and view is View.MODEL_CONTEXT:
        # People may still read the message; a model gets only the correction.
        reason = RedactionReason.MODEL_CONTEXT_POLICY
    if reason is not None:
        return RedactedMessage(message.id, message.role, None, None, reason)
    return RedactedMessage(message.id, message.role, message.text, message.authority)


@dataclass(slots=True)
class _References:
    """The redacted references of a turn. `labels` counts labels withheld from shown references."""

    shown: list[RedactedHostRef] = field(default_factory=list)
    items: list[TranscriptRedactionReportItem] = field(default_factory=list)
    labels: int = 0
    cut: bool = False


def _references(turn: TranscriptTurn, rule: StateRule, view: View, most: int) -> _References:
    found = _References()
    for index, ref in enumerate(turn.host_refs):
        by_visibility = REFERENCES[ref.visibility][view]
        level = min(by_visibility, rule.references)
        # The state is the stronger reason: report it even if the reference's own visibility gives the same result.
        by_state = rule.messages if level == rule.references else None
        if level is RefShown.NOTHING:
            reason = by_state or RedactionReason.HOST_REF_VISIBILITY
            found.items.append(TranscriptRedactionReportItem(reason, turn.id, host_ref=index))
        elif len(found.shown) == most:
            found.cut = True
            found.items.append(TranscriptRedactionReportItem(RedactionReason.PROFILE_BUDGET, turn.id, host_ref=index))
        elif level is RefShown.WITHOUT_LABEL and ref.label is not None:
            found.shown.append(RedactedHostRef(index, replace(ref, label=None)))
            found.labels += 1
            reason = by_state or RedactionReason.HOST_REF_LABEL
            found.items.append(TranscriptRedactionReportItem(reason, turn.id, host_ref=index))
        else:
            found.shown.append(RedactedHostRef(index, ref))
    return found
