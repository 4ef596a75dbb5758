"""Convert between rows and domain values: records by their columns, other values by the types of their fields.

Times are microseconds, and decimals are text, so that they stay exact. Their JSON is ASCII, so that any text from
outside can be stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache, lru_cache, partial
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from holdfast.domain.checks import Metadata
from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import TRUST_LEVELS, Evidence, MemoryRecord, Plane, Status, Validity
from holdfast.domain.results import Record
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Message, Role

T = TypeVar("T")

MESSAGE, MEMORY = 0, 1

# The columns that `record` takes, in order; `r` is records, `s` scopes, `t` texts.
RECORD_COLUMNS = (
    "r.number, r.kind, r.id, r.revision, r.turn_id, r.position, t.text, t.sender, r.role, r.said_at, r.recorded_at,"
    " r.superseded_at, t.external_id, t.source, t.metadata, r.plane, r.trust, r.status, r.valid_from, r.valid_to,"
    " t.author, t.reason, " + ", ".join(f"s.{part}" for part in SCOPE_PARTS)
)
# Conditions on a record `r`: it may be shown, it may be learned from or shown as evidence, it may be searched.
SHOWN = "r.status NOT IN ('masked', 'raw_deleted')"
LEARNED_FROM = "r.status = 'accepted' AND r.plane IS NULL"
SEARCHED = "r.status IN ('accepted', 'quarantined')"
# Hidden from search. A partial index has this condition, and is used only where it appears verbatim.
HIDDEN = "status NOT IN ('accepted', 'quarantined')"
RECORD_TABLES = "records r JOIN scopes s ON s.id = r.scope_id JOIN texts t ON t.number = r.number"


# Most writes to a store use the same few scopes.
_remembered = lru_cache(maxsize=4_096)


@_remembered
def scope_values(scope: Scope) -> tuple[str, ...]:
    return tuple(getattr(scope, part) or "" for part in SCOPE_PARTS)


def scope_of(values: Sequence[str]) -> Scope:
    return Scope(**{part: value for part, value in zip(SCOPE_PARTS, values, strict=True) if value})


@_remembered
def scope_json(scope: Scope) -> str:
    return json.dumps({part: value for part in SCOPE_PARTS if (value := getattr(scope, part))}, ensure_ascii=False)


def scope_from_json(text: str) -> Scope:
    return Scope(**json.loads(text))


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def metadata_json(metadata: Metadata) -> str | None:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else None


def record(row: Sequence[Any], evidence: Sequence[Evidence] = (), contradicts: Sequence[MemoryId] = ()) -> Record:
    (_, kind, record_id, revision, turn_id, position, text, sender, role, said_at, recorded_at, superseded_at) = row[
        :12
    ]
    (external_id, source, metadata, plane, trust, status, valid_from, valid_to, author, reason) = row[12:22]
    scope = scope_of(row[22:])
    entries = json.loads(metadata) if metadata else {}
    if kind == MESSAGE:
        return Message(
            id=MessageId(record_id),
            turn_id=TurnId(turn_id),
            scope=scope,
            position=position,
            text=text,
            sender=sender,
            role=Role(role),
            said_at=from_micros(said_at),
            recorded_at=from_micros(recorded_at),
            external_id=external_id,
            source=source,
            metadata=entries,
            superseded_at=moment(superseded_at),
            status=Status(status),
            plane=None if plane is None else Plane(plane),
        )
    return MemoryRecord(
        id=MemoryId(record_id),
        revision=revision,
        scope=scope,
        plane=Plane(plane),
        text=text,
        trust=TRUST_LEVELS[trust],
        status=Status(status),
        validity=Validity(moment(valid_from), moment(valid_to)),
        recorded_at=from_micros(recorded_at),
        superseded_at=moment(superseded_at),
        source=source,
        author=author,
        reason=reason,
        evidence=tuple(evidence),
        metadata=entries,
        contradicts=tuple(contradicts),
    )


def content_key(sender: str | None, said_at: int, text: str) -> bytes:
    """Digest that identifies a message without an id in its conversation: sender, given time and text."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (sender or "", str(said_at), text):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def key_of(value: str | None) -> bytes | None:
    """Digest that replaces a caller's value in an index: an index moves its entries, and would leave copies."""
    return None if value is None else hashlib.blake2b(value.encode(), digest_size=16).digest()


# --- values by the types of their fields -----------------------------------------------------------------------------


def as_json(value: object) -> str:
    return json.dumps(to_entry(value), separators=(",", ":"))


def to_entry(value: Any) -> Any:
    """Convert a value to one for JSON. Empty fields are left out, if that is their default."""
    if is_dataclass(value):
        found = [(each, getattr(value, each.name)) for each in fields(value)]
        return {each.name: to_entry(content) for each, content in found if not _is_left_out(each, content)}
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return [to_entry(each) for each in value] if isinstance(value, tuple) else value


def _is_left_out(field: Field[Any], content: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return content is None or (not content and content == default)


def column_values(value: object, names: Iterable[str]) -> list[Any]:
    """Return the values of columns that are named as fields. A compound value is stored as JSON."""
    entries = [to_entry(getattr(value, name)) for name in names]
    return [as_json(each) if isinstance(each, dict | list) else each for each in entries]


def from_entry(kind: type[T], entry: Mapping[str, Any]) -> T:
    """Build a value from its JSON. Fields that are missing or null have their default."""
    decoders = _decoders(cast(type, kind))
    return kind(**{name: decoders[name](entry[name]) for name in decoders if entry.get(name) is not None})


def builder_of(kind: type[T], columns: str) -> Callable[[Sequence[Any]], T]:
    """Return a function that builds a value from a row with these columns, which are named as its fields.

    A field whose column is NULL has its default, or None.
    """
    names = columns.split(", ")
    required = [each.name for each in fields(kind) if each.default is each.default_factory is MISSING]  # type: ignore[arg-type]

    def build(row: Sequence[Any]) -> T:
        decoders = _column_decoders(cast(type, kind))
        found = {name: decoders[name](value) for name, value in zip(names, row, strict=True) if value is not None}
        return kind(**{**dict.fromkeys(required), **found})

    return build


@cache
def _decoders(kind: type) -> dict[str, Callable[[Any], Any]]:
    return {name: _decoder(_without_none(hint)) for name, hint in get_type_hints(kind).items()}


@cache
def _column_decoders(kind: type) -> dict[str, Callable[[Any], Any]]:
    return {name: _column_decoder(_without_none(hint)) for name, hint in get_type_hints(kind).items()}


def _column_decoder(hint: Any) -> Callable[[Any], Any]:
    """Return the decoder of a column: a compound value is stored as JSON."""
    decode = _decoder(hint)
    if is_dataclass(hint) or get_origin(hint) is not None:
        return lambda text: decode(json.loads(text))
    return decode


def _without_none(hint: Any) -> Any:
    """Return the type of an optional value."""
    return next(each for each in get_args(hint) if each is not NoneType) if NoneType in get_args(hint) else hint


def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin = get_origin(hint)
    if origin is Mapping:
        key = _decoder(get_args(hint)[0])
        return lambda entry: {key(name): content for name, content in entry.items()}
    if origin in (tuple, frozenset):
        one = _decoder(get_args(hint)[0])
        return lambda entry: origin(map(one, entry))
    if hint is datetime:
        return from_micros
    if is_dataclass(hint):
        return partial(from_entry, cast(type, hint))
    return hint if isinstance(hint, type) and issubclass(hint, Enum | Decimal | bool) else lambda found: found
