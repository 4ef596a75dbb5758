"""Check the rows of one conversation for dangling references and contradictions.

Only our own rows are checked, page by page, and never a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from holdfast.domain.derived_refs import RepairIssue, RepairIssueKind, TranscriptCheck
from holdfast.domain.memory import Status
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.errors import StoreCorrupt
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sql.transcripts.rows import (
    CONVERSATION_COLUMNS,
    STATUSES,
    MessageRow,
    TurnRow,
    build_turn,
    read_messages,
    read_turns,
)

_PAGE = 500
_KIND = RepairIssueKind
# Messages whose scope is not that of their conversation.
MISPLACED = (
    "FROM records r JOIN conversations c ON c.id = r.conversation_id"
    " LEFT JOIN scopes s ON s.id = r.scope_id WHERE r.conversation_id = ? AND (s.id IS NULL"
    " OR r.partition_id <> c.partition_id OR s.partition_id <> c.partition_id OR "
    + " OR ".join(f"s.{'conversation' if name == 'name' else name} <> c.{name}" for name in CONVERSATION_COLUMNS)
    + ")"
)
_MISPLACED = f"SELECT r.id, r.turn_id {MISPLACED} ORDER BY r.position LIMIT ?"
# Links from its messages to a missing memory, or to one in another space.
_ORPHANS = (
    "SELECT m.id, m.turn_id, r.id, r.kind FROM records m JOIN evidence e ON e.message_number = m.number"
    " LEFT JOIN records r ON r.number = e.memory_number LEFT JOIN partitions p ON p.id = r.partition_id"
    " WHERE m.conversation_id = ? AND (r.kind IS NULL OR r.kind <> 1 OR p.space <> ?) ORDER BY m.position LIMIT ?"
)
# Links from memories of its partition to missing messages, whose conversation is unknown.
_BASELESS = (
    "SELECT r.id FROM records r JOIN evidence e ON e.memory_number = r.number"
    " LEFT JOIN records m ON m.number = e.message_number"
    " WHERE r.partition_id = ? AND r.kind = 1 AND (m.kind IS NULL OR m.kind <> 0) ORDER BY r.id LIMIT ?"
)
_REFERENCES = (
    "SELECT count(*) FROM records m JOIN evidence e ON e.message_number = m.number WHERE m.conversation_id = ?"
)


def check_thread(scope: GrantScope, thread: Scope, conversation: int, limit: int) -> TranscriptCheck:
    checked = [0]
    found = chain(
        _turn_issues(scope, thread, conversation, checked),
        _message_issues(scope, conversation, limit),
        _link_issues(scope, thread, conversation, limit),
    )
    issues = tuple(islice(found, limit))
    references = int(scope.database.execute(_REFERENCES, (conversation,)).fetchone()[0])
    return TranscriptCheck(checked[0], references, issues)


def _turn_issues(scope: GrantScope, thread: Scope, conversation: int, checked: list[int]) -> Iterator[RepairIssue]:
    """Check turns page by page; `checked` counts them."""
    shown: set[str] = set()
    before: TurnRow | None = None
    after = -1
    while page := read_turns(
        scope.database, conversation, "u.sequence > ? ORDER BY u.sequence LIMIT ?", after, _PAGE + 1
    ):
        end = page[_PAGE].first_position if len(page) > _PAGE else None
        start = min(row.first_position for row in page[:_PAGE]) if before else 0
        messages = read_messages(scope.database, conversation, start, end)
        for row in page[:_PAGE]:
            checked[0] += 1
            yield from _cursor_issues(row, before, shown)
            yield from _content_issues(row, messages.pop(row.id, ()), thread)
            before = row
        for turn_id, left in messages.items():
            yield from _turnless(scope, turn_id, left)
        after = page[:_PAGE][-1].sequence
    if before is None:
        for turn_id, left in read_messages(scope.database, conversation, 0, None).items():
            yield from _turnless(scope, turn_id, left)


def _turnless(scope: GrantScope, turn_id: str, messages: Sequence[MessageRow]) -> Iterator[RepairIssue]:
    elsewhere = scope.database.execute("SELECT 1 FROM turns WHERE id = ? LIMIT 1", (turn_id,)).fetchone()
    kind = _KIND.MISSING_SOURCE_TURN if elsewhere is None else _KIND.MISMATCHED_SOURCE_KEY
    what = "its turn is missing" if elsewhere is None else "it is not stored where its turn is"
    yield from (RepairIssue(kind, what, turn_id, message.id) for message in messages)


def _message_issues(scope: GrantScope, conversation: int, limit: int) -> Iterator[RepairIssue]:
    for message_id, turn_id in scope.database.execute(_MISPLACED, (conversation, limit)).fetchall():
        what = "its scope differs from its conversation's"
        yield RepairIssue(_KIND.MISMATCHED_SOURCE_KEY, what, turn_id, message_id)


def _link_issues(scope: GrantScope, thread: Scope, conversation: int, limit: int) -> Iterator[RepairIssue]:
    found = scope.database.execute(_ORPHANS, (conversation, thread.space, limit)).fetchall()
    for message_id, turn_id, memory_id, kind in found:
        if kind == 1:
            what, issue = "a memory of another space rests on it", _KIND.MISMATCHED_SOURCE_KEY
        else:
            what, issue = "a memory derived from it is missing", _KIND.ORPHAN_DERIVED_REF
        yield RepairIssue(issue, what, turn_id, message_id, memory_id)
    for (memory_id,) in scope.database.execute(_BASELESS, (scope.number_of(thread.partition), limit)).fetchall():
        what = "a message that it rests on is missing"
        yield RepairIssue(_KIND.MISSING_SOURCE_MESSAGE, what, store_key=memory_id)


def _cursor_issues(row: TurnRow, before: TurnRow | None, shown: set[str]) -> Iterator[RepairIssue]:
    same_place = before is not None and row.first_position == before.first_position
    if row.shown_id in shown or same_place:
        what = "begins where another turn does" if same_place else "has the id of another turn"
        yield RepairIssue(_KIND.DUPLICATE_TURN_CURSOR, f"turn {row.sequence} {what}", row.id)
    elif before is not None and row.first_position < before.first_position:
        yield RepairIssue(_KIND.CORRUPT_RECORD, f"turn {row.sequence} begins before the one before it", row.id)
    shown.add(row.shown_id)


def has_content_issues(row: TurnRow, messages: Sequence[MessageRow], thread: Scope) -> bool:
    return any(True for _ in _content_issues(row, messages, thread))


def _content_issues(row: TurnRow, messages: Sequence[MessageRow], thread: Scope) -> Iterator[RepairIssue]:
    if len(messages) < row.messages or not messages:
        missing = max(row.messages, 1) - len(messages)
        yield RepairIssue(_KIND.MISSING_SOURCE_MESSAGE, f"turn {row.sequence} lacks {missing} of its messages", row.id)
    elif len(messages) > row.messages:
        what = f"turn {row.sequence} counts {row.messages} messages and has {len(messages)}"
        yield RepairIssue(_KIND.CORRUPT_RECORD, what, row.id)
    yield from (issue for message in messages for issue in _status_issues(row, message))
    if messages:
        try:
            build_turn(row, messages, thread)
        except StoreCorrupt:
            yield RepairIssue(_KIND.CORRUPT_RECORD, f"turn {row.sequence} cannot be read", row.id)


def _status_issues(row: TurnRow, message: MessageRow) -> Iterator[RepairIssue]:
    expected: Any = None
    if row.state in STATUSES:
        expected = STATUSES[TranscriptState(row.state)]
    if message.status != expected:
        what = f"its turn is {row.state!r:.40}, and it is {message.status!r:.40}"
        yield RepairIssue(_KIND.CORRUPT_RECORD, what, row.id, message.id)
    elif message.status == Status.RAW_DELETED and isinstance(message.text, str):
        what = "its content was deleted, but is still there"
        yield RepairIssue(_KIND.CORRUPT_RECORD, what, row.id, message.id)
