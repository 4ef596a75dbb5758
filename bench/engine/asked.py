"""The requirements on the engine, beside the results of this run. It reports whether they hold and never fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.engine import reading
from bench.engine.child import Json
from bench.engine.reading import ratio
from bench.engine.scale import LARGE

_STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_PLACES = {
    "small": "a partition of 100",
    LARGE: "the large partition, exact",
    "approximate": "the large partition, approximate",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement. If this run did not measure it, `measured` is empty and `holds` None."""

    asked: str
    measured: str
    holds: bool | None


def rows(results: Json) -> list[Row]:
    return [
        *_adds(results),
        *_small(results),
        *_opening(results),
        *_large(results),
        *_stores(results),
        *_copies(results),
    ]


def _adds(results: Json) -> Iterator[Row]:
    one, probe = reading.system_rate(results, "holdfast", "one"), reading.commits(results, "holdfast")
    asked = "SQLite, one durable add at a time: at least half of the raw commit probe"
    yield _at_least(asked, 0.5, ratio(one, probe), "{:.2f}", _rates(one, "probe", probe))
    kinds = {"one": ("one at a time", 3), "threads": ("from 8 threads", 6), "batches": ("in batches of 100", 10)}
    for kind, (words, times) in kinds.items():
        ours, theirs = reading.system_rate(results, "holdfast", kind), reading.system_rate(results, "mem0", kind)
        whose = "mem0"
        if theirs is None:
            theirs, whose = reading.system_rate(results, "mem0", "one"), "mem0 one at a time"
        asked = f"SQLite, adds {words}: at least {times} times mem0"
        yield _at_least(asked, times, ratio(ours, theirs), "{:.1f} times", _rates(ours, whose, theirs))


def _small(results: Json) -> Iterator[Row]:
    p50 = _p50(results, "sqlite", "small")
    yield _at_most(f"SQLite, partition of 100 among {results['scale']:,}: p50 at most 3 ms", 3, p50, "{:.2f} ms")
    mem0: float | None = reading.at(results, "systems", "mem0", "warm", "p50_ms")
    asked = f"… at least 15 times faster than mem0 at {results['records']:,}"
    yield _at_least(asked, 15, ratio(mem0, p50), "{:.0f} times", f" (mem0 {mem0:.1f} ms)" if mem0 else "")
    last = max([results["scale"], *reading.sizes(results)])
    for store, name in _STORES.items():
        end = reading.warm(results, store, "small", last) if last > results["scale"] else None
        grown = ratio(end.p50_ms, _p50(results, store, "small")) if end else None
        asked = f"… less than 1.5 times that with {last:,} memories elsewhere, {name}"
        row = _at_most(asked, 1.5, grown, "{:.2f} times")
        # The bound itself does not pass.
        yield Row(row.asked, row.measured, None if grown is None else grown < 1.5)


def _opening(results: Json) -> Iterator[Row]:
    for place, records in (("small", 100), (LARGE, results["large"])):
        runs = reading.figure(results, "sqlite", results["scale"], "cold", place) or [{}]
        taken = runs[0].get("taken_ms")
        seconds = (runs[0]["open_ms"] + taken[0]) / 1000 if taken else None
        words = f"the first search in a partition of {records:,}, cold: under 1 s"
        yield _at_most(f"SQLite, opening {results['scale']:,} and {words}", 1, seconds, "{:.3f} s")


def _large(results: Json) -> Iterator[Row]:
    for place, words, limit in ((LARGE, "exact", 60), ("approximate", "approximate", 20)):
        asked = f"SQLite, partition of {results['large']:,}, {words}: p50 at most {limit} ms"
        yield _at_most(asked, limit, _p50(results, "sqlite", place), "{:.1f} ms")
    for store, name in _STORES.items():
        recall: float | None = reading.figure(results, store, results["scale"], "warm", "recall")
        yield _at_least(f"… approximate, recall at least 0.97, {name}", 0.97, recall, "{:.3f}")


def _stores(results: Json) -> Iterator[Row]:
    for place, words in _PLACES.items():
        sqlite, postgres = _p50(results, "sqlite", place), _p50(results, "postgres", place)
        beside = f" ({postgres:.2f} ms, SQLite {sqlite:.2f} ms)" if sqlite and postgres else ""
        asked = f"PostgreSQL within 2.5 times SQLite: {words}"
        yield _at_most(asked, 2.5, ratio(postgres, sqlite), "{:.2f} times", beside)


def _copies(results: Json) -> Iterator[Row]:
    for way in ("sqlite to postgres", "postgres to sqlite"):
        rate: float | None = reading.at(results, "copies", way, "per_second")
        asked = f"`store copy`, {way}, {results['scale']:,} memories: at least 2,000 records/s"
        yield _at_least(asked, 2_000, rate, "{:,.0f}/s")


def _p50(results: Json, store: str, place: str) -> float | None:
    found = reading.warm(results, store, place)
    return found.p50_ms if found else None


def _rates(ours: float | None, whose: str, theirs: float | None) -> str:
    return f" ({ours:,.0f}/s, {whose} {theirs:,.0f}/s)" if ours and theirs else ""


def _at_least(asked: str, bound: float, value: float | None, form: str, beside: str = "") -> Row:
    return Row(asked, "", None) if value is None else Row(asked, form.format(value) + beside, value >= bound)


def _at_most(asked: str, bound: float, value: float | None, form: str, beside: str = "") -> Row:
    return Row(asked, "", None) if value is None else Row(asked, form.format(value) + beside, value <= bound)
