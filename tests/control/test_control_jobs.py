"""A company's background jobs: listed with their causes, retried and cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, OPERATOR, OTHER, WHOLE, Desk, text
from misbehaving import HostileProvider

from holdfast.control.deliveries import DropDelivery, GetDelivery
from holdfast.control.hooks import EmitHook
from holdfast.control.jobs import CancelJob, GetJob, ListControlJobs, RetryJob
from holdfast.control.memory import Capture, RetryProviderJob
from holdfast.domain.access import storewide_grant
from holdfast.domain.contract import CaptureResult, HookKind, SourceKind, SourceRef
from holdfast.domain.events import EventKind
from holdfast.domain.hooks import Delivery, HookDeliveryStatus
from holdfast.domain.jobs import LEASE, Job, JobFilter, JobKind, JobState, JobStatus
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.runtime.gate import Core
from holdfast.runtime.worker import Effect, Handler, Worker
from probes import SteppingClock

Run = Callable[[Any], Any]
RUN = SourceRef(SourceKind.RUN, ACME, run_id="r1", issue_id="i1")


@pytest.fixture
def run(runner: asyncio.Runner) -> Run:
    return runner.run


@pytest.fixture
def clocked(
    location: str, hostile: HostileProvider, clock: SteppingClock, run: Run
) -> Iterator[tuple[Desk, SteppingClock]]:
    opened = run(Desk.opened(location, hostile, clock=clock))
    yield opened, clock
    run(opened.close())


def emitted(desk: Desk, run: Run, hook_id: str = "run:r1", **more: Any) -> Delivery:
    given = {"scope": BOT, "kind": HookKind.POST_RUN_CAPTURE, "source": RUN, "payload": text("I live in Lisbon.")}
    (delivery,) = run(desk.do(EmitHook(hook_id=hook_id, **{**given, **more}))).deliveries
    return delivery


def listed(desk: Desk, do: Run, scope: Scope = WHOLE, /, **wanted: Any) -> list[Job]:
    return list(do(desk.do(ListControlJobs(scope, JobFilter(**wanted)))).items)


PLACED = replace(BOT, run="r4", issue="i4")
SAID = text("I live in Lisbon.")
CAPTURES = {
    "a capture": Capture(PLACED, SourceRef(SourceKind.RUN, ACME), SAID),
    "a hook": EmitHook(PLACED, HookKind.POST_RUN_CAPTURE, "h4", SourceRef(SourceKind.ISSUE_COMMENT, ACME), SAID),
}


@pytest.mark.parametrize("way", CAPTURES)
def test_a_job_is_found_by_the_run_and_the_issue_of_the_scope_that_it_was_captured_in(
    desk: Desk, run: Run, way: str
) -> None:
    run(desk.do(CAPTURES[way], AGENT))
    (job,) = listed(desk, run)
    assert (job.kind, job.scope.run, job.scope.issue) == (JobKind.EXTRACT, None, None)
    assert [each.id for each in listed(desk, run, run="r4")] == [job.id]
    assert [each.id for each in listed(desk, run, issue="i4", state=JobState.QUEUED)] == [job.id]
    assert listed(desk, run, run="r5") == listed(desk, run, issue="i5") == []
    assert job.cause is not None
    assert job.cause.source is not None
    assert (job.cause.source.run_id, job.cause.source.issue_id) == ("r4", "i4")


def test_what_a_source_says_of_its_run_is_kept_where_the_scope_says_otherwise(desk: Desk, run: Run) -> None:
    run(desk.do(Capture(PLACED, RUN, SAID), AGENT))
    (job,) = listed(desk, run)
    assert job.cause is not None
    assert job.cause.source == RUN
    assert [each.id for each in listed(desk, run, run="r1", issue="i1")] == [job.id]


def test_a_hook_on_its_way_outside_is_found_by_its_run_and_issue(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    run(desk.do(CAPTURES["a hook"], AGENT))
    (job,) = listed(desk, run, run="r4", issue="i4")
    assert job.kind is JobKind.DELIVER


def test_the_job_of_what_is_dropped_is_cancelled_with_it_and_not_tried_again(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    dropped, kept = emitted(desk, run), emitted(desk, run, "run:r2")
    run(desk.do(DropDelivery(WHOLE, dropped.id), OPERATOR))
    found = {job.record_ids[0]: job for job in listed(desk, run)}
    assert (found[dropped.id].status, found[kept.id].status) == (JobStatus.CANCELLED, JobStatus.QUEUED)
    with pytest.raises(Conflict):
        run(desk.do(RetryJob(WHOLE, found[dropped.id].id), OPERATOR))
    run(desk.do(CancelJob(WHOLE, found[kept.id].id), OPERATOR))
    dead = run(desk.do(GetDelivery(WHOLE, kept.id), OPERATOR))
    assert (dead.status, dead.reason) == (HookDeliveryStatus.DEAD, "cancelled")
    run(desk.do(DropDelivery(WHOLE, kept.id), OPERATOR))
    assert listed(desk, run, state=JobState.QUEUED) == []


async def refused(*_: Any) -> None:
    raise HoldfastError("not today")


def test_a_job_tells_which_hook_source_and_call_caused_it(desk: Desk, run: Run) -> None:
    delivery = emitted(desk, run, scope=replace(BOT, project="p1"))
    (job,) = listed(desk, run, kinds=frozenset({JobKind.EXTRACT}))
    seen = run(desk.do(GetJob(WHOLE, job.id), OPERATOR))
    assert seen == job
    assert job.cause is not None
    assert (job.cause.hook, job.cause.source, job.cause.binding) == (delivery.hook, RUN, "default")
    assert job.cause.operation_id == delivery.operation_id
    for wanted in (
        {"hook": HookKind.POST_RUN_CAPTURE}, {"agent": "bot"}, {"binding": "default"}, {"project": "p1"},
        {"issue": "i1"}, {"run": "r1"}, {"state": JobState.QUEUED}, {"since": job.created_at},
        {"until": job.created_at + timedelta(seconds=1)},
    ):  # fmt: skip
        assert [each.id for each in listed(desk, run, **wanted)] == [job.id], wanted
    for wanted in (
        {"hook": HookKind.MANUAL_CAPTURE}, {"agent": "other"}, {"binding": "none"}, {"state": JobState.RUNNING},
        {"kinds": frozenset({JobKind.DELIVER})}, {"until": job.created_at},
    ):  # fmt: skip
        assert listed(desk, run, **wanted) == [], wanted


def test_jobs_are_listed_newest_first_page_by_page(desk: Desk, run: Run) -> None:
    for number in range(5):
        emitted(desk, run, f"h{number}", scope=Scope(space=ACME, agent=f"a{number}"))
    first = run(desk.do(ListControlJobs(WHOLE, limit=3)))
    rest = run(desk.do(ListControlJobs(WHOLE, cursor=first.next_cursor, limit=3)))
    found = [job.cause.hook.hook_id for job in (*first.items, *rest.items)]
    assert found == ["h4", "h3", "h2", "h1", "h0"]
    assert rest.next_cursor is None
    with pytest.raises(InvalidInput, match="another query"):
        run(desk.make(lambda: ListControlJobs(WHOLE, JobFilter(agent="a1"), first.next_cursor), ListControlJobs))


def test_an_agent_sees_its_own_jobs_and_changes_none(desk: Desk, run: Run) -> None:
    emitted(desk, run)
    emitted(desk, run, "other", scope=Scope(space=ACME, agent="other"))
    (own,) = run(desk.do(ListControlJobs(BOT), AGENT)).items
    assert own.scope.agent == "bot"
    with pytest.raises(AccessDenied):
        run(desk.do(ListControlJobs(Scope(space=ACME, agent="other")), AGENT))
    for verb in (RetryJob, CancelJob):
        with pytest.raises(AccessDenied):
            run(desk.do(verb(BOT, own.id), AGENT))
    for verb in (GetJob, RetryJob, CancelJob):
        with pytest.raises(NotFound):
            run(desk.do(verb(Scope(space=OTHER), own.id)))


def test_a_job_whose_worker_is_not_heard_of_is_stuck_until_another_takes_it(
    clocked: tuple[Desk, SteppingClock], run: Run
) -> None:
    desk, clock = clocked
    emitted(desk, run)
    store = desk.engine._core.store
    run(store.write(storewide_grant(), lambda t: t.jobs.claim(frozenset(JobKind), clock.now(), LEASE)))
    assert [job.status for job in listed(desk, run, state=JobState.RUNNING)] == [JobStatus.RUNNING]
    assert listed(desk, run, state=JobState.STUCK) == []
    clock.advance(minutes=2)
    (stuck,) = listed(desk, run, state=JobState.STUCK)
    assert stuck.is_stuck(clock.now())
    assert run(desk.engine.crew.drain()) == 1
    assert [job.token for job in listed(desk, run, state=JobState.SUCCEEDED)] == [2]


def test_what_failed_is_tried_again_as_a_new_attempt_once(clocked: tuple[Desk, SteppingClock], run: Run) -> None:
    desk, clock = clocked
    run(desk.bind_outside())
    desk.hostile.does["capture"] = refused
    delivery = emitted(desk, run)
    for _ in range(12):
        run(desk.engine.crew.drain())
        clock.advance(minutes=11)
    attempts = listed(desk, run)
    assert [(job.attempt, job.status) for job in attempts] == [
        (number, JobStatus.FAILED) for number in range(12, 0, -1)
    ]
    assert [job.retry_of for job in attempts] == [*(job.id for job in attempts[1:]), None]
    del desk.hostile.does["capture"]
    again = run(desk.do(RetryJob(WHOLE, attempts[0].id), OPERATOR))
    assert (again.status, again.retry_of, again.cause) == (JobStatus.QUEUED, attempts[0].id, attempts[0].cause)
    with pytest.raises(Conflict):
        run(desk.do(RetryJob(WHOLE, attempts[0].id)))
    with pytest.raises(Conflict):
        run(desk.do(RetryJob(WHOLE, attempts[-1].id)))
    run(desk.engine.crew.drain())
    assert run(desk.do(GetJob(WHOLE, again.id))).status is JobStatus.SUCCEEDED
    assert run(desk.do(GetDelivery(WHOLE, delivery.id))).status is HookDeliveryStatus.DELIVERED
    with pytest.raises(Conflict):
        run(desk.do(RetryJob(WHOLE, again.id)))
    kinds = [each.kind for each in run(desk.activity())]
    assert EventKind.JOB_RETRIED in kinds


def test_what_was_cancelled_is_not_done_until_it_is_tried_again(desk: Desk, run: Run) -> None:
    emitted(desk, run)
    (job,) = listed(desk, run)
    cancelled = run(desk.do(CancelJob(WHOLE, job.id), OPERATOR))
    assert cancelled.status is JobStatus.CANCELLED
    assert run(desk.engine.crew.drain()) == 0
    with pytest.raises(Conflict):
        run(desk.do(CancelJob(WHOLE, job.id)))
    run(desk.do(RetryJob(WHOLE, job.id)))
    assert run(desk.engine.crew.drain()) == 1
    assert {each.status for each in listed(desk, run)} == {JobStatus.CANCELLED, JobStatus.SUCCEEDED}


@pytest.mark.parametrize("way", ["the company's jobs", "the provider's jobs"])
def test_whichever_way_a_job_is_tried_again_the_same_activity_says_who_did(desk: Desk, run: Run, way: str) -> None:
    emitted(desk, run)
    (job,) = listed(desk, run)
    run(desk.do(CancelJob(WHOLE, job.id)))
    if way == "the company's jobs":
        again = run(desk.do(RetryJob(BOT, job.id), OPERATOR)).id
    else:
        (tried,) = run(desk.do(RetryProviderJob(BOT, job.id), OPERATOR)).result.jobs
        again = tried.provider_job_id
    retried, cancelled = run(desk.activity())
    assert (retried.kind, cancelled.kind) == (EventKind.JOB_RETRIED, EventKind.JOB_CANCELLED)
    assert retried.key == again
    assert dict(retried.details) == {"actor": str(OPERATOR), "kind": "extract"}
    for verb in (RetryJob(BOT, job.id), RetryProviderJob(BOT, job.id)):
        with pytest.raises(Conflict):
            run(desk.do(verb, OPERATOR))
    assert len(run(desk.activity())) == 2


def test_a_delivery_whose_job_was_cancelled_is_dead_and_its_job_revives_it(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    delivery = emitted(desk, run)
    (job,) = listed(desk, run)
    run(desk.do(CancelJob(WHOLE, job.id)))
    dead = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (dead.status, dead.reason, dead.attempts) == (HookDeliveryStatus.DEAD, "cancelled", 0), "nobody tried"
    run(desk.do(RetryJob(WHOLE, job.id)))
    run(desk.engine.crew.drain())
    arrived = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (arrived.status, arrived.attempts) == (HookDeliveryStatus.DELIVERED, 1)


def test_what_is_cancelled_while_a_worker_is_at_it_commits_nothing(desk: Desk, run: Run) -> None:
    run(desk.bind_outside())
    under_way, go_on = threading.Event(), threading.Event()

    async def slow(*_: Any) -> CaptureResult:
        under_way.set()
        await asyncio.to_thread(go_on.wait, 30)
        return CaptureResult()

    desk.hostile.does["capture"] = slow
    delivery = emitted(desk, run)
    (job,) = listed(desk, run)

    async def cancelled_meanwhile() -> None:
        working = asyncio.create_task(desk.engine.crew.drain())
        await asyncio.to_thread(under_way.wait, 30)
        await desk.do(CancelJob(WHOLE, job.id))
        go_on.set()
        await working

    run(cancelled_meanwhile())
    assert run(desk.do(GetJob(WHOLE, job.id))).status is JobStatus.CANCELLED
    after = run(desk.do(GetDelivery(WHOLE, delivery.id)))
    assert (after.status, after.reason, after.attempts) == (HookDeliveryStatus.DEAD, "cancelled", 1)
    # The provider was called, but the outcome was not recorded.
    assert [row.outcome for row in run(desk.rows()) if row.action == "capture"] == ["unknown"]


def test_a_heartbeat_that_finds_its_job_cancelled_stops_the_work(desk: Desk, run: Run) -> None:
    emitted(desk, run)
    (job,) = listed(desk, run)
    seen: list[str] = []

    async def slow(core: Core, job: Job) -> Effect:
        seen.append("begun")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("stopped")
            raise
        return lambda transaction: seen.append("committed")

    async def cancelled_meanwhile() -> None:
        core = desk.engine._core
        worker = Worker(core, {JobKind.EXTRACT: Handler(slow)}, lease=timedelta(milliseconds=150))
        working = asyncio.create_task(worker.drain())
        while not seen:  # noqa: ASYNC110 - a list carries the signal
            await asyncio.sleep(0.01)
        await desk.do(CancelJob(WHOLE, job.id))
        async with asyncio.timeout(30):
            await working

    run(cancelled_meanwhile())
    assert seen == ["begun", "stopped"]


def test_a_worker_whose_lease_ended_commits_nothing_late(clocked: tuple[Desk, SteppingClock], run: Run) -> None:
    desk, clock = clocked
    emitted(desk, run)
    seen: list[str] = []

    async def overtaken(core: Core, job: Job) -> Effect:
        clock.advance(minutes=5)
        seen.append(f"the other did {await desk.engine.crew.drain()}")
        return lambda transaction: seen.append("wrote")

    async def work() -> None:
        await Worker(desk.engine._core, {JobKind.EXTRACT: Handler(overtaken)}).drain()

    run(work())
    assert seen[0] == "the other did 1"
    (job,) = listed(desk, run)
    assert (job.status, job.token) == (JobStatus.SUCCEEDED, 2)
    facts = run(desk.engine._core.store.read(storewide_grant(), lambda reader: reader.maintenance.counts("fake", 1)))
    assert facts["memories"] <= 1


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"state": "queued"}, "state"),
        ({"kinds": ["index"]}, "kinds"),
        ({"kinds": frozenset({"index"})}, "kinds"),
        ({"hook": "manual_capture"}, "hook"),
        ({"binding": "No"}, "binding"),
        ({"agent": ""}, "agent"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_by_its_field(desk: Desk, run: Run, wanted: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as told:
        run(desk.make(lambda: ListControlJobs(WHOLE, JobFilter(**wanted)), ListControlJobs))
    assert told.value.field == field
