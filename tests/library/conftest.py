"""What the library promises, it promises on each store, and over HTTP: these tests are run on both stores, and on a
server.

Over HTTP there is a real server, its engine on a file. Who needs a clock of its own, or is marked `embedded` for
another reason, stays in process.
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
        stays = metafunc.definition.get_closest_marker("embedded") or "store_place" in metafunc.fixturenames
        metafunc.parametrize("reached_by", ["sqlite", ON_POSTGRES, *([] if stays else [HTTP])], indirect=True)


@pytest.fixture
def reached_by(request: pytest.FixtureRequest) -> str:
    """How the test reaches its memory."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def store_place(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Where an empty store may be made."""
    return _place(reached_by, tmp_path, request)


def _place(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if reached_by == "postgres":
        url: str = request.getfixturevalue("migrated_url")
        return url
    return str(tmp_path / "memory.db")


def _made(place: str) -> str:
    """The same place with an empty store, if that is to be a file."""
    return place if "://" in place else str(blank(Path(place)))


@contextmanager
def opened(
    reached_by: str, tmp_path: Path, request: pytest.FixtureRequest, embedder: str | Embedder
) -> Iterator[holdfast.Memory]:
    place = _made(_place(reached_by, tmp_path, request))
    if reached_by != HTTP:
        with holdfast.open(place, embedder=embedder, work=False) as memory:
            yield memory
        return
    with served(place, embedder) as server, holdfast.open(server.url, key=OPERATOR_KEY) as memory:
        SERVED[memory._behind._service] = server.engine
        yield memory


@pytest.fixture
def memory(reached_by: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[holdfast.Memory]:
    """A memory without a worker of its own: background work happens when a test drains it."""
    with opened(reached_by, tmp_path, request, "fake") as found:
        yield found


@pytest.fixture
def timed(store_place: str, clock: SteppingClock) -> Iterator[holdfast.Memory]:
    """The same, by the test's own clock."""
    with holdfast.open(_made(store_place), embedder="fake", work=False, clock=clock) as found:
        yield found


@pytest.fixture
def meaningful(
    reached_by: str, tmp_path: Path, request: pytest.FixtureRequest, static_embedder: StaticEmbedder
) -> Iterator[holdfast.Memory]:
    """The same with the default embedder, where it matters what words mean."""
    with opened(reached_by, tmp_path, request, static_embedder) as found:
        yield found
