"""Results as HTML tables for notebooks. Stored text is hostile: all of it is escaped, and none is in an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import is_dataclass
from datetime import datetime
from enum import Enum
from html import escape
from itertools import islice
from typing import Any

from holdfast.domain.json_values import shown_fields, word_of
from holdfast.domain.presentable import Presentable
from holdfast.domain.result_lines import describe, is_empty, short_time
from holdfast.domain.visible_text import escape_hidden

MAX_ROWS = 100
MAX_LINES = 20
MAX_CELL_CHARS = 2_000
# The classes keep notebooks from reading dollar signs as formulas.
_TABLE = '<table class="tex2jax_ignore mathjax_ignore">'
_CELL = '<td style="text-align:left;vertical-align:top;white-space:pre-wrap">'
# Without it, a browser breaks a date at its hyphens.
_TIME_CELL = '<td style="text-align:left;vertical-align:top;white-space:pre">'
_HEAD = '<th style="text-align:left;vertical-align:top">'


def record_table(value: Any) -> str:
    """Return a table of a result's fields that are not empty."""
    shown = ((name, getattr(value, name)) for name in shown_fields(value.__class__))
    rows = (f"{_head(name)}{_cell(found)}" for name, found in shown if not is_empty(found))
    return _table(type(value).__name__, rows)


def list_table(values: Sequence[Any], caption: str | None = None) -> str:
    """Return a table with a row for each value."""
    shown = tuple(islice(values, MAX_ROWS))
    columns = _columns(shown)
    rows = ["".join(map(_head, columns))] if columns else []
    rows += ["".join(_narrow_cell(getattr(value, name, None)) for name in columns) for value in shown if columns]
    rows += [_cell(value) for value in shown if not columns]
    hidden = len(values) - len(shown)
    rows += [f"{_CELL}… and {hidden:,} more</td>"] if hidden else []
    return _table(caption or f"{len(values):,} results", rows)


def _columns(values: Sequence[Any]) -> list[str]:
    """Return the fields that some of the values have, in order."""
    names: dict[str, None] = {}
    for value in values:
        if is_dataclass(value):
            own = (value._columns or value._summary) if isinstance(value, Presentable) else ()
            names |= dict.fromkeys(own or shown_fields(value.__class__))
    filled = [name for name in names if any(not is_empty(getattr(value, name, None)) for value in values)]
    return sorted(filled, key=lambda name: name == "id")


def _table(caption: str, rows: Iterable[str]) -> str:
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'{_TABLE}<caption style="text-align:left">{_escape(caption)}</caption>{body}</table>'


def _head(name: str) -> str:
    return f"{_HEAD}{_escape(name)}</th>"


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{_TIME_CELL}{short_time(value)}</td>"
    return f"{_CELL}{_escape(_cell_text(value))}</td>"


def _narrow_cell(value: Any) -> str:
    """Return the cell of a row: a time takes two lines, so that texts have room."""
    if isinstance(value, datetime):
        return f"{_TIME_CELL}{short_time(value).replace('T', '&#10;')}</td>"
    return _cell(value)


def _escape(text: str) -> str:
    short = text if len(text) <= MAX_CELL_CHARS else f"{text[: MAX_CELL_CHARS - 1]}…"
    return escape(escape_hidden(short, lambda char: char.encode("unicode_escape").decode("ascii")), quote=True)


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return word_of(value) if isinstance(value, Enum) else value
    if isinstance(value, Mapping):
        return _lines(f"{_cell_text(name)}: {_cell_text(found)}" for name, found in value.items())
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes):
        return _lines(_cell_text(each) for each in value)
    if is_dataclass(value):
        return describe(value)
    if isinstance(value, datetime):
        return short_time(value)
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _lines(texts: Iterable[str]) -> str:
    lines = list(texts)
    more = [f"… and {len(lines) - MAX_LINES:,} more"] if len(lines) > MAX_LINES else []
    return "\n".join(lines[:MAX_LINES] + more)
