"""Read the operation log: what was done, by whom, why, and how it ended. It holds no texts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from holdfast.control import validation
from holdfast.control.company_requests import CompanyPage, CompanyRead
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import GROUP
from holdfast.domain.contract import DEFAULT_PAGE, Cursor, PageLimit, Since, Until
from holdfast.domain.ids import Id
from holdfast.domain.operations import MemoryMetrics, Operation, OperationFilter, OperationPage
from holdfast.domain.scope import Scope
from holdfast.errors import NotFound, StoreError
from holdfast.ports import Reader
from holdfast.runtime.gate import Core


@dataclass(frozen=True, slots=True)
class ListOperations(CompanyPage[None, OperationPage]):
    """List operations, newest first. All given filters must match."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    scope: Scope
    filter: Annotated[OperationFilter, GROUP] = field(default_factory=OperationFilter)
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def __post_init__(self) -> None:
        CompanyPage.__post_init__(self)
        validation.check_span(self.filter.since, self.filter.until)

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> OperationPage:
        return OperationPage(*self._page(reader.operations.page(self.filter, self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class GetOperation(CompanyRead[None, Operation]):
    """Get one operation, with its source, usage and costs."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    scope: Scope
    operation_id: Id

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> Operation:
        found = reader.operations.find(self.operation_id)
        if found is None:
            raise NotFound(f"there is no operation {self.operation_id!r:.80} in this company; list its operations")
        return found


@dataclass(frozen=True, slots=True)
class GetMetrics(CompanyRead[None, MemoryMetrics]):
    """Summarize how well memory served: recall hits, empty queries, corrections, failures, counts per binding."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    whole_company: ClassVar[bool] = True
    scope: Scope
    since: Since | None = None
    until: Until | None = None

    def __post_init__(self) -> None:
        CompanyRead.__post_init__(self)
        validation.check_span(self.since, self.until)

    async def prepare(self, core: Core, grant: Grant) -> None:
        await _flush_audit_rows(core)

    def apply(self, reader: Reader, prepared: None) -> MemoryMetrics:
        return reader.operations.metrics(self.since, self.until)

    def record_count(self, result: MemoryMetrics) -> int:
        return 0


async def _flush_audit_rows(core: Core) -> None:
    """Flush buffered operation rows of reads, so that a listing includes them.

    Ignore a store that cannot be written: operators read the log exactly then.
    """
    with suppress(StoreError):
        await core.store.wait_for_audits()
