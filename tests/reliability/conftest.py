"""Makes the helper modules importable by name, also for the processes that tests start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from faults.places import ON_EACH, Place, PostgresPlace, SqlitePlace
from faults.zygote import Zygote


@pytest.fixture(params=ON_EACH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A location for a store, for each kind of store."""
    if request.param == "sqlite":
        yield SqlitePlace(tmp_path)
        return
    found = PostgresPlace(request.getfixturevalue("postgres"))
    yield found
    found.drop()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened
