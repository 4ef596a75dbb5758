"""Isolation of spaces in the control plane, for every method and every argument."""

from __future__ import annotations

import contextlib
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
from holdfast.testing.full_repr import full_repr
from holdfast.testing.store_suite.control_scribe import ControlScribe, WrittenRows, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, port_methods, scenario

HERE, THERE = "here-1", "there-2"
_READ = Callable[[Reader, ControlScribe, WrittenRows], Any]
_WRITE = Callable[[Transaction, ControlScribe, WrittenRows], Any]


_NOUNS = ("bindings.", "costs.", "deliveries.", "jobs.", "operations.")
# The queue, as workers use it, and the audit row of every call.
_TESTED_ELSEWHERE = {
    *("jobs.newest", "jobs.counts", "jobs.has_due", "jobs.enqueue", "jobs.claim", "jobs.extend", "jobs.finish"),
    *("jobs.retry", "jobs.release", "operations.add"),
}


def _methods(port: type) -> set[str]:
    return {method for method in port_methods(port) if method.startswith(_NOUNS)} - _TESTED_ELSEWHERE


def _tag_with_space(scribe: ControlScribe, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Tag ids with the space that wrote them: an id alone does not tell."""
    return [(scribe.space, each) for each in ids]


# Each reads what the given space wrote.
READS: dict[str, _READ] = {
    "bindings.find_all": lambda r, s, left: r.bindings.find_all(),
    "bindings.targets": lambda r, s, left: r.bindings.targets(),
    "operations.find": lambda r, s, left: [r.operations.find(left.done.id), r.operations.find(left.unknown.id)],
    "operations.page": lambda r, s, left: r.operations.page(OperationFilter(), None, 100),
    "operations.metrics": lambda r, s, left: r.operations.metrics(None, None),
    "jobs.find": lambda r, s, left: [r.jobs.find(left.job), r.jobs.find(left.cancelled)],
    "jobs.find_for_delivery": lambda r, s, left: r.jobs.find_for_delivery(left.pending.id),
    "jobs.retried_ids": lambda r, s, left: _tag_with_space(
        s, r.jobs.retried_ids([left.job, left.cancelled, left.retried])
    ),
    "jobs.page": lambda r, s, left: r.jobs.page(JobFilter(), s.now(), None, 100),
    "deliveries.find": lambda r, s, left: r.deliveries.find(left.pending.id),
    "deliveries.dead_letters": lambda r, s, left: _tag_with_space(
        s, r.deliveries.dead_letters([left.pending.id, left.dead.id])
    ),
    "deliveries.find_by_hook": lambda r, s, left: r.deliveries.find_by_hook(
        left.pending.to, left.pending.hook.hook_id, left.pending.scope
    ),
    "deliveries.payload": lambda r, s, left: r.deliveries.payload(left.pending.id),
    "deliveries.page": lambda r, s, left: r.deliveries.page(DeliveryFilter(), None, 100),
    "costs.prices": lambda r, s, left: r.costs.prices(),
    "costs.page": lambda r, s, left: r.costs.page(None, 100),
    "costs.finance_page": lambda r, s, left: r.costs.finance_page(None, 100),
    "costs.summary": lambda r, s, left: r.costs.summary(CostGroup.PROVIDER, None, None),
    "costs.finance_summary": lambda r, s, left: r.costs.finance_summary(None, None),
}
# Results that do not name their space.
_COUNTED = {"operations.metrics"}
# Allowed for any grant in a space; visible to a narrower grant for its own rows. All else needs the whole space.
_ANYBODY = {"bindings.find_all", "bindings.targets", "costs.prices"}
_OWN = {
    "operations.find",
    "operations.page",
    "jobs.find",
    "jobs.page",
    "jobs.find_for_delivery",
    "jobs.retried_ids",
    "deliveries.find",
    "deliveries.find_by_hook",
    "deliveries.dead_letters",
    "deliveries.payload",
    "deliveries.page",
}

# Each changes something in the scribe's space.
WRITES: dict[str, _WRITE] = {
    "bindings.add": lambda t, s, left: t.bindings.add(s.binding("another")),
    "bindings.replace": lambda t, s, left: t.bindings.replace(replace(s.binding(), revision=2)),
    "bindings.remove": lambda t, s, left: t.bindings.remove("other", s.now()),
    "bindings.set_target": lambda t, s, left: t.bindings.set_target(Target(TargetKind.COMPANY, s.space, "other")),
    "bindings.clear_target": lambda t, s, left: t.bindings.clear_target(TargetKind.AGENT, f"agent-of-{s.space}"),
    "operations.settle": lambda t, s, left: t.operations.settle(replace(left.unknown, outcome=Outcome.FAILED)),
    "deliveries.add": lambda t, s, left: t.deliveries.add(NewDelivery(s.delivery(), SourcePayload("new"))),
    "deliveries.end": lambda t, s, left: t.deliveries.end(
        left.pending.id, HookDeliveryStatus.DROPPED, s.now(), None, None, tried=False
    ),
    "deliveries.note_attempt": lambda t, s, left: t.deliveries.note_attempt(left.pending.id, s.now(), "failed", None),
    "deliveries.resume": lambda t, s, left: t.deliveries.resume(
        left.skipped.id, NewDelivery(replace(left.skipped, status=HookDeliveryStatus.PENDING), SourcePayload("new"))
    ),
    "deliveries.revive": lambda t, s, left: t.deliveries.revive(left.dead.id, s.now()),
    "costs.add": lambda t, s, left: t.costs.add(s.cost()),
    "costs.add_finance": lambda t, s, left: t.costs.add_finance(s.finance()),
    "costs.put_price": lambda t, s, left: t.costs.put_price(Price(f"vendor-of-{s.space}", "small", output_micros=1)),
    "costs.remove_price": lambda t, s, left: t.costs.remove_price(f"vendor-of-{s.space}", "small"),
    "jobs.restart": lambda t, s, left: t.jobs.restart(left.cancelled, s.now()),
    "jobs.cancel": lambda t, s, left: t.jobs.cancel(left.job, s.now()),
}
# Writes that any call makes, also under a narrower grant.
_OF_A_CALL = {"operations.settle", "costs.add"}


async def _two_spaces(store: Store) -> dict[str, tuple[ControlScribe, WrittenRows]]:
    found = {}
    for space in (HERE, THERE):
        scribe = ControlScribe(space)
        found[space] = (scribe, await store.write(management_grant(space), scribe.everything()))
    return found


async def _read_all(store: Store, grant: Grant, scribe: ControlScribe, left: WrittenRows) -> dict[str, str]:
    return {
        name: full_repr(await store.read(grant, lambda r, ask=ask: ask(r, scribe, left)))  # type: ignore[misc]
        for name, ask in READS.items()
    }


class ControlIsolationContract:
    def test_every_method_of_the_control_plane_is_in_the_tables(self) -> None:
        assert set(READS) == _methods(Reader)
        assert set(WRITES) == _methods(Transaction) - _methods(Reader)

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
        metrics = [
            await store.read(management_grant(space), lambda r: r.operations.metrics(None, None)) for space in spaces
        ]
        assert metrics[0] == metrics[1]
        assert [count.succeeded + count.unknown for count in metrics[0].bindings] == [2]

    @scenario
    async def test_a_space_without_anything_has_its_first_binding_and_nothing_else(self, store: Store) -> None:
        spaces = await _two_spaces(store)
        seen = await _read_all(store, management_grant("empty"), *spaces[HERE])
        assert [name for name, answer in seen.items() if HERE in answer or THERE in answer] == []
        assert await store.read(management_grant("empty"), lambda r: list(r.bindings.find_all())) == [
            first_binding("empty")
        ]
        assert await store.read(management_grant("empty"), lambda r: list(r.bindings.targets())) == [
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
        deliveries = {
            "deliveries.find",
            "deliveries.find_by_hook",
            "deliveries.dead_letters",
            "deliveries.payload",
            "deliveries.page",
        }
        assert {name for name, answer in seen.items() if HERE in answer} == _ANYBODY | deliveries
        assert _OWN | _ANYBODY | {"operations.metrics", "costs.page", "costs.finance_page", "costs.summary"} | {
            "costs.finance_summary"
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
