"""Makes the helper modules importable by name, also for the processes that tests start."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from damage import Place
from openers import own

from holdfast import failpoints
from holdfast.domain.scope import Scope
from holdfast.ports import Store
from holdfast.testing.store_suite.scribe import ANA, Scribe, add, put
from holdfast.testing.store_suite.transcripts import with_host_fields
from postgres import ON_POSTGRES, AnyServer, Proxy


@pytest.fixture
def proxy(postgres: AnyServer) -> Iterator[Proxy]:
    """A proxy between a store and its server that can cut connections."""
    with Proxy(own(postgres)) as opened:
        yield opened


@pytest.fixture
def at_commit() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Run an action once, when the store is about to commit."""

    def arm(act: Callable[[], None]) -> None:
        todo = [act]
        failpoints.arm(lambda point: todo.pop()() if point == "commit.before" and todo else None)

    yield arm
    failpoints.arm(None)


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    server = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    location = str(tmp_path / "memory.db") if server is None else server.store_url()
    scribe = Scribe()
    message, memory = scribe.message("canary one"), scribe.revision(Scope(subject="ana"), "canary learned")
    made = Place(location, server, message.id, memory.id)

    async def fill(store: Store) -> None:
        try:
            await add(store, with_host_fields(scribe.turn(ANA, message, "canary two"), "t1"))
            await add(store, with_host_fields(scribe.turn(ANA, "canary three"), "t2"))
            await add(store, scribe.turn(ANA, "canary four"))
            await add(store, scribe.turn(replace(ANA, conversation="other"), "canary elsewhere"))
            await put(store, replace(memory, evidence=(message.id,)))
        finally:
            await store.close()

    asyncio.run(fill(made.opened()))
    assert made.checked().issues == ()
    yield made
    if server is not None:
        server.drop(location)
