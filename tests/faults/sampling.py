"""Samples of the calls to fail, for runs that cannot fail every one."""

from __future__ import annotations


def spread(calls: int, most: int, phase: float = 0.0) -> list[int]:
    """At most `most` of the calls: the first, the last, and others evenly spaced between them.

    `phase`, from 0 to 1 of a step, shifts those in between, so that different phases sample different calls.
    """
    if calls <= most:
        return list(range(1, calls + 1))
    between, step = most - 2, (calls - 2) / (most - 2)
    return [1, *(2 + int((number + phase) * step) for number in range(between)), calls]
