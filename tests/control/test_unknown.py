"""A crash between a call to an external provider and the record of its outcome shows as `unknown`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from desk import AGENT, BOT, NOTE, WHOLE, Desk, rows_of, text
from misbehaving import ANSWERS

from holdfast import failpoints
from holdfast.control.memory import Capture, Query
from holdfast.control.operations import GetMetrics, GetOperation
from holdfast.domain.operations import Outcome
from holdfast.errors import IdempotencyConflict, StoreFull

HERE = Path(__file__).parent
POINTS = ["outside.before", "outside.after"]


def killed(location: str, point: str, verb: str, key: str = "k1") -> None:
    path = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, str(HERE / "dying.py"), location, point, verb, key],
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("verb", ["query", "capture"])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_between_a_call_outside_and_its_outcome_shows_as_unknown(
    desk: Desk, location: str, runner: asyncio.Runner, point: str, verb: str
) -> None:
    runner.run(desk.bind_outside())
    killed(location, point, verb)
    (row,) = runner.run(desk.listed(outcome=Outcome.UNKNOWN))
    assert (row.action, row.error_code, row.record_count) == (verb, None, 0)
    assert row.attribution is not None
    assert (row.attribution.binding, row.attribution.source) == ("elsewhere", NOTE if verb == "capture" else None)
    assert runner.run(desk.do(GetOperation(WHOLE, row.id))) == row
    (counts,) = [each for each in runner.run(desk.do(GetMetrics(WHOLE))).bindings if each.binding == "elsewhere"]
    assert (counts.unknown, counts.succeeded, counts.failed) == (1, 0, 0)


@pytest.mark.parametrize("point", POINTS)
def test_a_call_that_is_unknown_is_made_again_with_the_same_key_and_then_once(
    desk: Desk, location: str, runner: asyncio.Runner, point: str
) -> None:
    runner.run(desk.bind_outside())
    killed(location, point, "capture", "k1")
    again = Capture(WHOLE, NOTE, text("The cat sat."), idempotency_key="k1")
    first = runner.run(desk.do(again))
    (asked,) = desk.hostile.asked
    assert asked[1][0].idempotency_id == "k1"  # the provider can detect the repetition
    second = runner.run(desk.do(again))
    assert second.result == first.result
    assert len(desk.hostile.asked) == 1
    with pytest.raises(IdempotencyConflict):
        runner.run(desk.do(Capture(WHOLE, NOTE, text("Another."), idempotency_key="k1")))
    outcomes = [row.outcome for row in runner.run(desk.listed(binding="elsewhere", action=Capture.action))]
    assert outcomes == [Outcome.REFUSED, Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.UNKNOWN]


def test_what_was_answered_and_could_not_be_written_down_stays_unknown(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())

    def fail(point: str) -> None:
        if point == "commit.before" and desk.hostile.asked:
            raise StoreFull("no space is left")

    async def call() -> None:
        failpoints.arm(fail)
        try:
            await desk.do(Query(WHOLE, "cat"))
        finally:
            failpoints.arm(None)

    with rows_of(desk, runner.run) as rows, pytest.raises(StoreFull):
        runner.run(call())
    assert [row.outcome for row in rows] == [Outcome.UNKNOWN]


def test_the_intent_is_in_the_store_while_the_provider_is_asked(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    seen: list[Any] = []

    def look(*given: Any) -> Any:
        seen.append(len(desk.hostile.asked))
        return answer(*given)

    async def answer(request: Any) -> Any:
        found = asyncio.run_coroutine_threadsafe(desk.listed(outcome=Outcome.UNKNOWN), loop)
        seen.extend([each.action for each in await asyncio.wrap_future(found)])
        return ANSWERS["query"](request)

    async def call() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        await desk.do(Query(WHOLE, "cat"))

    loop: Any = None
    desk.hostile.does["query"] = look
    runner.run(call())
    assert seen == [1, "query"]
    assert runner.run(desk.listed(outcome=Outcome.UNKNOWN)) == ()


def test_what_was_cut_off_is_unknown_only_if_somebody_was_asked(desk: Desk, runner: asyncio.Runner) -> None:
    """A caller may go away at any point. One row is left, and it is `unknown` only if the provider was called."""

    async def cut_off(after: float) -> None:
        before, asked = len(await desk.rows()), len(desk.hostile.asked)
        under_way = asyncio.create_task(desk.do(Capture(BOT, NOTE, text("One.")), AGENT))
        await asyncio.sleep(after)
        under_way.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await under_way
        (row,) = (await desk.rows())[before:]
        assert row.outcome is not Outcome.UNKNOWN or len(desk.hostile.asked) > asked

    runner.run(desk.bind_outside())
    for step in range(40):
        runner.run(cut_off(step / 4_000))
