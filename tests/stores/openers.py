"""Functions that open stores, also in separate processes, which import this module by name."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from holdfast import failpoints
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.postgres import schema as server_schema
from holdfast.stores.sqlite import SqliteStore, schema
from postgres import AnyServer, Server

EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))


def own(server: AnyServer) -> Server:
    if not isinstance(server, Server):
        pytest.skip("needs a server of the tests' own")
    return server


def opened(path: Path) -> None:
    """Open the file as a store, use it, and close it."""

    async def whole() -> None:
        store = SqliteStore(str(path), busy_seconds=10)
        await store.write(EVERYTHING, lambda t: t.maintenance.put_fact("used", "yes"))
        assert await store.read(EVERYTHING, lambda r: r.maintenance.fact("used")) == "yes"
        await store.close()

    asyncio.run(whole())


def open_all(paths: Sequence[str], start: Barrier, answers: Queue[str]) -> None:
    """Open each file at the same moment as the other processes."""
    try:
        for path in paths:
            start.wait(60)
            opened(Path(path))
    except BaseException as error:  # noqa: BLE001 - reported to the parent
        answers.put(repr(error))
    else:
        answers.put("opened")


def killed_within_a_migration(path: str) -> None:
    """Open the file with one more migration, and die half way through it."""
    steps = schema.migrations()
    newer = steps[-1][0] + 1

    def statements(script: str) -> Iterator[str]:
        half = script[: len(script) // 2]
        yield from split(half)
        os.kill(os.getpid(), signal.SIGKILL)

    split = schema._statements
    schema._statements = statements
    schema.migrations = lambda: [*steps, (newer, "CREATE TABLE extra (value TEXT);\n" * 2)]
    SqliteStore(path)


def used(url: str, busy_seconds: float = 15) -> None:
    """Open, use and close a store on a server."""

    async def whole() -> None:
        store = PostgresStore(url, busy_seconds=busy_seconds)
        try:
            await store.write(EVERYTHING, lambda t: t.maintenance.put_fact("used", "yes"))
            assert await store.read(EVERYTHING, lambda r: r.maintenance.fact("used")) == "yes"
        finally:
            await store.close()

    asyncio.run(whole())


def use_all(urls: Sequence[str], start: Barrier, answers: Queue[str]) -> None:
    """Open each store at the same moment as the other processes."""
    try:
        for url in urls:
            start.wait(60)
            used(url)
    except BaseException as error:  # noqa: BLE001 - reported to the parent
        answers.put(repr(error))
    else:
        answers.put("opened")


def killed_within_a_server_migration(url: str) -> None:
    """Open the store with one more migration, and die half way through it."""
    steps = server_schema.migrations()
    newer = steps[-1][0] + 1
    server_schema.migrations = lambda: [*steps, (newer, "CREATE TABLE extra (value TEXT);")]

    def die(point: str) -> None:
        if point == "migration.after":
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.arm(die)
    PostgresStore(url)
