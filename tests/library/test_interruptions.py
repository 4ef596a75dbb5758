"""Interruptions: a cancelled call, a forked process, an idempotency key of another app."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

import holdfast
from holdfast import failpoints
from holdfast.errors import IdempotencyConflict, StoreClosed
from holdfast.ports import Purpose
from holdfast.search.embedders.fake import FakeEmbedder
from probes import trail_of


class Stuck(FakeEmbedder):
    """An embedder that never answers a query."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def embed(self, texts, purpose):  # type: ignore[no-untyped-def]
        if purpose is Purpose.QUERY:
            self.asked.set()
            await asyncio.Event().wait()
        return await super().embed(texts, purpose)


class Awaiting(FakeEmbedder):
    """An embedder that needs an event loop."""

    async def embed(self, texts, purpose):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
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


@pytest.mark.parametrize("embedder", ["fake", Awaiting()], ids=["without a loop", "on a loop"])
def test_an_interrupted_call_ends_at_once_and_leaves_its_audit_row(tmp_path: Path, embedder: object) -> None:
    """Ctrl-C while the writer is busy with another call: a write that has not begun is not made."""
    busy, free = threading.Event(), threading.Event()

    def hold(point: str) -> None:
        if point == "write.before" and not busy.is_set():
            busy.set()
            free.wait(30)

    with holdfast.open(tmp_path / "memory.db", embedder=embedder, work=False) as memory:
        failpoints.arm(hold)
        first = threading.Thread(target=memory.add, args=("Under way.",), kwargs={"subject": "ana"})
        first.start()
        try:
            assert busy.wait(30)
            interrupting = (threading.get_ident(), signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it must not come before this
                threading.Timer(0.2, signal.pthread_kill, interrupting).start()
                memory.add("Queued behind it.", subject="ana")
        finally:
            failpoints.arm(None)
            free.set()
            first.join()
        rows = [(row.outcome, row.error_code) for row in trail_of(memory) if row.action == "add"]
        assert sorted(rows, key=str) == [("failed", "cancelled"), ("succeeded", None)]
        assert [record.text for record in memory.list(subject="ana").items] == ["Under way."]


def test_a_blocking_call_within_a_running_loop_is_answered(tmp_path: Path) -> None:
    """As in a notebook: the caller's thread runs an event loop, which the call blocks."""
    with holdfast.open(tmp_path / "memory.db", embedder="fake") as memory:

        async def cell() -> list[str]:
            memory.add("The kettle is on.", subject="ana")
            return [hit.text for hit in memory.search("kettle", subject="ana")]

        assert asyncio.run(cell()) == ["The kettle is on."]


def test_an_embedder_that_needs_a_loop_has_one_in_a_blocking_call(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "memory.db", embedder=Awaiting()) as memory:
        memory.add("The kettle is on.", subject="ana")
        assert [hit.text for hit in memory.search("kettle", subject="ana")] == ["The kettle is on."]


def test_a_blocking_call_of_a_long_text_and_of_many_is_answered(meaningful: holdfast.Memory) -> None:
    long = "The kettle is on. " * 5_000
    assert meaningful.add([long, *(f"Cup number {number}." for number in range(499))], subject="ana").stored == 500
    assert meaningful.search("kettle", subject="ana", top_k=1)[0].text == long
