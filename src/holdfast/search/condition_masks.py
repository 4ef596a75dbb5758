"""Evaluates a condition to a mask over the rows of a view."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import reduce

import numpy as np

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, ModelContextCondition, Not, Op
from holdfast.domain.memory import GUARDED_PLANES
from holdfast.domain.ranking import BoolArray, IntArray
from holdfast.domain.times import to_micros
from holdfast.search.partition_view import MESSAGE, PartitionView

_SCOPE_FIELDS = frozenset({Field.CONVERSATION, Field.CHANNEL})
_ORDER: dict[Op, Callable[[IntArray, int], BoolArray]] = {
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
    Op.LT: operator.lt,
    Op.LTE: operator.le,
}


def condition_mask(view: PartitionView, condition: Condition) -> BoolArray:
    """The mask of rows that meet the condition."""
    return _Masks(view).of(condition)


class _Masks:
    """Each mask is a new array that the caller may modify."""

    def __init__(self, view: PartitionView) -> None:
        self._view = view
        self._scopes: dict[Field, dict[str | None, list[int]]] = {}

    def of(self, condition: Condition) -> BoolArray:
        match condition:
            case AllOf(parts):
                return reduce(operator.iand, map(self.of, parts))
            case AnyOf(parts):
                return reduce(operator.ior, map(self.of, parts))
            case Not(part):
                return ~self.of(part)
            case ModelContextCondition():
                return self._for_model(condition)
            case Compare(_, op):
                if op in _ORDER:
                    return _ORDER[op](self._view.columns.said_at, _micros(condition)[0])
                among = self._one_of_mask(condition)
                return ~among if op is Op.NE else among

    def _one_of_mask(self, compare: Compare) -> BoolArray:
        """The rows whose value is one of `compare.values`."""
        columns, names = self._view.columns, self._view.names
        if compare.field in _SCOPE_FIELDS:
            return self._scope_mask(compare)
        if compare.field is Field.SAID_AT:
            return np.isin(columns.said_at, _micros(compare))
        column, known = {
            Field.SENDER: (columns.sender, names.senders),
            Field.SOURCE: (columns.source, names.sources),
            Field.PLANE: (columns.plane, names.planes),
        }[compare.field]
        return np.isin(column, [known.find(str(value)) for value in compare.values])

    def _scope_mask(self, compare: Compare) -> BoolArray:
        codes = self._scope_codes(compare.field)
        chosen = np.zeros(len(self._view.names.scopes), bool)
        for value in compare.values:
            chosen[codes.get(str(value), [])] = True
        mask: BoolArray = chosen[self._view.columns.scope]
        return mask

    def _for_model(self, condition: ModelContextCondition) -> BoolArray:
        columns, names = self._view.columns, self._view.names
        scopes = names.scopes
        at_hand = np.fromiter(map(condition.is_in_conversation, scopes), bool, len(scopes))
        lasting = np.fromiter(map(condition.is_outside_conversations, scopes), bool, len(scopes))
        private = np.isin(columns.plane, [names.planes.find(plane) for plane in GUARDED_PLANES])
        said = columns.kind == MESSAGE
        mask: BoolArray = np.where(said, at_hand[columns.scope] & ~private, (at_hand | lasting)[columns.scope])
        return mask

    def _scope_codes(self, field: Field) -> dict[str | None, list[int]]:
        """The codes of scopes, by their value in that field."""
        if field not in self._scopes:
            codes: dict[str | None, list[int]] = defaultdict(list)
            for code, scope in enumerate(self._view.names.scopes):
                codes[getattr(scope, field)].append(code)
            self._scopes[field] = codes
        return self._scopes[field]


def _micros(compare: Compare) -> list[int]:
    return [to_micros(value) for value in compare.values if isinstance(value, datetime)]
