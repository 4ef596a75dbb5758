"""Cache of row numbers that never change: of partitions, scopes, conversations and embedders.

Each writing connection has one, to avoid repeated lookups. Entries added in a transaction are kept only after its
commit; any rollback drops all that are not committed.
"""

from __future__ import annotations

from collections.abc import Hashable

_MOST = 50_000


class RowIdCache:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._committed: dict[Hashable, int] = {}
        self._fresh: dict[Hashable, int] = {}

    def get(self, key: Hashable) -> int | None:
        found = self._committed.get(key)
        return self._fresh.get(key) if found is None else found

    def add(self, key: Hashable, number: int) -> None:
        self._fresh[key] = number

    def commit(self) -> None:
        """Keep the new entries: the transaction is committed."""
        if self._fresh:
            if len(self._committed) + len(self._fresh) > self._most:
                self._committed.clear()
            self._committed.update(self._fresh)
            self._fresh.clear()

    def rollback(self) -> None:
        """Drop the new entries: some or all of the transaction was rolled back."""
        self._fresh.clear()
