"""Isolation of spaces in the control plane, for every method and every argument."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, Action, Grant, authorize
from holdfast.domain.bindings import Target, TargetKind, first_binding
from holdfast.domain.contract import SourcePayload
from holdfast.domain.costs import CostGroup, Price
from holdfast.domain.hooks import DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.jobs import JobFilter
from holdfast.domain.operations import OperationFilter, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, BindingNotFound, HoldfastError
from holdfast.ports import Reader, Store, Transaction
from holdfast.ports.control import ControlReader, ControlTransaction
from holdfast.testing.store_suite.control_scribe import ControlScribe, WrittenRows, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, scenario

HERE, THERE = "here-1", "there-2"
_READ = Callable[[Reader, ControlScribe, WrittenRows], Any]
_WRITE = Callable[[Transaction, ControlScribe, WrittenRows], Any]


def _methods(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_")}


def _tag_with_space(scribe: ControlScribe, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Tag ids with the space that wrote them: an id alone does not tell."""
    return [(scribe.space, each) for each in ids]


# Each reads what the given space wrote.
READS: dict[str, _READ] = {
    "bindings": lambda r, s, left: r.bindings(),
    "targets": lambda r, s, left: r.targets(),
    "operation": lambda r, s, left: [r.operation(left.done.id), r.operation(left.unknown.id)],
    "operations_page": lambda r, s, left: r.operations_page(OperationFilter(), None, 100),
    "metrics": lambda r, s, left: r.metrics(None, None),
    "job": lambda r, s, left: [r.job(left.job), r.job(left.cancelled)],
    "delivering": lambda r, s, left: r.delivering(left.pending.id),
    "tried_again": lambda r, s, left: _tag_with_space(s, r.tried_again([left.job, left.cancelled, left.retried])),
    "jobs_page": lambda r, s, left: r.jobs_page(JobFilter(), s.now(), None, 100),
    "delivery": lambda r, s, left: r.delivery(left.pending.id),
    "dead_deliveries": lambda r, s, left: _tag_with_space(s, r.dead_deliveries([left.pending.id, left.dead.id])),
    "delivery_of": lambda r, s, left: r.delivery_of(left.pending.to, left.pending.hook.hook_id, left.pending.scope),
    "payload_of": lambda r, s, left: r.payload_of(left.pending.id),
    "deliveries_page": lambda r, s, left: r.deliveries_page(DeliveryFilter(), None, 100),
    "prices": lambda r, s, left: r.prices(),
    "cost_events_page": lambda r, s, left: r.cost_events_page(None, 100),
    "finance_events_page": lambda r, s, left: r.finance_events_page(None, 100),
    "cost_summary": lambda r, s, left: r.cost_summary(CostGroup.PROVIDER, None, None),
    "finance_summary": lambda r, s, left: r.finance_summary(None, None),
}
# Results that do not name their space.
_COUNTED = {"metrics"}
# Allowed for any grant in a space; visible to a narrower grant for its own rows. All else needs the whole space.
_ANYBODY = {"bindings", "targets", "prices"}
_OWN = {
    "operation",
    "operations_page",
    "job",
    "jobs_page",
    "delivering",
    "tried_again",
    "delivery",
    "delivery_of",
    "dead_deliveries",
    "payload_of",
    "deliveries_page",
}

# Each changes something in the scribe's space.
WRITES: dict[str, _WRITE] = {
    "add_binding": lambda t, s, left: t.add_binding(s.binding("another")),
    "put_binding": lambda t, s, left: t.put_binding(replace(s.binding(), revision=2)),
    "remove_binding": lambda t, s, left: t.remove_binding("other", s.now()),
    "set_target": lambda t, s, left: t.set_target(Target(TargetKind.COMPANY, s.space, "other")),
    "clear_target": lambda t, s, left: t.clear_target(TargetKind.AGENT, f"agent-of-{s.space}"),
    "settle": lambda t, s, left: t.settle(replace(left.unknown, outcome=Outcome.FAILED)),
    "add_delivery": lambda t, s, left: t.add_delivery(NewDelivery(s.delivery(), SourcePayload("new"))),
    "end_delivery": lambda t, s, left: t.end_delivery(
        left.pending.id, HookDeliveryStatus.DROPPED, s.now(), None, None, tried=False
    ),
    "note_attempt": lambda t, s, left: t.note_attempt(left.pending.id, s.now(), "failed", None),
    "resume_delivery": lambda t, s, left: t.resume_delivery(
        left.skipped.id, NewDelivery(replace(left.skipped, status=HookDeliveryStatus.PENDING), SourcePayload("new"))
    ),
    "revive_delivery": lambda t, s, left: t.revive_delivery(left.dead.id, s.now()),
    "add_cost": lambda t, s, left: t.add_cost(s.cost()),
    "add_finance": lambda t, s, left: t.add_finance(s.finance()),
    "put_price": lambda t, s, left: t.put_price(Price(f"vendor-of-{s.space}", "small", output_micros=1)),
    "remove_price": lambda t, s, left: t.remove_price(f"vendor-of-{s.space}", "small"),
    "retry_job": lambda t, s, left: t.retry_job(left.cancelled, s.now()),
    "cancel_job": lambda t, s, left: t.cancel_job(left.job, s.now()),
}
# Writes that any call makes, also under a narrower grant.
_OF_A_CALL = {"settle", "add_cost"}


