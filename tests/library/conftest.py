"""What the library promises, it promises on each store: the memories of these tests are opened on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.search.embedders.static import StaticEmbedder
from probes import SteppingClock


@pytest.fixture(params=["sqlite", "postgres"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store may be made."""
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def memory(store_place: str) -> Iterator[holdfast.Memory]:
    """A memory without a worker of its own: background work happens when a test drains it."""
    with holdfast.open(store_place, embedder="fake", work=False) as opened:
        yield opened


@pytest.fixture
def timed(store_place: str, clock: SteppingClock) -> Iterator[holdfast.Memory]:
    """The same, by the test's own clock."""
    with holdfast.open(store_place, embedder="fake", work=False, clock=clock) as opened:
        yield opened


@pytest.fixture
def meaningful(store_place: str, static_embedder: StaticEmbedder) -> Iterator[holdfast.Memory]:
    """The same with the default embedder, where it matters what words mean."""
    with holdfast.open(store_place, embedder=static_embedder, work=False) as opened:
        yield opened
