"""Repair a store: drop dangling references, and mark what can be rebuilt. No text is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from holdfast.domain.events import ADMINISTRATIVE
from holdfast.domain.manifest import RepairAction
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.stores.sql.grant_scope import GrantScope
from holdfast.stores.sql.integrity import BAD_TERMS, bad_vectors_statement

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
# Administrative events are never pruned.
_PASSING = "kind NOT IN ({})".format(", ".join(f"'{kind}'" for kind in sorted(ADMINISTRATIVE)))
# The lease has expired without news from the worker.
_STUCK = "status = 'running' AND lease_until <= ?"
_COUNTS = {
    RepairAction.DROP_ORPHAN_VECTORS: f"SELECT count(*) FROM vectors WHERE {_VECTORS_OF_NOTHING}",
    RepairAction.DROP_ORPHAN_LINKS: f"SELECT count(*) FROM evidence WHERE {_LINKS_TO_NOTHING}",
}
_MENDS = {
    RepairAction.DROP_ORPHAN_VECTORS: f"DELETE FROM vectors WHERE {_VECTORS_OF_NOTHING}",
    RepairAction.DROP_ORPHAN_LINKS: f"DELETE FROM evidence WHERE {_LINKS_TO_NOTHING}",
}


class RepairReader(GrantScope):
    """The part of `ports.Reader` that finds what a repair could fix."""

    def mendable(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        self._require_everything()
        statements = {RepairAction.REINDEX: f"SELECT count(*) FROM records WHERE {self._badly_indexed}", **_COUNTS}
        counted = {mend: int(self._db.execute(statement).fetchone()[0]) for mend, statement in statements.items()}
        stuck = self._db.execute(f"SELECT count(*) FROM jobs WHERE {_STUCK}", (to_micros(now),)).fetchone()
        beyond = sum(count - keep_events for _, count in self._long_logs(keep_events))
        return {**counted, RepairAction.RELEASE_STUCK_JOBS: int(stuck[0]), RepairAction.PRUNE_EVENTS: beyond}

    @property
    def _badly_indexed(self) -> str:
        """The condition for records whose terms or vectors must be rebuilt."""
        return f"({_WITHOUT_VECTORS}) OR ({BAD_TERMS}) OR number IN ({bad_vectors_statement(self.dialect, 'v.number')})"

    def _long_logs(self, keep: int) -> list[tuple[str, int]]:
        """Return the spaces with more than `keep` events, and their counts."""
        found = self._db.execute(
            f"SELECT space, count(*) FROM events WHERE {_PASSING} GROUP BY space HAVING count(*) > ?", (keep,)
        )
        return [(row[0], int(row[1])) for row in found.fetchall()]

    def _require_everything(self) -> None:
        if not self._grant.everywhere:
            raise AccessDenied("a repair needs a grant over the whole store")


class RepairWriter(RepairReader):
    """The part of `ports.Transaction` that repairs."""

    def mend(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        self._require_everything()
        # Then `unindexed` finds them, and a `reembed` job rebuilds them.
        reindex = f"UPDATE records SET embedder_id = NULL WHERE {self._badly_indexed}"
        statements = {RepairAction.REINDEX: reindex, **_MENDS}
        done = {mend: self._db.execute(statement).rowcount for mend, statement in statements.items()}
        released = self._db.execute(
            f"UPDATE jobs SET status = 'queued', lease_until = NULL WHERE {_STUCK}", (to_micros(now),)
        ).rowcount
        pruned = sum(self._prune(space, keep_events) for space, _ in self._long_logs(keep_events))
        return {**done, RepairAction.RELEASE_STUCK_JOBS: released, RepairAction.PRUNE_EVENTS: pruned}

    def _prune(self, space: str, keep: int) -> int:
        return self._db.execute(
            f"DELETE FROM events WHERE space = ? AND {_PASSING} AND id <="
            f" (SELECT id FROM events WHERE space = ? AND {_PASSING} ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (space, space, max(keep, 0)),
        ).rowcount