async def _two_spaces(store: Store) -> dict[str, tuple[ControlScribe, WrittenRows]]:
    found = {}
    for space in (HERE, THERE):
        scribe = ControlScribe(space)
        found[space] = (scribe, await store.write(management_grant(space), scribe.everything()))
    return found


async def _read_all(store: Store, grant: Grant, scribe: ControlScribe, left: WrittenRows) -> dict[str, str]:
    return {
        name: repr(await store.read(grant, lambda r, ask=ask: ask(r, scribe, left)))  # type: ignore[misc]
        for name, ask in READS.items()
    }


class ControlIsolationContract:
    def test_every_method_of_the_control_plane_is_in_the_tables(self) -> None:
        assert set(READS) == _methods(ControlReader)
        assert set(WRITES) == _methods(ControlTransaction)

    @scenario
    async def test_each_method_shows_what_is_there_of_its_own_space_alone(self, store: Store) -> None:
        spaces = await _two_spaces(store)
        for space, (scribe, left) in spaces.items():
            other = THERE if space == HERE else HERE
            seen = await _read_all(store, management_grant(space), scribe, left)
            assert [name for name, answer in seen.items() if other in answer] == []
            assert {name for name, answer in seen.items() if space not in answer} == _COUNTED
            asked_elsewhere = await _read_all(store, management_grant(space), *spaces[other])
            assert [name for name, answer in asked_elsewhere.items() if other in answer] == []
        metrics = [await store.read(management_grant(space), lambda r: r.metrics(None, None)) for space in spaces]
        assert metrics[0] == metrics[1]
        assert [count.succeeded + count.unknown for count in metrics[0].bindings] == [2]

    @scenario
    async def test_a_space_without_anything_has_its_first_binding_and_nothing_else(self, store: Store) -> None:
        spaces = await _two_spaces(store)
        seen = await _read_all(store, management_grant("empty"), *spaces[HERE])
        assert [name for name, answer in seen.items() if HERE in answer or THERE in answer] == []
        assert await store.read(management_grant("empty"), lambda r: list(r.bindings())) == [first_binding("empty")]
        assert await store.read(management_grant("empty"), lambda r: list(r.targets())) == [
            Target(TargetKind.COMPANY, "empty", "default")
        ]

    @pytest.mark.parametrize("method", sorted(WRITES))
    @scenario
    async def test_a_write_changes_nothing_of_another_space(self, store: Store, method: str) -> None:
        spaces = await _two_spaces(store)
        there, left = spaces[THERE]
        before = await _read_all(store, management_grant(THERE), there, left)
        with contextlib.suppress(HoldfastError):
            await store.write(management_grant(HERE), lambda t: WRITES[method](t, there, left))
        assert await _read_all(store, management_grant(THERE), there, left) == before
        # Isolation is what stopped it: in its own space, the same write does change something.
        changed = await store.write(management_grant(THERE), lambda t: WRITES[method](t, there, left))
        assert await _read_all(store, management_grant(THERE), there, left) != before or changed is False

    @scenario
    async def test_a_narrower_grant_sees_its_own_and_what_serves_everybody(self, store: Store) -> None:
        spaces = await _two_spaces(store)
        scribe, left = spaces[HERE]
        nobody = authorize(LOCAL_OPERATOR, Action.READ_OPERATIONS, Scope(space=HERE, subject="bob"))
        seen = await _read_all(store, nobody, scribe, left)
        assert {name for name, answer in seen.items() if HERE in answer} == _ANYBODY
        # Deliveries are Ana's; of the rows of a narrower grant, only they are visible before there is a partition.
        ana = authorize(LOCAL_OPERATOR, Action.READ_DELIVERIES, Scope(space=HERE, subject="ana"))
        seen = await _read_all(store, ana, scribe, left)
        deliveries = {"delivery", "delivery_of", "dead_deliveries", "payload_of", "deliveries_page"}
        assert {name for name, answer in seen.items() if HERE in answer} == _ANYBODY | deliveries
        assert _OWN | _ANYBODY | {"metrics", "cost_events_page", "finance_events_page", "cost_summary"} | {
            "finance_summary"
        } == set(READS)

    @pytest.mark.parametrize("method", sorted(set(WRITES) - _OF_A_CALL))
    @scenario
    async def test_a_narrower_grant_changes_nothing_that_is_not_its_own(self, store: Store, method: str) -> None:
        spaces = await _two_spaces(store)
        scribe, left = spaces[HERE]
        before = await _read_all(store, management_grant(HERE), scribe, left)
        nobody = authorize(LOCAL_OPERATOR, Action.CAPTURE, Scope(space=HERE, subject="bob"))
        with contextlib.suppress(AccessDenied, BindingNotFound):
            assert not await store.write(nobody, lambda t: WRITES[method](t, scribe, left))
        assert await _read_all(store, management_grant(HERE), scribe, left) == before

    @scenario
    async def test_the_store_itself_sees_all_spaces(self, store: Store) -> None:
        spaces = await _two_spaces(store)
        for space, (scribe, left) in spaces.items():
            seen = await _read_all(store, EVERYTHING, scribe, left)
            assert {name for name, answer in seen.items() if space not in answer} == _COUNTED
