"""Jobs: claimed by one worker under a lease, finished only by the holder of the lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast.domain.jobs import JobKind, JobStatus
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import AccessDenied, LeaseLost
from holdfast.ports import (
    Store,
    Transaction,
)
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    EMBEDDER,
    EVERYTHING,
    LEASE,
    SPACE,
    Scribe,
    add,
    claim,
    claim_one,
    enqueue,
    scenario,
    texts,
)


class JobContract:
    # --- jobs ---

    @scenario
    async def test_the_oldest_due_job_of_the_wanted_kinds_is_claimed(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        now = scribe.clock.now()
        second = await enqueue(store, scribe, scribe.job(), now)
        third = await enqueue(store, scribe, scribe.job(JobKind.EXTRACT), now)
        first = await enqueue(store, scribe, scribe.job(record_ids=("msg_1",)), now - timedelta(seconds=5))
        assert await store.read(EVERYTHING, lambda r: r.jobs.has_due(now))
        assert await store.read(EVERYTHING, lambda r: r.jobs.has_due(now, frozenset({JobKind.EXTRACT})))
        # A worker is not woken for kinds it cannot run.
        assert not await store.read(EVERYTHING, lambda r: r.jobs.has_due(now, frozenset({JobKind.MAINTAIN})))
        job = await claim_one(store, now)
        assert (job.id, job.kind, job.scope, job.record_ids) == (first, JobKind.INDEX, ANA, ("msg_1",))
        assert (job.status, job.attempt, job.token, job.lease_until, job.started_at) == (
            JobStatus.RUNNING, 1, 1, now + LEASE, now,
        )  # fmt: skip
        extraction = await claim(store, now, frozenset({JobKind.EXTRACT}))
        assert extraction is not None
        assert extraction.id == third
        assert (await claim_one(store, now)).id == second
        assert await claim(store, now) is None
        assert not await store.read(EVERYTHING, lambda r: r.jobs.has_due(now))

    @scenario
    async def test_the_usage_of_the_store_counts_open_and_abandoned_jobs(self, store: Store) -> None:
        scribe = Scribe()
        now = scribe.clock.now()
        empty = await store.read(EVERYTHING, lambda r: r.maintenance.usage(now))
        assert (empty.bytes > 0, empty[1:]) == (True, (0, 0, 0, 0.0))
        for seconds in (-5, 0, 0, 0, 60):
            await enqueue(store, scribe, scribe.job(), now + timedelta(seconds=seconds))
        failed, retried = await claim_one(store, now), await claim_one(store, now)
        await store.write(EVERYTHING, lambda t: t.jobs.finish(failed, JobStatus.FAILED, now, "no reply"))
        later = now + timedelta(seconds=90)
        await store.write(EVERYTHING, lambda t: t.jobs.retry(retried, now, later, "no reply"))
        await claim_one(store, now)
        usage = await store.read(EVERYTHING, lambda r: r.maintenance.usage(now + timedelta(seconds=7)))
        assert usage[1:] == (3, 1, 1, 7.0)
        with pytest.raises(AccessDenied):
            await store.read(SPACE, lambda r: r.maintenance.usage(now))

    @scenario
    async def test_a_job_does_not_wait_for_a_clock_that_went_back(self, store: Store) -> None:
        scribe = Scribe()
        queued = await enqueue(store, scribe, scribe.job())
        yesterday = scribe.clock.now() - timedelta(days=1)
        assert await store.read(EVERYTHING, lambda r: r.jobs.has_due(yesterday))
        assert (await claim_one(store, yesterday)).id == queued

    @scenario
    async def test_a_job_is_claimed_by_one_worker_only(self, store: Store) -> None:
        scribe = Scribe()
        ids = {await enqueue(store, scribe, scribe.job()) for _ in range(5)}
        got = await asyncio.gather(*(claim(store, scribe.clock.now()) for _ in range(12)))
        taken = [job.id for job in got if job is not None]
        assert len(taken) == 5
        assert set(taken) == ids

    @scenario
    async def test_a_job_whose_lease_ran_out_is_claimed_again_under_a_new_token(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        first = await claim_one(store, now)
        assert await claim(store, now + LEASE - timedelta(microseconds=1)) is None
        second = await claim_one(store, now + LEASE)
        assert (second.id, second.token, second.started_at) == (first.id, first.token + 1, now)

    @scenario
    async def test_a_heartbeat_keeps_the_lease_and_tells_progress(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        job = await claim_one(store, now)
        halfway = now + LEASE / 2
        await store.write(EVERYTHING, lambda t: t.jobs.extend(job, halfway, LEASE, 3, 9))
        assert await claim(store, now + LEASE) is None
        (seen,) = await store.read(EVERYTHING, lambda r: r.jobs.newest())
        assert (seen.done, seen.total, seen.lease_until) == (3, 9, halfway + LEASE)

    @pytest.mark.parametrize(
        ("status", "done"), [(JobStatus.SUCCEEDED, 9), (JobStatus.FAILED, 3)], ids=lambda value: str(value)
    )
    @scenario
    async def test_what_succeeded_is_done_whole(self, store: Store, status: JobStatus, done: int) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        job = await claim_one(store, now)
        await store.write(EVERYTHING, lambda t: t.jobs.extend(job, now, LEASE, 3, 9))
        await store.write(EVERYTHING, lambda t: t.jobs.finish(job, status, now))
        (seen,) = await store.read(EVERYTHING, lambda r: r.jobs.newest())
        assert (seen.status, seen.done, seen.total) == (status, done, 9)

    @scenario
    async def test_a_worker_that_lost_its_lease_commits_nothing(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        lost = await claim_one(store, now)
        held = await claim_one(store, now + LEASE)

        def effect(transaction: Transaction, ending: Callable[[Transaction], None]) -> None:
            transaction.transcripts.add_turn(scribe.turn(ANA, "an effect"), EMBEDDER, ANALYZER)
            ending(transaction)

        endings: list[Callable[[Transaction], None]] = [
            lambda t: t.jobs.finish(lost, JobStatus.SUCCEEDED, now),
            lambda t: t.jobs.extend(lost, now, LEASE, 1, 1),
            lambda t: t.jobs.retry(lost, now, now, "error"),
        ]
        for ending in endings:
            with pytest.raises(LeaseLost):
                await store.write(EVERYTHING, lambda t, ending=ending: effect(t, ending))  # type: ignore[misc]
        assert await texts(store) == []
        assert await store.read(EVERYTHING, lambda r: r.jobs.counts()) == {"running": 1}
        await store.write(EVERYTHING, lambda t: effect(t, lambda t: t.jobs.finish(held, JobStatus.SUCCEEDED, now)))
        assert await texts(store) == ["an effect"]
        with pytest.raises(LeaseLost):
            await store.write(EVERYTHING, lambda t: t.jobs.finish(held, JobStatus.SUCCEEDED, now))

    @scenario
    async def test_a_finished_job_is_not_claimed_and_says_how_it_ended(self, store: Store) -> None:
        scribe = Scribe()
        now = scribe.clock.now()
        for status, error in ((JobStatus.SUCCEEDED, None), (JobStatus.FAILED, "broken"), (JobStatus.CANCELLED, None)):
            await enqueue(store, scribe, scribe.job())
            job = await claim_one(store, now)
            await store.write(EVERYTHING, lambda t, j=job, s=status, e=error: t.jobs.finish(j, s, now, e))  # type: ignore[misc]
        assert await claim(store, now + 10 * LEASE) is None
        jobs = await store.read(EVERYTHING, lambda r: r.jobs.newest())
        assert [(job.status, job.error, job.finished_at) for job in jobs] == [
            (JobStatus.CANCELLED, None, now),
            (JobStatus.FAILED, "broken", now),
            (JobStatus.SUCCEEDED, None, now),
        ]
        assert [job.error for job in await store.read(EVERYTHING, lambda r: r.jobs.newest(JobStatus.FAILED))] == [
            "broken"
        ]
        assert len(await store.read(EVERYTHING, lambda r: r.jobs.newest(limit=2))) == 2

    @scenario
    async def test_a_retry_is_another_attempt_later(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job(record_ids=("msg_1",)))
        now = scribe.clock.now()
        seen: list[tuple[int, int]] = []
        ids: set[str] = set()
        for _ in range(12):
            job = await claim_one(store, now)
            ids.add(job.id)
            seen.append((job.attempt, job.token))
            assert job.record_ids == ("msg_1",)
            again = now + timedelta(seconds=2)
            await store.write(EVERYTHING, lambda t, j=job, n=now, a=again: t.jobs.retry(j, n, a, "no answer"))  # type: ignore[misc]
            assert await claim(store, now) is None
            now = again
        assert seen == [(attempt, 1) for attempt in range(1, 13)]
        assert len(ids) == 12
        counts = await store.read(EVERYTHING, lambda r: r.jobs.counts())
        assert counts == {"failed": 12, "queued": 1}

    @scenario
    async def test_a_job_given_back_is_claimed_again_at_once(self, store: Store) -> None:
        scribe = Scribe()
        await enqueue(store, scribe, scribe.job())
        now = scribe.clock.now()
        job = await claim_one(store, now)
        await store.write(EVERYTHING, lambda t: t.jobs.release(job))
        again = await claim_one(store, now)
        assert (again.id, again.token) == (job.id, job.token + 1)
        # Too late: another worker holds it.
        await store.write(EVERYTHING, lambda t: t.jobs.release(job))
        assert await claim(store, now) is None

    @pytest.mark.parametrize("kind", [JobKind.REEMBED, JobKind.SCRUB])
    @scenario
    async def test_work_that_is_idempotent_is_queued_once(self, store: Store, kind: JobKind) -> None:
        scribe = Scribe()
        everywhere = Scope(space=EVERYWHERE)
        first = await enqueue(store, scribe, scribe.job(kind, everywhere))
        assert await enqueue(store, scribe, scribe.job(kind, everywhere)) == first
        job = await claim_one(store, scribe.clock.now())
        # A running job may have passed the new records, so another one is queued.
        second = await enqueue(store, scribe, scribe.job(kind, everywhere))
        assert second != first
        await store.write(EVERYTHING, lambda t: t.jobs.finish(job, JobStatus.SUCCEEDED, scribe.clock.now()))
        assert (await claim_one(store, scribe.clock.now())).id == second

    @scenario
    async def test_other_work_is_queued_each_time(self, store: Store) -> None:
        scribe = Scribe()
        for kind in (JobKind.INDEX, JobKind.INDEX, JobKind.EXTRACT, JobKind.EXTRACT):
            await enqueue(store, scribe, scribe.job(kind))
        assert await store.read(EVERYTHING, lambda r: r.jobs.counts()) == {"queued": 4}

    @scenario
    async def test_a_job_exists_only_if_what_caused_it_does(self, store: Store) -> None:
        scribe = Scribe()

        def fail(transaction: Transaction) -> None:
            transaction.jobs.enqueue(scribe.job_id(), scribe.job(), scribe.clock.now())
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(EVERYTHING, fail)
        assert await claim(store, scribe.clock.now()) is None
