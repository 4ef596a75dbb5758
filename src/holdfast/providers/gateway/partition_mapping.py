"""Maps our memories to apps, sessions and record ids of another service, and back.

A binding's key is a single user there, whoever calls here. So each of our memories (of a space's subject or agent, or
its shared one, per namespace) gets its own app there, named by a digest so that no two can collide. A session's name
carries the same digest, and of the other scope parts as much as filtering needs. A handle carries its place's digest,
so that a handle of another memory is refused without a request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from holdfast.domain.access import readable_partitions
from holdfast.domain.contract import SourceKind, SourceRef
from holdfast.domain.contract_records import CaptureMetadata, capture_conversation
from holdfast.domain.scope import SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.errors import InvalidCursor, InvalidInput, InvalidScope

_TAG_CHARS = 32
_MARK = "hf"
_ABSENT = "-"
# The scope parts in a session's name, in this order. The place identifies the others.
_TOLD = ("project", "conversation", "run", "issue")
_TOLD_CHARS = 10
_CAPTURES, _RECORDS, _KEYED = "c", "r", "k"
# The engine behind the gateway limits the length of a metadata entry, and their number.
_PIECE_CHARS, _MOST_PIECES = 4_000, 16
_ENTRY = "bound."


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RemotePartition:
    """One of our memories as the service knows it."""

    partition: Partition
    namespace: str | None
    tag: str

    @property
    def scope(self) -> Scope:
        """The scope that all its records share."""
        owner: dict[str, Any] = {}
        if self.partition.kind is not PartitionKind.SHARED:
            owner = {self.partition.kind.value: self.partition.owner}
        return Scope(self.partition.space, namespace=self.namespace, **owner)


def place_of(partition: Partition, namespace: str | None) -> RemotePartition:
    tag = digest(partition.space, partition.kind.value, partition.owner, namespace)[:_TAG_CHARS]
    return RemotePartition(partition, namespace, tag)


def write_place(scope: Scope) -> RemotePartition:
    """Return the place that a record of the scope is written to."""
    return place_of(scope.partition, scope.namespace)


def read_places(scope: Scope) -> tuple[RemotePartition, ...]:
    """Return the places that a read in the scope covers: subject, agent, then the shared one."""
    order = (PartitionKind.SUBJECT, PartitionKind.AGENT, PartitionKind.SHARED)
    return tuple(
        place_of(partition, scope.namespace)
        for partition in sorted(readable_partitions(scope), key=lambda each: order.index(each.kind))
    )


# --- sessions ---


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A session of ours, parsed from its name."""

    tag: str
    told: tuple[str, ...]

    def within(self, scope: Scope) -> bool:
        """True if the session matches every part that the scope gives, of those in a session's name."""
        asked = zip(_TOLD, self.told, strict=True)
        return all(getattr(scope, part) is None or _digest_part(getattr(scope, part)) == told for part, told in asked)


def session_name(place: RemotePartition, scope: Scope, kind: str) -> str:
    return ".".join((_MARK, place.tag, *(_digest_part(getattr(scope, part)) for part in _TOLD), kind))


def capture_session(place: RemotePartition, scope: Scope) -> str:
    return session_name(place, scope, f"{_CAPTURES}{digest(capture_conversation(scope))[:_TOLD_CHARS]}")


def record_session(place: RemotePartition, scope: Scope) -> str:
    return session_name(place, scope, _RECORDS)


def key_session(place: RemotePartition, scope: Scope, key: str) -> str:
    return session_name(place, scope, f"{_KEYED}{digest(key)[:_TAG_CHARS]}")


def parse_session(name: str | None) -> RemoteSession | None:
    """Parse a session's name; None if it is not one of ours."""
    parts = (name or "").removeprefix("chat:").split(".")
    if len(parts) != len(_TOLD) + 3 or parts[0] != _MARK:
        return None
    return RemoteSession(parts[1], tuple(parts[2:-1]))


