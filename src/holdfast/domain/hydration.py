"""What a run is given of memory before it begins: a heading, and a line for each thing found. Bounded, and data."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.contract import Snippet
from holdfast.domain.projection import one_line

HEADING = "Relevant memory:"
MAX_LINE_CHARS = 240
DEFAULT_CHARS = 2_000
LEAST_CHARS, MOST_CHARS = 100, 20_000
DEFAULT_SNIPPETS = 5
MOST_SNIPPETS = 10
DEFAULT_BUDGET_MS = 1_500
LEAST_BUDGET_MS, MOST_BUDGET_MS = 50, 10_000
_LEAST_TEXT = 20  # a line with less of it says nothing
_ELLIPSIS = "…"


def preamble(snippets: Sequence[Snippet], max_chars: int) -> tuple[tuple[Snippet, ...], str]:
    """As many, in order, as fit; and the text. Nothing to say, no text.

    Whatever a text holds, it stays on its line: it cannot pose as another, or as a heading.
    """
    shown: list[Snippet] = []
    lines = [HEADING]
    room = max_chars - len(HEADING)
    for snippet in snippets:
        said = one_line(snippet.summary or snippet.text)
        if not said:
            continue
        kind = "memory" if snippet.source is None else snippet.source.kind
        head = f"{len(shown) + 1}. [{kind}] "
        line = _cut(head + said, min(MAX_LINE_CHARS, room - 1))
        if len(line) < min(len(head + said), len(head) + _LEAST_TEXT):
            break
        lines.append(line)
        shown.append(snippet)
        room -= len(line) + 1
    return tuple(shown), "\n".join(lines) if shown else ""


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: max(0, most - 1)] + _ELLIPSIS
