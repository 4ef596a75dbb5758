"""The export format of records: turns, memories, resources and aliases as JSON, and back.

Input is validated part by part; a value that is built here can be stored. Spaces are left out: an import decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from holdfast.domain.arguments import Check, Rule, text_rule, unwrap_type, whole_number
from holdfast.domain.canonical import is_holdfast_id
from holdfast.domain.checks import Metadata, check_metadata, checked_flag, checked_text, checked_whole
from holdfast.domain.ids import Id, checked_id
from holdfast.domain.memory import GUARDED_PLANES, TRUST_LEVELS, Plane, Status, Trust, Validity
from holdfast.domain.presentable import Presentable
from holdfast.domain.redaction import AUTHORITIES
from holdfast.domain.runtime_skills import MAX_NOTE_CHARS, is_skill_name
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.times import checked_iso_time
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
_SHA256_BYTES = 32


# --- the fields -------------------------------------------------------------------------------------------------------


def _own_id(value: object, name: str) -> str:
    found = checked_id(value, name)
    if not is_holdfast_id(found):
        raise InvalidInput(name, f"{found!r:.80} does not have the form of a record id")
    return found


def _metadata(value: object, name: str) -> Metadata:
    check_metadata(value)
    return dict(_mapping(value, name))


def _hexadecimal(size: int) -> Rule:
    def check(value: object, name: str) -> str:
        try:
            raw = bytes.fromhex(value) if isinstance(value, str) else b""
        except ValueError:
            raw = b""
        if len(raw) != size:
            raise InvalidInput(name, f"must be {size} bytes in hexadecimal digits")
        return raw.hex()

    return Rule(check, "HEX")


def _list_rule(most: int) -> Rule:
    def check(value: object, name: str) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise InvalidInput(name, f"must be a list of at most {most:,}")
        return value

    return Rule(check, "LIST")


OwnId = Annotated[str, Rule(_own_id, "ID")]
Name = Annotated[str, text_rule(MAX_NAME_CHARS)]
Text = Annotated[str, Rule(checked_text, "TEXT")]
Uri = Annotated[str, text_rule(MAX_URI_CHARS)]
Size = Annotated[int, whole_number(0, _MOST_BYTES)]
ArchivedMetadata = Annotated[Metadata, Rule(_metadata, "METADATA")]


@dataclass(frozen=True, slots=True)
class ArchivedMessage(Presentable):
    """An exported message. Without a text it was withheld: only its position is exported."""

    id: OwnId
    role: Role
    text: Text | None = None
    authority: Authority = Authority.LEGACY_TRANSCRIPT
    sender: Name | None = None
    said_at: datetime | None = None
    external_id: Annotated[str | None, text_rule(MAX_EXTERNAL_ID_CHARS)] = None
    metadata: ArchivedMetadata = field(default_factory=dict)
    superseded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ArchivedTurn(Presentable):
    """An exported turn. `id` is the host's. All texts are present, or, if `raw_deleted`, all are missing."""

    scope: Scope
    id: Id
    state: TranscriptState
    committed_at: datetime
    messages: Annotated[tuple[ArchivedMessage, ...], _list_rule(MAX_MESSAGES)]
    source: Name | None = None
    delivery: DeliveryStatus | None = None
    attribution: ActorAttribution = field(default_factory=ActorAttribution)
    host_refs: Annotated[tuple[HostOpaqueRef, ...], _list_rule(MAX_TURN_HOST_REFS)] = ()


@dataclass(frozen=True, slots=True)
class ArchivedRevision(Presentable):
    scope: Scope
    plane: Plane
    text: Text
    trust: Trust
    status: Status
    validity: Validity
    recorded_at: datetime
    source: Name | None = None
    author: Name | None = None
    reason: Annotated[str | None, text_rule(MAX_REASON_CHARS)] = None
    metadata: ArchivedMetadata = field(default_factory=dict)
    evidence: Annotated[tuple[OwnId, ...], _list_rule(MAX_EVIDENCE)] = ()
    contradicts: Annotated[tuple[OwnId, ...], _list_rule(MAX_EVIDENCE)] = ()


@dataclass(frozen=True, slots=True)
class ArchivedSkill(Presentable):
    """The exported state of a runtime skill."""

    name: Name
    enabled: bool
    needs_approval: bool
    revision_pending: bool
    use_count: Size
    validated_success_count: Size
    mismatch_count: Size
    last_used_at: datetime | None = None
    last_outcome_note: Annotated[str | None, text_rule(MAX_NOTE_CHARS)] = None


@dataclass(frozen=True, slots=True)
class ArchivedMemory(Presentable):
    """An exported memory with all its revisions, oldest first, and its state if it was written as a runtime skill."""

    id: OwnId
    revisions: Annotated[tuple[ArchivedRevision, ...], _list_rule(MAX_REVISIONS)]
    skill: ArchivedSkill | None = None


@dataclass(frozen=True, slots=True)
class ArchivedResource:
    """An exported resource. Its chunks are exported as memories."""

    id: OwnId
    scope: Scope
    name: Uri
    media_type: Name
    sha256: Annotated[str, _hexadecimal(_SHA256_BYTES)]
    bytes: Size
    chunks: Size
    external_uri: Uri | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedAlias:
    thread: Scope
    key: Annotated[str, _hexadecimal(_KEY_BYTES)]
    trusted: bool
    recorded_at: datetime


