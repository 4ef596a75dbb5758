"""Holdfast through its blocking API, one subject per user, on either store."""

from __future__ import annotations

from collections.abc import Sequence

import holdfast
from bench.engine.systems.protocol import TOP_K, Place


class HoldfastSqlite:
    note = ""

    def __init__(self, place: Place) -> None:
        self.name = f"Holdfast {holdfast.__version__}, {self._store}"
        self._memory = holdfast.open(self._location(place), embedder=place.embedder)

    _store = "SQLite"

    def _location(self, place: Place) -> str:
        return str(place.directory / "memory.db")

    def add(self, user: str, texts: Sequence[str]) -> None:
        self._memory.add(texts, subject=user)

    def settle(self) -> None:
        """Nothing to do: everything can be found when `add` returns."""

    def search(self, user: str, query: str) -> int:
        return len(self._memory.search(query, subject=user, top_k=TOP_K))

    def close(self) -> None:
        self._memory.close()


class HoldfastPostgres(HoldfastSqlite):
    _store = "PostgreSQL"

    def _location(self, place: Place) -> str:
        return place.url
