"""The explorer finds a call by the issue, run and agent that its source or hook names. On both stores."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from desk import ACME, WHOLE, Desk, text
from misbehaving import raising

import holdfast.control
from holdfast.control.hooks import EmitHook
from holdfast.control.hydration import Hydrate
from holdfast.control.memory import Capture, Query, UpsertRecords
from holdfast.domain.access import storewide_grant
from holdfast.domain.contract import HookContext, HookKind, NewRecord, SourceKind, SourceRef
from holdfast.domain.jobs import JobFilter
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import HoldfastError
from holdfast.runtime.requests import Request

Run = Callable[[Any], Any]
AT = datetime(2026, 11, 1, tzinfo=UTC)
SOURCE = SourceRef(SourceKind.RUN, ACME, issue_id="i1", run_id="r1")
HOOK = HookContext(HookKind.POST_RUN_CAPTURE, "h1", AT, "helper", "r2")
BEFORE = HookContext(HookKind.PRE_RUN_HYDRATE, "h2", AT, "helper", "r2")
OF_SOURCE = [{"issue": "i1"}, {"run": "r1"}, {"issue": "i1", "run": "r1"}]
OF_HOOK = [{"agent": "helper"}, {"run": "r2"}]

# Each verb that takes a source or a hook, and the filters that find it. A hook that is emitted is of its scope.
CALLS: dict[str, tuple[Any, list[dict[str, str]]]] = {
    "a capture": (Capture(WHOLE, SOURCE, text("x")), OF_SOURCE),
    "a capture for a hook": (Capture(WHOLE, SOURCE, text("x"), hook=HOOK), [*OF_SOURCE, {"agent": "helper"}]),
    "an upsert": (UpsertRecords(WHOLE, (NewRecord("x"),), SOURCE), OF_SOURCE),
    "a query for a hook": (Query(WHOLE, "x", hook=BEFORE), OF_HOOK),
    "a hydration": (Hydrate(replace(WHOLE, agent="helper", run="r2"), "x"), OF_HOOK),
    "an emission": (
        EmitHook(replace(WHOLE, agent="helper"), HookKind.POST_RUN_CAPTURE, "h1", SOURCE, text("x")),
        [*OF_SOURCE, {"agent": "helper"}],
    ),
    "an emission whose source names no run": (
        EmitHook(
            replace(WHOLE, run="r2"), HookKind.MANUAL_CAPTURE, "h1", SourceRef(SourceKind.ISSUE, ACME, "i1"), text("x")
        ),
        [{"issue": "i1"}, {"run": "r2"}],
    ),
    "an emission that is skipped": (
        EmitHook(WHOLE, HookKind.ISSUE_COMMENT_CAPTURE, "h1", SOURCE, text("x")),
        OF_SOURCE,
    ),
}


@pytest.fixture
def run(runner: asyncio.Runner) -> Run:
    return runner.run


def found(desk: Desk, run: Run, wanted: dict[str, str]) -> Sequence[Operation]:
    rows: Sequence[Operation] = run(desk.listed(**wanted))
    return rows


def test_no_verb_that_takes_a_source_or_a_hook_is_left_out() -> None:
    for module in pkgutil.iter_modules(holdfast.control.__path__, "holdfast.control."):
        importlib.import_module(module.name)

    def beneath(kind: type[Any]) -> set[type[Any]]:
        return {kind}.union(*(beneath(each) for each in kind.__subclasses__()))

    taking = {
        kind.__name__
        for kind in beneath(Request)
        if kind.__module__.startswith("holdfast.control.")
        and is_dataclass(kind)
        and {each.name for each in fields(kind)} & {"source", "hook", "hook_id"}
    }
    assert taking == {type(verb).__name__ for verb, _ in CALLS.values()}


@pytest.mark.parametrize("named", CALLS)
@pytest.mark.parametrize("outside", [False, True], ids=["our own store", "outside"])
def test_a_call_is_found_by_whatever_its_source_or_hook_names(desk: Desk, run: Run, named: str, outside: bool) -> None:
    verb, finds = CALLS[named]
    if outside:
        run(desk.bind_outside())
    operation_id = run(desk.do(verb)).operation_id
    for wanted in finds:
        rows = found(desk, run, wanted)
        assert [row.id for row in rows] == [operation_id], wanted
        assert [(row.scope, row.outcome) for row in rows] == [(verb.scope, Outcome.SUCCEEDED)], (
            "the scope is as it was given"
        )
    assert found(desk, run, {"issue": "i2"}) == ()
    assert found(desk, run, {"run": "i1"}) == ()


@pytest.mark.parametrize("named", ["a capture for a hook", "an upsert"])
def test_one_that_failed_is_found_too(desk: Desk, run: Run, named: str) -> None:
    verb, finds = CALLS[named]
    run(desk.bind_outside())
    desk.hostile.does.update(dict.fromkeys(("capture", "upsert_records"), raising(RuntimeError("down"))))
    with pytest.raises(HoldfastError):
        run(desk.do(verb))
    for wanted in finds:
        assert [row.outcome for row in found(desk, run, wanted)] == [Outcome.FAILED], wanted


def test_what_a_worker_does_for_a_hook_is_found_with_the_emission_and_so_are_its_jobs(desk: Desk, run: Run) -> None:
    told: list[str] = []
    desk.engine.hooks.subscribe("room", [HookKind.POST_RUN_CAPTURE], lambda event: told.append(event.idempotency_id))
    run(desk.bind_outside())
    verb, finds = CALLS["an emission"]
    run(desk.do(verb))
    run(desk.engine.crew.drain())
    assert told == ["h1"]
    store = desk.engine._core.store
    for wanted in finds:
        actions = sorted(row.action for row in found(desk, run, wanted))
        assert actions == ["capture", "deliver_hook", "deliver_hook"], wanted
        jobs = run(store.read(storewide_grant(), lambda r, w=wanted: r.jobs.page(JobFilter(**w), AT, None, 9)))  # type: ignore[misc]
        assert [job.kind for job in jobs] == ["deliver", "deliver"], wanted


def test_what_the_scope_names_goes_before_what_the_source_does(desk: Desk, run: Run) -> None:
    scope = Scope(space=ACME, agent="bot", issue="own", run="own")
    made = run(desk.do(Capture(scope, SOURCE, text("x"), hook=HOOK)))
    for wanted in ({"issue": "own"}, {"run": "own"}, {"agent": "bot"}):
        assert [row.id for row in found(desk, run, wanted)] == [made.operation_id]
    for wanted in (*OF_SOURCE, *OF_HOOK):
        assert found(desk, run, wanted) == ()
