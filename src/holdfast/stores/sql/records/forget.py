"""Carry out a forget: delete what was written, and leave tombstones without text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.events import NAMED_IDS, Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.scope import Partition, PartitionKind
from holdfast.domain.times import to_micros
from holdfast.ports import ForgetPlan
from holdfast.stores.sql.deliveries import SqlDeliveryWriter
from holdfast.stores.sql.dialect import chunks
from holdfast.stores.sql.events import erase_but_ids, erase_hashes, insert_events
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.jobs import SqlJobWriter
from holdfast.stores.sql.proposals import forget_proposals
from holdfast.stores.sql.resources import SqlResourceWriter
from holdfast.stores.sql.rows import MESSAGE
from holdfast.stores.sql.skills import forget_skills
from holdfast.stores.sql.tools import SqlToolWriter
from holdfast.stores.sql.transcripts.forget import TOMBSTONE_COLUMNS, forget_messages
from holdfast.stores.sql.write_scope import WriteScope, delete_vectors

_LAST = "(SELECT max(r.position) FROM records r WHERE r.conversation_id = conversations.id)"
_KEEP_POSITIONS = f"UPDATE conversations SET least_position = {_LAST} + 1 WHERE least_position <= {_LAST}"
_LINKS = (("evidence", "message_number"), ("evidence", "memory_number"), ("contradictions", "memory_number"))


class RecordForgetter(SqlRepository):
    _scope: WriteScope

    def forget(self, plan: ForgetPlan, at: datetime, new_id: Callable[[], EventId]) -> tuple[int, int]:
        record_ids = [*plan.message_ids, *plan.memory_ids, *plan.derived_ids]
        found = self._rows_of(record_ids, plan.baseless)
        tools = SqlToolWriter(self._scope).forget(plan.tool_entries)
        insert_events(self._scope, self._events(plan, found, tools, at, new_id))
        erase_but_ids(self._scope, record_ids)
        for chunk in chunks(found, self._scope.dialect.chunk):
            self._delete(chunk, to_micros(at))
        for condition, named in self._scope.among("contradicted_id", record_ids):
            self._db.execute(f"DELETE FROM contradictions WHERE {condition}", named)
        forget_proposals(self._scope, plan.proposals)
        forget_skills(self._scope, [*plan.memory_ids, *plan.derived_ids])
        # Jobs keep a memory that lost only an older revision.
        SqlJobWriter(self._scope).forget_records(record_ids)
        left = SqlResourceWriter(self._scope).forget(plan.resource_ids)
        SqlDeliveryWriter(self._scope).forget(plan.delivery_ids, to_micros(at))
        return len(found), len(self._rows_of(record_ids, plan.baseless)) + left

    def _events(
        self,
        plan: ForgetPlan,
        found: Sequence[Any],
        tools: Mapping[int, int],
        at: datetime,
        new_id: Callable[[], EventId],
    ) -> Iterator[tuple[Event, int]]:
        """Build an event for each partition that loses records: one must not show the ids of another."""
        gone: dict[int, dict[str, list[str]]] = {}
        memory_ids = {*plan.memory_ids, *plan.derived_ids}
        for _, record_id, kind, partition, *_ in found:
            if kind == MESSAGE or record_id in memory_ids:
                lost = gone.setdefault(partition, {}).setdefault("messages" if kind == MESSAGE else "memories", [])
                lost.append(record_id)
        for resource_id, partition in SqlResourceWriter(self._scope).partitions_of(plan.resource_ids):
            gone.setdefault(partition, {}).setdefault("resources", []).append(resource_id)
        for partition in tools:
            gone.setdefault(partition, {})
        owners = self._scope.rows_among("id", list(gone), "SELECT id, space, kind, owner FROM partitions WHERE {}")
        for number, space, kind, owner in sorted(owners):
            lost_ids = {name: list(dict.fromkeys(ids)) for name, ids in gone[number].items()}
            place = Partition(space, PartitionKind(kind), owner)
            yield _deletion(place, lost_ids, tools.get(number, 0), at, new_id()), number

    def _rows_of(self, record_ids: Sequence[str], numbers: Sequence[int]) -> list[Any]:
        """Load the rows to delete. The plan chose them; only the boundary between spaces is checked again."""
        space, values = self._scope.in_space()
        statement = (
            "SELECT r.number, r.id, r.kind, r.partition_id, r.scope_id, r.conversation_id, r.external_key, r.turn_id"
            f" FROM records r WHERE {{}} AND {space}"
        )
        by_id = self._scope.rows_among("r.id", record_ids, statement, values)
        return by_id + self._scope.rows_among("r.number", numbers, statement, values)

    def _delete(self, found: Sequence[Any], at: int) -> None:
        numbers = [row[0] for row in found]
        self._mark_weakened(numbers)
        for table, column in _LINKS:
            condition, named = self._scope.dialect.among(column, numbers)
            self._db.execute(f"DELETE FROM {table} WHERE {condition}", named)
        self._keep_positions({row[5] for row in found if row[5] is not None})
        condition, named = self._scope.dialect.among("number", numbers)
        self._db.execute(f"{self._scope.dialect.blank_texts} WHERE {condition}", named)
        delete_vectors(self._scope, [(row[3], row[0]) for row in found])
        tombstones = [
            (partition, self._scope.change(partition), number, record_id, kind, scope, conversation, key, at)
            for number, record_id, kind, partition, scope, conversation, key, _ in found
        ]
        self._scope.dialect.insert(self._db, "tombstones", TOMBSTONE_COLUMNS, tombstones)
        self._db.execute(f"DELETE FROM records WHERE {condition}", named)
        erase_hashes(self._scope, {row[1] for row in found})  # also of memories that lose an older revision
        forget_messages(self._scope, [(row[7], row[5], row[3], row[4]) for row in found if row[7] is not None], at)

    def _keep_positions(self, conversations: set[int]) -> None:
        """Raise the least position, so that positions of forgotten messages are not reused."""
        condition, named = self._scope.dialect.among("id", sorted(conversations))
        self._db.execute(f"{_KEEP_POSITIONS} AND {condition}", named)

    def _mark_weakened(self, messages: Sequence[int]) -> None:
        """Mark memories that lose a link as changed."""
        condition, named = self._scope.dialect.among("e.message_number", messages)
        touched = self._db.execute(
            "SELECT DISTINCT r.number, r.partition_id FROM evidence e JOIN records r ON r.number = e.memory_number"
            f" WHERE {condition}",
            named,
        ).fetchall()
        self._db.executemany(
            "UPDATE records SET change = ? WHERE number = ?",
            [(self._scope.change(partition), number) for number, partition in touched],
        )


def _deletion(
    place: Partition, lost: Mapping[str, Sequence[str]], tools: int, at: datetime, event_id: EventId
) -> Event:
    """Build the event of what a partition lost: counts, and as many ids of records as an event may name."""
    every = [record_id for record_ids in lost.values() for record_id in record_ids]
    only = every[0] if len(every) == 1 else None
    details: dict[str, str | int | None] = {name: len(record_ids) for name, record_ids in lost.items()}
    if tools:
        details["tool_entries"] = tools
    if only is None and every:
        details["ids"] = " ".join(every[:NAMED_IDS])
    return Event(event_id, EventKind.DELETE, place.scope, at, record_key=only, details=details)
