"""The control plane tests run on both stores."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blank import blank

sys.path.insert(0, str(Path(__file__).parent))

from desk import Desk
from misbehaving import HostileProvider

from postgres import ON_POSTGRES

STORES = ("sqlite", ON_POSTGRES)


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty store."""
    if request.param == "sqlite":
        return str(blank(tmp_path / "memory.db"))
    url: str = request.getfixturevalue("migrated_url")
    return url


@pytest.fixture
def hostile() -> HostileProvider:
    return HostileProvider()


@pytest.fixture
def desk(location: str, hostile: HostileProvider, runner: asyncio.Runner) -> Iterator[Desk]:
    """A control plane on an empty store, with the engine's own provider and a hostile one."""
    opened = runner.run(Desk.opened(location, hostile))
    yield opened
    runner.run(opened.close())
