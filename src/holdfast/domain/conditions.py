"""Conditions on records: comparisons, joined by all, any and not. A search does not see records that fail them.

Comparisons are two-valued, also if a record lacks the field: a missing value equals nothing and differs from
everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from holdfast.domain.arguments import many, text_rule
from holdfast.domain.checks import checked_text
from holdfast.domain.memory import Plane
from holdfast.domain.scope import CONVERSATION_PARTS, Partition, Scope
from holdfast.domain.times import checked_time
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import InvalidInput

MAX_DEPTH = 8
MAX_LEAVES = 64
MAX_VALUES = 1_000
MAX_VALUE_CHARS = 4_096
MAX_PARTITIONS = 8
Value = Annotated[str, text_rule(MAX_VALUE_CHARS)] | datetime
Values = Annotated[tuple[Value, ...], many(MAX_VALUES, least=1)]
Parts = Annotated[tuple["Condition", ...], many(MAX_LEAVES, least=1)]


class Field(StrEnum):
    """A field to compare. `said_at` of a memory is when it was recorded."""

    CONVERSATION = "conversation"
    CHANNEL = "channel"
    SENDER = "sender"
    SOURCE = "source"
    PLANE = "plane"
    SAID_AT = "said_at"


class Op(StrEnum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"


_ORDERING = frozenset({Op.GT, Op.GTE, Op.LT, Op.LTE})


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare a field with a value; `in` takes several. Only `said_at` has an order; its values are times."""

    field: Field
    op: Op
    value: Value | Values

    def __post_init__(self) -> None:
        field, op = checked_member(Field, self.field, "condition.field"), checked_member(Op, self.op, "condition.op")
        if op in _ORDERING and field is not Field.SAID_AT:
            raise InvalidInput("condition.op", f"{op} needs an order, but {field} has none; use eq, ne or in")
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "op", op)
        object.__setattr__(
            self, "value", _parse_values(field, self.value) if op is Op.IN else _parse_value(field, self.value)
        )

    @property
    def values(self) -> tuple[Value, ...]:
        """The values to compare with, also if there is one."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


# Different field names, so that the serialized form of one cannot be read as another.


@dataclass(frozen=True, slots=True)
class AllOf:
    """Records that meet every one of these conditions."""

    all_of: Parts

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_of", _parse_parts(self.all_of))
        _check_size(self)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Records that meet at least one of these conditions."""

    any_of: Parts

    def __post_init__(self) -> None:
        object.__setattr__(self, "any_of", _parse_parts(self.any_of))
        _check_size(self)


@dataclass(frozen=True, slots=True)
class Not:
    """Records that do not meet this condition."""

    negated: Condition

    def __post_init__(self) -> None:
        checked_condition(self.negated)
        _check_size(self)


@dataclass(frozen=True, slots=True)
class ModelContextCondition:
    """Records that a model may see in one conversation, or in none: the runtime's own condition.

    Matches, in these partitions, memories that belong to no conversation or to this one, and messages of this one
    except those of a private authority.
    """

    partitions: Annotated[tuple[Partition, ...], many(MAX_PARTITIONS, least=1)]
    thread: Scope | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.partitions) <= MAX_PARTITIONS:
            raise InvalidInput("condition.partitions", f"must have 1 to {MAX_PARTITIONS} entries")

    def is_in_conversation(self, scope: Scope) -> bool:
        """True if a record of that scope belongs to the conversation."""
        thread = self.thread
        if thread is None or scope.conversation != thread.conversation or scope.partition != thread.partition:
            return False
        return all(getattr(scope, part) == getattr(thread, part) for part in CONVERSATION_PARTS)

    def is_outside_conversations(self, scope: Scope) -> bool:
        """True if a record of that scope belongs to no conversation, and its partition may be read."""
        return scope.conversation is None and scope.partition in self.partitions


Condition = Compare | AllOf | AnyOf | Not | ModelContextCondition


def checked_condition(value: object) -> Condition:
    if not isinstance(value, Condition):
        raise InvalidInput("condition", f"expected Compare, AllOf, AnyOf or Not, got {type(value).__name__}")
    return value


def _parse_parts(given: object) -> tuple[Condition, ...]:
    if not isinstance(given, list | tuple):
        raise InvalidInput("condition", f"expected a list of conditions, got {type(given).__name__}")
    if not given:
        raise InvalidInput("condition", "joins an empty list of conditions; leave it out")
    return tuple(checked_condition(part) for part in given)


def _check_size(condition: Condition) -> None:
    """Limit the size. Conditions are built from the leaves up, so each part was checked before."""
    depth, leaves = _size(condition)
    if depth > MAX_DEPTH:
        raise InvalidInput("condition", f"nests deeper than {MAX_DEPTH}")
    if leaves > MAX_LEAVES:
        raise InvalidInput("condition", f"compares more than {MAX_LEAVES} times; use in for many values")


def _size(condition: Condition) -> tuple[int, int]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            sizes: Sequence[tuple[int, int]] = [_size(part) for part in parts]
        case Not(part):
            sizes = [_size(part)]
        case Compare() | ModelContextCondition():
            return 1, 1
    return 1 + max(depth for depth, _ in sizes), sum(leaves for _, leaves in sizes)


def _parse_values(field: Field, given: object) -> tuple[Value, ...]:
    if not isinstance(given, list | tuple):
        raise InvalidInput("condition.value", f"in takes a list of values, not {type(given).__name__}")
    if not 1 <= len(given) <= MAX_VALUES:
        raise InvalidInput("condition.value", f"in takes 1 to {MAX_VALUES:,} values, not {len(given):,}")
    return tuple(_parse_value(field, value) for value in given)


def _parse_value(field: Field, value: object) -> Value:
    if field is Field.SAID_AT:
        return checked_time(value, "condition.value")
    if field is Field.PLANE:
        return checked_member(Plane, value, "condition.value")
    return checked_text(value, "condition.value", max_chars=MAX_VALUE_CHARS)
