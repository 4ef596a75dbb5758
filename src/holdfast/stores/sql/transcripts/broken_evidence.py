"""Find the records that rest on broken evidence: on turns and links in which `check.py` finds an issue.

It looks only at the turns of those records, so that a recall can afford it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.domain.scope import Partition, PartitionKind, Scope
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sql.rows import MESSAGE
from holdfast.stores.sql.transcripts.check import MISPLACED, has_content_issues
from holdfast.stores.sql.transcripts.rows import (
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    TURN_COLUMNS,
    TURN_TABLES,
    MessageRow,
    TurnRow,
    thread_of,
)

# The id of the record, and the message that it rests on.
_COLUMNS = "r.id, home.space, m.id, m.kind, m.conversation_id, m.turn_id, p.space"
_JOINED = (
    " LEFT JOIN partitions home ON home.id = r.partition_id LEFT JOIN partitions p ON p.id = m.partition_id"
    " WHERE {} AND"
)
_OF_MEMORIES = (
    f"SELECT {_COLUMNS} FROM records r JOIN evidence e ON e.memory_number = r.number"
    f" LEFT JOIN records m ON m.number = e.message_number{_JOINED} r.kind = 1 AND r.superseded_at IS NULL"
)
# A message rests on itself.
_OF_MESSAGES = f"SELECT {_COLUMNS} FROM records r JOIN records m ON m.number = r.number{_JOINED} r.kind = 0"
_NEXT = "(SELECT n.first_position FROM turns n WHERE n.conversation_id = u.conversation_id AND n.sequence {} u.sequence"
_BEFORE = f"{_NEXT.format('<')} ORDER BY n.sequence DESC LIMIT 1)"
_AFTER = f"{_NEXT.format('>')} ORDER BY n.sequence LIMIT 1)"
_TURNS = f"SELECT {_BEFORE}, {TURN_COLUMNS} FROM {TURN_TABLES} WHERE u.conversation_id = ? AND {{}}"
_MESSAGES = (
    f"SELECT {MESSAGE_COLUMNS} FROM turns u JOIN records r ON r.conversation_id = u.conversation_id"
    f" AND r.position >= u.first_position AND r.position < coalesce({_AFTER}, {2**62})"
    " LEFT JOIN texts t ON t.number = r.number WHERE u.conversation_id = ? AND {}"
)
_THREADS = (
    f"SELECT c.id, p.space, p.kind, p.owner, {', '.join(f'c.{column}' for column in CONVERSATION_COLUMNS)}"
    " FROM conversations c JOIN partitions p ON p.id = c.partition_id WHERE {}"
)


class _Link(NamedTuple):
    """A record, and a message that it rests on; both in a space."""

    record_id: str
    space: str | None
    message_id: str | None
    kind: int | None
    conversation: int | None
    turn_id: str | None
    message_space: str | None

    @property
    def is_broken(self) -> bool:
        return self.kind != MESSAGE or self.conversation is None or self.space != self.message_space


def find_resting_on_broken(scope: GrantScope, record_ids: Sequence[str]) -> frozenset[str]:
    links = [
        _Link(*row)
        for statement in (_OF_MEMORIES, _OF_MESSAGES)
        for row in scope.rows_among("r.id", record_ids, statement)
    ]
    broken = {link.record_id for link in links if link.is_broken}
    places: dict[int, list[_Link]] = {}
    for link in links:
        if not link.is_broken and link.conversation is not None:
            places.setdefault(link.conversation, []).append(link)
    threads = {
        row[0]: thread_of(Partition(row[1], PartitionKind(row[2]), row[3]), row[4:])
        for row in scope.rows_among("c.id", list(places), _THREADS)
    }
    for conversation, within in places.items():
        thread = threads.get(conversation)
        sound = set() if thread is None else _sound_turns(scope, conversation, thread, within)
        misplaced = _find_misplaced(scope, conversation, within)
        broken |= {link.record_id for link in within if link.turn_id not in sound or link.message_id in misplaced}
    return frozenset(broken)


def _sound_turns(scope: GrantScope, conversation: int, thread: Scope, links: Sequence[_Link]) -> set[str]:
    """Return the turns of these messages that exist and have no issue."""
    turn_ids = sorted({link.turn_id for link in links if link.turn_id is not None})
    found = scope.rows_among("u.id", turn_ids, _TURNS, before=[conversation])
    messages: dict[str, list[MessageRow]] = {}
    for row in map(MessageRow._make, scope.rows_among("u.id", turn_ids, _MESSAGES, before=[conversation])):
        messages.setdefault(row.turn_id, []).append(row)
    sound = set()
    for before, *columns in found:
        turn = TurnRow._make(columns)
        in_order = before is None or before < turn.first_position
        of_turn = sorted(messages.get(turn.id, ()), key=lambda message: message.position)
        if in_order and not has_content_issues(turn, of_turn, thread):
            sound.add(turn.id)
    return sound


def _find_misplaced(scope: GrantScope, conversation: int, links: Sequence[_Link]) -> set[Any]:
    message_ids = sorted({link.message_id for link in links if link.message_id is not None})
    statement = f"SELECT r.id {MISPLACED} AND {{}}"
    return {row[0] for row in scope.rows_among("r.id", message_ids, statement, before=[conversation])}
