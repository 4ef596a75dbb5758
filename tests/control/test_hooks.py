"""Hooks are delivered once to each destination that has them enabled, and each outcome is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OPERATOR, OTHER, WHOLE, Desk, rows_of, text
from misbehaving import HostileProvider

from holdfast.control.bindings import DeleteBinding, UpdateBinding
from holdfast.control.deliveries import DropDelivery, GetDelivery, ListDeliveries, RetryDelivery
from holdfast.control.hooks import EmitHook
from holdfast.control.memory import ListRecords
from holdfast.domain.access import Action, Actor, ActorKind, storewide_grant
from holdfast.domain.contract import CaptureMode, HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.events import EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import Delivery, DeliveryFilter, EmittedHook, HookDeliveryStatus, HookEvent
from holdfast.domain.jobs import MAX_ATTEMPTS, JobKind
from holdfast.domain.operations import OperationType, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import (
    AccessDenied,
    BindingNotFound,
    Conflict,
    IdempotencyConflict,
    InvalidInput,
    InvalidScope,
    NotFound,
    ProviderUnavailable,
)
from holdfast.runtime.forget import Forget
from holdfast.testing.full_repr import full_repr
from probes import SteppingClock

Run = Callable[[Any], Any]
RUN = SourceRef(SourceKind.RUN, ACME, run_id="r1")


@pytest.fixture
def run(runner: asyncio.Runner) -> Run:
    return runner.run


@pytest.fixture
def clocked(
    location: str, hostile: HostileProvider, clock: SteppingClock, run: Run
) -> Iterator[tuple[Desk, SteppingClock]]:
    """A control plane with the test's own clock."""
    opened = run(Desk.opened(location, hostile, clock=clock))
    yield opened, clock
    run(opened.close())


def ended(words: str = "We chose Lisbon.", hook_id: str = "run:r1", **more: Any) -> EmitHook:
    given = {"scope": BOT, "kind": HookKind.POST_RUN_CAPTURE, "source": RUN, "payload": text(words), **more}
    return EmitHook(hook_id=hook_id, **given)


def only(emitted: EmittedHook) -> Delivery:
    (delivery,) = emitted.deliveries
    return delivery


async def drained(desk: Desk) -> int:
    return await desk.engine.crew.drain()


def texts_in(desk: Desk, run: Run, scope: Scope = BOT) -> list[str]:
    return sorted(each.text for each in run(desk.do(ListRecords(scope))).result.items)


# --- our own store --------------------------------------------------------------------------------------------------


def test_a_hook_to_our_own_store_is_captured_with_its_delivery_in_one_call(desk: Desk, run: Run) -> None:
    with rows_of(desk, run) as rows:
        emitted = run(desk.do(ended(scope=replace(BOT, run="r1")), AGENT))
    delivery = only(emitted)
    assert (delivery.to, delivery.status, delivery.attempts) == ("binding:default", HookDeliveryStatus.DELIVERED, 1)
    assert texts_in(desk, run) == ["We chose Lisbon."]
    (row,) = rows
    assert (row.action, row.outcome, row.id) == (Action.DELIVER_HOOK, Outcome.SUCCEEDED, delivery.operation_id)
    assert row.attribution.binding == "default"
    assert row.attribution.source == RUN
    assert row.attribution.hook.run_id == "r1"
    assert run(desk.listed(type=OperationType.CAPTURE))[0].id == row.id
    jobs = run(desk.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest()))
    extraction = next(job for job in jobs if job.kind is JobKind.EXTRACT)
    assert extraction.cause is not None
    assert (extraction.cause.hook, extraction.cause.source) == (delivery.hook, RUN)


def test_emitted_again_it_is_the_first_delivery_and_nothing_is_kept_twice(desk: Desk, run: Run) -> None:
    first = run(desk.do(ended()))
    again = run(desk.do(ended()))
    assert only(again).id == only(first).id
    assert (first.repeated, again.repeated) == (False, True)
    assert texts_in(desk, run) == ["We chose Lisbon."]
    with pytest.raises(IdempotencyConflict, match="hook_id"):
        run(desk.do(ended("Something else.")))
    assert texts_in(desk, run) == ["We chose Lisbon."]


def test_nobody_can_take_the_id_of_another_agents_hook(desk: Desk, run: Run) -> None:
    elsewhere = replace(BOT, agent="another")
    taken = run(desk.do(ended("Mine now.", scope=elsewhere)))
    first = run(desk.do(ended(), AGENT))
    assert (first.repeated, only(first).id != only(taken).id) == (False, True)
    assert texts_in(desk, run) == ["We chose Lisbon."]


def test_emitted_many_times_at_once_it_is_kept_once(desk: Desk, run: Run) -> None:
    async def at_once() -> list[EmittedHook]:
        return await asyncio.gather(*(desk.do(ended()) for _ in range(12)))

    assert len({only(each).id for each in run(at_once())}) == 1
    assert texts_in(desk, run) == ["We chose Lisbon."]


def test_what_is_noted_by_hand_is_kept_as_it_is(desk: Desk, run: Run) -> None:
    run(desk.do(ended(hook_id="n1", kind=HookKind.MANUAL_CAPTURE, source=NOTE)))
    (found,) = run(desk.do(ListRecords(BOT))).result.items
    assert found.text == "We chose Lisbon."
    assert found.handle.record_id.startswith("mem_")


# --- disabled hooks -------------------------------------------------------------------------------------------------


def test_comments_and_documents_are_captured_where_that_was_switched_on(desk: Desk, run: Run) -> None:
    comment = SourceRef(SourceKind.ISSUE_COMMENT, ACME, issue_id="i1", comment_id="c1")
    hook = {"kind": HookKind.ISSUE_COMMENT_CAPTURE, "source": comment}
    skipped = only(run(desk.do(ended(hook_id="c1", **hook))))
    assert (skipped.status, skipped.reason) == (HookDeliveryStatus.SKIPPED, "hook_disabled")
    assert texts_in(desk, run) == []
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True})))
    assert only(run(desk.do(ended(hook_id="c2", **hook)))).status is HookDeliveryStatus.DELIVERED
    assert texts_in(desk, run) == ["We chose Lisbon."]


def test_a_binding_that_is_disabled_or_not_there_is_a_skip_and_no_error(desk: Desk, run: Run) -> None:
    run(desk.do(UpdateBinding(WHOLE, "default", enabled=False)))
    off = only(run(desk.do(ended(hook_id="h1"))))
    assert (off.to, off.status, off.reason) == ("binding:default", HookDeliveryStatus.SKIPPED, "binding_disabled")
    run(desk.do(DeleteBinding(WHOLE, "default")))
    none = only(run(desk.do(ended(hook_id="h2"))))
    assert (none.to, none.status, none.reason) == ("binding", HookDeliveryStatus.SKIPPED, "no_binding")
    with pytest.raises(BindingNotFound):
        run(desk.do(ended(hook_id="h3", binding_key="nowhere")))


@pytest.mark.parametrize("outside", [False, True], ids=["our own store", "outside"])
def test_what_was_skipped_is_delivered_when_it_is_emitted_again_after_it_was_switched_on(
    desk: Desk, run: Run, outside: bool
) -> None:
    if outside:
        run(desk.bind_outside())
    key = "elsewhere" if outside else "default"
    run(desk.do(UpdateBinding(WHOLE, key, hooks={HookKind.POST_RUN_CAPTURE: False})))
    skipped = only(run(desk.do(ended())))
    assert payload_of(desk, run, skipped) is None, "what nobody switched on is not kept"
    off = run(desk.do(ended()))
    assert (off.repeated, only(off)) == (True, skipped)
    with pytest.raises(Conflict, match=r"skipped \(hook_disabled\).*not kept.*emit it again"):
        run(desk.do(RetryDelivery(WHOLE, skipped.id)))
    run(desk.do(UpdateBinding(WHOLE, key, hooks={HookKind.POST_RUN_CAPTURE: True})))
    with pytest.raises(Conflict, match="emit it again"):
        run(desk.do(RetryDelivery(WHOLE, skipped.id)))
    with pytest.raises(IdempotencyConflict, match="hook_id"):
        run(desk.do(ended("Something else.")))
    again = run(desk.do(ended()))
    resumed = only(again)
    assert (resumed.id, resumed.reason, again.repeated) == (skipped.id, None, False)
    assert run(desk.do(GetDelivery(WHOLE, skipped.id))) == resumed
    assert run(drained(desk)) == 1  # delivers it, or extracts from it
    for _ in range(2):  # a delivered hook stays delivered
        after = run(desk.do(ended()))
        assert (after.repeated, only(after).status, only(after).attempts) == (True, HookDeliveryStatus.DELIVERED, 1)
        assert run(drained(desk)) == 0
    if outside:
        assert [request.idempotency_id for _, (request,) in desk.hostile.asked] == ["run:r1"]
        assert payload_of(desk, run, skipped) is None
    else:
        assert texts_in(desk, run) == ["We chose Lisbon."]


