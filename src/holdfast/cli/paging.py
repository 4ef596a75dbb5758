"""Lists that come in pages, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T", covariant=True)
_PAGE = 1_000


class Page(Protocol[T]):
    @property
    def items(self) -> tuple[T, ...]: ...

    @property
    def next_cursor(self) -> str | None: ...


def every(page: Callable[[int, str | None], Page[T]], most: int | None, largest: int = _PAGE) -> Iterator[T]:
    """All there is, or the first `most`; `page` gets how many are wanted, at most `largest`, and the cursor."""
    cursor: str | None = None
    while True:
        found = page(largest if most is None else min(most, largest), cursor)
        yield from found.items
        cursor = found.next_cursor
        if most is not None:
            most -= len(found.items)
        if cursor is None or most == 0:
            return


def print_each(lines: Iterable[str], otherwise: str) -> None:
    """As they come; `otherwise` if none does."""
    none = True
    for line in lines:
        print(line)
        none = False
    if none:
        print(otherwise)
