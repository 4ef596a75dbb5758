"""Maintenance of a store: facts about it, counts, integrity checks and repair.

A repair drops dangling references, and marks what can be rebuilt. No text is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.domain.backups import BackupRecord
from holdfast.domain.manifest import RepairAction
from holdfast.domain.profile_usage import HostedRecords
from holdfast.domain.results import Finding, StoreUsage
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.ports.repositories.maintenance import UNFILLED, RowPosition
from holdfast.stores.sql import integrity, rows
from holdfast.stores.sql.backups import read_records
from holdfast.stores.sql.checksums import fill
from holdfast.stores.sql.events import PASSING, prune_events
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.integrity import BAD_TERMS, bad_vectors_statement
from holdfast.stores.sql.resources import count_resources
from holdfast.stores.sql.users import count_users

_WITHOUT_VECTORS = (
    "embedder_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.partition_id = records.partition_id"
    " AND v.number = records.number AND v.embedder_id = records.embedder_id)"
)
_VECTORS_OF_NOTHING = (
    "NOT EXISTS (SELECT 1 FROM records r WHERE r.number = vectors.number AND r.partition_id = vectors.partition_id)"
)
_LINKS_TO_NOTHING = (
    "NOT EXISTS (SELECT 1 FROM records r WHERE r.number = evidence.memory_number AND r.kind = 1)"
    " OR NOT EXISTS (SELECT 1 FROM records r WHERE r.number = evidence.message_number AND r.kind = 0)"
)
# The lease has expired without news from the worker.
_STUCK = "status = 'running' AND lease_until <= ?"
# Each reads a partial index: there are few such jobs among all that succeeded.
# Only a runtime gives its records an authority. A deleted text may still have its length.
_HOSTED = (
    "SELECT count(*), sum(CASE WHEN r.status <> 'raw_deleted' THEN {} END), max(r.number) FROM records r"
    " JOIN partitions p ON p.id = r.partition_id LEFT JOIN texts t ON t.number = r.number"
    " WHERE p.space = ? AND r.number > ? AND r.authority IS NOT NULL"
)
_OPEN_JOBS = "SELECT status, count(*), min(run_after) FROM jobs WHERE status IN ('queued', 'running') GROUP BY status"
_GIVEN_UP_JOBS = (
    "SELECT count(*) FROM jobs j WHERE status IN ('failed', 'cancelled') AND status = 'failed'"
    " AND NOT EXISTS (SELECT 1 FROM jobs later WHERE later.retry_of = j.id)"
)
_REPAIR_COUNTS = {
    RepairAction.DROP_ORPHAN_VECTORS: f"SELECT count(*) FROM vectors WHERE {_VECTORS_OF_NOTHING}",
    RepairAction.DROP_ORPHAN_LINKS: f"SELECT count(*) FROM evidence WHERE {_LINKS_TO_NOTHING}",
}
_REPAIRS = {
    RepairAction.DROP_ORPHAN_VECTORS: f"DELETE FROM vectors WHERE {_VECTORS_OF_NOTHING}",
    RepairAction.DROP_ORPHAN_LINKS: f"DELETE FROM evidence WHERE {_LINKS_TO_NOTHING}",
}


_OF_EMBEDDER = "r.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?)"
_COUNTS = (
    f"SELECT count(*) FILTER (WHERE r.kind = 0 AND {rows.SHOWN}),"
    " count(*) FILTER (WHERE r.kind = 1 AND r.superseded_at IS NULL),"
    " count(DISTINCT r.conversation_id),"
    f" count(*) FILTER (WHERE {rows.SHOWN} AND (r.embedder_id IS NULL OR r.analyzer <> ?"
    "   OR r.embedder_id <> coalesce((SELECT id FROM embedders WHERE fingerprint = ?), 0))),"
    f" count(*) FILTER (WHERE {rows.SHOWN} AND r.analyzer <> ?"
    "   AND r.embedder_id = (SELECT id FROM embedders WHERE fingerprint = ?))"
    " FROM records r JOIN scopes s ON s.id = r.scope_id WHERE {}"
)


class SqlMaintenanceReader(SqlRepository):
    """Implements `MaintenanceReader`."""

    def fact(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return row[0] if row else None

    def backups(self) -> Sequence[BackupRecord]:
        return read_records(self._db)

    def counts(self, embedder: str, analyzer: int) -> dict[str, int]:
        within, values = self._scope.within()
        row = self._db.execute(_COUNTS.format(within), [analyzer, embedder, analyzer, embedder, *values]).fetchone()
        tombstones = self._db.execute(
            f"SELECT count(*) FROM tombstones r JOIN scopes s ON s.id = r.scope_id WHERE r.kind < 2 AND {within}",
            values,
        ).fetchone()[0]
        named = ("messages", "memories", "conversations", "pending_vectors", "stale_vectors")
        counted = dict(zip(named, row, strict=True))
        reach, numbers = self._scope.reach()
        indexed = self._db.execute(
            f"SELECT count(*) FROM nearest r WHERE {reach} AND {_OF_EMBEDDER}", [*numbers, embedder]
        )
        return {
            **counted,
            "partitions": len(self._scope.partitions()),
            "tombstones": tombstones,
            "approximate": indexed.fetchone()[0],
            "users": count_users(self._scope),
            "resources": count_resources(self._scope),
        }

    def hosted_records(self, space: str, after: int) -> HostedRecords:
        row = self._db.execute(_HOSTED.format(self._scope.dialect.text_bytes), (space, after)).fetchone()
        return HostedRecords(int(row[0]), int(row[1] or 0), int(row[2] or 0))

    def usage(self, now: datetime) -> StoreUsage:
        self._require_everything()
        (size,) = self._db.execute(self._scope.dialect.store_bytes).fetchone()
        (given_up,) = self._db.execute(_GIVEN_UP_JOBS).fetchone()
        jobs = {status: (count, due) for status, count, due in self._db.execute(_OPEN_JOBS).fetchall()}
        queued, oldest = jobs.get("queued", (0, to_micros(now)))
        running, _ = jobs.get("running", (0, 0))
        return StoreUsage(int(size), queued, running, given_up, max(0, to_micros(now) - oldest) / 1e6)

    def integrity(self, embedder: str) -> tuple[dict[str, int], Sequence[Finding]]:
        checked, findings = integrity.check(self._db, self._scope.dialect)
        more_checked, more_findings = self._scope.check_nearest()
        return {**checked, **more_checked}, [*findings, *more_findings]

    def count_repairs(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        self._require_everything()
        statements = {
            RepairAction.REINDEX: f"SELECT count(*) FROM records WHERE {self._badly_indexed}",
            **_REPAIR_COUNTS,
        }
        counted = {action: int(self._db.execute(statement).fetchone()[0]) for action, statement in statements.items()}
        stuck = self._db.execute(f"SELECT count(*) FROM jobs WHERE {_STUCK}", (to_micros(now),)).fetchone()
        beyond = sum(count - keep_events for _, count in self._long_logs(keep_events))
        return {**counted, RepairAction.RELEASE_STUCK_JOBS: int(stuck[0]), RepairAction.PRUNE_EVENTS: beyond}

    @property
    def _badly_indexed(self) -> str:
        """The condition for records whose terms or vectors must be rebuilt."""
        bad_vectors = bad_vectors_statement(self._scope.dialect, "v.number")
        return f"({_WITHOUT_VECTORS}) OR ({BAD_TERMS}) OR number IN ({bad_vectors})"

    def _long_logs(self, keep: int) -> list[tuple[str, int]]:
        """Return the spaces with more than `keep` events, and their counts."""
        found = self._db.execute(
            f"SELECT space, count(*) FROM events WHERE {PASSING} GROUP BY space HAVING count(*) > ?", (keep,)
        )
        return [(row[0], int(row[1])) for row in found.fetchall()]

    def _require_everything(self) -> None:
        if not self._scope.grant.everywhere:
            raise AccessDenied("this needs a grant over the whole store")


class SqlMaintenanceWriter(SqlMaintenanceReader):
    """Implements `MaintenanceWriter`."""

    def add_checksums(self, position: RowPosition | None, limit: int) -> RowPosition | None:
        self._require_everything()
        following = fill(self._db, self._scope.dialect, position, limit)
        if following is None:
            self._db.execute("DELETE FROM meta WHERE key = ?", (UNFILLED,))
        return following

    def put_fact(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def repair(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        self._require_everything()
        # Then `unindexed` finds them, and a `reembed` job rebuilds them.
        reindex = f"UPDATE records SET embedder_id = NULL WHERE {self._badly_indexed}"
        statements = {RepairAction.REINDEX: reindex, **_REPAIRS}
        done = {action: self._db.execute(statement).rowcount for action, statement in statements.items()}
        released = self._db.execute(
            f"UPDATE jobs SET status = 'queued', lease_until = NULL WHERE {_STUCK}", (to_micros(now),)
        ).rowcount
        pruned = sum(prune_events(self._scope, space, keep_events) for space, _ in self._long_logs(keep_events))
        return {**done, RepairAction.RELEASE_STUCK_JOBS: released, RepairAction.PRUNE_EVENTS: pruned}
