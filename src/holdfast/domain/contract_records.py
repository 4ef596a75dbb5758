"""One translation between our records and those of the provider contract, in both directions.

The engine's metadata are texts, numbers, flags and None by name. The source, the summary and other values of a capture
(lists, dictionaries) are stored under names with the prefix `holdfast.`, which callers may not use. All others keep
their own names, so that they read the same through every interface.

`to_snippet` turns a record of our own store into a snippet of the contract. `to_hit` and `to_memory` turn a snippet of
an external provider into a result of the library: fields that its provider does not report get the defaults for
external content.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from holdfast.domain.bindings import LOCAL
from holdfast.domain.checks import (
    MAX_METADATA_CHARS,
    MAX_METADATA_ENTRIES,
    Metadata,
    Scalar,
    check_metadata,
    checked_text,
    is_scalar,
)
from holdfast.domain.contract import MAX_SUMMARY_CHARS, RecordHandle, Snippet, SourceKind, SourcePayload, SourceRef
from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane, Status, Trust
from holdfast.domain.results import Hit, HitKind, Record
from holdfast.domain.scope import FILTER_PARTS, MAX_PART_CHARS, Scope
from holdfast.domain.transcript import DEFAULT_CONVERSATION
from holdfast.errors import InvalidInput

RESERVED = "holdfast."
_SOURCE, _SUMMARY, _OTHER = f"{RESERVED}source", f"{RESERVED}summary", f"{RESERVED}json"
MAX_PROVENANCE_CHARS = 256
# The fields that identify an object of a kind.
_SPEAKER = ("sender", "role", "said_at")
_NAMES = ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref")


@dataclass(frozen=True, slots=True)
class CaptureMetadata:
    """The data of a capture besides its text."""

    source: SourceRef | None = None
    summary: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def encode_metadata(noted: CaptureMetadata) -> dict[str, Scalar]:
    """Encode as metadata of the engine; raises `InvalidInput` if that is not possible."""
    found: dict[str, Scalar] = {}
    other: dict[str, Any] = {}
    for name, value in noted.metadata.items():
        if not isinstance(name, str) or name.startswith(RESERVED):
            raise InvalidInput("metadata", f"{name!r:.60} cannot be the name of an entry: {RESERVED} is reserved")
        if is_scalar(value):
            found[name] = value
        else:
            other[name] = value
    if other:
        found[_OTHER] = _json(other)
    if noted.source is not None:
        found[_SOURCE] = _json({name: value for name, value in asdict(noted.source).items() if value is not None})
    if noted.summary is not None:
        found[_SUMMARY] = checked_text(noted.summary, "summary", max_chars=MAX_SUMMARY_CHARS)
    if len(noted.metadata) > MAX_METADATA_ENTRIES - 3:
        raise InvalidInput("metadata", f"has {len(noted.metadata)} entries; at most {MAX_METADATA_ENTRIES - 3} fit")
    check_metadata(found)
    return found


_WRITTEN: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":"), "sort_keys": True}


def _json(value: Any) -> str:
    try:
        made = json.dumps(value, **_WRITTEN)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("metadata", "holds a value that cannot be encoded as JSON; remove it") from None
    if len(made) > MAX_METADATA_CHARS:
        raise InvalidInput("metadata", f"takes {len(made):,} characters as JSON; at most {MAX_METADATA_CHARS:,} fit")
    return made


def decode_metadata(metadata: Metadata) -> CaptureMetadata:
    """Decode a record's metadata. Any caller may have written it, so what cannot be decoded is left out."""
    if not metadata:
        return _NOTHING
    found: dict[str, Any] = {name: value for name, value in metadata.items() if not name.startswith(RESERVED)}
    other = _object(metadata.get(_OTHER))
    summary = metadata.get(_SUMMARY)
    return CaptureMetadata(
        _source(metadata.get(_SOURCE)), summary if isinstance(summary, str) else None, {**found, **other}
    )


def digest_form(metadata: Metadata) -> dict[str, str]:
    """Return the form of metadata that the digests of retries are made from: older stores hold digests of it.

    In it, every value but a text is part of one JSON text.
    """
    texts = {name: value for name, value in metadata.items() if isinstance(value, str)}
    values = {name: value for name, value in metadata.items() if not isinstance(value, str)}
    if not values:
        return texts
    own = {name: value for name, value in texts.items() if not name.startswith(RESERVED)}
    reserved = {name: value for name, value in texts.items() if name in (_SOURCE, _SUMMARY)}
    written = json.dumps({**_object(texts.get(_OTHER)), **values}, **_WRITTEN)
    return {**own, _OTHER: written, **reserved}


_NOTHING = CaptureMetadata()