Archived = ArchivedTurn | ArchivedMemory | ArchivedResource | ArchivedAlias


def is_private(archived: Archived) -> bool:
    """True if it holds private content, which is exported only on request."""
    if isinstance(archived, ArchivedMemory):
        return any(revision.plane in GUARDED_PLANES for revision in archived.revisions)
    if isinstance(archived, ArchivedTurn):
        return any(is_withheld(message.authority) for message in archived.messages)
    return isinstance(archived, ArchivedAlias)


def is_withheld(authority: Authority) -> bool:
    """True if a message of this authority is exported only on request."""
    return AUTHORITIES[authority][View.EXPORT] is not None


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
        return value.level
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
    turn: ArchivedTurn = _read_object(ArchivedTurn, given, "turn", space)
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
    return turn


def read_memory(given: object, space: str) -> ArchivedMemory:
    memory: ArchivedMemory = _read_object(ArchivedMemory, given, "memory", space)
    if not memory.revisions:
        raise InvalidInput("revisions", "is empty; a memory needs at least one revision")
    for revision in memory.revisions:
        if revision.status not in (Status.ACCEPTED, Status.QUARANTINED):
            raise InvalidInput("status", f"a memory is accepted or quarantined, not {revision.status}")
    if memory.skill is not None and not (
        is_skill_name(memory.skill.name) and memory.revisions[-1].plane is Plane.PROCEDURAL
    ):
        raise InvalidInput("skill", "is only for a memory on the procedural plane, with the name of a runtime skill")
    if len({revision.scope.partition for revision in memory.revisions}) > 1:
        raise InvalidInput("revisions", "belong to several owners; a memory has one")
    for earlier, later in zip(memory.revisions, memory.revisions[1:], strict=False):
        if later.recorded_at <= earlier.recorded_at:
            raise InvalidInput("revisions", "are not in the order in which they were recorded")
    return memory


def _read_alias(given: object, space: str) -> ArchivedAlias:
    alias: ArchivedAlias = _read_object(ArchivedAlias, given, "alias", space)
    if alias.thread.conversation is None:
        raise InvalidInput("thread", "has no conversation; an alias needs one")
    return alias


Reader = Callable[[Any, str, str], Any]  # of a value, its name and the space of the record


class _FieldReader(NamedTuple):
    """Reads one field. `empty` is the value of an empty object or list, which the writer leaves out."""

    name: str
    read: Reader
    optional: bool
    required: bool
    empty: Any


def _read_object(kind: Any, given: object, where: str, space: str) -> Any:
    """Build a dataclass from a JSON object. Unknown fields are refused."""
    left = dict(_mapping(given, where))
    found: dict[str, Any] = {}
    for name, read, optional, required, empty in _field_readers(kind):
        value = left.pop(name, empty)
        if value is not None or empty is not None:
            found[name] = read(value, name, space)
        elif optional:
            found[name] = None
        elif required:
            raise InvalidInput(name, f"is missing in this {where}")
    if left:
        raise InvalidInput(min(left), f"is not a field of this {where}")
    return kind(**found)


@cache
def _field_readers(kind: Any) -> tuple[_FieldReader, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for part in fields(kind):
        plain, optional = unwrap_type(hints[part.name], [])
        required = not optional and part.default is MISSING and part.default_factory is MISSING
        empty: Any = {} if required and is_dataclass(plain) else [] if get_origin(plain) is tuple else None
        found.append(_FieldReader(part.name, _reader_of(hints[part.name]), optional, required, empty))
    return tuple(found)


def _reader_of(hint: Any) -> Reader:
    """Return the reader of a type: its rule decides, else the type itself. Plain texts are checked by their class."""
    about: list[Any] = []
    kind, _ = unwrap_type(hint, about)
    check: Any = next((part.check for part in about if isinstance(part, Rule)), None)
    if get_origin(kind) is tuple:
        read_item = _reader_of(get_args(kind)[0])
        return lambda value, name, space: tuple(read_item(item, name, space) for item in check(value, name))
    if kind is Scope:
        return _read_scope
    if check is None and is_dataclass(kind):
        return lambda value, name, space: _read_object(kind, value, name, space)
    plain = check or _CHECKS.get(kind) or partial(checked_member, kind)
    return lambda value, name, space: plain(value, name)


def _read_scope(value: object, name: str, space: str) -> Scope:
    given = _mapping(value, name)
    if unknown := set(given) - (set(SCOPE_PARTS) - {"space"}):
        raise InvalidInput(name, f"{min(unknown)!r:.40} is not a part of a scope")
    return Scope(space=space, **given)


def _checked_trust(value: object, name: str) -> Trust:
    return TRUST_LEVELS[checked_whole(value, name, 0, len(TRUST_LEVELS) - 1)]


_CHECKS: dict[Any, Check] = {
    datetime: checked_iso_time,
    bool: checked_flag,
    str: lambda value, name: value,
    Trust: _checked_trust,
}


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(name, f"expected a JSON object, got {type(value).__name__}")
    return value


_NAMES: dict[type, str] = {
    ArchivedTurn: "turn",
    ArchivedMemory: "memory",
    ArchivedResource: "resource",
    ArchivedAlias: "alias",
}
_READERS: dict[str, Callable[[object, str], Archived]] = {
    "turn": read_turn,
    "memory": read_memory,
    "resource": lambda given, space: _read_object(ArchivedResource, given, "resource", space),
    "alias": _read_alias,
}
