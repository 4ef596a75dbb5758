"""No acknowledged write is lost, and none is half visible, whenever the process is killed."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from faults.ledger import Ledger
from faults.places import Place
from faults.writers import killed_at_random
from faults.zygote import Zygote

KILLS = int(os.environ.get("HOLDFAST_KILLS", "100"))  # on each store
# Several kills on one store: each must also survive what the ones before have left.
KILLS_PER_STORE = 10


@pytest.mark.parametrize("seed", range(-(-KILLS // KILLS_PER_STORE)))
def test_killed_writers_lose_nothing_that_was_acknowledged(place: Place, zygote: Zygote, seed: int) -> None:
    chance, ledger = random.Random(seed), Ledger()
    for run in range(KILLS_PER_STORE):
        under_way = ledger.note(killed_at_random(zygote, place.location, str(run), chance))
        asyncio.run(ledger.check(place, under_way, chance))
    assert ledger.done["add"] > 0
