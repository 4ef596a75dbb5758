"""Port of operations: one row per call. A grant over part of a space reaches its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.operations import ALL_OPERATIONS, MemoryMetrics, Operation, OperationFilter


class OperationReader(Protocol):
    def find(self, operation_id: str) -> Operation | None: ...

    def page(
        self, wanted: OperationFilter = ALL_OPERATIONS, before: str | None = None, limit: int = 100
    ) -> Sequence[Operation]:
        """Return operations with ids below `before`, newest first."""

    def metrics(self, since: datetime | None, until: datetime | None) -> MemoryMetrics:
        """Return metrics of the space; of nothing, if the grant is not over the whole of it."""


class OperationWriter(OperationReader, Protocol):
    def add(self, operation: Operation) -> None: ...

    def settle(self, operation: Operation) -> None:
        """Record the outcome of an operation whose outcome is `unknown`; raises `RevisionConflict` if it is not."""
