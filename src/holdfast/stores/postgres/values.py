"""Values as parameters: of the few kinds that the statements bind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

_TEXT, _BINARY = 0, 1


class HalfVector(bytes):
    """A vector in the form in which pgvector reads it."""


def encoded(values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """What is sent for them, and in which format."""
    given: list[bytes | None] = []
    formats: list[int] = []
    for value in values:
        if isinstance(value, bytes):
            given.append(value)
            formats.append(_BINARY)
        else:
            given.append(None if value is None else _text(value))
            formats.append(_TEXT)
    return given, formats


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        raw = value.encode()
        if b"\0" in raw:
            raise psycopg.DataError("PostgreSQL keeps no NUL character in a text")
        return raw
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, list):
        return b"{%b}" % b",".join([_element(each) for each in value])
    raise TypeError(f"a {type(value).__name__} cannot be bound")


def _element(value: Any) -> bytes:
    """Of an array."""
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, bytes):
        return b'"\\\\x%b"' % value.hex().encode()
    return b'"%b"' % _text(value).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
