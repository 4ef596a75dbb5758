"""The share of a profile's budget that a runtime's own records take. What other faces wrote does not count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import Budget


class HostedRecords(NamedTuple):
    """Messages and revisions that runtimes wrote into a space: their number, the bytes of their texts, and the highest
    of the store's numbers among them.
    """

    records: int = 0
    text_bytes: int = 0
    last_number: int = 0


@dataclass(frozen=True, slots=True)
class BudgetUsage(Presentable):
    """The records and text bytes of a memory, and its budgets. Nothing more is written while one is exceeded."""

    records: int
    max_records: int
    blob_bytes: int
    max_blob_bytes: int

    @classmethod
    def of(cls, found: HostedRecords, budget: Budget) -> BudgetUsage:
        return cls(found.records, budget.records, found.text_bytes, budget.blob_bytes)

    @property
    def excess(self) -> tuple[str, ...]:
        """The names of the budgets that are exceeded."""
        parts = {"records": self.records > self.max_records, "blob_bytes": self.blob_bytes > self.max_blob_bytes}
        return tuple(name for name, is_exceeded in parts.items() if is_exceeded)
