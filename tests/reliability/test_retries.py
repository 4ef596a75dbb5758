"""A retry has one effect, however often and however much at once it is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.memory import Memory
from holdfast.errors import IdempotencyConflict, RevisionConflict
from holdfast.library import AsyncMemory

TIMES = 20


async def twice_opened(path: Path) -> tuple[AsyncMemory, AsyncMemory]:
    """As two processes would have it: they share nothing but the file."""
    first = await holdfast.open_async(path, embedder="fake", work=False)
    return first, await holdfast.open_async(path, embedder="fake", work=False)


def test_one_key_sent_many_times_at_once_adds_once(tmp_path: Path) -> None:
    async def whole() -> None:
        memories = await twice_opened(tmp_path / "memory.db")
        answers = await asyncio.gather(
            *(memories[at % 2].add(["one", "two"], subject="ana", idempotency_key="key") for at in range(TIMES))
        )
        assert len({answer.message_ids for answer in answers}) == 1
        assert sorted(answer.replayed for answer in answers) == [False] + [True] * (TIMES - 1)
        assert sum(answer.stored for answer in answers) == 2
        assert [record.text for record in (await memories[0].list(subject="ana")).items] == ["two", "one"]
        with pytest.raises(IdempotencyConflict):
            await memories[1].add("three", subject="ana", idempotency_key="key")
        # The key is this subject's own.
        assert (await memories[0].add("three", subject="bob", idempotency_key="key")).stored == 1
        for memory in memories:
            await memory.close()

    asyncio.run(whole())


def test_one_key_sent_many_times_at_once_remembers_once(tmp_path: Path) -> None:
    async def whole() -> None:
        memories = await twice_opened(tmp_path / "memory.db")
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
def test_one_message_sent_many_times_at_once_is_stored_once(tmp_path: Path, message: dict[str, str]) -> None:
    async def whole() -> None:
        memories = await twice_opened(tmp_path / "memory.db")
        answers = await asyncio.gather(
            *(memories[at % 2].add({"text": "hello", **message}, subject="ana") for at in range(TIMES))
        )
        assert len({answer.message_ids for answer in answers}) == 1
        assert sum(answer.stored for answer in answers) == 1
        assert [len(answer.skipped) for answer in answers].count(1) == TIMES - 1
        for memory in memories:
            await memory.close()

    asyncio.run(whole())


def test_a_replay_after_forgetting_brings_nothing_back(tmp_path: Path) -> None:
    async def whole() -> None:
        async with holdfast.open_async(tmp_path / "memory.db", embedder="fake", work=False) as memory:
            for _ in range(3):
                added = await memory.add({"text": "gone", "id": "m1"}, subject="ana", idempotency_key="key")
                await memory.forget(subject="ana")
            assert added.replayed
            assert (await memory.add({"text": "gone", "id": "m1"}, subject="ana")).stored == 0
            assert (await memory.list(subject="ana")).items == ()

    asyncio.run(whole())


def test_sixty_four_writers_with_compare_and_set_lose_no_update(tmp_path: Path) -> None:
    async def whole() -> None:
        memories = await twice_opened(tmp_path / "memory.db")
        counter = await memories[0].remember("0", subject="ana")

        async def count_up(memory: AsyncMemory) -> None:
            while True:
                current = await memory.get(counter.id, subject="ana")
                assert isinstance(current, Memory)
                try:
                    await memory.correct(
                        counter.id,
                        str(int(current.text) + 1),
                        subject="ana",
                        expected_revision=current.revision,
                    )
                except RevisionConflict:
                    continue
                return

        await asyncio.gather(*(count_up(memories[at % 2]) for at in range(64)))
        assert (await memories[0].get(counter.id, subject="ana")).text == "64"
        assert len(await memories[1].history(counter.id, subject="ana")) == 65
        for memory in memories:
            await memory.close()

    asyncio.run(whole())
