"""Pools several measurements of one system, taken at different times of a run.

Otherwise a disturbance of one minute would decide the comparison of two systems measured a minute apart.
"""

from __future__ import annotations

import statistics

from bench.engine.child import Json


def pooled(rounds: list[Json]) -> Json:
    """Rates over all rounds, medians of times, and the rest from the last round. Failed rounds do not count."""
    good = [found for found in rounds if "failed" not in found]
    if not good:
        return rounds[-1]
    together = {
        **good[-1],
        **{kind: _rates([found[kind] for found in good]) for kind in ("one", "threads", "batches")},
        # The probe ran for the same time in each round.
        "commits": statistics.fmean(found["commits"] for found in good),
        "rounds": len(good),
    }
    together["warm"] = {
        **good[-1]["warm"],
        **{part: statistics.median(found["warm"][part] for found in good) for part in ("p50_ms", "p95_ms")},
    }
    return together


def _rates(rates: list[Json]) -> Json:
    """Sum the rates. One round with failed threads decides: a system that fails now and then fails."""
    for rate in rates:
        if "failed" in rate:
            return rate
    total = {part: sum(rate[part] for rate in rates) for part in ("count", "seconds", "planned")}
    broken = {key: rate[key] for rate in rates for key in ("broken",) if key in rate}
    return {**total, "per_second": total["count"] / total["seconds"], **broken}