@pytest.mark.parametrize("outside", [False, True], ids=["our own store", "outside"])
def test_what_was_skipped_and_is_emitted_again_many_times_at_once_is_delivered_once(
    desk: Desk, run: Run, outside: bool
) -> None:
    if outside:
        run(desk.bind_outside())
    key = "elsewhere" if outside else "default"
    run(desk.do(UpdateBinding(WHOLE, key, enabled=False)))
    skipped = only(run(desk.do(ended())))
    assert skipped.reason == "binding_disabled"
    run(desk.do(UpdateBinding(WHOLE, key, enabled=True)))

    async def at_once() -> list[EmittedHook]:
        return await asyncio.gather(*(desk.do(ended()) for _ in range(12)))

    assert {only(each).id for each in run(at_once())} == {skipped.id}
    run(drained(desk))
    assert run(desk.do(GetDelivery(WHOLE, skipped.id))).status is HookDeliveryStatus.DELIVERED
    if outside:
        assert len(desk.hostile.asked) == 1
    else:
        assert texts_in(desk, run) == ["We chose Lisbon."]


def test_what_was_skipped_and_forgotten_does_not_come_back_when_it_is_emitted_again(desk: Desk, run: Run) -> None:
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.POST_RUN_CAPTURE: False})))
    skipped = only(run(desk.do(ended())))
    run(desk.do(Forget(WHOLE, ForgetTarget(source="r1"))))
    run(desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.POST_RUN_CAPTURE: True})))
    again = run(desk.do(ended()))
    assert (again.repeated, only(again).id, only(again).status) == (True, skipped.id, HookDeliveryStatus.DROPPED)
    assert texts_in(desk, run) == []


# --- external providers ---------------------------------------------------------------------------------------------


def test_a_hook_that_goes_outside_is_pending_until_a_worker_delivered_it(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    delivery = only(run(desk.do(ended())))
    assert (delivery.to, delivery.status, delivery.attempts) == ("binding:elsewhere", HookDeliveryStatus.PENDING, 0)
    assert desk.hostile.asked == []
    with rows_of(desk, run) as rows:
        assert run(drained(desk)) == 1
    after = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (after.status, after.attempts, after.reason) == (HookDeliveryStatus.DELIVERED, 1, None)
    ((verb, (request,)),) = desk.hostile.asked
    assert (verb, request.idempotency_id, request.payload) == ("capture", "run:r1", text("We chose Lisbon."))
    assert (request.hook, request.source, request.scope) == (delivery.hook, RUN, BOT)
    assert request.mode is CaptureMode.RESIDUE
    attempt = next(row for row in rows if row.action is Action.CAPTURE)
    assert (attempt.outcome, attempt.id) == (Outcome.SUCCEEDED, after.operation_id)
    assert attempt.attribution.hook == delivery.hook
    assert str(attempt.actor) == "system:worker"
    assert payload_of(desk, run, delivery) is None
    again = run(desk.do(ended()))
    assert (again.repeated, only(again).status) == (True, HookDeliveryStatus.DELIVERED)


def test_what_fails_is_tried_again_later_and_is_dead_after_the_last(
    clocked: tuple[Desk, SteppingClock], run: Run
) -> None:
    desk, clock = clocked
    run(desk.bind_outside())

    async def refused(*_: Any) -> None:
        raise ProviderUnavailable("not today")

    desk.hostile.does["capture"] = refused
    delivery = only(run(desk.do(ended())))
    for attempt in range(1, MAX_ATTEMPTS):
        run(drained(desk))
        tried = run(desk.do(GetDelivery(WHOLE, delivery.id)))
        assert (tried.status, tried.attempts, tried.reason) == (
            HookDeliveryStatus.PENDING,
            attempt,
            "provider_unavailable",
        )
        assert run(drained(desk)) == 0, "it waits"
        clock.advance(minutes=11)
    run(drained(desk))
    dead = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (dead.status, dead.attempts, dead.reason) == (HookDeliveryStatus.DEAD, MAX_ATTEMPTS, "provider_unavailable")
    assert len(desk.hostile.asked) == MAX_ATTEMPTS
    attempts = [row for row in run(desk.rows()) if row.action is Action.CAPTURE]
    assert [row.outcome for row in attempts] == [Outcome.FAILED] * MAX_ATTEMPTS
    assert attempts[-1].id == dead.operation_id
    clock.advance(hours=24)
    assert run(drained(desk)) == 0, "nobody tries it any more"
    # The dead delivery is listed and can be revived.
    page = run(desk.do(ListDeliveries(WHOLE, DeliveryFilter(status=HookDeliveryStatus.DEAD))))
    assert [each.id for each in page.items] == [delivery.id]
    del desk.hostile.does["capture"]
    revived = run(desk.do(RetryDelivery(WHOLE, delivery.id)))
    assert revived.status is HookDeliveryStatus.PENDING
    run(drained(desk))
    assert run(desk.do(GetDelivery(WHOLE, delivery.id))).status is HookDeliveryStatus.DELIVERED
    assert desk.hostile.asked[-1][1][0].payload == text("We chose Lisbon.")
    with pytest.raises(Conflict, match="delivered"):
        run(desk.do(RetryDelivery(WHOLE, delivery.id)))
    assert EventKind.DELIVERY_RETRIED in {each.kind for each in run(desk.activity())}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (UpdateBinding(WHOLE, "elsewhere", enabled=False), "binding_disabled"),
        (UpdateBinding(WHOLE, "elsewhere", hooks={HookKind.POST_RUN_CAPTURE: False}), "hook_disabled"),
        (DeleteBinding(WHOLE, "elsewhere"), "no_binding"),
    ],
    ids=["disabled", "hook off", "deleted"],
)
def test_what_was_on_its_way_when_it_was_switched_off_is_kept_dead_and_not_delivered(
    desk: Desk, run: Run, change: Any, reason: str
) -> None:
    run(desk.bind_outside())
    delivery = only(run(desk.do(ended())))
    run(desk.do(change))
    run(drained(desk))
    dead = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (dead.status, dead.reason) == (HookDeliveryStatus.DEAD, reason)
    assert desk.hostile.asked == []
    assert payload_of(desk, run, delivery) == text("We chose Lisbon.")


