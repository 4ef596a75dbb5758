"""Random transitions of random turns, whose hosts send their history again: no answer contains withheld content."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from lives import Said, living

from holdfast.app import copy_store
from holdfast.settings import Settings

LIVES = int(os.environ.get("HOLDFAST_LIVES", "3"))
STEPS = 24


@pytest.mark.parametrize("seed", range(LIVES))
def test_what_is_withheld_is_told_by_nothing(location: str, seed: int, tmp_path: Path) -> None:
    async def whole() -> None:
        async with living(location, seed) as life:
            for step in range(1, STEPS + 1):
                await life.step()
                if step % 8 == 0:
                    await life.look()
        copied = str(tmp_path / "copy.db")
        copy_store(location, copied, Settings(), replace=False, tell=lambda done, total: None)
        async with living(copied, seed) as other:
            other.turns = life.turns
            await other.look()

    asyncio.run(whole())


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_history_that_is_sent_again_brings_back_nothing(location: str, seed: int, tmp_path: Path) -> None:
    """Whatever the host leaves out of its history, and whatever was masked or deleted meanwhile."""

    async def whole() -> None:
        async with living(location, seed) as life:
            await life.commit()
            for _ in range(STEPS):
                await life.step(life.commit, life.history, life.history, life.deliver_again, life.age)
            await life.look()
            await life.work()
        deleted.extend(each for turn in life.turns if turn.state == "raw_deleted" for each in turn.said)

    deleted: list[Said] = []
    asyncio.run(whole())
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert not [each for each in deleted if f"text{each.number}x ".encode() in held]
