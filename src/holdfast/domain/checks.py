"""Checks of single values from callers: texts, numbers, flags, metadata and types. Each error names its field.

Texts are checked once, at the edge, so that every store and format can carry them unchanged. A bool is not accepted as
a number, although Python's `bool` is an `int`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Sized
from enum import Enum
from typing import TypeVar

from holdfast.errors import InvalidInput, InvalidText

K = TypeVar("K")
MAX_TEXT_CHARS = 1_000_000
MAX_QUERY_CHARS = 20_000
MAX_FILTER_CHARS = 1_024  # of a name to search for
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MAX_SECONDS = 86_400.0
MAX_METADATA_ENTRIES = 64
MAX_METADATA_CHARS = 4_096
# The whole numbers of 64 bits, which every reader of JSON and every database can hold.
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**63 - 1

Scalar = str | int | float | bool | None
Metadata = Mapping[str, Scalar]


def checked_text(value: object, field: str, *, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the text unchanged, or raise `InvalidText`."""
    if not isinstance(value, str):
        raise InvalidText(field, f"expected text, got {type(value).__name__}")
    if not value.strip():
        raise InvalidText(field, "is empty; give it some text")
    if len(value) > max_chars:
        # Content can be split into several pieces; a name, an id or a query cannot.
        advice = "split it" if max_chars > MAX_QUERY_CHARS else "shorten it"
        raise InvalidText(field, f"has {len(value):,} characters; at most {max_chars:,} are allowed: {advice}")
    if found := _UNSTORABLE.search(value):
        name = "a NUL character" if found.group() == "\x00" else "a lone surrogate"
        raise InvalidText(field, f"holds {name} at position {found.start()}; remove it")
    return value


def checked_whole(value: object, field: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, f"must be a whole number from {least:,} to {most:,}, not {value!r:.40}")
    return value


def checked_real(value: object, field: str, least: int | None = None, most: int | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InvalidInput(field, f"must be a number, not {value!r:.40}")
    if least is not None and most is not None and not least <= value <= most:
        raise InvalidInput(field, f"must be a number from {least:,} to {most:,}, not {value!r:.40}")
    return value


def check_count(values: Sized, field: str, least: int, most: int) -> None:
    """Check the number of items."""
    if not least <= len(values) <= most:
        allowed = f"at most {most:,} are allowed" if len(values) > most else f"give at least {least:,}"
        raise InvalidInput(field, f"has {len(values):,} items; {allowed}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def checked_flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be True or False, not {value!r:.40}")
    return value


def checked_seconds(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise InvalidInput(field, f"must be a number of seconds above 0 and up to {MAX_SECONDS:,.0f}")
    return float(value)


def check_metadata(metadata: object) -> None:
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary, got {type(metadata).__name__}")
    if len(metadata) > MAX_METADATA_ENTRIES:
        raise InvalidInput("metadata", f"has {len(metadata)} entries; at most {MAX_METADATA_ENTRIES} are allowed")
    for key, value in metadata.items():
        checked_text(key, "metadata key", max_chars=MAX_METADATA_CHARS)
        if not isinstance(value, str):
            if (problem := _scalar_problem(value)) is not None:
                raise InvalidInput(f"metadata[{key!r:.40}]", problem)
        elif value.strip():
            checked_text(value, f"metadata[{key!r:.40}]", max_chars=MAX_METADATA_CHARS)


def is_scalar(value: object) -> bool:
    """True if metadata can hold the value as it is; the length of a text is not checked."""
    return isinstance(value, str) or _scalar_problem(value) is None


def _scalar_problem(value: object) -> str | None:
    """Say why metadata cannot hold a value that is not a text; None if it can."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        fits = LEAST_WHOLE <= value <= MOST_WHOLE
        return None if fits else "is a whole number of more than 64 bits; give it as a text"
    if not isinstance(value, float):
        kind = type(value).__name__
        return f"expected a text, a number, True, False or None, got {kind}; give it as a text"
    return None if math.isfinite(value) else "is not a finite number, which JSON cannot hold; leave it out"


def checked_instance(value: object, kind: type[K], field: str = "request") -> K:
    """Return the value if it is an instance of `kind`."""
    if not isinstance(value, kind):
        name = kind.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise InvalidInput(field, f"expected {article} {name}, got {type(value).__name__}")
    return value


def checked_instances(values: object, kind: type[K], field: str) -> tuple[K, ...]:
    """Return the values if all are instances of `kind`."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(field, f"expected several {kind.__name__}, got {type(values).__name__}")
    return tuple(checked_instance(each, kind, f"{field}[{place}]") for place, each in enumerate(values))


def check_enum(value: object, kind: type[Enum], field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be one of {', '.join(str(each.value) for each in kind)}")
