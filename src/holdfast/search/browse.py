"""Lists all candidates of a search by time instead of by rank."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from holdfast.domain.ranking import IntArray
from holdfast.domain.search import Order, SearchOptions
from holdfast.search.visibility import VisibleView, candidate_rows


def list_by_time(parts: Iterable[VisibleView], wanted: SearchOptions, order: Order) -> IntArray:
    """Record numbers, oldest first; records of the same time in the order in which they were stored."""
    numbers, moments = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for seen in parts:
        rows, columns = candidate_rows(seen, wanted), seen.view.columns
        numbers.append(columns.number[rows])
        moments.append((columns.said_at if order is Order.SAID else columns.recorded_at)[rows])
    number, moment = np.concatenate(numbers), np.concatenate(moments)
    return number[np.lexsort((number, moment))]
