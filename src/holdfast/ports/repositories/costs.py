"""Port of costs: metered calls, flat fees, and prices. Only a grant over the whole space reads costs or sets prices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.costs import CostEvent, CostGroup, CostLine, FinanceEvent, Price


class CostReader(Protocol):
    def prices(self) -> Sequence[Price]:
        """Return prices ordered by provider and model. Any grant of the space may read them."""

    def page(self, before: str | None, limit: int) -> Sequence[CostEvent]: ...

    def finance_page(self, before: str | None, limit: int) -> Sequence[FinanceEvent]: ...

    def summary(self, group: CostGroup, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Sum metered calls by group: highest first, days in order."""

    def finance_summary(self, since: datetime | None, until: datetime | None) -> Sequence[CostLine]:
        """Sum flat fees by provider."""


class CostWriter(CostReader, Protocol):
    def add(self, event: CostEvent) -> None:
        """Add a cost, with any grant of the event's space: it commits together with its call."""

    def add_finance(self, event: FinanceEvent) -> None: ...

    def put_price(self, price: Price) -> None: ...

    def remove_price(self, provider: str, model: str) -> bool: ...
