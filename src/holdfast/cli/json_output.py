"""`--json`: prints one document on stdout. Times are in ISO 8601, enumerations by their value."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TextIO

_DIGITS = 6  # scores are single precision: further digits are noise


def plain(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def print_json(value: object, stream: TextIO | None = None, *, indent: int | None = 2) -> None:
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        from holdfast.domain.visible_text import escape_hidden  # its patterns take time to compile

        # Unsafe characters occur only inside strings, where JSON allows escapes.
        text = escape_hidden(text, _escape_char)
    print(text, file=stream or sys.stdout)


def _escape_char(char: str) -> str:
    return json.dumps(char, ensure_ascii=True)[1:-1]
