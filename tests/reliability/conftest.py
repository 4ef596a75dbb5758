"""Makes the modules beside the tests importable by name, for the processes that the tests start, too."""

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
    """Where a store can be, for each kind of store."""
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
