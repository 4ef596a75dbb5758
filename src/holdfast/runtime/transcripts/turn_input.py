"""Convert a host's messages to stored turns; shared by commit and finalize."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from holdfast.domain import ids
from holdfast.domain.checks import (
    Metadata,
    check_metadata,
    checked_instance,
    checked_instances,
    checked_text,
    checked_whole,
)
from holdfast.domain.governance import Governance
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.runtime_api.transcripts import TurnMessage
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Draft, Role
from holdfast.domain.transcript_turns import (
    MAX_TURN_HOST_REFS,
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    Utterance,
    checked_member,
)
from holdfast.ports import NewMessage, NewTurn
from holdfast.runtime.gate import Core
from holdfast.runtime.indexing import IndexedText

T = TypeVar("T")

# Leaves room for the suffixes of a turn's parts and messages.
MAX_TURN_ID_CHARS = 200
# The metadata of messages of a turn in which external content was used.
EXTERNAL_CONTENT_USED = "source.external_content_used"

AUTHORITY_OF: Mapping[Role, Authority] = {
    Role.USER: Authority.USER_ASSERTED,
    Role.ASSISTANT: Authority.ASSISTANT_UTTERANCE,
    # The operator's own unless the host labels it: the output of a tool may be a stack trace.
    Role.TOOL: Authority.OPERATOR_DIAGNOSTIC,
    Role.SYSTEM: Authority.OPERATOR_DIAGNOSTIC,
}
# Earlier versions gave this authority to unlabelled messages of tools and systems.
_EARLIER_DEFAULT = Authority.RUNTIME_OBSERVATION


@dataclass(frozen=True, slots=True)
class ValidatedMessage:
    """A validated message and its authority, which the host named or its role gave."""

    draft: Draft
    authority: Authority
    is_labelled: bool = False

    @property
    def role_and_text(self) -> Utterance:
        return Utterance(self.draft.role, self.draft.text)

    def may_have(self, stored: Authority) -> bool:
        """True if the message, sent again, may be stored with that authority."""
        former = not self.is_labelled and self.authority is Authority.OPERATOR_DIAGNOSTIC
        return stored is self.authority or (former and stored is _EARLIER_DEFAULT)


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn's attribution, delivery status and host references."""

    attribution: ActorAttribution | None = None
    delivery: DeliveryStatus | None = None
    host_refs: tuple[HostOpaqueRef, ...] = ()

    def __post_init__(self) -> None:
        if self.attribution is not None:
            checked_instance(self.attribution, ActorAttribution, "attribution")
        if self.delivery is not None:
            object.__setattr__(self, "delivery", checked_member(DeliveryStatus, self.delivery, "delivery_status"))
        refs = checked_instances(self.host_refs, HostOpaqueRef, "host_refs")
        checked_whole(len(refs), "host_refs", 0, MAX_TURN_HOST_REFS)
        object.__setattr__(self, "host_refs", refs)


def validate_turn_id(turn_id: object) -> str:
    return checked_text(turn_id, "turn_id", max_chars=MAX_TURN_ID_CHARS)


def validate_message(
    message: TurnMessage, governance: Governance, attribution: ActorAttribution | None
) -> ValidatedMessage:
    role = checked_member(Role, message.role, "role")
    is_labelled = message.authority is not None
    authority = checked_member(Authority, message.authority, "authority") if is_labelled else AUTHORITY_OF[role]
    draft = Draft(
        text=message.text,
        sender=message.sender or _sender(role, governance, attribution),
        role=role,
        said_at=message.said_at,
        external_id=message.message_id,
        metadata=message.metadata,
    )
    return ValidatedMessage(draft, authority, is_labelled)


def _sender(role: Role, governance: Governance, attribution: ActorAttribution | None) -> str | None:
    """The default sender: for the user the turn's speaker, else the subject; for the assistant its agent."""
    identity, who = governance.identity, attribution or ActorAttribution()
    if role is Role.USER:
        return who.speaker_id or identity.subject_id
    return who.agent_id or identity.agent_id if role is Role.ASSISTANT else None


def with_metadata(given: ValidatedMessage, more: Metadata) -> ValidatedMessage:
    if not more:
        return given
    metadata = {**given.draft.metadata, **more}
    check_metadata(metadata)
    return replace(given, draft=replace(given.draft, metadata=metadata))


def with_message_id(given: ValidatedMessage, turn_id: str, place: int) -> ValidatedMessage:
    """Derive a missing message id from its turn's, so that a forgotten message does not return with the turn."""
    if given.draft.external_id is not None:
        return given
    return replace(given, draft=replace(given.draft, external_id=f"{turn_id}#message={place}"))


def new_turn(
    core: Core,
    thread: Scope,
    turn_id: str,
    messages: Iterable[tuple[ValidatedMessage, IndexedText]],
    circumstances: TurnContext,
    now: datetime,
) -> NewTurn:
    return NewTurn(
        id=TurnId(core.ids.new(ids.TURN)),
        scope=thread,
        source=None,
        recorded_at=now,
        messages=[_new_message(core, given, entry, now) for given, entry in messages],
        external_id=turn_id,
        delivery=circumstances.delivery,
        attribution=circumstances.attribution,
        host_refs=circumstances.host_refs,
    )


def _new_message(core: Core, given: ValidatedMessage, entry: IndexedText, now: datetime) -> NewMessage:
    draft = given.draft
    return NewMessage(
        id=MessageId(core.ids.new(ids.MESSAGE)),
        text=draft.text,
        sender=draft.sender,
        role=draft.role,
        said_at=draft.said_at or now,
        # Identified by its turn's id and its own, never by its time.
        said_at_given=False,
        external_id=draft.external_id,
        metadata=draft.metadata,
        analysis=entry.analysis,
        vectors=entry.vectors,
        authority=given.authority,
    )
