"""Post-filters for external providers' results, since the provider API has fewer filters than the library."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, ModelContextCondition, Not, Op
from holdfast.domain.memory import OPEN_PLANES, Plane, Status
from holdfast.domain.results import Hit, HitKind
from holdfast.domain.scope import Scope
from holdfast.domain.search import ListFilter, Method, SearchOptions


def unsupported_field(wanted: object, *names: str) -> str | None:
    """Say which of these fields is set, none of which the provider API has; None if none is."""
    given = [name for name in names if getattr(wanted, name) is not None]
    return f"{given[0]} is not supported there" if given else None


def unsupported_option(wanted: SearchOptions) -> str | None:
    if problem := unsupported_field(wanted, "as_of", "valid_at", "radius"):
        return problem
    return None if wanted.method is Method.HYBRID else f"the method {wanted.method} is not supported there"


def narrow_scope(scope: Scope, wanted: SearchOptions) -> Scope:
    """Narrow the scope to the condition's conversation if it names exactly one: the provider may filter by it."""
    spoken = set(_conversations_in(wanted.condition))
    if scope.conversation is None and len(spoken) == 1:
        return replace(scope, conversation=spoken.pop())
    return scope


def _conversations_in(condition: Condition | None) -> Sequence[str]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return [found for part in parts for found in _conversations_in(part)]
        case Compare(field=Field.CONVERSATION, op=Op.EQ, value=str(value)):
            return [value]
    return []


def matches_options(hit: Hit, wanted: SearchOptions) -> bool:
    if wanted.kind not in (None, hit.kind) or wanted.role is not None:
        return False
    if hit.plane not in (OPEN_PLANES if wanted.planes is None else wanted.planes):
        return False
    if wanted.sender not in (None, hit.sender) or wanted.source not in (None, hit.source):
        return False
    if wanted.min_score is not None and hit.score < wanted.min_score:
        return False
    if wanted.said_from is not None and hit.recorded_at < wanted.said_from:
        return False
    if wanted.said_to is not None and hit.recorded_at >= wanted.said_to:
        return False
    return wanted.condition is None or _meets_condition(hit, wanted.condition)


def matches_list_filter(plane: Plane, wanted: ListFilter) -> bool:
    if wanted.kind not in (None, HitKind.MEMORY) or wanted.status not in (None, Status.ACCEPTED):
        return False
    return plane in (OPEN_PLANES if wanted.planes is None else wanted.planes)


def _meets_condition(hit: Hit, condition: Condition) -> bool:
    match condition:
        case AllOf(parts):
            return all(_meets_condition(hit, part) for part in parts)
        case AnyOf(parts):
            return any(_meets_condition(hit, part) for part in parts)
        case Not(part):
            return not _meets_condition(hit, part)
        case ModelContextCondition():
            return False
        case Compare():
            return _compare_value(_FIELDS[condition.field](hit), condition)


_FIELDS: Mapping[Field, Callable[[Hit], Any]] = {
    Field.CONVERSATION: attrgetter("scope.conversation"),
    Field.CHANNEL: attrgetter("scope.channel"),
    Field.SENDER: attrgetter("sender"),
    Field.SOURCE: attrgetter("source"),
    Field.PLANE: attrgetter("plane"),
    Field.SAID_AT: attrgetter("recorded_at"),
}
_ORDERS: Mapping[Op, Callable[[Any, Any], bool]] = {
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
    Op.LT: operator.lt,
    Op.LTE: operator.le,
}


def _compare_value(value: Any, condition: Compare) -> bool:
    """Compare a value: a missing one equals nothing and differs from everything."""
    if condition.op is Op.NE:
        return value is None or value != condition.value
    if value is None:
        return False
    compare = _ORDERS.get(condition.op)
    return value in condition.values if compare is None else compare(value, condition.value)
