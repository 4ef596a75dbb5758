"""The conversation that a scope names, and the next position and turn in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.domain.scope import CONVERSATION_PARTS, Scope

CONVERSATION_COLUMNS = tuple("name" if part == "conversation" else part for part in CONVERSATION_PARTS)
OF_CONVERSATION = " AND ".join(f"c.{column} = ?" for column in CONVERSATION_COLUMNS)

# Columns of a conversation `c` that `next_position` and `next_sequence` take.
NEXT_POSITION = "c.least_position, (SELECT max(r.position) FROM records r WHERE r.conversation_id = c.id)"
NEXT_SEQUENCE = "c.least_sequence, (SELECT max(u.sequence) FROM turns u WHERE u.conversation_id = c.id)"


def next_position(found: Sequence[Any]) -> int:
    """Return the position after the last message, and after all forgotten ones."""
    least, last = found
    return int(least) if last is None else max(int(least), int(last) + 1)


# The same holds for turns.
next_sequence = next_position


def conversation_key(scope: Scope) -> tuple[str, ...]:
    return tuple(getattr(scope, part) or "" for part in CONVERSATION_PARTS)
