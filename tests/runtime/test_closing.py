"""Closing ends, whatever the worker is at, and leaves no work held by nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.jobs import JobStatus


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
        async with asyncio.timeout(30):  # far beyond what closing takes: only a hang gets there
            await queued_and_closed()

    asyncio.run(bounded())
    with holdfast.open(tmp_path / "memory.db", embedder="fake", work=False) as memory:
        assert not memory.jobs(status=JobStatus.RUNNING, space="*")
        memory.drain()
        assert [fact.text for fact in memory.list(kind="memory").items] == ["ana lives in Lisbon."]


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
