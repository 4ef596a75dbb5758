"""The event log of a space. Administrative events are never pruned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from holdfast.domain.events import ADMINISTRATIVE, Event, EventKind
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import GrantScope, SqlRepository
from holdfast.stores.sql.rows import builder_of

_COLUMNS = "id, kind, scope, at, plane, record_key, content_hash, details"
_event = builder_of(Event, _COLUMNS)
# The condition for events that may be pruned.
PASSING = "kind NOT IN ({})".format(", ".join(f"'{kind}'" for kind in sorted(ADMINISTRATIVE)))


class SqlEventReader(SqlRepository):
    """Implements `EventReader`."""

    def page(self, limit: int, kinds: frozenset[EventKind] | None = None, before: str | None = None) -> Sequence[Event]:
        within, values = self._scope.within_scope_of("e", ("TRUE", []))
        if not self._scope.grant.everywhere:
            # Events about a subject without a partition still belong to the space.
            reach, numbers = ("TRUE", []) if self._scope.grant.partitions is None else self._scope.reach("e")
            within, values = self._scope.within_scope_of(
                "e", (f"e.space = ? AND {reach}", [self._scope.grant.scope.space, *numbers])
            )
        if kinds is not None:
            named, of_kind = self._scope.dialect.among("e.kind", sorted(kinds))
            within, values = f"{within} AND {named}", [*values, *of_kind]
        if before is not None:
            within, values = f"{within} AND e.id < ?", [*values, before]
        found = self._db.execute(
            f"SELECT {_COLUMNS} FROM events e WHERE {within} ORDER BY e.id DESC LIMIT ?", [*values, limit]
        )
        return [_event(row) for row in found]


class SqlEventWriter(SqlEventReader):
    """Implements `EventWriter`."""

    def append(self, event: Event) -> None:
        place = event.scope.partition
        if not self._scope.grant.reaches(place):
            raise AccessDenied("the grant does not reach this scope")
        details = json.dumps(dict(event.details), ensure_ascii=False, sort_keys=True) if event.details else None
        self._db.execute(
            "INSERT INTO events (space, id, kind, scope, partition_id, plane, record_key, content_hash, at, details)"
            " VALUES (?, ?, ?, ?, (SELECT id FROM partitions WHERE space = ? AND kind = ? AND owner = ?),"
            " ?, ?, ?, ?, ?)",
            (
                place.space, event.id, event.kind, rows.scope_json(event.scope), place.space, place.kind, place.owner,
                event.plane, event.record_key, event.content_hash, to_micros(event.at), details,
            ),
        )  # fmt: skip

    def prune(self, space: str, keep: int) -> int:
        if not (self._scope.grant.everywhere or self._scope.grant.scope.space == space):
            raise AccessDenied("the grant does not reach this space")
        return prune_events(self._scope, space, keep)


def prune_events(scope: GrantScope, space: str, keep: int) -> int:
    return scope.database.execute(
        f"DELETE FROM events WHERE space = ? AND {PASSING} AND id <="
        f" (SELECT id FROM events WHERE space = ? AND {PASSING} ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (space, space, max(keep, 0)),
    ).rowcount


def erase_hashes(scope: GrantScope, keys: Iterable[str]) -> None:
    """Erase content hashes from events: they are deleted with the content."""
    for condition, named in scope.among("record_key", list(keys)):
        scope.database.execute(
            f"UPDATE events SET content_hash = NULL WHERE content_hash IS NOT NULL AND {condition}", named
        )
