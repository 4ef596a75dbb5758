"""The preamble of a run: the label of `recall` and one line per snippet. Bounded; content is data, not instructions."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.contract import Snippet
from holdfast.domain.recall_policy import RecallItem, belief_rank, select_records
from holdfast.domain.reference_message import LABEL, bracket, record_line, speaker
from holdfast.domain.visible_text import one_line

MAX_LINE_CHARS = 240
DEFAULT_CHARS = 2_000
LEAST_CHARS, MOST_CHARS = 100, 20_000
DEFAULT_SNIPPETS = 5
MOST_SNIPPETS = 10
DEFAULT_BUDGET_MS = 1_500
LEAST_BUDGET_MS, MOST_BUDGET_MS = 50, 10_000
_LEAST_TEXT = 20  # a line with less text is useless
_ELLIPSIS = "…"


def preamble(snippets: Sequence[Snippet], max_chars: int, query: str | None = None) -> tuple[tuple[Snippet, ...], str]:
    """Return the snippets to show, and the preamble; an empty one if there are none.

    They are chosen as in `recall`, and the budget drops the least relevant first. Each text is kept on one line, so it
    cannot imitate another line or a heading.
    """
    snippets = select_records([_item(snippet) for snippet in snippets], len(snippets), query=query).records
    shown: list[Snippet] = []
    lines = [LABEL]
    room = max_chars - len(LABEL)
    for snippet in snippets:
        text = one_line(snippet.summary or snippet.text)
        if not text:
            continue
        whole = record_line(f"{len(shown) + 1}.", _origin(snippet), text)
        line = _cut(whole, min(MAX_LINE_CHARS, room - 1))
        if len(line) < min(len(whole), len(whole) - len(text) + _LEAST_TEXT):
            break
        lines.append(line)
        shown.append(snippet)
        room -= len(line) + 1
    return tuple(shown), "\n".join(lines) if shown else ""


def _item(snippet: Snippet) -> RecallItem[Snippet]:
    # A memory is of its subject, and so are the words of a user without a name.
    is_own = snippet.role in (None, "user")
    return RecallItem(
        record=snippet,
        id=snippet.handle.record_id,
        text=snippet.summary or snippet.text,
        is_memory=snippet.role is None,
        is_assistants=snippet.role not in (None, "user"),
        speaker=snippet.sender or (snippet.scope.subject if is_own and snippet.scope is not None else None),
        rank=belief_rank(snippet.role, None, source=None),
        at=snippet.said_at or snippet.recorded_at,
    )


def _origin(snippet: Snippet) -> str:
    """Return the origin as `recall` shows it. A provider's record without a role is a memory."""
    if snippet.role is None:
        return bracket("memory", snippet.recorded_at)
    return bracket(f"said by {speaker(snippet.sender, snippet.role)}", snippet.said_at)


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: max(0, most - 1)] + _ELLIPSIS
