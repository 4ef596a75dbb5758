"""Convert between rows and domain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import Evidence, MemoryRecord, Plane, Status, Trust, Validity
from holdfast.domain.results import Record
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Message, Role

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


def metadata_json(metadata: Mapping[str, str]) -> str | None:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else None


def record(row: Sequence[Any], evidence: Sequence[Evidence] = ()) -> Record:
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
        trust=Trust(trust),
        status=Status(status),
        validity=Validity(moment(valid_from), moment(valid_to)),
        recorded_at=from_micros(recorded_at),
        superseded_at=moment(superseded_at),
        source=source,
        author=author,
        reason=reason,
        evidence=tuple(evidence),
        metadata=entries,
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
