"""Subscribers receive the hooks that are enabled at the serving binding, with the binding's key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from desk import ACME, BOT, WHOLE, Desk, text

from holdfast.control.bindings import CreateBinding, DeleteBinding, SetTarget, UpdateBinding
from holdfast.control.deliveries import GetDelivery, RetryDelivery
from holdfast.control.hooks import EmitHook
from holdfast.domain.access import storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind, SourceKind, SourceRef
from holdfast.domain.hooks import CAPTURED, Delivery, HookDeliveryStatus, HookEvent
from holdfast.domain.jobs import Job, JobKind

Run = Callable[[Any], Any]
COMMENT = SourceRef(SourceKind.ISSUE_COMMENT, ACME, issue_id="i1", comment_id="c1")
OFF_AT_FIRST = (HookKind.ISSUE_COMMENT_CAPTURE, HookKind.ISSUE_DOCUMENT_CAPTURE)
ON_AT_FIRST = (HookKind.MANUAL_CAPTURE, HookKind.POST_RUN_CAPTURE)


@pytest.fixture
def run(runner: asyncio.Runner) -> Run:
    return runner.run


@pytest.fixture
def told(desk: Desk) -> list[HookEvent]:
    """The events that a subscriber to all hooks received."""
    heard: list[HookEvent] = []
    desk.engine.hooks.subscribe("audience", sorted(CAPTURED), heard.append)
    return heard


def said(hook_id: str, kind: HookKind = HookKind.ISSUE_COMMENT_CAPTURE) -> EmitHook:
    return EmitHook(BOT, kind, hook_id, COMMENT, text("We chose Lisbon."))


def to_audience(desk: Desk, run: Run, hook: EmitHook) -> Delivery:
    (found,) = [each for each in run(desk.do(hook)).deliveries if each.to == "subscriber:audience"]
    delivery: Delivery = found
    return delivery


def jobs(desk: Desk, run: Run) -> list[Job]:
    found = run(desk.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest()))
    return [job for job in found if job.kind is JobKind.DELIVER]


def test_a_comment_goes_to_no_subscriber_until_the_binding_has_that_switched_on(
    desk: Desk, run: Run, told: list[HookEvent]
) -> None:
    skipped = to_audience(desk, run, said("c1"))
    assert (skipped.status, skipped.reason) == (HookDeliveryStatus.SKIPPED, "hook_disabled")
    assert skipped.binding == "default"
    store = desk.engine._core.store
    assert run(store.read(storewide_grant(), lambda reader: reader.deliveries.payload(skipped.id))) is None, (
        "its words are not kept"
    )
    assert run(desk.engine.crew.drain()) == 0
    assert told == []
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True})))
    assert to_audience(desk, run, said("c2")).status is HookDeliveryStatus.PENDING
    run(desk.engine.crew.drain())
    assert [event.idempotency_id for event in told] == ["c2"]


def test_a_subscriber_is_given_the_key_of_the_binding_that_serves_and_so_is_the_job(
    desk: Desk, run: Run, told: list[HookEvent]
) -> None:
    run(desk.do(CreateBinding(WHOLE, "of-the-bot", "local", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True})))
    run(desk.do(SetTarget(WHOLE, TargetKind.AGENT, "bot", "of-the-bot")))
    delivery = to_audience(desk, run, said("c1"))
    assert delivery.binding == "of-the-bot"
    (job,) = jobs(desk, run)
    assert job.cause is not None
    assert job.cause.binding == "of-the-bot"
    run(desk.engine.crew.drain())
    (event,) = told
    assert event == HookEvent(delivery.hook, BOT, COMMENT, text("We chose Lisbon."), "c1", "of-the-bot")


def test_a_disabled_binding_lets_nobody_hear(desk: Desk, run: Run, told: list[HookEvent]) -> None:
    run(desk.do(UpdateBinding(WHOLE, "default", enabled=False)))
    skipped = to_audience(desk, run, said("r1", HookKind.POST_RUN_CAPTURE))
    assert (skipped.status, skipped.reason) == (HookDeliveryStatus.SKIPPED, "binding_disabled")
    run(desk.engine.crew.drain())
    assert told == []


def test_where_nothing_is_bound_the_switches_that_every_binding_begins_with_hold(
    desk: Desk, run: Run, told: list[HookEvent]
) -> None:
    run(desk.do(DeleteBinding(WHOLE, "default")))
    off = [to_audience(desk, run, said(kind, kind)) for kind in OFF_AT_FIRST]
    assert {(each.status, each.reason) for each in off} == {(HookDeliveryStatus.SKIPPED, "hook_disabled")}
    on = [to_audience(desk, run, said(kind, kind)) for kind in ON_AT_FIRST]
    assert {(each.status, each.binding) for each in on} == {(HookDeliveryStatus.PENDING, None)}
    run(desk.engine.crew.drain())
    assert sorted((event.idempotency_id, event.binding) for event in told) == [(kind, None) for kind in ON_AT_FIRST]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (UpdateBinding(WHOLE, "default", enabled=False), "binding_disabled"),
        (UpdateBinding(WHOLE, "default", hooks={HookKind.POST_RUN_CAPTURE: False}), "hook_disabled"),
        (DeleteBinding(WHOLE, "default"), "no_binding"),
    ],
    ids=["disabled", "hook off", "deleted"],
)
def test_what_is_switched_off_while_it_is_on_its_way_is_kept_dead_and_told_to_nobody(
    desk: Desk, run: Run, told: list[HookEvent], change: Any, reason: str
) -> None:
    delivery = to_audience(desk, run, said("r1", HookKind.POST_RUN_CAPTURE))
    run(desk.do(change))
    run(desk.engine.crew.drain())
    dead = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (dead.status, dead.reason) == (HookDeliveryStatus.DEAD, reason)
    assert told == []


def test_tried_again_once_it_is_switched_on_it_is_told_with_the_same_key(
    desk: Desk, run: Run, told: list[HookEvent]
) -> None:
    delivery = to_audience(desk, run, said("r1", HookKind.POST_RUN_CAPTURE))
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.POST_RUN_CAPTURE: False})))
    run(desk.engine.crew.drain())
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.POST_RUN_CAPTURE: True})))
    run(desk.do(RetryDelivery(WHOLE, delivery.id)))
    assert {job.cause.binding for job in jobs(desk, run) if job.cause is not None} == {"default"}
    run(desk.engine.crew.drain())
    assert [(event.idempotency_id, event.binding) for event in told] == [("r1", "default")]


def test_what_was_skipped_is_told_when_it_is_emitted_again_by_the_binding_that_serves_by_then(
    desk: Desk, run: Run, told: list[HookEvent]
) -> None:
    skipped = to_audience(desk, run, said("c1"))
    assert (skipped.status, skipped.binding) == (HookDeliveryStatus.SKIPPED, "default")
    run(desk.do(CreateBinding(WHOLE, "of-the-bot", "local", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True})))
    run(desk.do(SetTarget(WHOLE, TargetKind.AGENT, "bot", "of-the-bot")))
    for _ in range(3):
        again = to_audience(desk, run, said("c1"))
        assert (again.id, again.binding) == (skipped.id, "of-the-bot")
        run(desk.engine.crew.drain())
    assert again.status is HookDeliveryStatus.DELIVERED
    assert [(event.idempotency_id, event.binding) for event in told] == [("c1", "of-the-bot")]


def test_a_subscriber_that_blocks_its_loop_holds_up_no_other_call(desk: Desk, run: Run) -> None:
    begun, let_go = threading.Event(), threading.Event()

    async def blocks(_: HookEvent) -> None:
        begun.set()
        let_go.wait(60)

    desk.engine.hooks.subscribe("stuck", [HookKind.POST_RUN_CAPTURE], blocks)

    async def lives() -> bool:
        await desk.do(said("r1", HookKind.POST_RUN_CAPTURE))
        work = asyncio.create_task(desk.engine.crew.drain())
        assert await asyncio.to_thread(begun.wait, 60)
        # The subscriber blocks until it is released; other calls are served meanwhile.
        await desk.do(said("r2", HookKind.MANUAL_CAPTURE))
        waited = not work.done()
        let_go.set()
        await work
        return waited

    assert run(lives())
