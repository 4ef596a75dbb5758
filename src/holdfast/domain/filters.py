"""Parser of the JSON filters of the service's searches into a condition.

All entries of an object must hold. Each is a field with a value or with operators and values, or `AND` or `OR` with a
list of such objects. Errors name the path, such as filters.AND[1].timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.domain.conditions import (
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_VALUES,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Field,
    Not,
    Op,
)
from holdfast.domain.times import checked_iso_time, checked_milliseconds
from holdfast.errors import InvalidInput, InvalidTimestamp

_ROOT = "filters"
_CHAT, _RESOURCE = "chat:", "resource:"
# Fields that a request sets elsewhere, where they are checked against the caller.
_RESERVED = frozenset({"owner_id", "owner_type", "app_id", "project_id"})
_NAMING = (Op.EQ, Op.NE, Op.IN)
_MILLISECOND = timedelta(milliseconds=1)
# EverOS reads smaller numbers as seconds.
_FIRST_OF_EVEROS = 10**12
# A condition that is always false: nothing is earlier than the minimum.
_NOTHING = Compare(Field.SAID_AT, Op.LT, datetime.min.replace(tzinfo=UTC))


def condition_from(filters: Mapping[str, Any], subject: str, *, everos: bool = False) -> Condition | None:
    """Parse the filters of a search about `subject`; None if there are none.

    With `everos`, as EverOS clients write them: a bare session id is a conversation of that name, a time may be an
    ISO 8601 text or in seconds, and parents can be filtered by, although no record has one.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInput(_ROOT, f"expected an object, got {type(filters).__name__}")
    if not filters:
        return None
    return _FilterParser(subject, everos).parse_node(filters, _ROOT, 1)


@dataclass(frozen=True, slots=True)
class _FilterParser:
    subject: str
    everos: bool

    def parse_node(self, given: Mapping[str, Any], path: str, depth: int) -> Condition:
        parts: list[Condition] = []
        for name, value in given.items():
            at = _below(path, name)
            if name in ("AND", "OR"):
                within = self._parse_nodes(value, at, depth)
                parts += within if name == "AND" else [_join_conditions(AnyOf, within, at)]
            else:
                parts.append(self._parse_field(name, value, at))
        return _join_conditions(AllOf, parts, path)

    def _parse_nodes(self, given: object, path: str, depth: int) -> list[Condition]:
        if depth >= MAX_DEPTH:
            raise InvalidInput(path, f"nests deeper than {MAX_DEPTH}")
        if not isinstance(given, list | tuple):
            raise InvalidInput(path, f"expected a list of filters, got {type(given).__name__}")
        if not 1 <= len(given) <= MAX_LEAVES:
            raise InvalidInput(path, f"takes 1 to {MAX_LEAVES} filters, not {len(given):,}")
        found = []
        for number, node in enumerate(given):
            at = f"{path}[{number}]"
            if not isinstance(node, Mapping):
                raise InvalidInput(at, f"expected an object, got {type(node).__name__}")
            if not node:
                raise InvalidInput(at, "is empty; leave it out")
            found.append(self.parse_node(node, at, depth + 1))
        return found

    def _parse_field(self, name: object, given: Any, path: str) -> Condition:
        readers: dict[object, Callable[[Op, Any, str], Condition]] = {
            "session_id": self._session,
            "sender_id": _sender,
            "timestamp": self._time,
        }
        if name in _RESERVED:
            raise InvalidInput(path, "is reserved: set it in the request itself, outside of its filters")
        if self.everos:
            readers |= {"parent_type": _parent, "parent_id": _parent}
        if name not in readers:
            raise InvalidInput(path, f"is not a field to filter by; use one of {', '.join(map(str, readers))}, AND, OR")
        read = readers[name]
        if not isinstance(given, Mapping):
            return read(Op.EQ, given, path)
        if not given:
            raise InvalidInput(path, "is empty; give it a value or an operator")
        known: Sequence[Op] = tuple(Op) if name == "timestamp" else _NAMING
        compared = []
        for op, value in given.items():
            if op not in known:
                raise InvalidInput(_below(path, op), f"is not an operator of {name}; use one of {', '.join(known)}")
            compared.append(read(Op(op), value, _below(path, op)))
        return _join_conditions(AllOf, compared, path)

    # --- sessions ---

    def _session(self, op: Op, given: Any, path: str) -> Condition:
        """Session ids name conversations or resources, which are in different fields."""
        named: dict[Field, list[str]] = {}
        for value, at in _values(op, given, path):
            field, name = self._parse_session_id(value, at)
            named.setdefault(field, []).append(name)
        compared = [_compare(field, Op.IN if len(names) > 1 else Op.EQ, names, path) for field, names in named.items()]
        found = _join_conditions(AnyOf, compared, path)
        return Not(found) if op is Op.NE else found

    def _parse_session_id(self, value: object, path: str) -> tuple[Field, str]:
        if not isinstance(value, str):
            raise InvalidInput(path, f"expected text, got {type(value).__name__}")
        if value.startswith(_RESOURCE):
            owner, _, resource = value.removeprefix(_RESOURCE).rpartition(":")
            if not owner or not resource:
                raise InvalidInput(path, f"does not name a resource; write it as resource:{self.subject}:<id>")
            return Field.SOURCE, value
        if value.startswith(_CHAT) or self.everos:
            return Field.CONVERSATION, value.removeprefix(_CHAT)
        raise InvalidInput(path, f"has no prefix; use chat:<conversation> or resource:{self.subject}:<id>")

    # --- times ---

    def _time(self, op: Op, given: Any, path: str) -> Condition:
        moments = [self._moment(value, at) for value, at in _values(op, given, path)]
        if len(moments) > MAX_LEAVES // 2:
            raise InvalidInput(path, f"takes at most {MAX_LEAVES // 2} times; use gte and lt")
        return _join_conditions(AnyOf, [_of_millisecond(op, moment, path) for moment in moments], path)

    def _moment(self, value: object, path: str) -> datetime:
        if self.everos and isinstance(value, str):
            moment = checked_iso_time(value, path)
            # Truncated to milliseconds, like the times in responses.
            return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
        if self.everos and type(value) is int and 0 < value < _FIRST_OF_EVEROS:
            value *= 1_000
        return checked_milliseconds(value, path)


