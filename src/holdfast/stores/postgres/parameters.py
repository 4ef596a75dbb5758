"""Encode statement parameters, of the few types in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

_TEXT, _BINARY = 0, 1


class HalfVector(bytes):
    """A vector in pgvector's binary form."""


def encode_parameters(values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """Return the encoded values, and their formats."""
    parameters: list[bytes | None] = []
    formats: list[int] = []
    for value in values:
        if isinstance(value, bytes):
            parameters.append(value)
            formats.append(_BINARY)
        else:
            parameters.append(None if value is None else _encode_text(value))
            formats.append(_TEXT)
    return parameters, formats


def _encode_text(value: Any) -> bytes:
    if isinstance(value, str):
        raw = value.encode()
        if b"\0" in raw:
            raise psycopg.DataError("PostgreSQL cannot store a NUL character in a text")
        return raw
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, list):
        return b"{%b}" % b",".join([_encode_element(each) for each in value])
    raise TypeError(f"a {type(value).__name__} cannot be bound")


def _encode_element(value: Any) -> bytes:
    """Encode an element of an array."""
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, bytes):
        return b'"\\\\x%b"' % value.hex().encode()
    return b'"%b"' % _encode_text(value).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
