"""The log of administrative changes to a company's memory, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.control import validation
from holdfast.domain.access import Action, Grant
from holdfast.domain.contract import DEFAULT_PAGE, MAX_PAGE
from holdfast.domain.control import Activity, ActivityPage
from holdfast.domain.events import ADMINISTRATIVE
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.cursors import Pagination
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.idempotency import digest_of


@dataclass(frozen=True, slots=True)
class ListActivity(Pagination, Read[None, ActivityPage]):
    """List changes of bindings, defaults, overrides, prices, deliveries and jobs, newest first."""

    action: ClassVar[Action] = Action.READ_BINDINGS
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> ActivityPage:
        found = reader.events.page(self.limit + 1, ADMINISTRATIVE, self._before())
        items = [Activity(each.id, each.kind, each.at, each.record_key, each.details) for each in found]
        return ActivityPage(*self._page(items))

    def _query(self) -> str:
        return digest_of("activity", self.scope.space)[:16]

    def record_count(self, result: ActivityPage) -> int:
        return len(result.items)
