"""The export format of records: turns, memories, resources and aliases as JSON, and back.

Input is validated part by part; a value that is built here can be stored. Spaces are left out: an import decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from holdfast.domain.canonical import is_holdfast_id
from holdfast.domain.checks import Metadata, check_metadata, checked_flag, checked_text, checked_whole
from holdfast.domain.ids import checked_id
from holdfast.domain.memory import GUARDED_PLANES, Plane, Status, Trust, Validity
from holdfast.domain.redaction import AUTHORITIES
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.times import checked_time
from holdfast.domain.transcript import MAX_EXTERNAL_ID_CHARS, Role
from holdfast.domain.transcript_turns import (
    MAX_TURN_HOST_REFS,
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    TranscriptState,
    View,
    checked_member,
)
from holdfast.errors import InvalidInput

MAX_NAME_CHARS = 1_024
MAX_URI_CHARS = 4_096
MAX_REASON_CHARS = 1_000
MAX_REVISIONS = 100_000
MAX_EVIDENCE = 100_000
MAX_MESSAGES = 100_000
_MOST_BYTES = 2**40
_KEY_BYTES = 16

T = TypeVar("T")
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ArchivedMessage:
    """An exported message. Without a text it was withheld: only its position is exported."""

    id: str
    role: Role
    text: str | None = None
    authority: Authority = Authority.LEGACY_TRANSCRIPT
    sender: str | None = None
    said_at: datetime | None = None
    external_id: str | None = None
    metadata: Metadata = field(default_factory=dict)
    superseded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """An exported turn. `id` is the host's. All texts are present, or, if `raw_deleted`, all are missing."""

    scope: Scope
    id: str
    state: TranscriptState
    committed_at: datetime
    messages: tuple[ArchivedMessage, ...]
    source: str | None = None
    delivery: DeliveryStatus | None = None
    attribution: ActorAttribution = field(default_factory=ActorAttribution)
    host_refs: tuple[HostOpaqueRef, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivedRevision:
    scope: Scope
    plane: Plane
    text: str
    trust: Trust
    status: Status
    validity: Validity
    recorded_at: datetime
    source: str | None = None
    author: str | None = None
    reason: str | None = None
    metadata: Metadata = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivedMemory:
    """An exported memory with all its revisions, oldest first."""

    id: str
    revisions: tuple[ArchivedRevision, ...]


@dataclass(frozen=True, slots=True)
class ArchivedResource:
    """An exported resource. Its chunks are exported as memories."""

    id: str
    scope: Scope
    name: str
    media_type: str
    sha256: str
    bytes: int
    chunks: int
    external_uri: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedAlias:
    thread: Scope
    key: str
    trusted: bool
    recorded_at: datetime


Archived = ArchivedTurn | ArchivedMemory | ArchivedResource | ArchivedAlias


def is_private(archived: Archived) -> bool:
    """True if it holds private content, which is exported only on request."""
    if isinstance(archived, ArchivedMemory):
        return any(revision.plane in GUARDED_PLANES for revision in archived.revisions)
    if isinstance(archived, ArchivedTurn):
        return any(AUTHORITIES[message.authority][View.EXPORT] is not None for message in archived.messages)
    return isinstance(archived, ArchivedAlias)


# --- writing ----------------------------------------------------------------------------------------------------------


def encode_record(archived: Archived) -> dict[str, Any]:
    """Encode as JSON. Empty fields are left out, so that a field added later changes no fingerprint."""
    return {"type": _NAMES[type(archived)], **encode_fields(archived)}


def encode_fields(value: Any) -> dict[str, Any]:
    encoded = {part.name: _value(getattr(value, part.name)) for part in fields(value)}
    return {name: found for name, found in encoded.items() if found is not None and found != {} and found != []}


def _value(value: Any) -> Any:
    if isinstance(value, Scope):
        return {name: part for name, part in value.given().items() if name != "space"}
    if isinstance(value, Validity):
        return {name: _value(moment) for name, moment in asdict(value).items() if moment is not None}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Trust):
        return int(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return encode_fields(value) if hasattr(value, "__dataclass_fields__") else value


# --- reading ----------------------------------------------------------------------------------------------------------


def decode_record(given: object, space: str) -> Archived:
    """Decode JSON into a record of that space; raises `InvalidInput` that names the wrong part."""
    found = _mapping(given, "record")
    kind = found.get("type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise InvalidInput("type", f"must be one of {', '.join(_READERS)}, not {kind!r:.40}")
    return _READERS[kind]({name: value for name, value in found.items() if name != "type"}, space)


def read_turn(given: object, space: str) -> ArchivedTurn:
    found = _FieldReader(given, "turn")
    turn = ArchivedTurn(
        scope=found.scope("scope", space),
        id=found.read_required("id", checked_id),
        state=found.read_required("state", _member(TranscriptState)),
        committed_at=found.read_required("committed_at", checked_time),
        messages=found.sequence("messages", _message, MAX_MESSAGES),
        source=found.read_optional("source", _name),
        delivery=found.read_optional("delivery", _member(DeliveryStatus)),
        attribution=found.read_optional("attribution", _attribution) or ActorAttribution(),
        host_refs=found.sequence("host_refs", _host_ref, MAX_TURN_HOST_REFS),
    )
    found.refuse_unknown()
    _check_turn(turn)
    return turn


def _check_turn(turn: ArchivedTurn) -> None:
    if turn.scope.conversation is None:
        raise InvalidInput("scope", "has no conversation; a turn needs one")
    if not turn.messages:
        raise InvalidInput("messages", "is empty; a turn needs at least one message")
    if len({message.id for message in turn.messages}) < len(turn.messages):
        raise InvalidInput("messages", "two messages have the same id")
    if turn.state is TranscriptState.MASKED:
        raise InvalidInput("state", "a masked turn cannot be imported; expected active, archived or raw_deleted")
    gone = turn.state is TranscriptState.RAW_DELETED
    if any((message.text is None) is not gone for message in turn.messages):
        raise InvalidInput("messages", f"texts are {'present' if gone else 'missing'}, but the turn is {turn.state}")


def read_memory(given: object, space: str) -> ArchivedMemory:
    found = _FieldReader(given, "memory")
    memory = ArchivedMemory(
        id=found.read_required("id", _own_id),
        revisions=found.sequence("revisions", lambda value, name: _revision(value, space), MAX_REVISIONS),
    )
    found.refuse_unknown()
    if not memory.revisions:
        raise InvalidInput("revisions", "is empty; a memory needs at least one revision")
    if len({revision.scope.partition for revision in memory.revisions}) > 1:
        raise InvalidInput("revisions", "belong to several owners; a memory has one")
    for earlier, later in zip(memory.revisions, memory.revisions[1:], strict=False):
        if later.recorded_at <= earlier.recorded_at:
            raise InvalidInput("revisions", "are not in the order in which they were recorded")
    return memory


def _revision(given: object, space: str) -> ArchivedRevision:
    found = _FieldReader(given, "revisions")
    revision = ArchivedRevision(
        scope=found.scope("scope", space),
        plane=found.read_required("plane", _member(Plane)),
        text=found.read_required("text", checked_text),
        trust=found.read_required("trust", _member(Trust)),
        status=found.read_required("status", _member(Status)),
        validity=found.read_optional("validity", _validity) or Validity(),
        recorded_at=found.read_required("recorded_at", checked_time),
        source=found.read_optional("source", _name),
        author=found.read_optional("author", _name),
        reason=found.read_optional("reason", lambda value, name: checked_text(value, name, max_chars=MAX_REASON_CHARS)),
        metadata=found.read_optional("metadata", _metadata) or {},
        evidence=found.sequence("evidence", _own_id, MAX_EVIDENCE),
    )
    found.refuse_unknown()
    if revision.status not in (Status.ACCEPTED, Status.QUARANTINED):
        raise InvalidInput("status", f"a memory is accepted or quarantined, not {revision.status}")
    return revision


def _resource(given: object, space: str) -> ArchivedResource:
    found = _FieldReader(given, "resource")
    resource = ArchivedResource(
        id=found.read_required("id", _own_id),
        scope=found.scope("scope", space),
        name=found.read_required("name", lambda value, name: checked_text(value, name, max_chars=MAX_URI_CHARS)),
        media_type=found.read_required("media_type", _name),
        sha256=found.read_required("sha256", lambda value, name: _hexadecimal(value, name, 32)),
        bytes=found.read_required("bytes", lambda value, name: checked_whole(value, name, 0, _MOST_BYTES)),
        chunks=found.read_required("chunks", lambda value, name: checked_whole(value, name, 0, _MOST_BYTES)),
        external_uri=found.read_optional(
            "external_uri", lambda value, name: checked_text(value, name, max_chars=MAX_URI_CHARS)
        ),
        recorded_at=found.read_required("recorded_at", checked_time),
    )
    found.refuse_unknown()
    return resource


def _alias(given: object, space: str) -> ArchivedAlias:
    found = _FieldReader(given, "alias")
    alias = ArchivedAlias(
        thread=found.scope("thread", space),
        key=found.read_required("key", lambda value, name: _hexadecimal(value, name, _KEY_BYTES)),
        trusted=found.read_required("trusted", checked_flag),
        recorded_at=found.read_required("recorded_at", checked_time),
    )
    found.refuse_unknown()
    if alias.thread.conversation is None:
        raise InvalidInput("thread", "has no conversation; an alias needs one")
    return alias


def _message(given: object, name: str) -> ArchivedMessage:
    found = _FieldReader(given, name)
    message = ArchivedMessage(
        id=found.read_required("id", _own_id),
        role=found.read_required("role", _member(Role)),
        text=found.read_optional("text", checked_text),
        authority=found.read_optional("authority", _member(Authority)) or Authority.LEGACY_TRANSCRIPT,
        sender=found.read_optional("sender", _name),
        said_at=found.read_optional("said_at", checked_time),
        external_id=found.read_optional(
            "external_id", lambda value, part: checked_text(value, part, max_chars=MAX_EXTERNAL_ID_CHARS)
        ),
        metadata=found.read_optional("metadata", _metadata) or {},
        superseded_at=found.read_optional("superseded_at", checked_time),
    )
    found.refuse_unknown()
    return message


class _FieldReader:
    """Reads the fields of one JSON object. Fields left at the end are unknown, and refused."""

    def __init__(self, given: object, where: str) -> None:
        self._where = where
        self._left = dict(_mapping(given, where))

    def read_required(self, name: str, check: Callable[[Any, str], T]) -> T:
        if self._left.get(name) is None:
            raise InvalidInput(name, f"is missing in this {self._where}")
        return check(self._left.pop(name), name)

    def read_optional(self, name: str, check: Callable[[Any, str], T]) -> T | None:
        value = self._left.pop(name, None)
        return None if value is None else check(value, name)

    def sequence(self, name: str, check: Callable[[Any, str], T], most: int) -> tuple[T, ...]:
        value = self._left.pop(name, [])
        if not isinstance(value, list) or len(value) > most:
            raise InvalidInput(name, f"must be a list of at most {most:,}")
        return tuple(check(item, name) for item in value)

    def scope(self, name: str, space: str) -> Scope:
        given = _mapping(self._left.pop(name, {}), name)
        if unknown := set(given) - (set(SCOPE_PARTS) - {"space"}):
            raise InvalidInput(name, f"{min(unknown)!r:.40} is not a part of a scope")
        return Scope(space=space, **given)

    def refuse_unknown(self) -> None:
        if self._left:
            raise InvalidInput(min(self._left), f"is not a field of a {self._where}")


def _mapping(value: object, name: str) -> Given:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(name, f"expected a JSON object, got {type(value).__name__}")
    return value


def _member(kind: Any) -> Callable[[Any, str], Any]:
    # True == 1 in Python, and would pass as a trust.
    def check(value: Any, name: str) -> Any:
        if isinstance(value, bool):
            raise InvalidInput(name, f"must be one of {', '.join(str(member.value) for member in kind)}")
        return checked_member(kind, value, name)

    return check


def _own_id(value: object, name: str) -> str:
    found = checked_id(value, name)
    if not is_holdfast_id(found):
        raise InvalidInput(name, f"{found!r:.80} does not have the form of a record id")
    return found


def _name(value: object, name: str) -> str:
    return checked_text(value, name, max_chars=MAX_NAME_CHARS)


def _metadata(value: object, name: str) -> Metadata:
    check_metadata(value)
    return dict(_mapping(value, name))


def _validity(value: object, name: str) -> Validity:
    found = _FieldReader(value, name)
    validity = Validity(found.read_optional("since", checked_time), found.read_optional("until", checked_time))
    found.refuse_unknown()
    return validity


def _attribution(value: object, name: str) -> ActorAttribution:
    return ActorAttribution(**_known_fields(value, name, ActorAttribution))


def _host_ref(value: object, name: str) -> HostOpaqueRef:
    given = _known_fields(value, name, HostOpaqueRef)
    for part in fields(HostOpaqueRef):
        if part.name != "label" and part.name not in given:
            raise InvalidInput(part.name, f"is missing in {name}")
    return HostOpaqueRef(**given)


def _known_fields(value: object, name: str, kind: Any) -> dict[str, Any]:
    given = dict(_mapping(value, name))
    if unknown := set(given) - {part.name for part in fields(kind)}:
        raise InvalidInput(min(unknown), f"is not a field of {name}")
    return given


def _hexadecimal(value: object, name: str, size: int) -> str:
    try:
        raw = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != size:
        raise InvalidInput(name, f"must be {size} bytes in hexadecimal digits")
    return raw.hex()


_NAMES: dict[type, str] = {
    ArchivedTurn: "turn",
    ArchivedMemory: "memory",
    ArchivedResource: "resource",
    ArchivedAlias: "alias",
}
_READERS: dict[str, Callable[[object, str], Archived]] = {
    "turn": read_turn,
    "memory": read_memory,
    "resource": _resource,
    "alias": _alias,
}
