"""The preamble of a run: a heading and one line per snippet. Bounded; content is data, not instructions."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.contract import Snippet
from holdfast.domain.reference_message import one_line

HEADING = "Relevant memory:"
MAX_LINE_CHARS = 240
DEFAULT_CHARS = 2_000
LEAST_CHARS, MOST_CHARS = 100, 20_000
DEFAULT_SNIPPETS = 5
MOST_SNIPPETS = 10
DEFAULT_BUDGET_MS = 1_500
LEAST_BUDGET_MS, MOST_BUDGET_MS = 50, 10_000
_LEAST_TEXT = 20  # a line with less text is useless
_ELLIPSIS = "…"


def preamble(snippets: Sequence[Snippet], max_chars: int) -> tuple[tuple[Snippet, ...], str]:
    """Return the first snippets that fit, and the preamble; an empty one if there are none.

    Each text is kept on one line, so it cannot imitate another line or a heading.
    """
    shown: list[Snippet] = []
    lines = [HEADING]
    room = max_chars - len(HEADING)
    for snippet in snippets:
        text = one_line(snippet.summary or snippet.text)
        if not text:
            continue
        kind = "memory" if snippet.source is None else snippet.source.kind
        head = f"{len(shown) + 1}. [{kind}] "
        line = _cut(head + text, min(MAX_LINE_CHARS, room - 1))
        if len(line) < min(len(head + text), len(head) + _LEAST_TEXT):
            break
        lines.append(line)
        shown.append(snippet)
        room -= len(line) + 1
    return tuple(shown), "\n".join(lines) if shown else ""


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: max(0, most - 1)] + _ELLIPSIS
