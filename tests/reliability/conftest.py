"""Makes the modules beside the tests importable by name, for the processes that the tests start, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from faults import places
from faults.zygote import Zygote


@pytest.fixture(params=places.KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[places.Place]:
    """Where a store can be, for each kind of store."""
    with places.fresh(request.param, tmp_path) as found:
        yield found


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened
