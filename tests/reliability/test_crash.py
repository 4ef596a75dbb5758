"""Killing a client or a server at any time loses no acknowledged write and shows none half done."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator

import pytest

from faults.ledger import Ledger
from faults.places import Place, PostgresPlace
from faults.writers import killed_after_its_server, killed_at_random
from faults.zygote import Zygote
from postgres import Server

KILLS = int(os.environ.get("HOLDFAST_KILLS", "40"))  # of clients, on each store; a tenth as many of servers
# Kill several times per store: each kill must also survive the state left by the earlier ones.
KILLS_PER_STORE = 10
SERVER_KILLS_PER_STORE = 5


@pytest.mark.parametrize("seed", range(-(-KILLS // KILLS_PER_STORE)))
def test_killed_writers_lose_nothing_that_was_acknowledged(place: Place, zygote: Zygote, seed: int) -> None:
    chance, ledger = random.Random(seed), Ledger()
    for run in range(KILLS_PER_STORE):
        under_way = ledger.note(killed_at_random(zygote, place.location, str(run), chance))
        asyncio.run(ledger.check(place, under_way, chance))
    assert ledger.done["add"] > 0


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that tests may kill."""
    with Server() as server:
        yield server


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(-(-KILLS // (10 * SERVER_KILLS_PER_STORE))))
def test_a_killed_server_loses_nothing_and_its_clients_go_on(mortal: Server, zygote: Zygote, seed: int) -> None:
    place, chance, ledger = PostgresPlace(mortal), random.Random(seed), Ledger()
    for run in range(SERVER_KILLS_PER_STORE):
        told = killed_after_its_server(zygote, place.location, str(run), chance, mortal)
        asyncio.run(ledger.check(place, ledger.note(told), chance))
    assert ledger.done["add"] > 0