def _object(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        return {}
    try:
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _finite(written: str) -> float:
    """Refuse non-finite numbers, which cannot be encoded as JSON."""
    if not math.isfinite(found := float(written)):
        raise ValueError(written)
    return found


def _source(text: object) -> SourceRef | None:
    """Decode a source, or None. It may be forged through another interface, so each part is checked."""
    parts = _object(text)
    try:
        found = SourceRef(SourceKind(parts.pop("kind")), **parts)
    except (KeyError, TypeError, ValueError):
        return None
    return found if all(isinstance(value, str) for value in parts.values()) else None


def matches_metadata(noted: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """True if each wanted entry is present and equal."""
    return all(name in noted and noted[name] == value for name, value in wanted.items())


def provenance(source: SourceRef) -> str | None:
    """Return the source as one text, equal for everything from it; None for a manual note or a source without ids."""
    names = [value for name in _NAMES if (value := getattr(source, name)) is not None]
    if source.kind is SourceKind.MANUAL_NOTE or not names:
        return None
    plain = f"{source.kind}:{'/'.join(names)}"
    if len(plain) <= MAX_PROVENANCE_CHARS:
        return plain
    return f"{source.kind}:sha256/{hashlib.sha256(plain.encode('utf-8', 'surrogatepass')).hexdigest()}"


def capture_id(source: SourceRef, idempotency_id: str | None, text: str) -> str | None:
    """Return the deduplication key of a captured message, so that capturing it again adds nothing.

    It is made from the idempotency id if there is one: another text under it is a conflict. Otherwise it is made from
    the source and the text: an edited comment is a new message. None if the source identifies no object.
    """
    if idempotency_id is not None:
        return _digest("id", checked_text(idempotency_id, "idempotency_id"))
    where = provenance(source)
    return None if where is None else _digest("source", where, text)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def captured_text(payload: SourcePayload) -> str:
    """Return the text to store for a payload: its text, else its object as JSON."""
    if payload.text is not None:
        return checked_text(payload.text, "payload.text")
    if not payload.object:
        raise InvalidInput("payload", "holds neither text nor object; give one of them")
    try:
        written = json.dumps(payload.object, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("payload.object", "holds a value that cannot be encoded as JSON; remove it") from None
    return checked_text(written, "payload.object")


def capture_conversation(scope: Scope) -> str:
    """Return the conversation of a capture: the session's, else one of the run or of the issue."""
    if scope.conversation is not None:
        return scope.conversation
    for kind in ("run", "issue"):
        if (name := getattr(scope, kind)) is not None:
            plain = f"{kind}:{name}"
            return plain if len(plain) <= MAX_PART_CHARS else f"{kind}:{_digest(name)}"
    return DEFAULT_CONVERSATION


def to_snippet(record: Record | Hit, score: float | None = None) -> Snippet:
    noted = decode_metadata(record.metadata)
    source = noted.source
    if source is not None and source.space != record.scope.space:
        source = None  # a source in another space is forged
    return Snippet(
        handle=RecordHandle(LOCAL, record.id),
        text=record.text,
        score=score,
        summary=noted.summary,
        source=source,
        scope=record.scope,
        recorded_at=record.recorded_at,
        metadata=noted.metadata,
        **_speaker(record),
    )


def _speaker(record: Record | Hit) -> dict[str, Any]:
    return {} if isinstance(record, MemoryRecord) else {name: getattr(record, name) for name in _SPEAKER}


def to_hit(found: Snippet, asked: Scope, now: datetime) -> Hit:
    fields = _record_fields(found, asked, now)
    noted = fields["metadata"].get("sender")
    return Hit(
        id=found.handle.record_id,
        kind=HitKind.MEMORY,
        score=found.score or 0.0,
        evidence=(),
        sender=found.sender or (noted if isinstance(noted, str) else None),
        role=found.role,
        said_at=found.said_at,
        **fields,
    )


def to_memory(found: Snippet, asked: Scope, now: datetime) -> MemoryRecord:
    return MemoryRecord(
        id=MemoryId(found.handle.record_id),
        superseded_at=None,
        author=found.handle.provider_key,
        reason=None,
        **_record_fields(found, asked, now),
    )


def _record_fields(found: Snippet, asked: Scope, now: datetime) -> dict[str, Any]:
    """The fields that a hit and a memory have in common."""
    return {
        "text": found.text,
        "scope": _record_scope(found, asked),
        "plane": plane_of(found),
        "trust": Trust.LOW,
        "status": Status.ACCEPTED,
        "revision": 1,
        "validity": ALWAYS,
        "recorded_at": found.recorded_at or now,
        "source": None if found.source is None else found.source.external_ref,
        "metadata": {name: value if is_scalar(value) else str(value) for name, value in found.metadata.items()},
    }


def _record_scope(found: Snippet, asked: Scope) -> Scope:
    """Return the record's scope, with parts that its provider does not report taken from the request."""
    if found.scope is None:
        return asked
    unsaid = {name: getattr(asked, name) for name in FILTER_PARTS if getattr(found.scope, name) is None}
    return replace(found.scope, **unsaid)


def plane_of(found: Snippet) -> Plane:
    outside = found.source is not None and found.source.kind is SourceKind.EXTERNAL_DOCUMENT
    return Plane.RESOURCE if outside else Plane.LONG_TERM
