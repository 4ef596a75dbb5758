"""Canonical JSON, its fingerprint, and deterministic ids."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime

from holdfast.domain.times import to_micros

_OURS = re.compile(r"[a-z]+_[0-9a-f]{32}")
_TIME_DIGITS = 12  # of a UUIDv7: its first 48 bits, in hexadecimal digits


def canonical(value: object) -> bytes:
    """Encode as canonical JSON: equal values give equal bytes. Sorted keys, no blanks, minimal escaping."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def fingerprint(value: object) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def is_holdfast_id(record_id: str) -> bool:
    """True if it has the form of Holdfast's ids."""
    return _OURS.fullmatch(record_id) is not None


def transfer_id(record_id: str, home: str) -> str:
    """Return the id of a Holdfast record in another home: deterministic, and with the same timestamp."""
    prefix, _, digits = record_id.partition("_")
    return _format_id(prefix, digits[:_TIME_DIGITS], home, record_id)


def derive_id(prefix: str, at: datetime, home: str, name: str) -> str:
    """Return a deterministic id for something that has only a foreign name."""
    milliseconds = max(to_micros(at) // 1_000, 0)
    return _format_id(prefix, f"{milliseconds:012x}"[-_TIME_DIGITS:], home, name)


def _format_id(prefix: str, time: str, home: str, name: str) -> str:
    """Build an id with the version and variant bits of a UUIDv7."""
    digest = hashlib.sha256(canonical([prefix, home, name])).hexdigest()
    variant = "89ab"[int(digest[0], 16) % 4]
    return f"{prefix}_{time}7{digest[1:4]}{variant}{digest[4:19]}"
