"""Makes the modules beside the tests importable by name, for the processes that the tests start, too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from openers import own

from holdfast import failpoints
from postgres import AnyServer, Proxy


@pytest.fixture
def proxy(postgres: AnyServer) -> Iterator[Proxy]:
    """Between a store and its server, to cut what runs through it."""
    with Proxy(own(postgres)) as opened:
        yield opened


@pytest.fixture
def at_commit() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Does something, once, when the store is about to commit."""

    def arm(act: Callable[[], None]) -> None:
        todo = [act]
        failpoints.arm(lambda point: todo.pop()() if point == "commit.before" and todo else None)

    yield arm
    failpoints.arm(None)
