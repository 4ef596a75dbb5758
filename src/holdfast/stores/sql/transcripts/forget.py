"""Update turns after a forget: those left without messages are deleted, and their host's ids stay taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from holdfast.stores.sql.events import erase_hashes
from holdfast.stores.sql.transcripts.rows import WORDS
from holdfast.stores.sql.write_scope import WriteScope

_TURN = 2  # kind of a tombstone; 0 is a message, 1 a memory
TOMBSTONE_COLUMNS = (
    "partition_id", "change", "number", "id", "kind", "scope_id", "conversation_id", "external_key", "forgotten_at",
)  # fmt: skip
_LAST = "(SELECT max(u.sequence) FROM turns u WHERE u.conversation_id = conversations.id)"
_KEEP_SEQUENCES = f"UPDATE conversations SET least_sequence = {_LAST} + 1 WHERE least_sequence <= {_LAST}"


def forget_messages(scope: WriteScope, found: Sequence[tuple[str, int, int, int]], at: int) -> None:
    """Uncount forgotten messages: (turn, conversation, partition, scope) of each. Turns left empty are deleted."""
    lost = Counter(row[0] for row in found)
    places = {row[0]: row[1:] for row in found}
    there = [
        row
        for conversation in {row[1] for row in found}
        for row in scope.rows_among(
            "u.id", sorted(lost), f"{WORDS} WHERE u.conversation_id = ? AND {{}}", before=(conversation,)
        )
    ]
    erase_hashes(scope, [key for row in there for key in (row[0], row[6]) if isinstance(key, str)])
    scope.database.executemany(
        "UPDATE turns SET messages = messages - ? WHERE conversation_id = ? AND sequence = ?",
        [(lost[row[0]], row[2], row[1]) for row in there],
    )
    if gone := [row for row in there if row[3] <= lost[row[0]]]:
        _delete_turns(scope, gone, places, at)


def _delete_turns(scope: WriteScope, gone: Sequence[Any], places: dict[str, tuple[int, int, int]], at: int) -> None:
    conversations = Counter(row[2] for row in gone)
    for condition, named in scope.among("id", sorted(conversations)):
        scope.database.execute(f"{_KEEP_SEQUENCES} AND {condition}", named)
    scope.database.executemany(
        "UPDATE conversations SET forgotten_turns = forgotten_turns + ? WHERE id = ?",
        [(count, conversation) for conversation, count in conversations.items()],
    )
    for condition, named in scope.among("number", [row[5] for row in gone if row[5] is not None]):
        scope.database.execute(f"{scope.dialect.blank_texts} WHERE {condition}", named)
    tombstones = []
    for turn_id, _, conversation, _, key, number, *_ in gone:
        _, partition, scope_id = places[turn_id]
        if key is not None and number is not None:
            # Keeps the host's turn with this id from being added again.
            change = scope.change(partition)
            tombstones.append((partition, change, number, turn_id, _TURN, scope_id, conversation, key, at))
    if tombstones:
        scope.dialect.insert(scope.database, "tombstones", TOMBSTONE_COLUMNS, tombstones)
    scope.database.executemany(
        "DELETE FROM turns WHERE conversation_id = ? AND sequence = ?", [(row[2], row[1]) for row in gone]
    )
