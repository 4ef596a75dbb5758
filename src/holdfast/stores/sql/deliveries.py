"""Deliveries of hooks. Payloads are stored in `texts`, and blanked there as soon as they are no longer needed.

A forget also drops pending deliveries: for a subject or a conversation, those in its scope; for a source, those that
name it (an issue, comment, document, run, activity or reference). A forget of single records drops none: a delivery is
not a record yet.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.contract import HookContext, SourcePayload, SourceRef
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import Delivery, DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.ids import DeliveryId, OperationId
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows, insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.pagination import LeadingIndex, PageQuery, read_newest
from holdfast.stores.sql.rows import as_json, from_entry, to_entry

FORGOTTEN = "forgotten"
# Has a payload, or a digest that could identify it.
_CARRIED = "(x.payload IS NOT NULL OR x.digest <> '')"
_COLUMNS = (
    "id", "space", "destination", "hook_id", "kind", "source_kind", "scope", "home", "details", "status", "attempts",
    "reason", "operation_id", "digest", "created_at", "updated_at",
)  # fmt: skip
_READ = (
    "x.id, x.destination, x.scope, x.details, x.status, x.attempts, x.reason, x.operation_id, x.digest, x.created_at,"
    " x.updated_at"
)
_ADD = f"{insert_statement('deliveries', _COLUMNS)} ON CONFLICT DO NOTHING"
_LEADS = (
    LeadingIndex("deliveries_destination", ("destination",)),
    LeadingIndex("deliveries_source", ("source_kind",)),
    LeadingIndex("deliveries_kind", ("kind",)),
    LeadingIndex("deliveries_status", ("status",)),
)
_OF_SOURCE = ("issue_id", "comment_id", "document_key", "run_id", "activity_id", "external_ref")


def _home(partition: Partition) -> str:
    return f"{partition.kind}:{partition.owner}"


def _delivery(row: Sequence[Any]) -> Delivery:
    delivery_id, to, scope, details, status, attempts, reason, operation_id, digest, created_at, updated_at = row
    entry = json.loads(details)
    return Delivery(
        id=delivery_id,
        to=to,
        hook=from_entry(HookContext, entry["hook"]),
        scope=rows.scope_from_json(scope),
        source=from_entry(SourceRef, entry["source"]),
        status=HookDeliveryStatus(status),
        created_at=from_micros(created_at),
        attempts=attempts,
        reason=reason,
        operation_id=operation_id,
        updated_at=rows.moment(updated_at),
        digest=digest,
        binding=entry.get("binding"),
    )


def _details(delivery: Delivery) -> str:
    return as_json({"hook": to_entry(delivery.hook), "source": to_entry(delivery.source), "binding": delivery.binding})


class SqlDeliveryReader(SqlRepository):
    """Implements `DeliveryReader`."""

    def _at_home(self) -> tuple[str, list[Any]]:
        """Build the condition for deliveries of the space; for a narrower grant, of the partitions that it reaches."""
        space, values = self._scope.in_any_space()
        if self._scope.grant.partitions is None:
            return space, values
        homes, named = self._scope.dialect.among("x.home", sorted(_home(each) for each in self._scope.grant.partitions))
        return f"{space} AND {homes}", [*values, *named]

    def _find_one(self, condition: str, *values: Any) -> Delivery | None:
        reach, named = self._at_home()
        row = self._db.execute(
            f"SELECT {_READ} FROM deliveries x WHERE {reach} AND {condition}", [*named, *values]
        ).fetchone()
        return _delivery(row) if row else None

    def find(self, delivery_id: str) -> Delivery | None:
        return self._find_one("x.id = ?", delivery_id)

    def dead_letters(self, delivery_ids: Collection[str]) -> frozenset[str]:
        reach, values = self._at_home()
        statement = f"SELECT x.id FROM deliveries x WHERE {reach} AND {{}} AND x.status = 'dead'"
        found = self._scope.rows_among("x.id", list(delivery_ids), statement, before=values)
        return frozenset(delivery_id for (delivery_id,) in found)

    def find_by_hook(self, to: str, hook_id: str, scope: Scope) -> Delivery | None:
        place = scope.partition
        return self._find_one(
            "x.space = ? AND x.destination = ? AND x.hook_id = ? AND x.home = ?",
            place.space, to, hook_id, _home(place),
        )  # fmt: skip

    def payload(self, delivery_id: str) -> SourcePayload | None:
        reach, values = self._at_home()
        row = self._db.execute(
            f"SELECT t.text FROM deliveries x JOIN texts t ON t.number = x.payload WHERE {reach} AND x.id = ?",
            [*values, delivery_id],
        ).fetchone()
        return from_entry(SourcePayload, json.loads(row[0])) if row else None

    def page(self, wanted: DeliveryFilter, before: str | None, limit: int) -> Sequence[Delivery]:
        query = PageQuery(self._scope.within_scope_of("x", self._at_home()))
        query.require(destination=wanted.to, kind=wanted.kind, source_kind=wanted.source_kind, status=wanted.status)
        return [_delivery(row) for row in read_newest(self._scope, "deliveries", _READ, query, _LEADS, before, limit)]

    def plan_forget(self, target: ForgetTarget) -> list[str]:
        """Return the deliveries that the target names and that have a payload or its digest."""
        if target.ids:
            return []
        within, values = self._scope.within_scope_of("x", self._at_home())
        if target.source:
            found = self._db.execute(
                f"SELECT x.id, x.details FROM deliveries x WHERE {within} AND {_CARRIED} ORDER BY x.id", values
            )
            return [row[0] for row in found if _names_source(json.loads(row[1])["source"], target.source)]
        part = "conversation" if target.conversation else "subject"
        found = self._db.execute(
            f"SELECT x.id FROM deliveries x WHERE {within} AND {_CARRIED}"
            f" AND {self._scope.dialect.part_of('x.scope', part)} = ? ORDER BY x.id",
            [*values, getattr(target, part)],
        )
        return [row[0] for row in found]


def _names_source(source: dict[str, Any], what: str) -> bool:
    return any(source.get(part) == what for part in _OF_SOURCE)


class SqlDeliveryWriter(SqlDeliveryReader):
    """Implements `DeliveryWriter`."""

    def add(self, new: NewDelivery) -> Delivery:
        delivery = new.delivery
        partition = delivery.scope.partition
        if not self._scope.grant.reaches(partition):
            raise AccessDenied("the grant does not reach this scope")
        details = _details(delivery)
        values = (
            delivery.id, partition.space, delivery.to, delivery.hook.hook_id, delivery.hook.kind, delivery.source.kind,
            rows.scope_json(delivery.scope), _home(partition), details, delivery.status, delivery.attempts,
            delivery.reason, delivery.operation_id, delivery.digest, to_micros(delivery.created_at),
            rows.micros(delivery.updated_at),
        )  # fmt: skip
        if self._db.execute(_ADD, values).rowcount != 1:
            existing = self.find_by_hook(delivery.to, delivery.hook.hook_id, delivery.scope)
            assert existing is not None
            return existing
        if new.payload is not None:
            self._carry(partition.space, delivery.id, new.payload)
        return delivery

    def _carry(self, space: str, delivery_id: str, payload: SourcePayload) -> None:
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        number = self._scope.dialect.add_text(self._db, drawn, NewRows(("text",), [(as_json(payload),)]))
        self._db.execute("UPDATE deliveries SET payload = ? WHERE space = ? AND id = ?", (number, space, delivery_id))

    def resume(self, delivery_id: DeliveryId, new: NewDelivery) -> bool:
        delivery = new.delivery
        existing = self.find(delivery_id)
        # A forgotten delivery has no digest to compare: it stays as it is.
        if existing is None or not existing.digest or existing.digest != delivery.digest:
            return False
        resumed = self._update(
            delivery_id,
            "status = ?, updated_at = ?, reason = ?, operation_id = ?, attempts = ?, details = ?",
            [
                delivery.status,
                to_micros(delivery.created_at),
                delivery.reason,
                delivery.operation_id,
                delivery.attempts,
                _details(delivery),
            ],
            ("skipped",),
        )
        if resumed and new.payload is not None:
            self._carry(existing.scope.space, delivery_id, new.payload)
        return resumed

    def end(
        self,
        delivery_id: DeliveryId,
        status: HookDeliveryStatus,
        at: datetime,
        reason: str | None,
        operation_id: OperationId | None,
        *,
        tried: bool,
    ) -> None:
        # A dead delivery may still be dropped, or turn out to be delivered; an ended one does not change.
        changed = self._update(
            delivery_id,
            "status = ?, updated_at = ?, reason = ?, operation_id = coalesce(?, operation_id), attempts = attempts + ?",
            [status, to_micros(at), reason, operation_id, int(tried)],
            ("pending", "dead"),
        )
        if changed and status not in (HookDeliveryStatus.DEAD, HookDeliveryStatus.PENDING):
            self._blank_payloads([delivery_id])

    def note_attempt(
        self, delivery_id: DeliveryId, at: datetime, reason: str | None, operation_id: OperationId | None
    ) -> None:
        self._update(
            delivery_id,
            "updated_at = ?, reason = ?, operation_id = coalesce(?, operation_id), attempts = attempts + 1",
            [to_micros(at), reason, operation_id],
            ("pending",),
        )

    def revive(self, delivery_id: DeliveryId, at: datetime) -> bool:
        return self._update(
            delivery_id, "status = 'pending', updated_at = ?, reason = NULL", [to_micros(at)], ("dead",)
        )

    def _update(self, delivery_id: str, changes: str, values: list[Any], statuses: Sequence[str]) -> bool:
        reach, named = self._at_home()
        states, allowed = self._scope.dialect.among("x.status", list(statuses))
        changed = self._db.execute(
            f"UPDATE deliveries AS x SET {changes} WHERE {reach} AND x.id = ? AND {states}",
            [*values, *named, delivery_id, *allowed],
        )
        return changed.rowcount == 1

    def _blank_payloads(self, delivery_ids: Sequence[str]) -> None:
        own, values = self._scope.in_any_space()
        for condition, named in self._scope.among("x.id", delivery_ids):
            found = self._db.execute(
                f"SELECT x.payload FROM deliveries x WHERE {own} AND {condition} AND x.payload IS NOT NULL",
                [*values, *named],
            ).fetchall()
            for among, numbers in self._scope.among("number", [row[0] for row in found]):
                self._db.execute(f"{self._scope.dialect.blank_texts} WHERE {among}", numbers)
            self._db.execute(
                f"UPDATE deliveries AS x SET payload = NULL WHERE {own} AND {condition} AND x.payload IS NOT NULL",
                [*values, *named],
            )

    def forget(self, delivery_ids: Sequence[str], at: int) -> None:
        """Erase payloads and digests; drop deliveries that have not arrived."""
        self._blank_payloads(delivery_ids)
        own, values = self._scope.in_any_space()
        for condition, named in self._scope.among("x.id", delivery_ids):
            self._db.execute(
                "UPDATE deliveries AS x SET digest = '',"
                " reason = CASE WHEN x.status IN ('pending', 'dead', 'skipped') THEN ? ELSE x.reason END,"
                " updated_at = CASE WHEN x.status IN ('pending', 'dead', 'skipped') THEN ? ELSE x.updated_at END,"
                " status = CASE WHEN x.status IN ('pending', 'dead', 'skipped') THEN 'dropped' ELSE x.status END"
                f" WHERE {own} AND {condition}",
                [FORGOTTEN, at, *values, *named],
            )
