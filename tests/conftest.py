"""What the tests share: opened memories, each in a file of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import holdfast
from blank import blank
from holdfast.search.embedders.static import StaticEmbedder
from postgres import AnyServer, serving
from probes import SteppingClock


def pytest_configure() -> None:
    """A shell that starts a program in the background has it ignore Ctrl-C, and all that it starts: tests send it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# No test is about how long an example takes: a busy machine must not fail one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture(scope="session")
def static_embedder() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[holdfast.Memory]:
    """A memory in a file, without a worker of its own: background work happens when a test drains it."""
    with holdfast.open(blank(tmp_path / "memory.db"), embedder="fake", work=False) as opened:
        yield opened


@pytest.fixture
def timed(tmp_path: Path, clock: SteppingClock) -> Iterator[holdfast.Memory]:
    """The same, by the test's own clock."""
    with holdfast.open(blank(tmp_path / "timed.db"), embedder="fake", work=False, clock=clock) as opened:
        yield opened


@pytest.fixture
def meaningful(tmp_path: Path, static_embedder: StaticEmbedder) -> Iterator[holdfast.Memory]:
    """The same with the default embedder, where it matters what words mean."""
    with holdfast.open(blank(tmp_path / "meaningful.db"), embedder=static_embedder, work=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres() -> Iterator[AnyServer]:
    """The PostgreSQL of this test session (`postgres.py`)."""
    yield from serving()


@pytest.fixture
def postgres_url(postgres: AnyServer) -> Iterator[str]:
    """An empty store of the test's own on it."""
    url = postgres.store_url()
    yield url
    postgres.drop(url)
