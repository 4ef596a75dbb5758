"""Numbers of rows that stay once they are there: partitions, scopes, conversations and embedders.

A writing connection keeps them, so that a write does not ask for them again. What a transaction has learned counts for
others only after its commit; anything rolled back takes all of what is not committed with it.
"""

from __future__ import annotations

from collections.abc import Hashable

_MOST = 50_000


class Known:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._committed: dict[Hashable, int] = {}
        self._fresh: dict[Hashable, int] = {}

    def get(self, key: Hashable) -> int | None:
        found = self._committed.get(key)
        return self._fresh.get(key) if found is None else found

    def learn(self, key: Hashable, number: int) -> None:
        self._fresh[key] = number

    def keep(self) -> None:
        """The transaction is committed."""
        if self._fresh:
            if len(self._committed) + len(self._fresh) > self._most:
                self._committed.clear()
            self._committed.update(self._fresh)
            self._fresh.clear()

    def drop(self) -> None:
        """Some or all of the transaction was rolled back."""
        self._fresh.clear()