def _of_millisecond(op: Op, start: datetime, path: str) -> Condition:
    """Compare with a whole millisecond: records have microseconds, which callers never see."""
    try:
        end = start + _MILLISECOND
    except OverflowError:
        raise InvalidTimestamp(path, "is the end of the year 9999; leave it out") from None
    match op:
        case Op.GTE | Op.LT:
            return _compare(Field.SAID_AT, op, [start], path)
        case Op.GT:
            return _compare(Field.SAID_AT, Op.GTE, [end], path)
        case Op.LTE:
            return _compare(Field.SAID_AT, Op.LT, [end], path)
    within = AllOf((Compare(Field.SAID_AT, Op.GTE, start), Compare(Field.SAID_AT, Op.LT, end)))
    return Not(within) if op is Op.NE else within


def _sender(op: Op, given: Any, path: str) -> Condition:
    values = []
    for value, at in _values(op, given, path):
        if not isinstance(value, str):
            raise InvalidInput(at, f"expected text, got {type(value).__name__}")
        values.append(value)
    return _compare(Field.SENDER, op, values, path)


def _parent(op: Op, given: Any, path: str) -> Condition:
    """No record has a parent: equality never holds, inequality always."""
    for value, at in _values(op, given, path):
        if not isinstance(value, str):
            raise InvalidInput(at, f"expected text, got {type(value).__name__}")
    return Not(_NOTHING) if op is Op.NE else _NOTHING


def _values(op: Op, given: Any, path: str) -> list[tuple[Any, str]]:
    """Return each value with its path."""
    if op is not Op.IN:
        return [(given, path)]
    if not isinstance(given, list | tuple):
        raise InvalidInput(path, f"expected a list of values, got {type(given).__name__}")
    if not 1 <= len(given) <= MAX_VALUES:
        raise InvalidInput(path, f"takes 1 to {MAX_VALUES:,} values, not {len(given):,}")
    return [(value, f"{path}[{number}]") for number, value in enumerate(given)]


def _compare(field: Field, op: Op, values: Sequence[str | datetime], path: str) -> Condition:
    try:
        return Compare(field, op, tuple(values) if op is Op.IN else values[0])
    except InvalidInput as error:
        raise type(error)(path, error.problem) from None


def _join_conditions(how: type[AllOf] | type[AnyOf], parts: Sequence[Condition], path: str) -> Condition:
    """Join conditions with less nesting: a single one is returned itself, and parts of the same kind are flattened."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Condition] = []
    for part in parts:
        if isinstance(part, how):
            flat += part.all_of if isinstance(part, AllOf) else part.any_of
        else:
            flat.append(part)
    try:
        return how(tuple(flat))
    except InvalidInput as error:
        raise InvalidInput(path, error.problem) from None


# Any other name is quoted.
_KNOWN = frozenset({"session_id", "sender_id", "timestamp", "parent_type", "parent_id", "AND", "OR", *_RESERVED, *Op})
_KNOWN |= {"user_id", "group_id"}


def _below(path: str, name: object) -> str:
    return f"{path}.{name}" if name in _KNOWN else f"{path}[{name!r:.60}]"
