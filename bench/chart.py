"""Draws a run of `bench.engine` as one SVG file: adding, searching, growing.

python -m bench.chart bench/results/engine.json docs/assets/engine.svg
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.engine import reading
from bench.engine.child import Json
from bench.engine.clock import Spread
from bench.engine.scale import LARGE
from bench.svg import SERIES, Axis, Canvas, Evenly

_WIDTH = 860
_LEFT, _RIGHT = 250, 800
_STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


@dataclass(frozen=True, slots=True)
class Bar:
    value: float
    # The end of the thin line, if there is one.
    tail: float | None
    series: str
    says: str


@dataclass(frozen=True, slots=True)
class Group:
    """The bars of one name."""

    name: str
    bars: list[Bar]
    ours: bool


def drawn(results: Json) -> str:
    canvas = Canvas(_WIDTH)
    y = _rates(canvas, 28, results)
    y = _searches(canvas, y + 44, results)
    y = _growth(canvas, y + 44, results)
    about = results["machine"]
    said = f"{about['cores']} cores, {about['memory']}, {about['date']}, commit {about['commit']}"
    canvas.text(20, y + 34, f"{said}. The scales of the bars are logarithmic.", "small")
    return canvas.written(y + 50, "Holdfast and its peers: adding, searching, growing", _described(results))


def _rates(canvas: Canvas, y: float, results: Json) -> float:
    kinds = {"one": "one at a time", "threads": "from 8 threads", "batches": "in batches of 100"}
    groups = []
    for system, found in results["systems"].items():
        bars = []
        for series, (kind, words) in zip(SERIES, kinds.items(), strict=False):
            rate = reading.system_rate(results, system, kind)
            if rate is not None:
                bars.append(Bar(rate, None, series, f"{found['name']}, {words}: {rate:,.0f} records/s"))
        groups.append(_group(system, found, bars))
    canvas.text(20, y, f"Records added per second, embedding included, up to {results['records']:,} records", "title")
    canvas.key(20, y + 22, list(zip(SERIES, kinds.values(), strict=False)))
    return _bars(canvas, y + 40, groups, "records per second (longer is better)", "{:,.0f}".format)


def _searches(canvas: Canvas, y: float, results: Json) -> float:
    groups = []
    for place, words in _places(results).items():
        found = {store: reading.warm(results, store, place) for store in _STORES}
        bars = [
            _search(spread, series, f"Holdfast, {_STORES[store]}, {words}")
            for series, (store, spread) in zip(SERIES, found.items(), strict=False)
            if spread is not None
        ]
        if bars:
            groups.append(Group(f"Holdfast: {words}", bars, ours=True))
    for system, found in results["systems"].items():
        if system.startswith("holdfast"):
            continue
        spread = reading.at(found, "warm")
        groups.append(_group(system, found, [_search(Spread(**spread), "c", found["name"])] if spread else []))
    canvas.text(20, y, "Milliseconds of one search, the query's vector given: p50, and a line to p95", "title")
    peers = f"peers: one user's {results['records'] // 100} of {results['records']:,}"
    key = [("a", "Holdfast, SQLite"), ("b", "Holdfast, PostgreSQL"), ("c", peers)]
    canvas.key(20, y + 22, key)
    return _bars(canvas, y + 40, groups, "milliseconds (shorter is better)", _digits)


def _places(results: Json) -> dict[str, str]:
    return {
        "small": f"100 among {results['scale']:,}",
        LARGE: f"{results['large']:,}, exact",
        "approximate": f"{results['large']:,}, approximate",
        "everything": f"all {results['scale']:,}",
    }


def _search(found: Spread, series: str, name: str) -> Bar:
    return Bar(found.p50_ms, found.p95_ms, series, f"{name}: p50 {found.p50_ms:.2f} ms, p95 {found.p95_ms:.2f} ms")


def _group(system: str, found: Json, bars: list[Bar]) -> Group:
    return Group(found.get("name", system), bars, ours=system.startswith("holdfast"))


def _bars(canvas: Canvas, y: float, groups: list[Group], unit: str, form: Callable[[float], str]) -> float:
    """Horizontal bars on a logarithmic axis. Returns the y where they end."""
    values = [end for group in groups for bar in group.bars for end in (bar.value, bar.tail or bar.value)]
    if not values:
        canvas.text(20, y + 16, "not measured in this run", "small")
        return y + 24
    axis = Axis.over(values, _LEFT, _RIGHT)
    thick = 10
    heights = [max(1, len(group.bars)) * (thick + 3) + 10 for group in groups]
    bottom = y + sum(heights)
    for tick in axis.ticks():
        canvas.rule(axis.at(tick), y, axis.at(tick), bottom)
        canvas.text(axis.at(tick), bottom + 15, f"{tick:,g}", "small", "middle")
    canvas.text((_LEFT + _RIGHT) / 2, bottom + 31, unit, "small", "middle")
    for group, height in zip(groups, heights, strict=True):
        canvas.text(_LEFT - 10, y + height / 2 + 4, group.name, "ours" if group.ours else "", "end")
        top = y + (height - len(group.bars) * (thick + 3)) / 2
        if not group.bars:
            canvas.text(_LEFT + 6, y + height / 2 + 4, "failed, or not measured", "small")
        for bar in group.bars:
            _bar(canvas, axis, bar, top, thick, form)
            top += thick + 3
        y += height
    return bottom + 31


def _bar(canvas: Canvas, axis: Axis, bar: Bar, top: float, thick: float, form: Callable[[float], str]) -> None:
    end = axis.at(bar.value)
    canvas.bar(_LEFT, top, end - _LEFT, thick, bar.series, bar.says)
    if bar.tail is not None:
        canvas.rule(end, top + thick / 2, axis.at(bar.tail), top + thick / 2, "whisker")
        end = axis.at(bar.tail)
    canvas.text(end + 5, top + thick - 0.5, form(bar.value), "small")


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _growth(canvas: Canvas, y: float, results: Json) -> float:
    """The time of a search in a partition of 100 while the rest of the store grows."""
    series = {
        store: [
            (size, found.p50_ms)
            for size in reading.sizes(results)
            if (found := reading.warm(results, store, "small", size)) is not None
        ]
        for store in _STORES
    }
    canvas.text(20, y, "Search in a partition of 100 while the store grows: p50 in milliseconds", "title")
    canvas.key(20, y + 22, [(colour, name) for colour, name in zip(SERIES, _STORES.values(), strict=False)])
    points = [point for found in series.values() for point in found]
    if not points:
        canvas.text(20, y + 46, "not measured in this run", "small")
        return y + 54
    top, bottom = y + 40, y + 200
    across = Axis.over([size for size, _ in points], _LEFT - 150, _RIGHT)
    up = Evenly.over([ms for _, ms in points], bottom, top)
    for tick in across.ticks():
        canvas.rule(across.at(tick), top, across.at(tick), bottom)
        canvas.text(across.at(tick), bottom + 18, f"{tick:,.0f}", "small", "middle")
    for tick in up.ticks():
        canvas.rule(across.start, up.at(tick), across.end, up.at(tick))
        canvas.text(across.start - 24, up.at(tick) + 4, f"{tick:.3g} ms", "small", "end")
    canvas.text((across.start + across.end) / 2, bottom + 35, "memories in the store", "small", "middle")
    _lines(canvas, across, up, series)
    return bottom + 35


def _lines(canvas: Canvas, across: Axis, up: Evenly, series: dict[str, list[tuple[int, float]]]) -> None:
    # Label the upper of two lines above it and the lower below.
    ranked = sorted((found for found in series.values() if found), key=lambda found: found[-1][1])
    for colour, (store, found) in zip(SERIES, series.items(), strict=False):
        canvas.line([(across.at(size), up.at(ms)) for size, ms in found], colour)
        below = len(ranked) > 1 and found == ranked[0]
        for size, ms in found:
            canvas.dot(across.at(size), up.at(ms), colour, f"{_STORES[store]}, {size:,} memories: {ms:.2f} ms")
            canvas.text(across.at(size), up.at(ms) + (18 if below else -9), f"{ms:.2f}", "small", "middle")


def _described(results: Json) -> str:
    """The main figures in words, as alternative text."""
    said = []
    for system, found in results["systems"].items():
        rate, p50 = reading.system_rate(results, system, "one"), reading.at(found, "warm", "p50_ms")
        if rate is not None and p50 is not None:
            said.append(f"{found['name']}: {rate:,.0f} single adds a second, a search in {p50:.1f} ms.")
    for store, name in _STORES.items():
        for place, words in _places(results).items():
            if (spread := reading.warm(results, store, place)) is not None:
                said.append(f"Holdfast on {name}, {words}: a search in {spread.p50_ms:.2f} ms.")
    return " ".join(said)
