"""Reads incomplete results: a system may have failed, a step may not have run.

Each figure is looked up here once, by its meaning; the report, the table of requirements and the chart use these. A
missing figure is None.
"""

from __future__ import annotations

import statistics
from typing import Any

from bench.engine.child import Json
from bench.engine.clock import Spread, spread


def at(results: object, *path: str) -> Any:
    """The value at the end of a path of keys, or None if the path ends early."""
    for key in path:
        if not isinstance(results, dict) or key not in results:
            return None
        results = results[key]
    return results


def system_rate(results: Json, system: str, kind: str) -> float | None:
    """Records per second; `kind` is one, threads or batches."""
    rate: float | None = at(results, "systems", system, kind, "per_second")
    return rate


def commits(results: Json, system: str) -> float | None:
    """Raw durable commits per second, measured in turn with a system's adds one at a time."""
    rate: float | None = at(results, "systems", system, "commits")
    return rate


def warm(results: Json, store: str, place: str, size: int | None = None) -> Spread | None:
    step = _step(results, store, size)
    found = at(step, "warm", place)
    return None if found is None else Spread(**found)


def cold(results: Json, store: str, place: str) -> Spread | None:
    """First searches in fresh processes."""
    runs = at(_step(results, store), "cold", place) or []
    taken = [ms / 1000 for run in runs for ms in run.get("taken_ms", [])]
    return spread(taken) if taken else None


def opening_ms(results: Json, store: str) -> float | None:
    places = at(_step(results, store), "cold") or {}
    taken = [run["open_ms"] for runs in places.values() for run in runs if "open_ms" in run]
    return statistics.median(taken) if taken else None


def sizes(results: Json) -> list[int]:
    return sorted({int(size) for grown in results["stores"].values() for size in grown})


def figure(results: Json, store: str, size: int, *path: str) -> Any:
    return at(_step(results, store, size), *path)


def memory_per_record(results: Json, store: str) -> float | None:
    """The growth of the process from searching everything, per record."""
    resident = at(_step(results, store), "warm", "resident") or {}
    if not {"opened", "everything"} <= resident.keys():
        return None
    return float(resident["everything"] - resident["opened"]) / int(results["scale"])


def ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _step(results: Json, store: str, size: int | None = None) -> Json | None:
    step: Json | None = at(results, "stores", store, str(size or results["scale"]))
    return step
