"""The log of administrative changes to a space's memory, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.control.company_requests import CompanyPage
from holdfast.domain.access import Action
from holdfast.domain.contract import DEFAULT_PAGE, Cursor, PageLimit
from holdfast.domain.control import Activity, ActivityPage
from holdfast.domain.events import ADMINISTRATIVE
from holdfast.ports import Reader
from holdfast.runtime.gate import Core


@dataclass(frozen=True, slots=True)
class ListActivity(CompanyPage[ActivityPage]):
    """List changes and who made them, newest first: bindings, defaults, overrides, prices, deliveries and jobs."""

    action: ClassVar[Action] = Action.READ_BINDINGS
    cursor: Cursor | None = None
    limit: PageLimit = DEFAULT_PAGE

    def apply(self, reader: Reader, prepared: Core) -> ActivityPage:
        found = reader.events.page(self.limit + 1, ADMINISTRATIVE, self._before())
        items = [Activity(each.id, each.kind, each.at, each.record_key, each.details) for each in found]
        return ActivityPage(*self._page(items))
