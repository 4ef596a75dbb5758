"""`retry_available` of a job is exact, in every state of the job and of its delivery."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from desk import ACME, BOT, WHOLE, Desk, text
from misbehaving import HostileProvider

from holdfast.control.bindings import SetTarget
from holdfast.control.deliveries import DropDelivery, ListDeliveries, RetryDelivery
from holdfast.control.hooks import EmitHook
from holdfast.control.jobs import CancelJob, GetJob, ListControlJobs, RetryJob
from holdfast.control.json_views import to_json
from holdfast.domain.access import storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind, SourceKind, SourceRef
from holdfast.domain.hooks import HookDeliveryStatus
from holdfast.domain.ids import DeliveryId
from holdfast.domain.jobs import LEASE, ControlJob, Job, JobKind, JobState, JobStatus
from holdfast.errors import Conflict, LeaseLost
from holdfast.ports import Transaction
from probes import SteppingClock

ENDED_BADLY = (JobState.FAILED, JobState.CANCELLED)


class Lives:
    """Jobs that are queued, claimed, lost, finished in each way, cancelled and retried, in random order."""

    def __init__(self, desk: Desk, clock: SteppingClock, seed: int, run: Callable[[Any], Any]) -> None:
        self.desk, self.clock, self.run = desk, clock, run
        self.chance = random.Random(seed)
        self.held: list[Job] = []
        self.hooks = 0
        self.seen: set[tuple[JobKind, JobState, bool]] = set()

    def jobs(self) -> list[ControlJob]:
        return list(self.run(self.desk.do(ListControlJobs(WHOLE, limit=200))).items)

    def write(self, change: Callable[[Transaction], Any]) -> Any:
        return self.run(self.desk.engine._core.store.write(storewide_grant(), change))

    def step(self) -> None:
        steps = [
            self.emit,
            self.take,
            self.take,
            self.end,
            self.end,
            self.cancel,
            self.try_again,
            self.deliver,
            self.later,
        ]
        self.chance.choice(steps)()

    def emit(self) -> None:
        self.hooks += 1
        key = self.chance.choice(["default", "elsewhere"])
        self.run(self.desk.do(SetTarget(WHOLE, TargetKind.COMPANY, ACME, key)))
        source = SourceRef(SourceKind.RUN, ACME, run_id=f"r{self.hooks}")
        hook = EmitHook(BOT, HookKind.POST_RUN_CAPTURE, f"run:{self.hooks}", source, text("I live in Lisbon."))
        self.run(self.desk.do(hook))

    def take(self) -> None:
        held = self.write(lambda t: t.jobs.claim(frozenset(JobKind), self.clock.now(), LEASE))
        self.held += [] if held is None else [held]

    def end(self) -> None:
        """Finish a job as a worker does. For a delivery, sometimes leave the delivery's own status unchanged."""
        if not self.held:
            return
        job = self.held.pop(self.chance.randrange(len(self.held)))
        how, told, now = (
            self.chance.choice(["succeeded", "failed", "failed", "later"]),
            self.chance.random(),
            self.clock.now(),
        )

        def change(transaction: Transaction) -> None:
            if how == "later":
                transaction.jobs.retry(job, now, now + timedelta(seconds=2), "no luck")
                return
            transaction.jobs.finish(job, JobStatus(how), now, "no luck" if how == "failed" else None)
            became = HookDeliveryStatus.DELIVERED if how == "succeeded" else HookDeliveryStatus.DEAD
            if job.kind is JobKind.DELIVER and told < 0.8:
                transaction.deliveries.end(DeliveryId(job.record_ids[0]), became, now, None, None, tried=True)

        with contextlib.suppress(LeaseLost):  # it was cancelled or taken over, so nothing changed
            self.write(change)

    def cancel(self) -> None:
        if jobs := self.jobs():
            with contextlib.suppress(Conflict):
                self.run(self.desk.do(CancelJob(WHOLE, self.chance.choice(jobs).id)))

    def deliver(self) -> None:
        deliveries = self.run(self.desk.do(ListDeliveries(WHOLE, limit=200))).items
        if deliveries:
            verb = self.chance.choice([RetryDelivery, RetryDelivery, DropDelivery])
            with contextlib.suppress(Conflict):
                self.run(self.desk.do(verb(WHOLE, self.chance.choice(deliveries).id)))

    def later(self) -> None:
        self.clock.advance(minutes=2)

    def try_again(self) -> None:
        if jobs := self.jobs():
            listed = self.chance.choice(jobs)
            assert self.run(self.desk.do(GetJob(WHOLE, listed.id))) == listed
            self.compare(listed.id)

    def compare(self, job_id: str) -> None:
        one = self.run(self.desk.do(GetJob(WHOLE, job_id)))
        assert to_json(one)["retry_available"] == one.retry_available
        try:
            again = self.run(self.desk.do(RetryJob(WHOLE, one.id)))
        except Conflict:
            assert not one.retry_available, one
        else:
            assert one.retry_available, one
            assert (again.retry_of, again.state, again.retry_available) == (one.id, JobState.QUEUED, False)
            assert not self.run(self.desk.do(GetJob(WHOLE, one.id))).retry_available
        self.seen.add((one.kind, one.state, one.retry_available))


@pytest.fixture
def clocked(
    location: str, hostile: HostileProvider, clock: SteppingClock, runner: asyncio.Runner
) -> Iterator[tuple[Desk, SteppingClock]]:
    opened = runner.run(Desk.opened(location, hostile, clock=clock))
    yield opened, clock
    runner.run(opened.close())


@pytest.mark.parametrize("seed", range(2))
def test_a_retry_is_said_to_be_available_exactly_where_it_is_accepted(
    clocked: tuple[Desk, SteppingClock], runner: asyncio.Runner, seed: int
) -> None:
    desk, clock = clocked
    runner.run(desk.bind_outside())
    lives = Lives(desk, clock, seed, runner.run)
    for _ in range(400):
        lives.step()
    lives.emit()
    for change in (lives.take, lives.later):
        change()
        for job in lives.jobs():
            lives.compare(job.id)
    both = {JobKind.EXTRACT, JobKind.DELIVER}
    assert lives.seen >= {(kind, state, may) for kind in both for state in ENDED_BADLY for may in (True, False)}
    assert lives.seen >= {(kind, state, False) for kind in both for state in (JobState.QUEUED, JobState.SUCCEEDED)}
    assert {state for _, state, _ in lives.seen} == set(JobState)