def test_what_is_dropped_carries_nothing_and_is_not_delivered(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    delivery = only(run(desk.do(ended())))
    dropped = run(desk.do(DropDelivery(WHOLE, delivery.id), OPERATOR))
    assert dropped.status is HookDeliveryStatus.DROPPED
    assert payload_of(desk, run, delivery) is None
    run(drained(desk))
    assert desk.hostile.asked == []
    with pytest.raises(Conflict, match="can be dropped"):
        run(desk.do(DropDelivery(WHOLE, delivery.id)))


# --- subscribers ----------------------------------------------------------------------------------------------------


def test_a_subscriber_has_a_delivery_of_its_own_and_is_told_until_it_took_it(
    clocked: tuple[Desk, SteppingClock], run: Run
) -> None:
    desk, clock = clocked
    told: list[HookEvent] = []
    failing = [True]

    async def hear(event: HookEvent) -> None:
        told.append(event)
        if failing[0]:
            raise RuntimeError("canary: its own words are not to be told")

    desk.engine.hooks.subscribe("audience", [HookKind.POST_RUN_CAPTURE], hear)
    desk.engine.hooks.subscribe("deaf", [HookKind.MANUAL_CAPTURE], hear)
    by_place = {each.to: each for each in run(desk.do(ended())).deliveries}
    assert set(by_place) == {"binding:default", "subscriber:audience"}
    assert texts_in(desk, run) == ["We chose Lisbon."], "nobody waits for a subscriber"
    run(drained(desk))
    tried = run(desk.do(GetDelivery(WHOLE, by_place["subscriber:audience"].id)))
    assert (tried.status, tried.attempts, tried.reason) == (HookDeliveryStatus.PENDING, 1, "provider_unavailable")
    failing[0] = False
    clock.advance(minutes=1)
    run(drained(desk))
    assert run(desk.do(GetDelivery(WHOLE, tried.id))).status is HookDeliveryStatus.DELIVERED
    assert [each.idempotency_id for each in told] == ["run:r1", "run:r1"]
    assert told[0].payload == text("We chose Lisbon.")
    jobs = run(desk.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest()))
    assert "canary" not in full_repr(jobs) + full_repr(run(desk.rows()))


def test_a_subscriber_that_blocks_runs_in_a_thread(desk: Desk, run: Run) -> None:
    told: list[str] = []
    desk.engine.hooks.subscribe("plain", [HookKind.POST_RUN_CAPTURE], lambda event: told.append(event.idempotency_id))
    run(desk.do(ended()))
    run(drained(desk))
    assert told == ["run:r1"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("No Key", [HookKind.MANUAL_CAPTURE]), ("a", []), ("a", ["manual_capture"]), ("a", [HookKind.PRE_RUN_HYDRATE])],
)
def test_a_subscription_that_cannot_be_is_refused(desk: Desk, name: str, kinds: Any) -> None:
    with pytest.raises(InvalidInput):
        desk.engine.hooks.subscribe(name, kinds, print)


