"""Transcripts: turns, their states, and turns as hosts deliver them.

Values and pure decisions. `redaction.py` decides what each view of a turn shows, `resent_history.py` which messages of
a delivered turn are new; the store persists turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum, StrEnum
from typing import NamedTuple, TypeVar

from holdfast.domain.checks import checked_text, checked_whole
from holdfast.domain.ids import MessageId, TurnId, checked_id
from holdfast.domain.memory import Plane
from holdfast.domain.presentable import Presentable
from holdfast.domain.renames import renamed_fields
from holdfast.domain.scope import check_part
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript import Role
from holdfast.errors import InvalidInput

MAX_NAME_CHARS = 256
MAX_LABEL_CHARS = 512
MAX_TURN_MESSAGES = 500
MAX_TURN_HOST_REFS = 256
MAX_SEQUENCE = 2**63 - 1


class View(StrEnum):
    """The audience of a transcript."""

    RAW_OWNER_ONLY = "raw_owner_only"
    MODEL_CONTEXT = "model_context"
    HOST_UI = "host_ui"
    OPERATOR_AUDIT = "operator_audit"
    EXPORT = "export"


class Authority(StrEnum):
    """The authority behind a message: who vouches for it, and how private it is."""

    USER_ASSERTED = "user_asserted"
    ASSISTANT_UTTERANCE = "assistant_utterance"
    ASSISTANT_SELF_CLAIM = "assistant_self_claim"
    RUNTIME_OBSERVATION = "runtime_observation"
    WORLD_OBSERVATION = "world_observation"
    PROGRAM_MEMORY_CANONICAL = "program_memory_canonical"
    ARCHIVE_EVIDENCE = "archive_evidence"
    SUBJECT_PROJECTION = "subject_projection"
    SOUL_GOVERNANCE = "soul_governance"
    PRIVATE_GARDEN_INTERNAL = "private_garden_internal"
    OPERATOR_DIAGNOSTIC = "operator_diagnostic"
    EXTERNAL_CONTENT = "external_content"
    LEGACY_TRANSCRIPT = "legacy_transcript"


# Messages of these authorities are on a guarded plane: only a search that names the plane finds them.
PLANES: Mapping[Authority, Plane] = {
    Authority.PRIVATE_GARDEN_INTERNAL: Plane.PRIVATE,
    Authority.OPERATOR_DIAGNOSTIC: Plane.PRIVATE,
    Authority.SOUL_GOVERNANCE: Plane.SOUL_CANDIDATE,
}


class Relation(StrEnum):
    """The relation of a host's object to a turn."""

    ORIGIN = "origin"
    EVIDENCE_FOR = "evidence_for"
    TRIGGER = "trigger"
    RELATED = "related"


class HostRefVisibility(StrEnum):
    """The audience that the host intended for its reference."""

    INTERNAL = "internal"
    HOST_UI = "host_ui"
    MODEL_CONTEXT = "model_context"
    OPERATOR_AUDIT = "operator_audit"
    EXPORT = "export"


