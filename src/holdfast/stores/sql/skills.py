"""The table of runtime skills. Names and outcome notes are in `texts`, where a forget blanks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import Plane, Status
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Partition
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows, insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.write_scope import WriteScope

_FLAGS = ("enabled", "needs_approval", "revision_pending")
_COUNTS = ("use_count", "validated_success_count", "mismatch_count")
_CHANGING = ("words", *_FLAGS, *_COUNTS, "last_used_at")
_COLUMNS = ("memory_id", "partition_id", "name_key", *_CHANGING)
_SELECT = (
    f"SELECT k.memory_id, t.external_id, t.text, {', '.join(f'k.{column}' for column in _CHANGING[1:])}"
    " FROM runtime_skills k JOIN texts t ON t.number = k.words"
)
_PUT = (
    f"{insert_statement('runtime_skills', _COLUMNS)} ON CONFLICT (memory_id) DO UPDATE SET"
    f" {', '.join(f'{column} = excluded.{column}' for column in _CHANGING)}"
)
_WORDS = (
    "SELECT k.words, t.external_id, t.text FROM runtime_skills k JOIN texts t ON t.number = k.words"
    " WHERE k.memory_id = ?"
)
_SET_STATUS = (
    "UPDATE records SET status = ?, change = ? WHERE id = ? AND partition_id = ? AND plane = ? AND status <> ?"
    " AND superseded_at IS NULL"
)


def _state(row: Sequence[Any]) -> SkillState:
    name, note, enabled, needs_approval, pending, uses, successes, mismatches, last_used_at = row
    return SkillState(
        name=name,
        enabled=bool(enabled),
        needs_approval=bool(needs_approval),
        revision_pending=bool(pending),
        use_count=uses,
        validated_success_count=successes,
        mismatch_count=mismatches,
        last_used_at=rows.moment(last_used_at),
        last_outcome_note=note or None,
    )


class SqlSkillReader(SqlRepository):
    """Implements `SkillReader`."""

    def states(self, memory_ids: Sequence[str]) -> Mapping[str, SkillState]:
        reach, values = self._scope.reach("k", keyed=True)
        found = self._scope.rows_among("k.memory_id", memory_ids, f"{_SELECT} WHERE {{}} AND {reach}", values)
        return {row[0]: _state(row[1:]) for row in found}

    def find(self, partition: Partition, name: str) -> MemoryId | None:
        number = self._scope.number_of(partition)
        if number is None:
            return None
        row = self._db.execute(
            "SELECT memory_id FROM runtime_skills WHERE partition_id = ? AND name_key = ?", (number, rows.key_of(name))
        ).fetchone()
        return None if row is None else MemoryId(row[0])


class SqlSkillWriter(SqlSkillReader):
    """Implements `SkillWriter`."""

    _scope: WriteScope

    def find(self, partition: Partition, name: str) -> MemoryId | None:
        # Lock first: a name is looked up in order to be taken.
        self._scope.enter(partition)
        return super().find(partition, name)

    def put(self, memory_id: MemoryId, partition: Partition, state: SkillState, status: Status) -> None:
        number = self._scope.partition_id(partition)
        flags = (int(getattr(state, column)) for column in _FLAGS)
        counts = (getattr(state, column) for column in _COUNTS)
        words = self._put_words(memory_id, state)
        values = (
            memory_id, number, rows.key_of(state.name), words, *flags, *counts, rows.micros(state.last_used_at),
        )  # fmt: skip
        self._db.execute(_PUT, values)
        change = self._scope.change(number)
        self._db.execute(_SET_STATUS, (status, change, memory_id, number, Plane.PROCEDURAL, status))

    def _put_words(self, memory_id: MemoryId, state: SkillState) -> int:
        """Store name and note as one text, unless they are stored already. An earlier text is blanked."""
        words = (state.name, state.last_outcome_note or "")
        stored = self._db.execute(_WORDS, (memory_id,)).fetchone()
        if stored is not None:
            if (stored[1], stored[2]) == words:
                return int(stored[0])
            self._db.execute(f"{self._scope.dialect.blank_texts} WHERE number = ?", (stored[0],))
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        return self._scope.dialect.add_text(self._db, drawn, NewRows(("external_id", "text"), [words]))


def forget_skills(scope: WriteScope, memory_ids: Sequence[str]) -> None:
    """Delete the states of forgotten memories, and blank their names and notes."""
    words = scope.rows_among("memory_id", memory_ids, "SELECT words FROM runtime_skills WHERE {}")
    for condition, named in scope.among("number", [row[0] for row in words]):
        scope.database.execute(f"{scope.dialect.blank_texts} WHERE {condition}", named)
    for condition, named in scope.among("memory_id", memory_ids):
        scope.database.execute(f"DELETE FROM runtime_skills WHERE {condition}", named)
