"""Clocks lie: they jump forwards, backwards and stand still. Order, validity and `as_of` stay right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

import holdfast
from holdfast.domain.memory import Memory
from holdfast.domain.transcript import Message
from holdfast.errors import NotFound
from holdfast.library import AsyncMemory
from holdfast.testing import CountingIds, FixedClock

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
JUMPS = {
    "backwards": [-DAY, -DAY, -DAY],
    "standing still": [timedelta(0)] * 3,
    "forwards and back": [DAY, -2 * DAY, DAY],
    "by a little": [-TICK, -TICK, TICK],
    "an hour back, as in autumn": [timedelta(hours=1), timedelta(hours=-1), timedelta(hours=1)],
    "by years": [timedelta(days=36_500), timedelta(days=-73_000), timedelta(0)],
}


def with_clock(work: Callable[[AsyncMemory, FixedClock], Awaitable[None]]) -> None:
    async def whole() -> None:
        clock = FixedClock()
        async with holdfast.open_async(
            ":memory:", embedder="fake", clock=clock, new_ids=CountingIds(), work=False
        ) as memory:
            await work(memory, clock)
            verified = await memory.verify()
            assert verified.ok, verified.findings

    asyncio.run(whole())


@pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS.keys())
def test_revisions_follow_one_another_whatever_the_clock_does(jumps: list[timedelta]) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        first = await memory.remember("revision 1", subject="ana")
        for number, jump in enumerate(jumps, start=2):
            clock.step(jump)
            await memory.correct(first.id, f"revision {number}", subject="ana")
        history = [record for record in await memory.history(first.id) if isinstance(record, Memory)]
        assert [record.revision for record in history] == [1, 2, 3, 4]
        moments = [record.recorded_at for record in history]
        assert moments == sorted(set(moments))
        # No gap and no overlap: at every moment since the first, exactly one revision was known.
        assert [record.superseded_at for record in history] == [*moments[1:], None]
        for record in history:
            assert (await memory.get(first.id, as_of=record.recorded_at)).text == record.text
            (listed,) = (await memory.list(subject="ana", as_of=record.recorded_at)).items
            (hit,) = await memory.search("revision", subject="ana", as_of=record.recorded_at)
            assert listed.text == hit.text == record.text
        with pytest.raises(NotFound):
            await memory.get(first.id, as_of=moments[0] - TICK)
        assert (await memory.get(first.id)).text == "revision 4"

    with_clock(work)


@pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS.keys())
def test_messages_keep_their_order_whatever_the_clock_does(jumps: list[timedelta]) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        await memory.add("message 1", subject="ana")
        for number, jump in enumerate(jumps, start=2):
            clock.step(jump)
            await memory.add(f"message {number}", subject="ana")
        listed = [record for record in (await memory.list(subject="ana")).items if isinstance(record, Message)]
        assert [record.text for record in listed] == [f"message {number}" for number in (4, 3, 2, 1)]
        assert [record.position for record in listed] == [3, 2, 1, 0]
        paged = await memory.list(subject="ana", limit=2)
        rest = await memory.list(subject="ana", limit=2, cursor=paged.next_cursor)
        assert (*paged.items, *rest.items) == tuple(listed)
        assert (await memory.flush(subject="ana")).messages == 4

    with_clock(work)


@pytest.mark.parametrize("jump", [-DAY, -TICK, timedelta(0), DAY])
def test_background_work_is_done_whatever_the_clock_does(jump: timedelta) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        await memory.add("I live in Lisbon.", subject="ana")
        await memory.flush(subject="ana")
        clock.step(jump)
        assert await memory.drain() == 1
        (learned,) = (await memory.list(subject="ana", kind="memory")).items
        assert "Lisbon" in learned.text

    with_clock(work)


def test_validity_does_not_depend_on_when_it_was_written() -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        noon = clock.now()
        clock.step(365 * DAY)
        await memory.remember("true at noon", subject="ana", valid_from=noon, valid_until=noon + TICK)
        clock.step(-730 * DAY)
        for at, expected in ((noon - TICK, 0), (noon, 1), (noon + TICK, 0)):
            assert len(await memory.search("noon", subject="ana", valid_at=at)) == expected
            assert len((await memory.list(subject="ana", valid_at=at)).items) == expected

    with_clock(work)


def test_forgetting_holds_whatever_the_clock_does() -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        known = clock.now()
        added = await memory.add({"text": "gone", "id": "m1"}, subject="ana")
        clock.step(-DAY)
        await memory.forget(str(added.message_ids[0]), subject="ana")
        for moment in (known, known - 2 * DAY, known + 2 * DAY):
            clock.set(moment)
            assert await memory.search("gone", subject="ana", as_of=known) == ()
            assert (await memory.add({"text": "gone", "id": "m1"}, subject="ana")).stored == 0

    with_clock(work)
