"""What is cut off: a call that is cancelled, a process that forks, a key that another app uses."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import IdempotencyConflict, StoreClosed
from holdfast.ports import Purpose
from holdfast.search.embedders.fake import FakeEmbedder
from probes import trail_of


class Stuck(FakeEmbedder):
    """An embedder that never answers a question."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def embed(self, texts, purpose):  # type: ignore[no-untyped-def]
        if purpose is Purpose.QUERY:
            self.asked.set()
            await asyncio.Event().wait()
        return await super().embed(texts, purpose)


def test_a_call_that_is_cancelled_leaves_its_audit_row(tmp_path: Path) -> None:
    async def cancelled() -> None:
        embedder = Stuck()
        async with holdfast.open_async(tmp_path / "memory.db", embedder=embedder) as memory:
            await memory.add("The kettle is on.", subject="ana")
            search = asyncio.create_task(memory.search("kettle", subject="ana"))
            await embedder.asked.wait()
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await search

    asyncio.run(cancelled())
    with holdfast.open(tmp_path / "memory.db", embedder="fake") as memory:
        row = next(row for row in trail_of(memory) if row.action == "search")
    assert (row.outcome, row.error_code) == ("failed", "cancelled")


def test_a_memory_that_was_opened_before_a_fork_says_so_instead_of_hanging(tmp_path: Path) -> None:
    memory = holdfast.open(tmp_path / "memory.db", embedder="fake")
    child = os.fork()
    if child == 0:
        try:
            memory.search("anything")
        except StoreClosed as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    memory.add("The parent goes on.", subject="ana")
    memory.close()


def test_an_idempotency_key_of_one_app_is_not_known_in_another(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "memory.db", embedder="fake") as memory:
        memory.add("One.", subject="ana", app="a", idempotency_key="k")
        assert memory.add("Two.", subject="ana", app="b", idempotency_key="k").stored == 1
        with pytest.raises(IdempotencyConflict):
            memory.add("Three.", subject="ana", app="a", idempotency_key="k")
