"""A call with an idempotency key runs once, with any provider; a retry does not undo later changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from desk import AGENT, BOT, Desk
from misbehaving import handle, soon

from holdfast.control.memory import ForgetProviderRecords, GetRecord, ListRecords, UpsertRecords
from holdfast.domain.contract import ForgetResult, NewRecord, RecordHandle
from holdfast.errors import IdempotencyConflict


def red(key: str | None = "k1") -> UpsertRecords:
    return UpsertRecords(BOT, (NewRecord("Red.", metadata={"key": "colour"}),), idempotency_key=key)


def blue(key: str | None = None) -> UpsertRecords:
    return UpsertRecords(BOT, (NewRecord("Blue.", metadata={"key": "colour"}),), idempotency_key=key)


def done(desk: Desk, runner: asyncio.Runner, verb: Any) -> Any:
    return runner.run(desk.do(verb, AGENT)).result


def test_a_record_that_is_written_again_takes_nothing_back(desk: Desk, runner: asyncio.Runner) -> None:
    (first,) = done(desk, runner, red()).records
    done(desk, runner, blue())
    assert done(desk, runner, red()).records == (first,)
    assert done(desk, runner, GetRecord(BOT, first)).text == "Blue."


def test_a_record_that_was_forgotten_is_not_brought_back_by_the_call_that_made_it(
    desk: Desk, runner: asyncio.Runner
) -> None:
    plain = UpsertRecords(BOT, (NewRecord("Red."),), idempotency_key="k1")
    made = done(desk, runner, plain).records
    done(desk, runner, ForgetProviderRecords(BOT, made))
    assert done(desk, runner, plain).records == made
    assert done(desk, runner, ListRecords(BOT)).items == ()


def test_forgetting_again_is_told_as_the_first_time(desk: Desk, runner: asyncio.Runner) -> None:
    made = done(desk, runner, blue()).records
    gone = ForgetProviderRecords(BOT, (*made, RecordHandle("local", "mem_nowhere")), idempotency_key="k1")
    first = done(desk, runner, gone)
    assert first == ForgetResult(made, (RecordHandle("local", "mem_nowhere"),))
    assert done(desk, runner, gone) == first


def test_forgetting_again_outside_is_told_as_the_first_time(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.does["forget"] = soon(ForgetResult((), (handle(),)))
    gone = ForgetProviderRecords(BOT, (handle(),), idempotency_key="k1")
    first = done(desk, runner, gone)
    assert done(desk, runner, gone) == first == ForgetResult((), (handle(),))


@pytest.mark.parametrize(
    "other", [blue("k1"), ForgetProviderRecords(BOT, (RecordHandle("local", "m"),), idempotency_key="k1")]
)
def test_a_key_is_of_one_call(desk: Desk, runner: asyncio.Runner, other: Any) -> None:
    (first,) = done(desk, runner, red()).records
    with pytest.raises(IdempotencyConflict):
        done(desk, runner, other)
    assert done(desk, runner, GetRecord(BOT, first)).text == "Red."
