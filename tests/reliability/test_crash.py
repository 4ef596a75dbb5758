"""No acknowledged write is lost, and none is half visible, whenever the process is killed."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from crash import Ledger, Nursery

from holdfast.stores.sqlite import SqliteStore

KILLS = int(os.environ.get("HOLDFAST_KILLS", "100"))
# Several kills on one store: each must also survive what the ones before have left.
KILLS_PER_STORE = 10


@pytest.mark.parametrize("seed", range(-(-KILLS // KILLS_PER_STORE)))
def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    location, ledger = str(tmp_path / "memory.db"), Ledger()
    with Nursery.opened() as nursery:
        for _ in range(KILLS_PER_STORE):
            under_way = ledger.note(nursery.kill_a_writer(location, chance))
            asyncio.run(_check(ledger, location, under_way, chance))
    assert ledger.done["add"] > 0


async def _check(ledger: Ledger, location: str, under_way: list[dict[str, object]], chance: random.Random) -> None:
    store = SqliteStore(location)
    try:
        await ledger.check(location, store, under_way, chance)
    finally:
        await store.close()
