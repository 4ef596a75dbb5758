"""Which of many calls fail, when not every one can."""

from __future__ import annotations


def spread(calls: int, most: int, phase: float = 0.0) -> list[int]:
    """At most so many of the calls: the first, the last, and others evenly between them.

    The phase, a part of a step from 0 to 1, moves those between: samples of other phases have other calls.
    """
    if calls <= most:
        return list(range(1, calls + 1))
    between, step = most - 2, (calls - 2) / (most - 2)
    return [1, *(2 + int((number + phase) * step) for number in range(between)), calls]
