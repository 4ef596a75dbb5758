"""Power loss loses no acknowledged write: only the synced part of each file is left.

Files only; a server's disk is PostgreSQL's responsibility.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.disk import Shim, cut_power
from faults.ledger import Ledger
from faults.places import SqlitePlace
from faults.writers import killed_at_random
from faults.zygote import Zygote

CUTS = int(os.environ.get("HOLDFAST_CUTS", "20"))
CUTS_PER_STORE = 10


@pytest.fixture(scope="module")
def shimmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Zygote, Shim]]:
    shim = Shim.made(tmp_path_factory.mktemp("power"))
    with Zygote.opened(shim.environment) as zygote:
        yield zygote, shim


@pytest.mark.parametrize("seed", range(-(-CUTS // CUTS_PER_STORE)))
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path, shimmed: tuple[Zygote, Shim], seed: int
) -> None:
    zygote, shim = shimmed
    folder, shadow = tmp_path / "disk", tmp_path / "synced"
    folder.mkdir()
    place, chance, ledger = SqlitePlace(folder), random.Random(seed), Ledger()
    for run in range(CUTS_PER_STORE):
        # Treat everything that exists at the start as synced.
        shutil.rmtree(shadow, ignore_errors=True)
        shutil.copytree(folder, shadow)
        shim.keep(str(folder), str(shadow))
        told = killed_at_random(zygote, place.location, str(run), chance)
        cut_power(folder, shadow)
        asyncio.run(ledger.check(place, ledger.note(told), chance))
    assert ledger.done["add"] > 0


def test_the_cut_takes_away_what_was_not_synced(tmp_path: Path, shimmed: tuple[Zygote, Shim]) -> None:
    """Without this, the test above would prove nothing."""
    zygote, shim = shimmed
    folder, shadow = tmp_path / "disk", tmp_path / "synced"
    folder.mkdir()
    shadow.mkdir()
    shim.keep(str(folder), str(shadow))
    zygote.run("test_power_loss:write_and_sync", folder=str(folder))
    cut_power(folder, shadow)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"synced": "one"}


def write_and_sync(tell: object, folder: str) -> None:
    with open(f"{folder}/synced", "w+") as file:
        file.write("one")
        file.flush()
        os.fsync(file.fileno())
        file.write("two")
    Path(f"{folder}/never").write_text("three")
