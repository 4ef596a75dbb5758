"""The arguments of a verb, as its request declares them. Every surface is derived from these declarations.

An argument is a field of a request: its type, its default, and in `Annotated` one line of help and the `Rule` that its
values must obey. A field marked `GROUP` is a dataclass whose fields are arguments of the request too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from holdfast.domain.checks import (
    LEAST_WHOLE,
    MAX_METADATA_CHARS,
    MAX_METADATA_ENTRIES,
    MOST_WHOLE,
    check_count,
    check_enum,
    check_metadata,
    checked_flag,
    checked_real,
    checked_text,
    checked_whole,
)
from holdfast.errors import InvalidCall, InvalidInput, InvalidTimestamp

Check = Callable[[Any, str], object]

# Arguments that have two names. A verb declares one of them, and every surface accepts the other too.
ALTERNATE_NAMES: tuple[frozenset[str], ...] = (frozenset({"top_k", "limit"}),)


def alternate_names(name: str) -> tuple[str, ...]:
    """Return the other names of an argument."""
    return tuple(other for names in ALTERNATE_NAMES if name in names for other in sorted(names - {name}))


def with_declared_names(values: Mapping[str, Any], declared: Container[str]) -> dict[str, Any]:
    """Return the values by the names that a verb declares. An argument that has both its names is refused."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        own = next((each for each in (name, *alternate_names(name)) if each in declared), name)
        if own != name and own in values:
            raise InvalidCall(name, f"is another name of {own}; give one of them")
        found[own] = value
    return found


@dataclass(frozen=True, slots=True)
class Rule:
    """The limits of a value. `check(value, field)` raises `InvalidInput`; the other fields describe it to surfaces.

    `noun` names the value in help texts, such as KEY. A request to a service may have fewer items: `max_served`.
    """

    check: Check
    noun: str
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    least: int | None = None
    most: int | None = None
    max_served: int | None = None
    format: str | None = None  # of OpenAPI

    def __get_pydantic_core_schema__(self, kind: Any, handler: Callable[[Any], Any]) -> Any:
        """Describe the limits to pydantic, which reads requests on the wire and writes their JSON schemas."""
        return _describe_limits(handler(kind), self)

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


def number(least: int, most: int, noun: str = "N") -> Rule:
    return Rule(lambda value, field: checked_real(value, field, least, most), noun, least=least, most=most)


def text_rule(max_chars: int, noun: str = "TEXT") -> Rule:
    return Rule(lambda value, field: checked_text(value, field, max_chars=max_chars), noun, 1, max_chars)


def many(most: int, *, least: int = 0, noun: str = "TEXT", max_served: int | None = None) -> Rule:
    """Return the rule of a collection. Its items obey the rule of their own type."""
    return Rule(partial(check_count, least=least, most=most), noun, least or None, most, max_served=max_served)


# The JSON schema keywords of a rule's limits, by pydantic's names of types.
_TEXT_KEYWORDS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_NUMBER_KEYWORDS = {"ge": "minimum", "le": "maximum"}
_KEYWORDS = {"str": _TEXT_KEYWORDS, "bytes": _TEXT_KEYWORDS, "int": _NUMBER_KEYWORDS, "float": _NUMBER_KEYWORDS}
_COLLECTIONS = {"list": "minItems", "tuple": "minItems", "frozenset": "minItems", "dict": "minProperties"}


def _describe_limits(schema: Any, rule: Rule) -> Any:
    """Add a rule's limits to pydantic's schema of a type. The rule's own check applies them, with better errors; only
    the length of a collection is checked before its items are read."""
    kind = schema["type"]
    if kind == "nullable":
        return {**schema, "schema": _describe_limits(schema["schema"], rule)}
    if kind in _COLLECTIONS:
        least = {} if rule.min_length is None else {_COLLECTIONS[kind]: rule.min_length}
        described, most = _with_keywords(schema, least), rule.max_served or rule.max_length
        return described if most is None else {**described, "max_length": most}
    keywords = _KEYWORDS.get(kind, {})
    limits = {keywords[name]: value for name, value in rule.limits.items() if name in keywords}
    if kind == "bytes" and rule.max_length is not None:
        limits["maxLength"] = -(-rule.max_length // 3) * 4  # as base64
    if rule.format is not None:
        limits["format"] = rule.format
    return _with_keywords(schema, limits)


def _with_keywords(schema: Any, keywords: dict[str, Any]) -> Any:
    return (
        {**schema, "metadata": {**schema.get("metadata", {}), "pydantic_js_updates": keywords}} if keywords else schema
    )


IdempotencyKey = Annotated[
    str, text_rule(256, "KEY"), "Makes a retry safe: a second call with the same key returns the first one's result."
]


MetadataArgument = Annotated[
    Mapping[
        Annotated[str, text_rule(MAX_METADATA_CHARS, "NAME")],
        Annotated[str, Rule(checked_text, "TEXT", max_length=MAX_METADATA_CHARS)]
        | Annotated[int, whole_number(LEAST_WHOLE, MOST_WHOLE)]
        | Annotated[float, Rule(checked_real, "N", format="double")]
        | bool
        | None,
    ],
    Rule(lambda value, _: check_metadata(value), "JSON", max_length=MAX_METADATA_ENTRIES),
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
    item_rule: Rule | None = None

    @property
    def item(self) -> Any:
        """The type of the items of a collection; None if it is not one."""
        return get_args(self.type)[0] if get_origin(self.type) in (frozenset, tuple, Sequence) else None

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
    hints, plain = get_type_hints(request, include_extras=True), get_type_hints(request)
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
                unwrap_type(plain[each.name], [])[0],
                next((part for part in about if isinstance(part, str)), ""),
                _rule_among(about),
                optional,
                required=given is MISSING,
                default=None if given is MISSING else given,
                item_rule=_item_rule(kind),
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
    """Return the name, reader and check of each argument that has a check, prepared once for all calls."""
    found = []
    for each in arguments_of(request):
        check = _check_of(each.type, each.rule, each.item_rule)
        if check is not None:
            read = each.value_in if len(each.path) > 1 else attrgetter(each.name)
            found.append((each.name, read, each.optional, check))
    return tuple(found)


def _rule_among(about: Iterable[Any]) -> Rule | None:
    return next((part for part in about if isinstance(part, Rule)), None)


def _item_rule(kind: Any) -> Rule | None:
    about: list[Any] = []
    if get_origin(kind) in (frozenset, tuple):
        unwrap_type(get_args(kind)[0], about)
    return _rule_among(about)


def _check_of(kind: Any, rule: Rule | None = None, item_rule: Rule | None = None) -> Check | None:
    """Return the check of a value. A rule of a collection checks the collection itself; then follow its items."""
    if get_origin(kind) in (frozenset, tuple):
        whole = None if rule is None else rule.check
        return partial(_check_items, get_origin(kind), whole, _check_of(get_args(kind)[0], item_rule))
    if rule is not None:
        return rule.check
    if kind is datetime:
        return check_moment
    if kind is bool:
        return checked_flag
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, field: check_enum(value, kind, field)
    return None


def _check_items(kind: type[Iterable[Any]], whole: Check | None, check: Check | None, value: Any, field: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"expected a {kind.__name__}, got {type(value).__name__}")
    if whole is not None:
        whole(value, field)
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