class TranscriptState(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    MASKED = "masked"
    RAW_DELETED = "raw_deleted"


class Transition(StrEnum):
    """A requested change of a transcript's state. A review lists what would be affected and changes nothing."""

    ARCHIVE = "archive"
    RESTORE = "restore"
    MASK = "mask"
    DELETE_RAW = "delete_raw"
    REVIEW = "review"


class DeliveryStatus(StrEnum):
    """The outcome of the answer to a turn."""

    DELIVERED = "delivered"
    USER_ONLY = "user_only"
    UPSTREAM_FAILED = "upstream_failed"
    CANCELLED = "cancelled"
    INCOMPLETE_STREAM = "incomplete_stream"
    REJECTED_BY_POLICY = "rejected_by_policy"


class SkippedReason(StrEnum):
    """The reason why nothing of a delivery was committed."""

    ALREADY_COMMITTED = "canonical_turn_delta_already_committed"
    INCOMPLETE_STREAM = "incomplete_stream"
    REJECTED_BY_POLICY = "rejected_by_policy"
    FORGOTTEN = "forgotten"


Member = TypeVar("Member", bound=Enum)


def checked_member(kind: type[Member], value: object, field: str) -> Member:
    """Return the member with that value, or raise `InvalidInput` that lists them all."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(str(member.value) for member in kind)
    raise InvalidInput(field, f"must be one of {names}, not {value!r:.40}")


@renamed_fields(space="memory_space_id", channel="channel_id", conversation="conversation_id")
@dataclass(frozen=True, slots=True, order=True)
class ConversationKey(Presentable):
    """The key of a conversation. Keys are compared part by part; their text is for people."""

    memory_space_id: str
    channel_id: str
    conversation_id: str

    def __post_init__(self) -> None:
        for field in fields(self):
            check_part(field.name, getattr(self, field.name))

    def __str__(self) -> str:
        """Return the prefix of a citation."""
        parts = (self.memory_space_id, self.channel_id, self.conversation_id)
        return "transcript:" + "/".join(map(_escape, parts))


def citation(key: ConversationKey, turn_id: TurnId, message_id: MessageId | None = None) -> str:
    """Return a readable, unique reference to a turn or to a message of it."""
    message = "" if message_id is None else f"#message={_escape(message_id)}"
    return f"{key}#turn={_escape(turn_id)}{message}"


def _escape(name: str) -> str:
    # Escape the separators of a citation only: a name in any script stays readable.
    return name.replace("%", "%25").replace("/", "%2F").replace("#", "%23")


@dataclass(frozen=True, slots=True)
class ActorAttribution(Presentable):
    """The participants of a turn by role: the speaker may differ from the actor and from the owner of the memory.

    These are names, never message text; every view shows them.
    """

    speaker_id: str | None = None
    speaker_kind: str | None = None
    subject_id: str | None = None
    actor_subject_id: str | None = None
    mounted_subject_id: str | None = None
    agent_id: str | None = None
    triggered_by: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                checked_text(value, field.name, max_chars=MAX_NAME_CHARS)


@dataclass(frozen=True, slots=True)
class HostOpaqueRef(Presentable):
    """An object of the host (a task, a ticket, an order) that a turn refers to. Opaque to Holdfast."""

    host_kind: str
    business_ref_type: str
    business_ref_id: str
    relation: Relation
    visibility: HostRefVisibility
    label: str | None = None

    def __post_init__(self) -> None:
        for name in ("host_kind", "business_ref_type", "business_ref_id"):
            checked_text(getattr(self, name), name, max_chars=MAX_NAME_CHARS)
        object.__setattr__(self, "relation", checked_member(Relation, self.relation, "relation"))
        object.__setattr__(self, "visibility", checked_member(HostRefVisibility, self.visibility, "visibility"))
        if self.label is not None:
            checked_text(self.label, "label", max_chars=MAX_LABEL_CHARS)


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of a turn. `text` is None if the raw content was deleted; `superseded` if a memory corrects it."""

    id: MessageId
    role: Role
    text: str | None
    authority: Authority
    superseded: bool = False

    def __post_init__(self) -> None:
        checked_id(self.id, "message_id")
        object.__setattr__(self, "role", checked_member(Role, self.role, "role"))
        object.__setattr__(self, "authority", checked_member(Authority, self.authority, "authority"))
        if self.text is not None:
            checked_text(self.text, "text")


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """A committed turn. `sequence` grows within its conversation.

    A `raw_deleted` turn may still carry texts: the state holds from the moment of the request, and views go by the
    state. A turn in another state that lacks a text is corrupt and cannot be built.
    """

    id: TurnId
    sequence: int
    key: ConversationKey
    state: TranscriptState
    messages: tuple[TranscriptMessage, ...]
    committed_at: datetime
    host_refs: tuple[HostOpaqueRef, ...] = ()
    attribution: ActorAttribution = ActorAttribution()
    delivery: DeliveryStatus | None = None

    def __post_init__(self) -> None:
        checked_id(self.id, "turn_id")
        checked_whole(self.sequence, "sequence", 0, MAX_SEQUENCE)
        object.__setattr__(self, "state", checked_member(TranscriptState, self.state, "state"))
        object.__setattr__(self, "committed_at", checked_iso_time(self.committed_at, "committed_at"))
        # No upper bound: the messages of one plain `add` are a turn, too.
        checked_whole(len(self.messages), "messages", 1, MAX_SEQUENCE)
        checked_whole(len(self.host_refs), "host_refs", 0, MAX_TURN_HOST_REFS)
        if len({message.id for message in self.messages}) < len(self.messages):
            raise InvalidInput("messages", "two messages have the same id; give each its own")
        if self.state is not TranscriptState.RAW_DELETED and any(message.text is None for message in self.messages):
            raise InvalidInput("messages", f"a text is missing, but the turn is {self.state}, not raw_deleted")


# --- state transitions ------------------------------------------------------------------------------------------------

# The transitions that are possible in each state. Only `restore` leads to a state that shows more: a masked turn cannot
# be archived, which would unmask it. Deleted content stays deleted.
TRANSITIONS: Mapping[TranscriptState, frozenset[Transition]] = {
    TranscriptState.ACTIVE: frozenset(Transition),
    TranscriptState.ARCHIVED: frozenset(Transition),
    TranscriptState.MASKED: frozenset(Transition) - {Transition.ARCHIVE},
    TranscriptState.RAW_DELETED: frozenset({Transition.DELETE_RAW, Transition.REVIEW}),
}
# The state that a transition leads to. A review leaves the state as it is.
_LEADS_TO = {
    Transition.ARCHIVE: TranscriptState.ARCHIVED,
    Transition.RESTORE: TranscriptState.ACTIVE,
    Transition.MASK: TranscriptState.MASKED,
    Transition.DELETE_RAW: TranscriptState.RAW_DELETED,
}


def state_after(state: TranscriptState, transition: Transition) -> TranscriptState | None:
    """Return the state after a transition: the same one if there is nothing to do, None if it is not possible."""
    return _LEADS_TO.get(transition, state) if transition in TRANSITIONS[state] else None


# --- delivered turns --------------------------------------------------------------------------------------------------


class Utterance(NamedTuple):
    """The identity of a message if the host gives no id: its role and its text.

    In a conversation's tail, the text is None if the raw content was deleted, and a message on a guarded plane is
    private: the host may leave it out of the history that it sends.
    """

    role: Role
    text: str | None
    is_private: bool = False


class DeliveryRule(NamedTuple):
    """The parts of a turn that a delivery status commits; the reason if it commits none."""

    input: bool
    assistant: bool
    reason: SkippedReason | None = None


# An answer that was cut off or refused was never received, and its input may be sent again.
DELIVERIES: Mapping[DeliveryStatus, DeliveryRule] = {
    DeliveryStatus.DELIVERED: DeliveryRule(input=True, assistant=True),
    DeliveryStatus.USER_ONLY: DeliveryRule(input=True, assistant=False),
    DeliveryStatus.UPSTREAM_FAILED: DeliveryRule(input=True, assistant=False),
    DeliveryStatus.CANCELLED: DeliveryRule(input=True, assistant=False),
    DeliveryStatus.INCOMPLETE_STREAM: DeliveryRule(False, False, SkippedReason.INCOMPLETE_STREAM),
    DeliveryStatus.REJECTED_BY_POLICY: DeliveryRule(False, False, SkippedReason.REJECTED_BY_POLICY),
}


@dataclass(frozen=True, slots=True)
class TurnDelta:
    """A turn as a host delivers it: its input, which may begin with the history, and the answer if any.

    Tool observations belong to the answer: they are committed with it or not at all.
    """

    status: DeliveryStatus
    input_messages: tuple[Utterance, ...]
    assistant_message: str | None = None
    observations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", checked_member(DeliveryStatus, self.status, "delivery_status"))
        if not self.input_messages and (self.assistant_message is None or not DELIVERIES[self.status].assistant):
            raise InvalidInput("input_messages", "is empty, and there is no delivered answer; give one of them")
        most = MAX_TURN_MESSAGES - 1 - len(self.observations)
        checked_whole(len(self.input_messages), "input_messages", 0, max(most, 0))
        for message in self.input_messages:
            checked_member(Role, message.role, "input_messages.role")
            checked_text(message.text, "input_messages.text")
        for text in self.observations:
            checked_text(text, "tool_observations.text")
        if self.assistant_message is not None:
            checked_text(self.assistant_message, "assistant_message")

    @property
    def messages(self) -> tuple[Utterance, ...]:
        """All messages that the status commits, new or not."""
        return tuple(_delivered_messages(self, DELIVERIES[self.status]))

    @property
    def old_input_count(self) -> int:
        """Number of input messages that certainly precede this turn: an answer among them ends an older turn."""
        roles = [message.role for message in self.input_messages]
        return len(roles) - roles[::-1].index(Role.ASSISTANT) if Role.ASSISTANT in roles else 0


def _delivered_messages(delta: TurnDelta, delivery: DeliveryRule) -> Iterator[Utterance]:
    if delivery.input:
        yield from delta.input_messages
    if delivery.assistant:
        yield from (Utterance(Role.TOOL, text) for text in delta.observations)
        if delta.assistant_message is not None:
            yield Utterance(Role.ASSISTANT, delta.assistant_message)