# --- access, isolation and validation -------------------------------------------------------------------------------


def test_an_agent_emits_for_itself_alone_and_looks_after_no_deliveries(desk: Desk, run: Run) -> None:
    delivery = only(run(desk.do(ended(), AGENT)))
    with pytest.raises(AccessDenied):
        run(desk.do(ended(hook_id="other", scope=Scope(space=ACME, agent="somebody")), AGENT))
    for verb in (ListDeliveries(WHOLE), GetDelivery(WHOLE, delivery.id), DropDelivery(WHOLE, delivery.id)):
        with pytest.raises(AccessDenied):
            run(desk.do(verb, AGENT))


def test_no_company_sees_another_s_deliveries(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    delivery = only(run(desk.do(ended())))
    elsewhere = Scope(space=OTHER)
    assert run(desk.do(ListDeliveries(elsewhere))).items == ()
    stranger = Actor(ActorKind.OPERATOR, "rival", OTHER)
    for verb in (GetDelivery, RetryDelivery, DropDelivery):
        with pytest.raises(NotFound):
            run(desk.do(verb(elsewhere, delivery.id)))
        with pytest.raises(AccessDenied):
            run(desk.do(verb(WHOLE, delivery.id), stranger))
    # The same hook id in another company is another hook.
    source = SourceRef(SourceKind.RUN, OTHER, run_id="r1")
    theirs = ended("Their own.", scope=Scope(space=OTHER, agent="bot"), source=source)
    assert only(run(desk.do(theirs))).status is HookDeliveryStatus.DELIVERED


@pytest.mark.parametrize(
    ("given", "error", "field"),
    [
        ({"kind": HookKind.PRE_RUN_HYDRATE}, InvalidInput, "kind"),
        ({"kind": "post_run_capture"}, InvalidInput, "kind"),
        ({"hook_id": ""}, InvalidInput, "hook_id"),
        ({"hook_id": "x" * 300}, InvalidInput, "hook_id"),
        ({"payload": SourcePayload()}, InvalidInput, "payload"),
        ({"payload": text("x" * 20_001)}, InvalidInput, "payload.text"),
        ({"source": SourceRef(SourceKind.RUN, OTHER)}, InvalidScope, "source.space"),
        ({"source": None}, InvalidInput, "source"),
        ({"binding_key": "No"}, InvalidInput, "binding_key"),
        ({"scope": Scope(space="*")}, InvalidScope, "space"),
    ],
)
def test_a_hook_that_cannot_be_is_refused_by_the_name_of_its_field(
    desk: Desk, run: Run, given: dict[str, Any], error: type[Exception], field: str
) -> None:
    with rows_of(desk, run) as rows, pytest.raises(error) as told:
        run(desk.make(lambda: ended(**given), EmitHook))
    assert told.value.field == field  # type: ignore[attr-defined]
    assert [row.outcome for row in rows] == [Outcome.REFUSED]


def test_deliveries_are_listed_newest_first_page_by_page_and_by_what_is_asked(desk: Desk, run: Run) -> None:
    for number in range(5):
        run(desk.do(ended(hook_id=f"h{number}")))
    run(desk.do(ended(hook_id="n", kind=HookKind.MANUAL_CAPTURE, source=NOTE)))
    first = run(desk.do(ListDeliveries(WHOLE, DeliveryFilter(kind=HookKind.POST_RUN_CAPTURE), limit=3)))
    rest = run(
        desk.do(ListDeliveries(WHOLE, DeliveryFilter(kind=HookKind.POST_RUN_CAPTURE), first.next_cursor, limit=3))
    )
    assert [each.hook.hook_id for each in (*first.items, *rest.items)] == ["h4", "h3", "h2", "h1", "h0"]
    assert rest.next_cursor is None
    with pytest.raises(InvalidInput, match="another query"):
        run(desk.make(lambda: ListDeliveries(WHOLE, cursor=first.next_cursor), ListDeliveries))
    by_source = run(desk.do(ListDeliveries(WHOLE, DeliveryFilter(source_kind=SourceKind.MANUAL_NOTE))))
    assert [each.hook.hook_id for each in by_source.items] == ["n"]


def payload_of(desk: Desk, run: Run, delivery: Delivery) -> SourcePayload | None:
    store = desk.engine._core.store
    found: SourcePayload | None = run(
        store.read(storewide_grant(), lambda reader: reader.deliveries.payload(delivery.id))
    )
    return found
