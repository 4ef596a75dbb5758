"""The event log of a space. Administrative events are never pruned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from holdfast.domain.events import ADMINISTRATIVE, Event, EventKind
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import GrantScope, SqlRepository
from holdfast.stores.sql.rows import builder_of
from holdfast.stores.sql.write_scope import WriteScope

_INSERTED = (
    "space", "id", "kind", "scope", "partition_id", "plane", "record_key", "content_hash", "at", "details",
)  # fmt: skip
_COLUMNS = "id, kind, scope, at, plane, record_key, content_hash, details"
_event = builder_of(Event, _COLUMNS)
# Made once: with other than the default options, `json.dumps` makes an encoder for every call.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
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

    _scope: WriteScope

    def append(self, event: Event) -> None:
        place = event.scope.partition
        if not self._scope.grant.reaches(place):
            raise AccessDenied("the grant does not reach this scope")
        # Cached by the write that the event is about.
        partition = self._scope.known.get(place) or self._scope.number_of(place)
        insert_events(self._scope, [(event, partition)])

    def prune(self, space: str, keep: int) -> int:
        if not (self._scope.grant.everywhere or self._scope.grant.scope.space == space):
            raise AccessDenied("the grant does not reach this space")
        return prune_events(self._scope, space, keep)


def insert_events(scope: GrantScope, events: Iterable[tuple[Event, int | None]]) -> None:
    """Insert events with the numbers of their partitions."""
    values = [
        (
            event.scope.space, event.id, str(event.kind), rows.scope_json(event.scope), partition,
            None if event.plane is None else str(event.plane), event.record_key, event.content_hash,
            to_micros(event.at), _details_json(event.details),
        )
        for event, partition in events
    ]  # fmt: skip
    if values:
        scope.dialect.insert(scope.database, "events", _INSERTED, values)


def _details_json(details: Mapping[str, str | int | None]) -> str | None:
    return _encode(details) if details else None


def prune_events(scope: GrantScope, space: str, keep: int) -> int:
    return scope.database.execute(
        f"DELETE FROM events WHERE space = ? AND {PASSING} AND id <="
        f" (SELECT id FROM events WHERE space = ? AND {PASSING} ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (space, space, max(keep, 0)),
    ).rowcount


def erase_hashes(scope: GrantScope, keys: Iterable[str]) -> None:
    """Erase content hashes from events: they are deleted with the content."""
    _erase(scope, keys, "content_hash = NULL")


def erase_but_ids(scope: GrantScope, keys: Iterable[str]) -> None:
    """Erase from the events of forgotten memories everything but their ids. Such events have a content hash."""
    _erase(scope, keys, "content_hash = NULL, plane = NULL, details = NULL")


def _erase(scope: GrantScope, keys: Iterable[str], erasure: str) -> None:
    for condition, named in scope.among("record_key", list(keys)):
        scope.database.execute(f"UPDATE events SET {erasure} WHERE content_hash IS NOT NULL AND {condition}", named)
