"""`browse`: list memories and messages in time order, by offset, with the total count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from holdfast.domain.access import Action
from holdfast.domain.arguments import GROUP, whole_number
from holdfast.domain.checks import checked_flag, checked_whole
from holdfast.domain.results import Browsed
from holdfast.domain.scope import Scope
from holdfast.domain.search import Order, SearchOptions
from holdfast.ports import Reader
from holdfast.runtime.cursors import MAX_PAGE, PageLimit
from holdfast.runtime.gate import Core
from holdfast.runtime.requests import SimpleRead
from holdfast.runtime.search import check_options

MAX_OFFSET = 10**12


@dataclass(frozen=True, slots=True)
class Browse(SimpleRead[Browsed]):
    """List by the time of `said` or `recorded` from any offset, with the total.

    Only the filters of `options` apply, not its ranking options. New records shift offsets; `list` with its cursor
    misses nothing.
    """

    action: ClassVar[Action] = Action.BROWSE
    scope: Scope
    options: Annotated[SearchOptions, GROUP] = field(default_factory=SearchOptions)
    order: Annotated[Order, "The time to order by: when it was said or when it was recorded."] = Order.SAID
    ascending: Annotated[bool, "Oldest first."] = False
    offset: Annotated[int, whole_number(0, MAX_OFFSET), "Leave out the first N."] = 0
    limit: PageLimit = 50

    def __post_init__(self) -> None:
        check_options(self.options)
        checked_flag(self.ascending, "ascending")
        checked_whole(self.offset, "offset", 0, MAX_OFFSET)
        checked_whole(self.limit, "limit", 1, MAX_PAGE)

    def apply(self, reader: Reader, prepared: Core) -> Browsed:
        numbers = prepared.searcher.browse(reader.index, self.scope, self.options, self.order)
        ordered = numbers if self.ascending else numbers[::-1]
        page = [int(number) for number in ordered[self.offset : self.offset + self.limit]]
        records = reader.records.fetch(page)
        return Browsed(tuple(records[number] for number in page if number in records), len(numbers))

    def record_count(self, result: Browsed) -> int:
        return len(result.items)