def _digest_part(part: str | None) -> str:
    return _ABSENT if part is None else digest(part)[:_TOLD_CHARS]


# --- handles ---


def handle_id(place: RemotePartition, *own: object) -> str:
    return ".".join((place.tag, *map(str, own)))


def split_record_id(record_id: object, places: tuple[RemotePartition, ...]) -> tuple[RemotePartition, str] | None:
    """Split a handle's id into its place and the service's id; None if it is of none of these places."""
    if not isinstance(record_id, str) or not record_id.isascii() or not record_id.isprintable():
        return None
    tag, _, own = record_id.partition(".")
    found = [place for place in places if place.tag == tag]
    return (found[0], own) if found and own and "/" not in own else None


# --- cursors ---


def encode_cursor(query: str, place: int, there: str | None) -> str:
    return base64.urlsafe_b64encode(json.dumps([query, place, there]).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, query: str, places: int) -> tuple[int, str | None]:
    try:
        padded = (cursor + "=" * (-len(cursor) % 4)).encode("ascii")
        of, place, there = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        readable_ = isinstance(place, int) and 0 <= place < places and (there is None or isinstance(there, str))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        readable_ = False
    if not readable_:
        raise InvalidCursor("cursor", "is malformed; pass on the `next_cursor` of a page unchanged")
    if of != query:
        raise InvalidCursor("cursor", "belongs to another list; start that one from its first page")
    return place, there


def query_digest(scope: Scope, metadata_filter: Any) -> str:
    try:
        return digest(scope.given(), dict(metadata_filter))[:16]
    except (TypeError, ValueError):
        raise InvalidInput("metadata_filter", "holds a value that cannot be written as JSON") from None


# --- metadata envelope ---


def pack_metadata(scope: Scope, noted: CaptureMetadata) -> dict[str, str]:
    """Pack scope, source, summary and metadata into metadata entries, for a service that stores them."""
    source = None if noted.source is None else _source_fields(noted.source)
    try:
        envelope = json.dumps(
            {"scope": scope.given(), "source": source, "summary": noted.summary, "metadata": dict(noted.metadata)},
            ensure_ascii=True,
            allow_nan=False,
            separators=(",", ":"),
        )
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("metadata", "holds a value that cannot be written as JSON") from None
    if len(envelope) > _PIECE_CHARS * _MOST_PIECES:
        raise InvalidInput(
            "metadata", f"takes {len(envelope):,} characters; at most {_PIECE_CHARS * _MOST_PIECES:,} fit"
        )
    pieces = [envelope[start : start + _PIECE_CHARS] for start in range(0, len(envelope), _PIECE_CHARS)]
    return {f"{_ENTRY}{number}": piece for number, piece in enumerate(pieces)}


def _source_fields(source: SourceRef) -> dict[str, str]:
    return {name: str(value) for name in SourceRef.__slots__ if (value := getattr(source, name)) is not None}


def unpack_metadata(metadata: object) -> tuple[Scope | None, CaptureMetadata]:
    """Unpack metadata entries. They are untrusted: malformed ones count as absent."""
    if not isinstance(metadata, dict):
        return None, CaptureMetadata()
    pieces: list[str] = []
    while isinstance(piece := metadata.get(f"{_ENTRY}{len(pieces)}"), str) and len(pieces) < _MOST_PIECES:
        pieces.append(piece)
    try:
        envelope = json.loads("".join(pieces))
        scope = Scope(**{part: envelope["scope"][part] for part in SCOPE_PARTS if part in envelope["scope"]})
        source = envelope["source"]
        if source is not None:
            source = SourceRef(SourceKind(source.pop("kind")), **source)
        summary, own = envelope["summary"], envelope["metadata"]
    except (ValueError, TypeError, KeyError, AttributeError, InvalidScope, RecursionError):
        return None, CaptureMetadata()
    if not isinstance(own, dict) or not isinstance(summary, str | None):
        return None, CaptureMetadata()
    return scope, CaptureMetadata(source, summary, own)
