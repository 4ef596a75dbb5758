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
from holdfast.errors import NotFound, StoreError
from holdfast.ports import Reader
from holdfast.runtime.gate import Core


class _LogReading:
    __slots__ = ()

    async def prepare(self, core: Core, grant: Grant) -> Core:
        """Flush buffered operation rows of reads, so that a listing includes them.

        Ignore a store that cannot be written: operators read the log exactly then.
        """
        with suppress(StoreError):
            await core.store.wait_for_audits()
        return core


@dataclass(frozen=True, slots=True)
class ListOperations(_LogReading, CompanyPage[OperationPage]):
    """List operations, newest first. All given filters must match."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    filter: Annotated[OperationFilter, GROUP] = field(default_factory=OperationFilter)
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> OperationPage:
        return OperationPage(*self._page(reader.operations.page(self.filter, self._before(), self.limit + 1)))


@dataclass(frozen=True, slots=True)
class GetOperation(_LogReading, CompanyRead[Operation]):
    """Get one operation, with its source, usage and costs."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    operation_id: Id

    def apply(self, reader: Reader, prepared: Core) -> Operation:
        found = reader.operations.find(self.operation_id)
        if found is None:
            raise NotFound(f"there is no operation {self.operation_id!r:.80} in this space; list its operations")
        return found


@dataclass(frozen=True, slots=True)
class GetMetrics(_LogReading, CompanyRead[MemoryMetrics]):
    """Summarize how well memory served: recall hits, empty queries, corrections, failures, counts per binding."""

    action: ClassVar[Action] = Action.READ_OPERATIONS
    since: Since | None = None
    until: Until | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        CompanyRead.__post_init__(self)

    def apply(self, reader: Reader, prepared: Core) -> MemoryMetrics:
        return reader.operations.metrics(self.since, self.until)

    def record_count(self, result: MemoryMetrics) -> int:
        return 0
