"""`--json`: prints one document on stdout, in the encoding of `to_dict`."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

_DIGITS = 6  # scores are single precision: further digits are noise


def plain(value: object) -> Any:
    from holdfast.domain.json_values import to_plain

    return to_plain(value, digits=_DIGITS)


def print_json(value: object, stream: TextIO | None = None, *, indent: int | None = 2) -> None:
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        from holdfast.domain.visible_text import escape_hidden  # its patterns take time to compile

        # Unsafe characters occur only inside strings, where JSON allows escapes.
        text = escape_hidden(text, _escape_char)
    print(text, file=stream or sys.stdout)


def _escape_char(char: str) -> str:
    return json.dumps(char, ensure_ascii=True)[1:-1]
