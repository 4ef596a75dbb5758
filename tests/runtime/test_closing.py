"""Closing always finishes, whatever the worker is doing, and leaves no job claimed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.access import storewide_grant
from holdfast.domain.jobs import JobStatus
from holdfast.ports import Transaction
from holdfast.runtime.gate import Core
from holdfast.runtime.worker import Worker


@pytest.mark.parametrize("turns", range(12))
def test_closing_right_after_work_was_queued_ends(tmp_path: Path, turns: int) -> None:
    async def queued_and_closed() -> None:
        memory = await holdfast.open_async(tmp_path / "memory.db", embedder="fake")
        await memory.add("I live in Lisbon.", subject="ana")
        await memory.flush(subject="ana")
        for _ in range(turns):
            await asyncio.sleep(0)
        await memory.close()

    async def bounded() -> None:
        async with asyncio.timeout(30):  # far longer than closing takes; only a hang reaches it
            await queued_and_closed()

    asyncio.run(bounded())
    with holdfast.open(tmp_path / "memory.db", embedder="fake", work=False) as memory:
        assert not memory.jobs(status=JobStatus.RUNNING, space="*")
        memory.drain()
        assert [fact.text for fact in memory.list(kind="memory").items] == ["ana lives in Lisbon."]


class Gate:
    """A write that blocks the writer until it is released."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, transaction: Transaction) -> None:
        self.reached.set()
        assert self.open.wait(30)


def test_a_claim_that_was_under_way_when_the_worker_was_cancelled_is_given_back(tmp_path: Path) -> None:
    """The claim has begun but is not applied yet: the writer has batched it behind a slow write."""
    first, second = Gate(), Gate()

    async def cut_off(core: Core) -> None:
        worker = Worker(core)
        ahead = asyncio.create_task(core.store.write(storewide_grant(), first))
        await asyncio.to_thread(first.reached.wait, 30)
        behind = asyncio.create_task(core.store.write(storewide_grant(), second))
        working = asyncio.create_task(worker.run())
        while not worker._claiming:  # noqa: ASYNC110 - the worker signals no event
            await asyncio.sleep(0.001)
        first.open.set()
        await asyncio.to_thread(second.reached.wait, 30)
        worker.stop()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        threading.Timer(0.1, second.open.set).start()
        await worker.release()
        await asyncio.gather(ahead, behind)

    async def queued_and_cut_off() -> None:
        async with holdfast.open_async(tmp_path / "memory.db", embedder="fake", work=False) as memory:
            await memory.add("I live in Lisbon.", subject="ana")
            await memory.flush(subject="ana")
            async with asyncio.timeout(60):
                await cut_off(memory._service._core)
            assert not await memory.jobs(status=JobStatus.RUNNING, space="*")
            assert len(await memory.jobs(status=JobStatus.QUEUED, space="*")) == 1

    asyncio.run(queued_and_cut_off())


def test_a_store_that_was_opened_by_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with holdfast.open("memory.db", embedder="fake") as memory:
        memory.add("The kettle is on.", subject="ana")
        monkeypatch.chdir(elsewhere)
        assert memory.search("kettle", subject="ana")
    assert not list(elsewhere.iterdir())
