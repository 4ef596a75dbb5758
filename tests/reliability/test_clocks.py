"""Order, validity and `as_of` stay correct when the clock jumps forwards or backwards or stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import holdfast
from faults.places import Place
from holdfast.domain.memory import MemoryRecord
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
    "a day ahead and back": [DAY, -DAY, timedelta(0)],
    "over a leap second, told twice": [timedelta(seconds=1), timedelta(seconds=-1), timedelta(seconds=1)],
    "to the 29th of February and past it": [timedelta(days=789), DAY, -DAY],
    "an hour ahead, as in spring": [timedelta(minutes=59), timedelta(hours=1), timedelta(minutes=-30)],
    "an hour back, as in autumn": [timedelta(hours=1), timedelta(hours=-1), timedelta(hours=1)],
    "by years": [timedelta(days=36_500), timedelta(days=-73_000), timedelta(0)],
}


def with_clock(place: Place, work: Callable[[AsyncMemory, FixedClock], Awaitable[None]]) -> None:
    async def whole() -> None:
        clock = FixedClock()
        async with holdfast.open_async(
            place.location, embedder="fake", clock=clock, new_ids=CountingIds(), work=False
        ) as memory:
            await work(memory, clock)
            verified = await memory.verify()
            assert verified.ok, verified.findings

    asyncio.run(whole())


@pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS.keys())
def test_revisions_follow_one_another_whatever_the_clock_does(place: Place, jumps: list[timedelta]) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        first = await memory.remember("revision 1", subject="ana")
        for number, jump in enumerate(jumps, start=2):
            clock.step(jump)
            await memory.correct(first.id, f"revision {number}", subject="ana")
        history = [record for record in await memory.history(first.id) if isinstance(record, MemoryRecord)]
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

    with_clock(place, work)


@pytest.mark.parametrize("jumps", JUMPS.values(), ids=JUMPS.keys())
def test_messages_keep_their_order_whatever_the_clock_does(place: Place, jumps: list[timedelta]) -> None:
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

    with_clock(place, work)


@pytest.mark.parametrize("jump", [-DAY, -TICK, timedelta(0), DAY])
def test_background_work_is_done_whatever_the_clock_does(place: Place, jump: timedelta) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        await memory.add("I live in Lisbon.", subject="ana")
        await memory.flush(subject="ana")
        clock.step(jump)
        assert await memory.drain() == 1
        (learned,) = (await memory.list(subject="ana", kind="memory")).items
        assert "Lisbon" in learned.text

    with_clock(place, work)


def test_validity_does_not_depend_on_when_it_was_written(place: Place) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        noon = clock.now()
        clock.step(365 * DAY)
        await memory.remember("true at noon", subject="ana", valid_from=noon, valid_until=noon + TICK)
        clock.step(-730 * DAY)
        for at, expected in ((noon - TICK, 0), (noon, 1), (noon + TICK, 0)):
            assert len(await memory.search("noon", subject="ana", valid_at=at)) == expected
            assert len((await memory.list(subject="ana", valid_at=at)).items) == expected

    with_clock(place, work)


@pytest.mark.parametrize("zone", ["Europe/Lisbon", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_moments_given_by_local_clocks_are_the_moments_they_are(place: Place, zone: str) -> None:
    """Around the repeated and the skipped hour of a clock change, bounds follow the actual instant."""

    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        local = ZoneInfo(zone)
        # Every half hour of the days on which these zones change their clocks, and of some other days.
        for day in (datetime(2026, 3, 8), datetime(2026, 3, 29), datetime(2026, 4, 5), datetime(2026, 11, 1)):
            start = day.replace(tzinfo=UTC)
            moments = [start + timedelta(minutes=30 * step) for step in range(40)]
            messages = [
                {"text": f"said {at.isoformat()}", "timestamp": at.astimezone(local).isoformat()} for at in moments
            ]
            added = await memory.add(messages, subject="ana", conversation=f"{day:%m-%d}")
            assert added.stored == len(moments)
            for message_id, at in zip(added.message_ids, moments, strict=True):
                record = await memory.get(str(message_id))
                assert isinstance(record, Message)
                assert record.said_at == at
            fact = await memory.remember(
                f"true on {day:%m-%d}",
                subject="ana",
                valid_from=moments[3].astimezone(local),
                valid_until=moments[9].astimezone(local),
            )
            for step, expected in ((2, False), (3, True), (8, True), (9, False)):
                page = await memory.list(subject="ana", kind="memory", valid_at=moments[step].astimezone(local))
                assert (fact.id in [record.id for record in page.items]) == expected

    with_clock(place, work)


def test_forgetting_holds_whatever_the_clock_does(place: Place) -> None:
    async def work(memory: AsyncMemory, clock: FixedClock) -> None:
        known = clock.now()
        added = await memory.add({"text": "gone", "id": "m1"}, subject="ana")
        clock.step(-DAY)
        await memory.forget(str(added.message_ids[0]), subject="ana")
        for moment in (known, known - 2 * DAY, known + 2 * DAY):
            clock.set(moment)
            assert await memory.search("gone", subject="ana", as_of=known) == ()
            assert (await memory.add({"text": "gone", "id": "m1"}, subject="ana")).stored == 0

    with_clock(place, work)
