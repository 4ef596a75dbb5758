"""Iterates over paged lists. If a limit cuts the list off, a warning on stderr says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

T = TypeVar("T", covariant=True)
_PAGE = 1_000
log = logging.getLogger("holdfast.cli")


class CliPage(Protocol[T]):
    @property
    def items(self) -> tuple[T, ...]: ...

    @property
    def next_cursor(self) -> str | None: ...


def iterate_pages(page: Callable[[int, str | None], CliPage[T]], most: int | None, largest: int = _PAGE) -> Iterator[T]:
    """Yield all items, or the first `most`. `page` takes a page size, at most `largest`, and a cursor."""
    cursor: str | None = None
    while True:
        found = page(largest if most is None else min(most, largest), cursor)
        yield from found.items
        cursor = found.next_cursor
        if most is not None:
            most -= len(found.items)
        if cursor is None:
            return
        if most == 0:
            _warn_of_more()
            return


def join_pages(page: Callable[[int, str | None], CliPage[T]], most: int | None) -> tuple[tuple[T, ...], str | None]:
    """Return all items, or the first `most`, and the cursor after the last page that was read."""
    last: list[str | None] = [None]

    def read(limit: int, cursor: str | None) -> CliPage[T]:
        found = page(limit, cursor)
        last[0] = found.next_cursor
        return found

    return tuple(iterate_pages(read, most)), last[0]


def take_first(found: Iterator[T], most: int | None) -> list[T]:
    """Return the first `most` items, or all."""
    taken = list(islice(found, most))
    if most is not None and next(found, None) is not None:
        _warn_of_more()
    return taken


def _warn_of_more() -> None:
    log.warning("there is more; raise --limit to see it")
