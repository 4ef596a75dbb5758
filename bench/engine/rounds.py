"""Several measurements of one system, taken at different moments of a run, as one.

What disturbs the machine for a minute would otherwise decide how two systems compare that were measured a minute apart.
"""

from __future__ import annotations

import statistics

from bench.engine.child import Json


def pooled(rounds: list[Json]) -> Json:
    """Rates over all rounds, medians of times, and the rest of the last round. One that failed does not count."""
    good = [found for found in rounds if "failed" not in found]
    if not good:
        return rounds[-1]
    together = {
        **good[-1],
        **{kind: _rates([found[kind] for found in good]) for kind in ("one", "threads", "batches")},
        # The probe took the same time in each round.
        "commits": statistics.fmean(found["commits"] for found in good),
        "rounds": len(good),
    }
    together["warm"] = {
        **good[-1]["warm"],
        **{part: statistics.median(found["warm"][part] for found in good) for part in ("p50_ms", "p95_ms")},
    }
    return together


def _rates(rates: list[Json]) -> Json:
    """A round in which the threads failed decides: a system that fails now and then fails."""
    for rate in rates:
        if "failed" in rate:
            return rate
    total = {part: sum(rate[part] for rate in rates) for part in ("count", "seconds", "planned")}
    broken = {key: rate[key] for rate in rates for key in ("broken",) if key in rate}
    return {**total, "per_second": total["count"] / total["seconds"], **broken}
