"""Edits of TOML text: one table, at its exact span."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_HEADER = re.compile(r"\s*\[")


def parse(text: str) -> dict[str, Any]:
    """Return the values of TOML text; raise `ValueError` if it is none."""
    return tomllib.loads(text)


def set_table(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a table set. A new one is put at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table = newline.join(
        (f"[{'.'.join(path)}]", *(f"{name} = {json.dumps(each, ensure_ascii=False)}" for name, each in value.items()))
    )
    if (span := _find(text, path)) is not None:
        return text[: span[0]] + table + newline + text[span[1] :]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + gap + table + newline


def remove_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table; the same text if there is none."""
    span = _find(text, path)
    if span is None:
        return text
    before = text[: span[0]]
    # The blank line before it, which set it apart.
    blank = re.search(r"(?<=\n)\r?\n\Z", before)
    return (before[: blank.start()] if blank else before) + text[span[1] :]


def _find(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Return the span of a table and its subtables. Comments before the next table belong to that one."""
    names = r"\s*\.\s*".join(rf"(?:{re.escape(part)}|\"{re.escape(part)}\"|'{re.escape(part)}')" for part in path)
    own = re.compile(rf"\s*\[\s*{names}\s*[.\]]")
    start = end = None
    place, within = 0, False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            within = own.match(line) is not None
            start = place if within and start is None else start
        place += len(line)
        if within and line.strip() and not line.lstrip().startswith("#"):
            end = place
    return None if start is None or end is None else (start, end)
