"""Write records: revisions of memories, their evidence, and the answers of idempotent calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.domain.forgetting import ForgetPlan
from holdfast.domain.ids import EventId, MessageId
from holdfast.domain.results import Record
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.times import to_micros
from holdfast.errors import NotFound, RevisionConflict
from holdfast.ports import Analysis, NewRevision, StoredResponse, TextFlag
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows
from holdfast.stores.sql.records.forget import RecordForgetter
from holdfast.stores.sql.records.reader import SqlRecordReader
from holdfast.stores.sql.write_scope import (
    MEMORY_COLUMNS,
    TEXT_COLUMNS,
    WriteScope,
    memory_text,
    memory_values,
    put_vectors,
    shared_values,
)

_ANSWER_COLUMNS = ("partition_id", "key", "digest", "recorded_at", "body")
_AS_BEFORE = (
    "INSERT INTO evidence (memory_number, message_number) SELECT ?, e.message_number FROM evidence e"
    " JOIN records r ON r.number = e.memory_number WHERE r.id = ? AND r.revision = ? ON CONFLICT DO NOTHING"
)
_MARK_COLUMNS = ("memory_number", "contradicted_id")
_INDEX_DATA = (
    "SELECT r.number, r.partition_id, r.analyzer, r.flags, r.length, r.terms, e.fingerprint FROM records r"
    " LEFT JOIN embedders e ON e.id = r.embedder_id WHERE r.id = ? AND r.revision = ? AND r.kind = 1"
)
_VECTORS = "SELECT number, piece, vector FROM vectors WHERE partition_id = ? AND number = ? ORDER BY piece"


class SqlRecordWriter(SqlRecordReader):
    """Implements `RecordWriter`."""

    _scope: WriteScope

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        # Lock first: the slot is read in order to be filled.
        self._scope.enter(scope.partition)
        return super().in_slot(scope, slot)

    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        partition = self._scope.partition_id(revision.scope.partition)
        if revision.analysis is None:
            revision, embedder, analyzer = self._copy_index(revision, embedder)
        self._scope.touch(partition)
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        change = self._scope.change(partition)
        number = 1 if revision.supersedes is None else self._close_current(revision, partition, change)
        recorded_at = to_micros(revision.recorded_at)
        shared = shared_values(
            self._scope, partition, revision.scope, rows.MEMORY, revision.source, recorded_at, analyzer
        )
        embedder_id = self._scope.embedder_id(embedder)
        slot = rows.key_of(revision.slot) or self._slot_of(revision)
        values = memory_values(revision, shared, embedder_id, number, slot)
        new = NewRows(MEMORY_COLUMNS, [values]), NewRows(TEXT_COLUMNS, [memory_text(revision)])
        (record,) = self._scope.dialect.add_records(self._db, drawn, *new)
        put_vectors(self._scope, [(partition, record, revision.vectors)], embedder_id)
        self._link(record, revision.evidence, moved=revision.moved)
        if revision.rests_as_before or revision.repeats is not None:
            self._db.execute(_AS_BEFORE, (record, revision.id, revision.repeats or revision.supersedes))
        if revision.contradicts:
            marks = [(record, memory_id) for memory_id in dict.fromkeys(revision.contradicts)]
            self._scope.dialect.insert(self._db, "contradictions", _MARK_COLUMNS, marks)
        return number

    def _copy_index(self, revision: NewRevision, embedder: str) -> tuple[NewRevision, str, int]:
        """Complete a revision that repeats an earlier one; also return the embedder and analyzer of its index data."""
        row = self._db.execute(_INDEX_DATA, (revision.id, revision.repeats)).fetchone()
        if row is None:
            raise NotFound(f"there is no revision {revision.repeats} of memory {revision.id!r:.80}")
        number, partition, analyzer, flags, length, terms, fingerprint = row
        found = self._db.execute(_VECTORS, (partition, number)).fetchall() if fingerprint else []
        vectors = [bytes(vector) for _, _, vector in self._scope.dialect.vectors(found)]
        analysis = Analysis(bytes(terms), length, TextFlag(flags), ())
        return replace(revision, analysis=analysis, vectors=vectors), fingerprint or embedder, analyzer

    def _slot_of(self, revision: NewRevision) -> bytes | None:
        """Return the slot of the corrected revision, so that later statements replace the correction too."""
        if revision.supersedes is None:
            return None
        row = self._db.execute(
            "SELECT slot_key FROM records WHERE id = ? AND revision = ?", (revision.id, revision.supersedes)
        ).fetchone()
        return row[0] if row else None

    def _close_current(self, revision: NewRevision, partition: int, change: int) -> int:
        """Close the current revision; return the number of the next."""
        updated = self._db.execute(
            "UPDATE records SET superseded_at = ?, change = ?"
            " WHERE id = ? AND revision = ? AND partition_id = ? AND kind = 1 AND superseded_at IS NULL",
            (to_micros(revision.recorded_at), change, revision.id, revision.supersedes, partition),
        )
        if updated.rowcount != 1:
            raise RevisionConflict(
                f"{revision.id} is no longer at revision {revision.supersedes}; read it again and decide anew"
            )
        return (revision.supersedes or 0) + 1

    def supersede(self, message_id: str, at: datetime) -> None:
        reach, values = self._scope.reach(keyed=True)
        row = self._db.execute(
            "SELECT r.number, r.partition_id FROM records r"
            f" WHERE r.id = ? AND r.kind = 0 AND r.superseded_at IS NULL AND {reach}",
            [message_id, *values],
        ).fetchone()
        if row is None:
            raise RevisionConflict(f"{message_id!r:.80} was superseded meanwhile; read it again and decide anew")
        self._db.execute(
            "UPDATE records SET superseded_at = ?, change = ? WHERE number = ?",
            (to_micros(at), self._scope.change(row[1]), row[0]),
        )

    def _link(self, memory: int, evidence: Sequence[MessageId], *, moved: bool = False) -> None:
        if not evidence:
            return
        within, values = self._scope.within(keyed=True)
        shown = "TRUE" if moved else rows.SHOWN
        statement = (
            "SELECT r.id, r.number FROM records r JOIN scopes s ON s.id = r.scope_id"
            f" WHERE {{}} AND r.kind = 0 AND {shown} AND {within}"
        )
        numbers = dict(self._scope.rows_among("r.id", list(dict.fromkeys(evidence)), statement, values))
        for message_id in evidence:
            if message_id not in numbers and not moved:
                raise NotFound(f"evidence: there is no message {message_id!r:.80} in this scope")
        self._db.executemany(
            "INSERT INTO evidence (memory_number, message_number) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(memory, number) for number in numbers.values()],
        )

    def forget(self, plan: ForgetPlan, at: datetime, new_id: Callable[[], EventId]) -> tuple[int, int]:
        return RecordForgetter(self._scope).forget(plan, at, new_id)

    def put_response(self, partition: Partition, key: str, response: StoredResponse, at: datetime) -> None:
        values = (self._scope.partition_id(partition), key, response.digest, to_micros(at), response.body)
        self._scope.dialect.insert(self._db, "answers", _ANSWER_COLUMNS, [values])
