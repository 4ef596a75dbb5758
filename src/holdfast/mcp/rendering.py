"""Stored texts for a model: one visible line per record, under the label of recalled data."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.domain.reference_message import LABEL, bracket, record_line, speaker
from holdfast.domain.results import Record
from holdfast.domain.transcript import Message
from holdfast.domain.visible_text import one_line

MAX_LINE_CHARS = 1_000


def visible_line(text: str) -> str:
    """Return a text as one visible line, short enough for a list."""
    line = one_line(text)
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"


def label_lines(lines: Iterable[str]) -> str:
    """Put the lines under the label, which says that they are data."""
    return "\n".join((LABEL, *lines))


def label_records(records: Iterable[Record], nothing: str) -> str:
    """Return one line per record with its id and origin, under the label; or a sentence if there are none."""
    lines = [record_line(each.id, _origin(each), visible_line(each.text)) for each in records]
    return label_lines(lines) if lines else nothing


def _origin(record: Record) -> str:
    if isinstance(record, Message):
        return bracket(f"said by {speaker(record.sender, record.role)}", record.said_at)
    return bracket("memory", record.recorded_at)
