"""Carry out a forget: delete what was written, and leave tombstones without text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.times import to_micros
from holdfast.ports import ForgetPlan
from holdfast.stores.sql.deliveries import DeliveryWriter
from holdfast.stores.sql.dialect import chunks
from holdfast.stores.sql.resources import ResourceWriter
from holdfast.stores.sql.turn_writer import TOMBSTONE_COLUMNS, TurnWriter

_LAST = "(SELECT max(r.position) FROM records r WHERE r.conversation_id = conversations.id)"
_KEEP_POSITIONS = f"UPDATE conversations SET least_position = {_LAST} + 1 WHERE least_position <= {_LAST}"


class ForgetWriter(TurnWriter, ResourceWriter, DeliveryWriter):
    """The part of `ports.Transaction` that forgets."""

    def forget(self, doomed: ForgetPlan, at: datetime) -> tuple[int, int]:
        record_ids = [*doomed.message_ids, *doomed.memory_ids, *doomed.derived_ids]
        found = self._rows_of(record_ids, doomed.baseless)
        for chunk in chunks(found, self.dialect.chunk):
            self._bury(chunk, to_micros(at))
        # Jobs keep a memory that lost only an older revision.
        self._forget_in_jobs(record_ids)
        left = self._bury_resources(doomed.resource_ids)
        self._bury_deliveries(doomed.delivery_ids, to_micros(at))
        return len(found), len(self._rows_of(record_ids, doomed.baseless)) + left

    def _rows_of(self, record_ids: Sequence[str], numbers: Sequence[int]) -> list[Any]:
        """Load the rows to delete. The plan chose them; only the boundary between spaces is checked again."""
        space, values = self._in_space()
        return [
            row
            for column, keys in (("r.id", record_ids), ("r.number", numbers))
            for condition, named in self._among(column, keys)
            for row in self._db.execute(
                "SELECT r.number, r.id, r.kind, r.partition_id, r.scope_id, r.conversation_id, r.external_key,"
                " r.turn_id"
                f" FROM records r WHERE {condition} AND {space}",
                [*named, *values],
            )
        ]

    def _bury(self, found: Sequence[Any], at: int) -> None:
        numbers = [row[0] for row in found]
        self._loosen(numbers)
        for column in ("message_number", "memory_number"):
            condition, named = self.dialect.among(column, numbers)
            self._db.execute(f"DELETE FROM evidence WHERE {condition}", named)
        self._keep_positions({row[5] for row in found if row[5] is not None})
        condition, named = self.dialect.among("number", numbers)
        self._db.execute(f"{self.dialect.blank_texts} WHERE {condition}", named)
        self._delete_vectors([(row[3], row[0]) for row in found])
        tombstones = [
            (partition, self._change(partition), number, record_id, kind, scope, conversation, key, at)
            for number, record_id, kind, partition, scope, conversation, key, _ in found
        ]
        self.dialect.insert(self._db, "tombstones", TOMBSTONE_COLUMNS, tombstones)
        self._db.execute(f"DELETE FROM records WHERE {condition}", named)
        self._forget_hashes({row[1] for row in found})
        self._lose_messages([(row[7], row[5], row[3], row[4]) for row in found if row[7] is not None], at)

    def _keep_positions(self, conversations: set[int]) -> None:
        """Raise the least position, so that positions of forgotten messages are not reused."""
        condition, named = self.dialect.among("id", sorted(conversations))
        self._db.execute(f"{_KEEP_POSITIONS} AND {condition}", named)

    def _loosen(self, messages: Sequence[int]) -> None:
        """Mark memories that lose a link as changed."""
        condition, named = self.dialect.among("e.message_number", messages)
        touched = self._db.execute(
            "SELECT DISTINCT r.number, r.partition_id FROM evidence e JOIN records r ON r.number = e.memory_number"
            f" WHERE {condition}",
            named,
        ).fetchall()
        self._db.executemany(
            "UPDATE records SET change = ? WHERE number = ?",
            [(self._change(partition), number) for number, partition in touched],
        )
