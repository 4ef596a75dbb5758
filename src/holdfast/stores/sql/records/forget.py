"""Carry out a forget: delete what was written, and leave tombstones without text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.times import to_micros
from holdfast.ports import ForgetPlan
from holdfast.stores.sql.deliveries import SqlDeliveryWriter
from holdfast.stores.sql.dialect import chunks
from holdfast.stores.sql.events import erase_hashes
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.jobs import SqlJobWriter
from holdfast.stores.sql.resources import SqlResourceWriter
from holdfast.stores.sql.transcripts.forget import TOMBSTONE_COLUMNS, forget_messages
from holdfast.stores.sql.write_scope import WriteScope, delete_vectors

_LAST = "(SELECT max(r.position) FROM records r WHERE r.conversation_id = conversations.id)"
_KEEP_POSITIONS = f"UPDATE conversations SET least_position = {_LAST} + 1 WHERE least_position <= {_LAST}"
_LINKS = (("evidence", "message_number"), ("evidence", "memory_number"), ("contradictions", "memory_number"))


class RecordForgetter(SqlRepository):
    _scope: WriteScope

    def forget(self, plan: ForgetPlan, at: datetime) -> tuple[int, int]:
        record_ids = [*plan.message_ids, *plan.memory_ids, *plan.derived_ids]
        found = self._rows_of(record_ids, plan.baseless)
        for chunk in chunks(found, self._scope.dialect.chunk):
            self._delete(chunk, to_micros(at))
        for condition, named in self._scope.among("contradicted_id", record_ids):
            self._db.execute(f"DELETE FROM contradictions WHERE {condition}", named)
        # Jobs keep a memory that lost only an older revision.
        SqlJobWriter(self._scope).forget_records(record_ids)
        left = SqlResourceWriter(self._scope).forget(plan.resource_ids)
        SqlDeliveryWriter(self._scope).forget(plan.delivery_ids, to_micros(at))
        return len(found), len(self._rows_of(record_ids, plan.baseless)) + left

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
        erase_hashes(self._scope, {row[1] for row in found})
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
