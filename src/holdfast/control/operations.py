"""Read the operation log: what was done, by whom, why, and how it ended. It holds no texts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar

from holdfast.control import validation
from holdfast.domain.access import Action, Grant
from holdfast.domain.bindings import checked_key
from holdfast.domain.checks import checked_flag
from holdfast.domain.contract import DEFAULT_PAGE, MAX_PAGE, SourceKind
from holdfast.domain.ids import checked_id
from holdfast.domain.operations import (
    MemoryMetrics,
    Operation,
    OperationFilter,
    OperationPage,
    OperationType,
    Outcome,
)
from holdfast.domain.scope import Scope, check_part
from holdfast.errors import InvalidInput, NotFound, StoreError
from holdfast.ports import Reader
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.idempotency import digest_of

_KINDS: dict[str, Any] = {"source_kind": SourceKind, "type": OperationType, "action": Action, "outcome": Outcome}


@dataclass(frozen=True, slots=True)
class ListOperations(Pagination, Read[None, OperationPage]):
    """List operations, newest first. A cursor is valid only with the filter that it was issued for."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    scope: Scope
    filter: OperationFilter = field(default_factory=OperationFilter)
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        _check_filter(self.filter)
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> OperationPage:
        return OperationPage(*self._page(reader.operations_page(self.filter, self._before(), self.limit + 1)))

    def _query(self) -> str:
        values = [str(getattr(self.filter, each.name)) for each in fields(self.filter)]
        return digest_of("operations", self.scope.given(), values)[:16]

    def record_count(self, result: OperationPage) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class GetOperation(Read[None, Operation]):
    action: ClassVar[Action] = Action.READ_OPERATIONS
    scope: Scope
    operation_id: str

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        checked_id(self.operation_id, "operation_id")

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> Operation:
        found = reader.operation(self.operation_id)
        if found is None:
            raise NotFound(f"there is no operation {self.operation_id!r:.80} in this company; list its operations")
        return found

    def record_count(self, result: Operation) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class GetMetrics(Read[None, MemoryMetrics]):
    """Summarize how well memory served the company in a period."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    scope: Scope
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        validation.check_span(self.since, self.until)

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> MemoryMetrics:
        return reader.metrics(self.since, self.until)


async def _flush_audit_rows(core: Core) -> None:
    """Flush buffered operation rows of reads, so that a listing includes them.

    Ignore a store that cannot be written: operators read the log exactly then.
    """
    with suppress(StoreError):
        await core.store.audited()


def _check_filter(criteria: OperationFilter) -> None:
    if not isinstance(criteria, OperationFilter):
        raise InvalidInput("filter", f"expected an OperationFilter, got {type(criteria).__name__}")
    for name in ("agent", "project", "issue", "run"):
        if (value := getattr(criteria, name)) is not None:
            check_part(name, value)
    if criteria.binding is not None:
        checked_key(criteria.binding, "binding")
    for name, kind in _KINDS.items():
        if (value := getattr(criteria, name)) is not None:
            validation.check_enum(value, kind, name)
    checked_flag(criteria.of_memory, "of_memory")
    validation.check_span(criteria.since, criteria.until)
