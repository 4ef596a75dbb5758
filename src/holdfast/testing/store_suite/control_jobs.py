"""Background jobs as an operator sees them: their causes, cancelling and retrying."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.domain.contract import HookKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import Cause, Job, JobFilter, JobKind, JobState, JobStatus
from holdfast.domain.scope import Scope
from holdfast.errors import LeaseLost
from holdfast.ports import Store, Transaction
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import (
    ANALYZER,
    EMBEDDER,
    EVERYTHING,
    LEASE,
    Scribe,
    add,
    claim_one,
    forget,
    scenario,
    texts,
    write_grant,
)

GRANT = management_grant()
ANA = Scope(subject="ana", conversation="chat")


async def enqueue_job(store: Store, scribe: ControlScribe, **changes: Any) -> Job:
    job_id, job = scribe.job(**changes)
    await store.write(EVERYTHING, lambda t: t.jobs.enqueue(job_id, job, scribe.now()))
    return await load_job(store, job_id)


async def load_job(store: Store, job_id: str) -> Job:
    found = await store.read(GRANT, lambda r: r.jobs.find(job_id))
    assert found is not None
    return found


def matches(job: Job, wanted: JobFilter, now: datetime) -> bool:
    """Reference implementation of the filter: parts that the scope lacks may come from the source or the hook."""
    cause, scope = job.cause or Cause(), job.scope
    state = wanted.state
    of_source = (None, None) if cause.source is None else (cause.source.issue_id, cause.source.run_id)
    of_hook = (None, None) if cause.hook is None else (cause.hook.actor_agent_id, cause.hook.run_id)
    pairs = [
        (wanted.agent, scope.agent or of_hook[0]),
        (wanted.project, scope.project),
        (wanted.issue, scope.issue or of_source[0]),
        (wanted.run, scope.run or of_source[1] or of_hook[1]),
        (wanted.binding, cause.binding),
        (wanted.hook, None if cause.hook is None else cause.hook.kind),
    ]
    return (
        all(asked is None or asked == there for asked, there in pairs)
        and (state is None or (job.is_stuck(now) if state is JobState.STUCK else job.status.value == state.value))
        and (wanted.kinds is None or job.kind in wanted.kinds)
        and (wanted.since is None or job.created_at >= wanted.since)
        and (wanted.until is None or job.created_at < wanted.until)
    )


class ControlJobContract:
    @scenario
    async def test_a_job_tells_what_it_goes_back_to_and_so_does_the_next_attempt(self, store: Store) -> None:
        scribe = ControlScribe()
        _, given = scribe.job()
        first = await enqueue_job(store, scribe, cause=given.cause)
        assert (first.cause, first.retry_of) == (given.cause, None)
        plain = await enqueue_job(store, scribe, cause=None)
        assert plain.cause is None
        empty = await enqueue_job(store, scribe, cause=Cause())
        assert empty.cause == Cause()
        held = await claim_one(store, scribe.now())
        assert held.cause == given.cause
        again = scribe.clock.step()
        await store.write(EVERYTHING, lambda t: t.jobs.retry(held, again, again, "no luck"))
        (second,) = [
            job
            for job in await store.read(GRANT, lambda r: r.jobs.page(JobFilter(), again, None, 10))
            if job.attempt == 2
        ]
        assert (second.cause, second.retry_of, second.record_ids) == (given.cause, first.id, first.record_ids)

    # --- cancelling ---

    @scenario
    async def test_a_worker_of_a_cancelled_job_commits_nothing(self, store: Store) -> None:
        scribe, writer = ControlScribe(), Scribe()
        job = await enqueue_job(store, scribe)
        held = await claim_one(store, scribe.now())
        at = scribe.clock.step()
        cancelled = await store.write(GRANT, lambda t: t.jobs.cancel(job.id, at))
        assert cancelled is not None
        assert (cancelled.status, cancelled.finished_at, cancelled.lease_until) == (JobStatus.CANCELLED, at, None)
        turn = writer.turn(ANA, "an effect")

        def effect(transaction: Transaction) -> None:
            transaction.transcripts.add_turn(turn, EMBEDDER, ANALYZER)
            transaction.jobs.finish(held, JobStatus.SUCCEEDED, at)

        with pytest.raises(LeaseLost):
            await store.write(write_grant(ANA), effect)
        with pytest.raises(LeaseLost):
            await store.write(EVERYTHING, lambda t: t.jobs.extend(held, at, LEASE, 1, 2))
        with pytest.raises(LeaseLost):
            await store.write(EVERYTHING, lambda t: t.jobs.retry(held, at, at, "later"))
        await store.write(EVERYTHING, lambda t: t.jobs.release(held))
        assert await load_job(store, job.id) == cancelled
        assert await texts(store) == []
        assert not await store.read(EVERYTHING, lambda r: r.jobs.has_due(at + 2 * LEASE))

    @scenario
    async def test_a_job_that_waits_is_cancelled_and_never_claimed(self, store: Store) -> None:
        scribe = ControlScribe()
        job = await enqueue_job(store, scribe)
        assert await store.write(GRANT, lambda t: t.jobs.cancel(job.id, scribe.now())) is not None
        assert not await store.read(EVERYTHING, lambda r: r.jobs.has_due(scribe.clock.step()))
        assert await store.write(EVERYTHING, lambda t: t.jobs.claim(frozenset(JobKind), scribe.now(), LEASE)) is None

    @pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED])
    @scenario
    async def test_what_has_ended_is_not_cancelled(self, store: Store, status: JobStatus) -> None:
        scribe = ControlScribe()
        job = await enqueue_job(store, scribe)
        held = await claim_one(store, scribe.now())
        await store.write(EVERYTHING, lambda t: t.jobs.finish(held, status, scribe.now()))
        before = await load_job(store, job.id)
        assert await store.write(GRANT, lambda t: t.jobs.cancel(job.id, scribe.clock.step())) is None
        assert await store.write(GRANT, lambda t: t.jobs.cancel(JobId("job_never"), scribe.now())) is None
        assert await load_job(store, job.id) == before

    # --- retrying ---

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
    @scenario
    async def test_what_ended_badly_is_tried_again_once(self, store: Store, status: JobStatus) -> None:
        scribe = ControlScribe()
        job = await enqueue_job(store, scribe)
        held = await claim_one(store, scribe.now())
        await store.write(EVERYTHING, lambda t: t.jobs.finish(held, status, scribe.now(), "why"))
        at = scribe.clock.step()
        again = await store.write(GRANT, lambda t: t.jobs.restart(job.id, at))
        assert again is not None
        assert (again.status, again.attempt, again.retry_of, again.created_at, again.run_after) == (
            JobStatus.QUEUED, 2, job.id, at, at,
        )  # fmt: skip
        assert (again.kind, again.scope, again.record_ids, again.cause) == (
            job.kind, job.scope, job.record_ids, job.cause,
        )  # fmt: skip
        assert await store.write(GRANT, lambda t: t.jobs.restart(job.id, at)) is None
        assert await store.write(GRANT, lambda t: t.jobs.restart(again.id, at)) is None
        second = await claim_one(store, at)
        assert second.id == again.id
        with pytest.raises(LeaseLost):
            await store.write(EVERYTHING, lambda t: t.jobs.finish(held, JobStatus.SUCCEEDED, at))
        await store.write(EVERYTHING, lambda t: t.jobs.finish(second, JobStatus.FAILED, at, "still"))
        third = await store.write(GRANT, lambda t: t.jobs.restart(again.id, at))
        assert third is not None
        assert (third.attempt, third.retry_of) == (3, again.id)

    @scenario
    async def test_what_runs_waits_went_well_or_has_a_next_attempt_is_not_tried_again(self, store: Store) -> None:
        scribe = ControlScribe()
        job = await enqueue_job(store, scribe)

        async def is_refused() -> bool:
            return await store.write(GRANT, lambda t: t.jobs.restart(job.id, scribe.now())) is None

        assert await is_refused()
        held = await claim_one(store, scribe.now())
        assert await is_refused()
        await store.write(EVERYTHING, lambda t: t.jobs.retry(held, scribe.now(), scribe.now(), "no luck"))
        assert await is_refused()
        second = await claim_one(store, scribe.now())
        await store.write(EVERYTHING, lambda t: t.jobs.finish(second, JobStatus.SUCCEEDED, scribe.now()))
        assert await store.write(GRANT, lambda t: t.jobs.restart(second.id, scribe.now())) is None
        assert await store.write(GRANT, lambda t: t.jobs.restart(JobId("job_never"), scribe.now())) is None

    @scenario
    async def test_what_was_forgotten_meanwhile_is_not_worked_on_again(self, store: Store) -> None:
        scribe, writer = ControlScribe(), Scribe()
        kept, gone = writer.message("kept"), writer.message("gone")
        await add(store, writer.turn(ANA, kept, gone))
        job = await enqueue_job(store, scribe, kind=JobKind.EXTRACT, scope=ANA, record_ids=(kept.id, gone.id))
        held = await claim_one(store, scribe.now())
        await store.write(EVERYTHING, lambda t: t.jobs.finish(held, JobStatus.FAILED, scribe.now()))
        await forget(store, ForgetTarget(ids=(gone.id,)), write_grant(ANA), writer.clock.step())
        again = await store.write(GRANT, lambda t: t.jobs.restart(job.id, scribe.now()))
        assert again is not None
        assert again.record_ids == (kept.id,)

    # --- pages ---

    @pytest.mark.parametrize("seed", range(2))
    @scenario
    async def test_pages_hold_what_a_plain_look_at_every_job_finds(self, store: Store, seed: int) -> None:
        chance, scribe = random.Random(seed), ControlScribe()  # noqa: S311 - nothing secret

        def maybe(*values: Any) -> Any:
            return chance.choice((None, *values))

        for _ in range(80):
            hook = maybe(scribe.hook(), replace(scribe.hook(HookKind.MANUAL_CAPTURE), actor_agent_id="1", run_id="1"))
            source = maybe(scribe.source(issue_id="1"), scribe.source(issue_id="2", run_id="1"))
            parts = {part: maybe("1", "2") for part in ("agent", "project", "issue", "run")}
            await enqueue_job(
                store,
                scribe,
                kind=chance.choice((JobKind.DELIVER, JobKind.EXTRACT)),
                scope=scribe.scope(**{part: value for part, value in parts.items() if value}),
                cause=maybe(Cause(binding=maybe("x"), hook=hook, source=source)),
            )
            scribe.clock.step(chance.choice((0, 1, 4_000)))
        for _ in range(50):
            held = await claim_one(store, scribe.now())
            status = chance.choice((*JobStatus, JobStatus.RUNNING))
            if status is JobStatus.QUEUED:
                await store.write(EVERYTHING, lambda t, h=held: t.jobs.retry(h, scribe.now(), scribe.now(), "no"))  # type: ignore[misc]
            elif status is not JobStatus.RUNNING:
                await store.write(EVERYTHING, lambda t, h=held, s=status: t.jobs.finish(h, s, scribe.now()))  # type: ignore[misc]
            scribe.clock.step(chance.choice((0, 30)))
        now = scribe.now()
        made = await store.read(GRANT, lambda r: list(r.jobs.page(JobFilter(), now, None, 1_000)))
        assert [job.id for job in made] == sorted((job.id for job in made), reverse=True)
        assert len(made) >= 80
        for _ in range(60):
            moments = [chance.choice(made).created_at + chance.choice((-1, 0, 1)) * timedelta(microseconds=1)] * 2
            wanted = JobFilter(
                state=maybe(*JobState),
                kinds=maybe(frozenset({JobKind.DELIVER}), frozenset(), frozenset(JobKind)),
                binding=maybe("x"),
                agent=maybe("1"),
                project=maybe("2", "never"),
                issue=maybe("1"),
                run=maybe("2"),
                hook=maybe(HookKind.MANUAL_CAPTURE),
                since=maybe(moments[0]),
                until=maybe(moments[1] + timedelta(hours=2)),
            )
            for asked in (wanted, replace(wanted, agent=None, project=None, issue=None, run=None)):
                expected = [job for job in made if matches(job, asked, now)]
                found: list[Job] = []
                before = None
                while page := await store.read(GRANT, lambda r, w=asked, b=before: list(r.jobs.page(w, now, b, 9))):  # type: ignore[misc]
                    found += page
                    before = page[-1].id
                assert found == expected, asked

    @scenario
    async def test_extractions_that_failed_for_good_are_counted(self, store: Store) -> None:
        scribe = ControlScribe()
        for end in (JobStatus.FAILED, JobStatus.SUCCEEDED, JobStatus.FAILED):
            await enqueue_job(store, scribe, kind=JobKind.EXTRACT)
            held = await claim_one(store, scribe.now())
            await store.write(EVERYTHING, lambda t, h=held, e=end: t.jobs.finish(h, e, scribe.clock.step()))  # type: ignore[misc]
        assert (await store.read(GRANT, lambda r: r.operations.metrics(None, None))).extraction_failures == 2
        assert (await store.read(GRANT, lambda r: r.operations.metrics(scribe.now(), None))).extraction_failures == 1
        assert (await store.read(GRANT, lambda r: r.operations.metrics(None, scribe.now()))).extraction_failures == 1
        (last, *_) = await store.read(
            GRANT, lambda r: r.jobs.page(JobFilter(state=JobState.FAILED), scribe.now(), None, 9)
        )
        await store.write(GRANT, lambda t: t.jobs.restart(last.id, scribe.now()))
        assert (await store.read(GRANT, lambda r: r.operations.metrics(None, None))).extraction_failures == 1
