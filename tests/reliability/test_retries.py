"""A retried call has one effect, however often and however concurrently it is sent."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

import holdfast
from faults.places import Place
from faults.zygote import Zygote
from holdfast.errors import IdempotencyConflict
from holdfast.library import AsyncMemory

TIMES = 20
ROUNDS = int(os.environ.get("HOLDFAST_RETRY_ROUNDS", "100"))  # on each store
ROUNDS_PER_STORE = 25
COUNTS = int(os.environ.get("HOLDFAST_COUNT_ROUNDS", "1"))
WRITERS, PROCESSES = 64, 4


async def twice_opened(location: str) -> tuple[AsyncMemory, AsyncMemory]:
    """Open the store twice, as two processes would: they share only the store."""
    first = await holdfast.open_async(location, embedder="fake", work=False)
    return first, await holdfast.open_async(location, embedder="fake", work=False)


def test_one_key_sent_many_times_at_once_adds_once(place: Place) -> None:
    async def whole() -> None:
        memories = await twice_opened(place.location)
        answers = await asyncio.gather(
            *(memories[at % 2].add(["one", "two"], subject="ana", idempotency_key="key") for at in range(TIMES))
        )
        assert len({answer.message_ids for answer in answers}) == 1
        assert sorted(answer.replayed for answer in answers) == [False] + [True] * (TIMES - 1)
        assert sum(answer.stored for answer in answers) == 2
        assert [record.text for record in (await memories[0].list(subject="ana")).items] == ["two", "one"]
        with pytest.raises(IdempotencyConflict):
            await memories[1].add("three", subject="ana", idempotency_key="key")
        # An idempotency key belongs to its subject.
        assert (await memories[0].add("three", subject="bob", idempotency_key="key")).stored == 1
        for memory in memories:
            await memory.close()

    asyncio.run(whole())


def test_one_key_sent_many_times_at_once_remembers_once(place: Place) -> None:
    async def whole() -> None:
        memories = await twice_opened(place.location)
        answers = await asyncio.gather(
            *(memories[at % 2].remember("a fact", subject="ana", idempotency_key="key") for at in range(TIMES))
        )
        assert len({answer.id for answer in answers}) == 1
        assert len((await memories[0].list(subject="ana")).items) == 1
        with pytest.raises(IdempotencyConflict):
            await memories[0].remember("another", subject="ana", idempotency_key="key")
        for memory in memories:
            await memory.close()

    asyncio.run(whole())


@pytest.mark.parametrize("message", [{"id": "m1"}, {"timestamp": "2026-01-01T00:00:00Z", "sender": "ana"}])
def test_one_message_sent_many_times_at_once_is_stored_once(place: Place, message: dict[str, str]) -> None:
    async def whole() -> None:
        memories = await twice_opened(place.location)
        answers = await asyncio.gather(
            *(memories[at % 2].add({"text": "hello", **message}, subject="ana") for at in range(TIMES))
        )
        assert len({answer.message_ids for answer in answers}) == 1
        assert sum(answer.stored for answer in answers) == 1
        assert [len(answer.skipped) for answer in answers].count(1) == TIMES - 1
        for memory in memories:
            await memory.close()

    asyncio.run(whole())


def test_a_replay_after_forgetting_brings_nothing_back(place: Place) -> None:
    async def whole() -> None:
        async with holdfast.open_async(place.location, embedder="fake", work=False) as memory:
            for _ in range(3):
                added = await memory.add({"text": "gone", "id": "m1"}, subject="ana", idempotency_key="key")
                await memory.forget(subject="ana")
            assert added.replayed
            assert (await memory.add({"text": "gone", "id": "m1"}, subject="ana")).stored == 0
            assert (await memory.list(subject="ana")).items == ()

    asyncio.run(whole())


@pytest.mark.parametrize("seed", range(-(-ROUNDS // ROUNDS_PER_STORE)))
def test_a_key_sent_from_many_processes_that_die_in_between_has_one_effect(
    place: Place, zygote: Zygote, seed: int
) -> None:
    """Send 2 to 50 times concurrently from three processes, the first of which dies; then once from a fourth."""
    chance = random.Random(seed)
    keys = [(f"k{number}", chance.random() < 0.4) for number in range(ROUNDS_PER_STORE)]
    with holdfast.open(place.location, embedder="fake", work=False):
        pass
    told: dict[str, set[str]] = {}
    at = 0
    while at < len(keys):
        # Each death costs a process, so several keys share one.
        rounds = keys[at : at + 5]
        at += len(rounds)
        times = chance.randint(1, 17)
        point = chance.choice(("write.after", "commit.before", "commit.after"))
        deaths = [(point, chance.randint(1, len(rounds))), (None, 0), (None, 0)]
        children = [
            zygote.start(
                "retrying:send", location=place.location, rounds=rounds, times=times, point=dies, passage=passage
            )
            for dies, passage in deaths
        ]
        for child in children:
            for line in child.wait():
                told.setdefault(line["key"], set()).update(line["ids"])
        assert children[0].killed
        assert all(child.succeeded for child in children[1:])
        place.settle()
    for line in zygote.run("retrying:send", location=place.location, rounds=keys, times=1, point=None, passage=0):
        told[line["key"]].update(line["ids"])
    assert all(len(ids) == 1 for ids in told.values()), "one key was answered in two ways"
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        there = [record.id for record in memory.list(subject="ana", limit=1_000).items]
        assert sorted(there) == sorted(
            record_id for ids in told.values() for found in ids for record_id in found.split()
        )
        assert memory.verify().ok


@pytest.mark.parametrize("seed", range(COUNTS))
def test_sixty_four_writers_with_compare_and_set_lose_no_update(place: Place, zygote: Zygote, seed: int) -> None:
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        counter = memory.remember("0", subject="ana").id
        children = [
            zygote.start(
                "retrying:count_up",
                location=place.location,
                counter=counter,
                writers=WRITERS // PROCESSES,
                seed=seed * PROCESSES + number,
            )
            for number in range(PROCESSES)
        ]
        assert [child.wait() for child in children] == [[{"counted": WRITERS // PROCESSES}]] * PROCESSES
        assert memory.get(counter, subject="ana").text == str(WRITERS)
        history = memory.history(counter, subject="ana")
        assert [record.text for record in history] == [str(number) for number in range(WRITERS + 1)]
        assert memory.verify().ok
