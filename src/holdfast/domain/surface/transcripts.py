"""What hosts ask of transcripts, and the reports they get.

Requests are as hosts give them; nothing is checked here but by the verb behind the gate, so that what is refused leaves
its operation row. Names of roles, views, transitions and the like may be given as members or as texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from holdfast.domain.derived import DerivedMemoryRef, RepairIssue
from holdfast.domain.governed import (
    ActorAttribution,
    ConversationKey,
    HostOpaqueRef,
    SkippedReason,
    TranscriptState,
    Transition,
    View,
)
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import JobId, MessageId, TurnId
from holdfast.domain.lifecycle import Disposition, LifecycleReport, ModeInput
from holdfast.domain.redaction import RedactedSlice, RedactionItem

DEFAULT_PAGE = 16
DEFAULT_LEDGER = 8
AT_LEISURE = ModeInput()

# --- what is committed ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message as a host gives it. Without an authority it rests on what its role says."""

    text: str
    role: str = "user"
    message_id: str | None = None
    sender: str | None = None
    authority: str | None = None
    said_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptTurnInput:
    """A turn that is to be committed as it is. The host's `turn_id` makes it safe to commit again.

    Without a `conversation` it belongs to the one that was committed last.
    """

    turn_id: str
    messages: tuple[TurnMessage, ...]
    conversation: MemoryScope | None = None
    attribution: ActorAttribution | None = None
    delivery_status: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryTranscriptCommitRequest:
    turn: TranscriptTurnInput
    host_refs: tuple[HostOpaqueRef, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryTranscriptCommitReport:
    """What became of one turn. The counts are of turns ever committed to the conversation, forgotten ones included.

    `turn_id` is the one to refer to it by. Where nothing was committed, `skipped_reason` says why, and the turn and
    sequence are those of the turn that was there, if one was.
    """

    key: ConversationKey
    turn_id: str
    sequence: int | None
    committed: bool
    before_count: int
    after_count: int
    skipped_reason: SkippedReason | None
    message_ids: tuple[MessageId, ...]
    lifecycle_report: LifecycleReport


class TurnProtocol(StrEnum):
    OPEN_AI_CHAT = "open_ai_chat"
    OPEN_AI_RESPONSES = "open_ai_responses"
    OLLAMA_CHAT = "ollama_chat"
    OLLAMA_GENERATE = "ollama_generate"
    NATIVE = "native"


@dataclass(frozen=True, slots=True)
class TurnSource:
    """What a turn came through. Kept with its messages, as metadata."""

    ingress: str | None = None
    channel: str | None = None
    provider: str | None = None
    protocol: str | None = None
    endpoint: str | None = None
    model_alias: str | None = None
    model_resolved: str | None = None
    request_id: str | None = None
    client_conversation_hint: str | None = None


@dataclass(frozen=True, slots=True)
class CanonicalTurnDelta:
    """What a host delivers when a turn is over: its input, which may begin with its history, and what came of it."""

    turn_id: str
    delivery_status: str
    input_messages: tuple[TurnMessage, ...]
    assistant_message: TurnMessage | str | None = None
    conversation: MemoryScope | None = None
    subject: str | None = None
    source: TurnSource = TurnSource()
    tool_observations: tuple[TurnMessage | str, ...] = ()
    external_content_used: bool = False
    candidate_ids: tuple[str, ...] = ()
    actor: ActorAttribution | None = None
    host_refs: tuple[HostOpaqueRef, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionCommit:
    """There is one memory and no session beside it: whoever looks for the session's commit finds the transcript's."""

    committed: bool
    skipped_reason: SkippedReason | None
    reason: str = "sessions_are_the_transcript"


@dataclass(frozen=True, slots=True)
class TurnMaintenance:
    """Whether the turn is to be learned from: by which job, or why not, and when to ask again."""

    disposition: Disposition
    reason: str | None = None
    retry_after_ms: int | None = None
    job_id: JobId | None = None


@dataclass(frozen=True, slots=True)
class PrivateGardenSelfWork:
    performed: bool = False
    reason: str = "no_private_garden_work_is_built"


@dataclass(frozen=True, slots=True)
class TurnGovernance:
    """A commit governs no candidate: what the turn teaches is proposed by its maintenance, and judged there."""

    candidate_ids: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    reason: str = "candidates_are_governed_by_write_and_maintenance"


@dataclass(frozen=True, slots=True)
class FinalizeReport:
    session_commit: SessionCommit
    transcript_commit: MemoryTranscriptCommitReport
    maintenance: TurnMaintenance
    private_garden_self_work: PrivateGardenSelfWork
    semantic_governance: TurnGovernance
    lifecycle_report: LifecycleReport


# --- what is shown ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTranscriptReplayRequest:
    """A page of a conversation, oldest turn first. `cursor` is the `next_cursor` of the page before."""

    view: str
    scope: MemoryScope | None = None
    limit: int = DEFAULT_PAGE
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryTranscriptReplayReport:
    """`profile_budget_applied` says that the profile made the page, or what it lists, shorter than was asked for."""

    key: ConversationKey
    view: View
    slice: RedactedSlice
    next_cursor: str | None
    has_more: bool
    profile_budget_applied: bool
    lifecycle_report: LifecycleReport


@dataclass(frozen=True, slots=True)
class MemoryTranscriptExportRequest:
    scope: MemoryScope | None = None
    limit: int = DEFAULT_PAGE
    cursor: str | None = None
    view: str = View.EXPORT
    mode_input: ModeInput = AT_LEISURE


@dataclass(frozen=True, slots=True)
class MemoryTranscriptExportReport(MemoryTranscriptReplayReport):
    """As of a replay. If the host's mode does not let it out, there are no turns, and the lifecycle report says why."""

    citations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryReplayRequest:
    """The ledger of a chat's last turns. Without a chat, of the conversation that was committed last."""

    chat_id: str | None = None
    limit: int = DEFAULT_LEDGER
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A turn without a word of what was said in it."""

    sequence: int
    turn_id: TurnId
    state: TranscriptState
    messages: int
    host_refs: int
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryReplayReport:
    """The last turns, oldest first, and how many there are in all. `inspection_only`: nothing is played again."""

    key: ConversationKey
    entries: tuple[LedgerEntry, ...]
    total_turns: int
    inspection_only: bool
    profile_budget_applied: bool
    lifecycle_report: LifecycleReport


# --- how it lives -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTranscriptLifecycleRequest:
    """One turn, or without a `turn_id` the whole conversation. The reason is kept in the event log: name no content."""

    transition: str
    reason: str
    scope: MemoryScope | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class AffectedHostRef:
    """A host reference of an affected turn, by its place in it, as far as who asks may see it."""

    turn_id: TurnId
    index: int
    ref: HostOpaqueRef


@dataclass(frozen=True, slots=True)
class MemoryTranscriptLifecycleReport:
    """What a transition touched. The counts and the turns' ids are whole; the other lists keep to the profile's budget.

    Affected are turns that went into another state; in a review, which changes nothing, those that were looked at.
    Turns for which the transition is not possible are counted as `refused_turns`. Memories that derive from affected
    turns are told, and stay. `scrubbed` says whether the bytes of deleted texts are gone from files too; a job sees
    to them otherwise.
    """

    key: ConversationKey
    transition: Transition
    changed: bool
    affected_turns: int
    affected_messages: int
    refused_turns: int
    affected_turn_ids: tuple[TurnId, ...]
    affected_message_ids: tuple[MessageId, ...]
    affected_host_refs: tuple[AffectedHostRef, ...]
    redacted_host_refs: int
    host_ref_redactions: tuple[RedactionItem, ...]
    derived_memory_refs: tuple[DerivedMemoryRef, ...]
    profile_budget_applied: bool
    reason: str
    requested_by: str
    requested_at: datetime
    scrubbed: bool | None
    lifecycle_report: LifecycleReport


@dataclass(frozen=True, slots=True)
class MemoryTranscriptRepairRequest:
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class MemoryTranscriptRepairReport:
    """What is broken between turns and what rests on them. `fail_closed`: with any issue, none of it is relied upon."""

    key: ConversationKey
    checked_turns: int
    checked_derived_refs: int
    issues: tuple[RepairIssue, ...]
    profile_budget_applied: bool
    fail_closed: bool
    lifecycle_report: LifecycleReport
