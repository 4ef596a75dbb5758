"""The arguments of a verb, as its request declares them. Every surface is derived from these declarations.

An argument is a field of a request: its type, its default, and in `Annotated` one line of help and the `Rule` that its
values must obey. A field marked `GROUP` is a dataclass whose fields are arguments of the request too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from holdfast.domain.checks import check_enum, checked_flag, checked_text, checked_whole
from holdfast.errors import InvalidInput, InvalidTimestamp

Check = Callable[[Any, str], object]


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits of a value. `check(value, field)` raises `InvalidInput`; the other fields describe it to surfaces.

    `noun` names the value in help texts, such as KEY.
    """

    check: Check
    noun: str
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    least: int | None = None
    most: int | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """The limits by their names in pydantic."""
        named = {
            "min_length": self.min_length, "max_length": self.max_length, "pattern": self.pattern,
            "ge": self.least, "le": self.most,
        }  # fmt: skip
        return {name: value for name, value in named.items() if value is not None}


def whole_number(least: int, most: int) -> Rule:
    return Rule(lambda value, field: checked_whole(value, field, least, most), "N", least=least, most=most)


def text_rule(max_chars: int, noun: str = "TEXT") -> Rule:
    return Rule(lambda value, field: checked_text(value, field, max_chars=max_chars), noun, 1, max_chars)


IdempotencyKey = Annotated[
    str, text_rule(256, "KEY"), "Makes a retry safe: a second call with the same key returns the first one's result."
]


class Group:
    """Marks a field whose own fields are arguments: `filter: Annotated[OperationFilter, GROUP]`."""


GROUP = Group()


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `path` leads to its value: the fields from the request to it."""

    name: str
    path: tuple[str, ...]
    type: Any
    help: str
    rule: Rule | None
    optional: bool
    required: bool
    default: Any = None

    @property
    def item(self) -> Any:
        """The type of the items of a collection; None if it is not one."""
        return get_args(self.type)[0] if get_origin(self.type) in (frozenset, tuple) else None

    def value_in(self, request: object) -> Any:
        """Return the argument's value; the error names a group that is no dataclass."""
        *groups, name = self.path
        for group in groups:
            request = getattr(request, group)
            if not is_dataclass(request):
                raise InvalidInput(group, f"expected an object, got {type(request).__name__}")
        return getattr(request, name)


@cache
def arguments_of(request: Any, path: tuple[str, ...] = ()) -> tuple[Argument, ...]:
    """Return the arguments of a request, in the order of its fields. Its scope is not one of them."""
    hints = get_type_hints(request, include_extras=True)
    found: list[Argument] = []
    for each in fields(request):
        if each.name == "scope":
            continue
        about: list[Any] = []
        kind, optional = unwrap_type(hints[each.name], about)
        if any(isinstance(part, Group) for part in about):
            found += arguments_of(kind, (*path, each.name))
            continue
        given = each.default if each.default_factory is MISSING else each.default_factory()
        found.append(
            Argument(
                each.name,
                (*path, each.name),
                kind,
                next((part for part in about if isinstance(part, str)), ""),
                next((part for part in about if isinstance(part, Rule)), None),
                optional,
                required=given is MISSING,
                default=None if given is MISSING else given,
            )
        )
    return tuple(found)


def unwrap_type(hint: Any, about: list[Any]) -> tuple[Any, bool]:
    """Strip `Annotated`, `None` and `NewType` from a type; collect the annotations. Also return whether None is one."""
    if get_origin(hint) is Annotated:
        about += hint.__metadata__
        return unwrap_type(hint.__origin__, about)
    if get_origin(hint) in (Union, UnionType):
        others = [part for part in get_args(hint) if part is not NoneType]
        optional = len(others) < len(get_args(hint))
        if len(others) == 1:
            return unwrap_type(others[0], about)[0], optional
        return hint, optional
    return getattr(hint, "__supertype__", hint), False


def check_arguments(request: Any) -> None:
    """Check the type and limits of every argument; the error names the argument."""
    kind: Any = type(request)
    for name, read, optional, check in _checks(kind):
        value = read(request)
        if value is not None or not optional:
            check(value, name)


@cache
def _checks(request: Any) -> tuple[tuple[str, Callable[[Any], Any], bool, Check], ...]:
    """Return the name, reader and check of each argument that has a check, prepared once for all calls.

    A rule of a collection checks the collection itself.
    """
    found = []
    for each in arguments_of(request):
        check = _check_of(each.type) if each.rule is None else each.rule.check
        if check is not None:
            read = each.value_in if len(each.path) > 1 else attrgetter(each.name)
            found.append((each.name, read, each.optional, check))
    return tuple(found)


def _check_of(kind: Any) -> Check | None:
    if kind is datetime:
        return check_moment
    if kind is bool:
        return checked_flag
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, field: check_enum(value, kind, field)
    if get_origin(kind) in (frozenset, tuple):
        return partial(_check_items, get_origin(kind), _check_of(get_args(kind)[0]))
    return None


def _check_items(kind: type[Iterable[Any]], check: Check | None, value: Any, field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"expected a {kind.__name__}, got {type(value).__name__}")
    if check is not None:
        for item in value:
            check(item, field)


def check_moment(value: object, field: str) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidTimestamp(field, "must be a datetime with a UTC offset")


@cache
def result_type_of(request: Any) -> Any:
    """Return the type of a verb's result: the last parameter of its generic base."""
    for kind in request.__mro__:
        for parent in kind.__dict__.get("__orig_bases__", ()):
            if get_args(parent) and not isinstance(get_args(parent)[-1], TypeVar):
                return get_args(parent)[-1]
    raise TypeError(f"{request.__name__} does not declare its result type")
