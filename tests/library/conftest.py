"""Fixtures that run the library's tests on both stores and over HTTP.

Over HTTP, a real server runs its engine on a file. Tests that need their own clock, or are marked `embedded` for
another reason, run in process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from blank import blank
from holdfast.ports import Embedder
from holdfast.search.embedders.static import StaticEmbedder
from postgres import ON_POSTGRES
from probes import SERVED, SteppingClock
from serving import OPERATOR_KEY, served

HTTP = "http"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "reached_by" in metafunc.fixturenames:
        stays = metafunc.definition.get_closest_marker("embedded") or {"store_place", "empty_store"} & set(
            metafunc.fixturenames
        )
        metafunc.parametrize("reached_by", ["sqlite", ON_POSTGRES, *([] if stays else [HTTP])], indirect=True)


@pytest.fixture
def reached_by(request: pytest.FixtureRequest) -> str:
    """The way the test reaches its memory."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def store_place(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A place where no store has been made yet."""
    if reached_by == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return str(tmp_path / "memory.db")


@pytest.fixture
def empty_store(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The place of an empty store."""
    return _empty_store(reached_by, tmp_path, request)


def _empty_store(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if reached_by == "postgres":
        url: str = request.getfixturevalue("migrated_url")
        return url
    return str(blank(tmp_path / "memory.db"))


@contextmanager
def opened(
    reached_by: str, tmp_path: Path, request: pytest.FixtureRequest, embedder: str | Embedder
) -> Iterator[holdfast.Memory]:
    place = _empty_store(reached_by, tmp_path, request)
    if reached_by != HTTP:
        with holdfast.open(place, embedder=embedder, work=False) as memory:
            yield memory
        return
    with served(place, embedder) as server, holdfast.open(server.url, key=OPERATOR_KEY) as memory:
        SERVED[memory._behind._service] = server.engine
        yield memory


@pytest.fixture
def memory(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[holdfast.Memory]:
    """A memory without a worker: background work runs when a test drains it."""
    with opened(reached_by, tmp_path, request, "fake") as found:
        yield found


@pytest.fixture
def timed(empty_store: str, clock: SteppingClock) -> Iterator[holdfast.Memory]:
    """A memory without a worker, on the test's own clock."""
    with holdfast.open(empty_store, embedder="fake", work=False, clock=clock) as found:
        yield found


@pytest.fixture
def meaningful(
    reached_by: str, tmp_path: Path, request: pytest.FixtureRequest, static_embedder: StaticEmbedder
) -> Iterator[holdfast.Memory]:
    """A memory with the default embedder, for tests that depend on the meaning of words."""
    with opened(reached_by, tmp_path, request, static_embedder) as found:
        yield found
