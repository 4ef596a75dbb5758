"""The base classes of results, which present themselves as a dictionary, as JSON, in one line, and as an HTML table.

All is derived from the fields of the dataclass. Nothing is added to the cost of making one, and what encodes and
formats is imported by the first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)
# The metadata of a dataclass field that is never shown.
SECRET: Mapping[str, bool] = {"secret": True}


def is_secret(part: Any) -> bool:
    return "secret" in part.metadata


class Presentable:
    """A dataclass that presents itself. `_summary` names the fields of its line, by default all that say something.

    `_columns` are those of its row in a table, by default its summary.
    """

    __slots__ = ()
    _summary: ClassVar[tuple[str, ...]] = ()
    _columns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the short line: dataclass() writes its own for a class that has none."""
        super().__init_subclass__(**options)
        cls.__repr__ = Presentable.__repr__  # type: ignore[method-assign]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON: times in ISO 8601, enumerations as words, tuples as lists."""
        from holdfast.domain.json_values import to_plain

        result: dict[str, Any] = to_plain(self)
        return result

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict()` as JSON."""
        from holdfast.domain.json_values import write_json

        return write_json(self, indent)

    def __repr__(self) -> str:
        from holdfast.domain.result_lines import describe

        return describe(self)

    def _repr_html_(self) -> str:
        from holdfast.domain.result_tables import record_table

        return record_table(self)


class PresentableList(Presentable, Generic[T_co]):
    """A result with items: it has a length, can be iterated and indexed, and is false if there are none."""

    __slots__ = ()
    _items: ClassVar[str] = "items"

    def __len__(self) -> int:
        """Return the number of items."""
        return len(getattr(self, self._items))

    def __iter__(self) -> Iterator[T_co]:
        """Iterate over the items."""
        return iter(getattr(self, self._items))

    @overload
    def __getitem__(self, place: int) -> T_co: ...
    @overload
    def __getitem__(self, place: slice) -> Results[T_co]: ...
    def __getitem__(self, place: int | slice) -> T_co | Results[T_co]:
        """Return the item at a place, or a slice of the items."""
        found = getattr(self, self._items)[place]
        return Results(found) if isinstance(place, slice) else found

    def _repr_html_(self) -> str:
        from holdfast.domain.result_tables import list_table

        return list_table(tuple(self), caption=repr(self))


class Results(tuple[T_co, ...]):
    """A tuple of results, which shows one per line, and as a table in a notebook."""

    __slots__ = ()

    def to_list(self) -> list[dict[str, Any]]:
        """Return the `to_dict()` of each."""
        from holdfast.domain.json_values import to_plain

        result: list[dict[str, Any]] = to_plain(self)
        return result

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_list()` as JSON."""
        from holdfast.domain.json_values import write_json

        return write_json(self, indent)

    def __repr__(self) -> str:
        from holdfast.domain.result_lines import describe_all

        return describe_all(self)

    def _repr_html_(self) -> str:
        from holdfast.domain.result_tables import list_table

        return list_table(self)
