"""Requests and reports of transcript operations.

Requests are not validated here; the verb does so after authorization, so that a refusal leaves its audit row. Roles,
views, transitions and the like may be given as enum members or as texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from holdfast.domain.checks import Metadata
from holdfast.domain.derived_refs import DerivedMemoryRef, RepairIssue
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import JobId, MessageId, TurnId
from holdfast.domain.lifecycle import Disposition, LifecycleReport, ModeInput
from holdfast.domain.presentable import Presentable
from holdfast.domain.redaction import RedactedTranscriptSlice, TranscriptRedactionReportItem
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    ConversationKey,
    HostOpaqueRef,
    SkippedReason,
    TranscriptState,
    Transition,
    View,
)

DEFAULT_PAGE = 16
DEFAULT_LEDGER = 8
AT_LEISURE = ModeInput()

# --- commit -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message as a host gives it. Without an authority, its role decides it."""

    text: str
    role: str = "user"
    message_id: str | None = None
    sender: str | None = None
    authority: str | None = None
    said_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptTurnInput:
    """A turn to commit as it is. The host's `turn_id` makes a repeated commit idempotent.

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
class MemoryTranscriptCommitReport(Presentable):
    """The result of one commit. The counts are of turns ever committed to the conversation, forgotten ones included.

    `turn_id` is the id to refer to the turn by. If nothing was committed, `skipped_reason` has the reason, and turn and
    sequence are those of the existing turn, if any.
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
    """The path of a turn into the host. Stored with its messages, as metadata."""

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
    """A finished turn as a host delivers it: its input, which may begin with the history, and its outcome.

    A text among the messages is a message of the user.
    """

    turn_id: str
    delivery_status: str
    input_messages: tuple[TurnMessage | str, ...]
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
class SessionCommit(Presentable):
    """The transcript's commit in the place of a session's: there are no sessions beside the transcript."""

    committed: bool
    skipped_reason: SkippedReason | None
    reason: str = "sessions_are_the_transcript"


@dataclass(frozen=True, slots=True)
class TurnMaintenance(Presentable):
    """The maintenance of a turn: the job that learns from it, or the reason why none does, and when to retry."""

    disposition: Disposition
    reason: str | None = None
    retry_after_ms: int | None = None
    job_id: JobId | None = None


@dataclass(frozen=True, slots=True)
class PrivateGardenSelfWork(Presentable):
    performed: bool = False
    reason: str = "no_private_garden_work_is_built"


@dataclass(frozen=True, slots=True)
class TurnGovernance(Presentable):
    """Always empty: a commit judges no candidates. Maintenance of the turn proposes and judges them."""

    candidate_ids: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    reason: str = "candidates_are_governed_by_write_and_maintenance"


@dataclass(frozen=True, slots=True)
class FinalizeReport(Presentable):
    session_commit: SessionCommit
    transcript_commit: MemoryTranscriptCommitReport
    maintenance: TurnMaintenance
    private_garden_self_work: PrivateGardenSelfWork
    semantic_governance: TurnGovernance
    lifecycle_report: LifecycleReport


# --- replay and export ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTranscriptReplayRequest:
    """A page of a conversation, oldest turn first. `cursor` is the `next_cursor` of the page before."""

    view: str
    scope: MemoryScope | None = None
    limit: int = DEFAULT_PAGE
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryTranscriptReplayReport(Presentable):
    """`profile_budget_applied` if the profile made the page, or a list in it, shorter than requested."""

    key: ConversationKey
    view: View
    slice: RedactedTranscriptSlice
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
    """As a replay report. If the host's mode does not admit the export, it has no turns; see the lifecycle report."""

    citations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryReplayRequest:
    """Request the ledger of a chat's last turns; without a chat, of the conversation that was committed last."""

    chat_id: str | None = None
    limit: Annotated[int, "At most so many turns."] = DEFAULT_LEDGER
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry(Presentable):
    """A turn without its text."""

    sequence: int
    turn_id: TurnId
    state: TranscriptState
    messages: int
    host_refs: int
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryReplayReport(Presentable):
    """The last turns, oldest first, and the total number. `inspection_only`: nothing is executed again."""

    key: ConversationKey
    entries: tuple[LedgerEntry, ...]
    total_turns: int
    inspection_only: bool
    profile_budget_applied: bool
    lifecycle_report: LifecycleReport


# --- lifecycle --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryTranscriptLifecycleRequest:
    """One turn, or without a `turn_id` the whole conversation. The event log stores `reason`: quote no content."""

    transition: str
    reason: str
    scope: MemoryScope | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class AffectedHostRef(Presentable):
    """A host reference of an affected turn, by its index, as far as the caller may see it."""

    turn_id: TurnId
    index: int
    ref: HostOpaqueRef


@dataclass(frozen=True, slots=True)
class MemoryTranscriptLifecycleReport(Presentable):
    """The effects of a transition. Counts and turn ids are complete; other lists are limited by the profile's budget.

    Affected are turns whose state changed; in a review, which changes nothing, those that were examined. Turns for
    which the transition is not possible count as `refused_turns`. Memories that derive from affected turns are listed,
    and stay. `scrubbed` if the bytes of deleted texts are gone from the files, too; otherwise a job removes them.
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
    host_ref_redactions: tuple[TranscriptRedactionReportItem, ...]
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
class MemoryTranscriptRepairReport(Presentable):
    """Issues between turns and the memories that derive from them.

    `fail_closed` if there is any: what rests on the broken ones is not recalled.
    """

    key: ConversationKey
    checked_turns: int
    checked_derived_refs: int
    issues: tuple[RepairIssue, ...]
    profile_budget_applied: bool
    fail_closed: bool
    lifecycle_report: LifecycleReport
