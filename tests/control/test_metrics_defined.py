"""The figures of the metrics report: each test makes the calls that a figure counts. On both stores."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from desk import AGENT, BOT, NOTE, OTHER, WHOLE, Desk, text
from misbehaving import raising, soon

from holdfast.control.memory import (
    Capture,
    CorrectRecord,
    ExplainQuery,
    GetRecord,
    ListRecords,
    Query,
    ReadProviderProfile,
)
from holdfast.control.operations import GetMetrics
from holdfast.domain import ids
from holdfast.domain.access import Actor, ActorKind, storewide_grant
from holdfast.domain.contract import ContextBundle, HookContext, HookKind, Intent, RecordHandle
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import JobKind, JobStatus, NewJob
from holdfast.domain.operations import MemoryMetrics
from holdfast.domain.scope import Scope
from holdfast.errors import HoldfastError

USER = Actor(ActorKind.USER, "ana", "acme")
ANA = Scope(space="acme", subject="ana")
HYDRATE = HookContext(HookKind.PRE_RUN_HYDRATE, "h1", datetime(2026, 11, 1, tzinfo=UTC))


async def metrics(desk: Desk, scope: Scope = WHOLE, **span: Any) -> MemoryMetrics:
    found: MemoryMetrics = await desk.do(GetMetrics(scope, **span))
    return found


def test_a_company_that_did_nothing_has_no_rates(desk: Desk, runner: asyncio.Runner) -> None:
    found = runner.run(metrics(desk))
    assert (found.recalls, found.queries, found.corrections, found.extraction_failures) == (0, 0, 0, 0)
    assert (found.recall_hit_rate, found.empty_query_rate, found.bindings) == (None, None, ())


def test_a_recall_is_a_question_whose_answer_goes_to_a_model_and_a_hit_gave_something(
    desk: Desk, runner: asyncio.Runner
) -> None:
    async def scene() -> MemoryMetrics:
        await desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT)
        await desk.do(Capture(ANA, NOTE, text("Ana has a dog.")), USER)
        await desk.do(Query(BOT, "cat"), AGENT)  # an agent: a recall, and a hit
        await desk.do(Query(ANA, "dog"), USER)  # a person: a query
        await desk.do(Query(WHOLE, "cat", intent=Intent.ANSWER))  # an operator: a query
        await desk.do(Query(ANA, "dog", hook=HYDRATE))  # before a run: a recall, and a hit
        await desk.do(Query(Scope(space="acme", agent="idle"), "cat", hook=HYDRATE))  # a recall, and no hit
        await desk.do(Query(Scope(space=OTHER), "cat"))  # another company's
        # None of these is a query.
        await desk.do(ListRecords(BOT), AGENT)
        await desk.do(ExplainQuery(BOT, "cat"), AGENT)
        with pytest.raises(HoldfastError):
            await desk.do(GetRecord(BOT, RecordHandle("local", "mem_none")), AGENT)
        return await metrics(desk)

    found = runner.run(scene())
    assert (found.recalls, found.recall_hits) == (3, 2)
    assert found.recall_hit_rate == pytest.approx(2 / 3)
    assert (found.queries, found.empty_queries) == (5, 1)
    assert found.empty_query_rate == pytest.approx(1 / 5)


def test_what_failed_or_was_refused_is_no_empty_answer(desk: Desk, runner: asyncio.Runner) -> None:
    async def scene() -> MemoryMetrics:
        await desk.bind_outside()
        desk.hostile.does["query"] = soon(ContextBundle(()))
        await desk.do(Query(BOT, "cat"), AGENT)  # empty
        desk.hostile.does["query"] = raising(RuntimeError("down"))
        with pytest.raises(HoldfastError):
            await desk.do(Query(BOT, "cat"), AGENT)
        with pytest.raises(HoldfastError):
            await desk.do(Query(Scope(space="acme", agent="other"), "cat"), AGENT)  # refused
        await desk.do(ReadProviderProfile(BOT), AGENT)  # a profile is not a query
        return await metrics(desk)

    found = runner.run(scene())
    assert (found.queries, found.empty_queries, found.recalls, found.recall_hits) == (1, 1, 1, 0)
    elsewhere, none = found.bindings
    assert (elsewhere.binding, elsewhere.succeeded, elsewhere.failed, elsewhere.refused) == ("elsewhere", 2, 1, 0)
    assert (none.binding, none.refused) == (None, 1)


def test_corrections_are_counted_once_they_are_made(desk: Desk, runner: asyncio.Runner) -> None:
    async def scene() -> MemoryMetrics:
        made = await desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT)
        (handle,) = made.result.records
        await desk.do(CorrectRecord(BOT, handle, "The cat ran."), AGENT)
        with pytest.raises(HoldfastError):
            await desk.do(CorrectRecord(BOT, replace(handle, record_id="mem_none"), "The cat ran."), AGENT)
        return await metrics(desk)

    assert runner.run(scene()).corrections == 1


@pytest.mark.parametrize(
    ("kind", "counted"), [(JobKind.EXTRACT, 1), (JobKind.MAINTAIN, 1), (JobKind.INDEX, 0), (JobKind.DELIVER, 0)]
)
def test_an_extraction_failure_is_one_that_was_given_up(
    desk: Desk, runner: asyncio.Runner, kind: JobKind, counted: int
) -> None:
    core = desk.engine._core

    async def scene() -> tuple[MemoryMetrics, MemoryMetrics, MemoryMetrics]:
        now = core.clock.now()
        job_id = JobId(core.ids.new(ids.JOB))
        await core.store.write(storewide_grant(), lambda t: t.jobs.enqueue(job_id, NewJob(kind, BOT), now))
        job = await core.store.write(
            storewide_grant(), lambda t: t.jobs.claim(frozenset({kind}), now, timedelta(minutes=1))
        )
        assert job is not None
        await core.store.write(storewide_grant(), lambda t: t.jobs.retry(job, now, now, "busy"))
        tried = await metrics(desk)
        again = await core.store.write(
            storewide_grant(), lambda t: t.jobs.claim(frozenset({kind}), now, timedelta(minutes=1))
        )
        assert again is not None
        await core.store.write(storewide_grant(), lambda t: t.jobs.finish(again, JobStatus.FAILED, now, "busy"))
        given_up = await metrics(desk)
        return tried, given_up, await metrics(desk, since=now + timedelta(seconds=1))

    tried, given_up, later = runner.run(scene())
    assert tried.extraction_failures == 0
    assert given_up.extraction_failures == counted
    assert later.extraction_failures == 0


def test_a_report_is_of_its_time(desk: Desk, runner: asyncio.Runner) -> None:
    async def scene() -> list[int]:
        await desk.do(Query(BOT, "cat"), AGENT)
        between = desk.engine._core.clock.now()
        await desk.do(Query(BOT, "cat"), AGENT)
        await desk.do(Query(BOT, "cat"), AGENT)
        spans: list[dict[str, Any]] = [{}, {"until": between}, {"since": between}]
        return [(await metrics(desk, **span)).queries for span in spans]

    assert runner.run(scene()) == [3, 1, 2]
