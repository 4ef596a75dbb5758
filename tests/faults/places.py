"""Where a store can be: somewhere to make, reopen, break and look at one, per kind of store.

A test that takes the fixture `place` runs on every kind. Nothing in it knows which one it is, but for what
`Place` says that a kind has.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

from holdfast.ports import Store
from holdfast.stores.sqlite import SqliteStore


class Place(Protocol):
    @property
    def location(self) -> str:
        """What `holdfast.open` takes; a process of its own can take it as well."""

    @property
    def kind(self) -> str: ...

    def store(self) -> contextlib.AbstractAsyncContextManager[Store]:
        """The store itself, opened to be looked at."""


class SqlitePlace:
    kind = "sqlite"

    def __init__(self, folder: Path, name: str = "memory.db") -> None:
        self.location = str(folder / name)

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store = SqliteStore(self.location)
        try:
            yield store
        finally:
            await store.close()


KINDS = ("sqlite",)


@contextlib.contextmanager
def fresh(kind: str, folder: Path) -> Iterator[Place]:
    """A place of this kind at which there is no store yet."""
    assert kind in KINDS
    yield SqlitePlace(folder)
