"""A run's results as markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.engine import asked, reading
from bench.engine.child import Json
from bench.engine.clock import Spread
from bench.engine.scale import LARGE

_STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_NONE = "–"
_THREADS = {"failed": "8 threads failed", "broken": "a search after 8 threads failed"}


def written(results: Json) -> str:
    parts = [_machine(results), _adds(results), _peers(results), _searches(results), _growth(results), _disk(results)]
    return "\n\n".join([*parts, _asked(results)])


def short(results: Json) -> str:
    """One row per system, and one for Holdfast at scale."""
    body = []
    for system, found in results["systems"].items():
        if "failed" in found:
            continue
        name = f"**{found['name']}**" if system.startswith("holdfast") else found["name"]
        rates = [_rate(found[kind]) for kind in ("one", "threads", "batches")]
        body.append([name, *rates, _spread(Spread(**found["warm"])), f"{found['found']:.0%}"])
    for store, name in _STORES.items():
        if (small := reading.warm(results, store, "small")) is not None:
            body.append([f"**Holdfast**, {name}, one of {results['scale']:,}", *[_NONE] * 3, _spread(small), _NONE])
    head = ["system", "adds/s, one at a time", "from 8 threads", "in batches of 100", "search p50 / p95 ms", "results"]
    return table(head, body)


def _machine(results: Json) -> str:
    about = results["machine"]
    commits = [
        f"{found['when']}: SQLite {found['sqlite']:,.0f}/s"
        + (f", PostgreSQL {found['postgres']:,.0f}/s" if "postgres" in found else "")
        for found in results["commits"]
    ]
    busy = float(about.get("load", 0)) > int(about["cores"]) / 2
    others = f" The machine was busy with other work (load {about['load']} at the start): read ratios." if busy else ""
    took = f" It took {results['minutes']:.0f} minutes." if "minutes" in results else ""
    return (
        f"{about['cores']} cores, {about['memory']}, Python {about['python']}, SQLite {about['sqlite']},"
        f" {about['date']}, commit {about['commit']}.{took}{others}\n\n"
        f"Raw durable commits, one row each, {'; '.join(commits)}."
    )


def _adds(results: Json) -> str:
    body = []
    for system, found in results["systems"].items():
        if "failed" in found:
            body.append([system, *[_NONE] * 4, found["failed"]])
            continue
        share = reading.ratio(reading.system_rate(results, system, "one"), reading.commits(results, system))
        body.append(
            [
                found["name"],
                *(_rate(found[kind]) for kind in ("one", "threads", "batches")),
                _number(share, ".2f"),
                _note(found),
            ]
        )
    head = ["system", "one at a time /s", "from 8 threads /s", "batches of 100 /s", "one at a time ÷ probe", "note"]
    return f"### Adding, embedding included, up to {results['records']:,} records\n\n{table(head, body)}"


def _peers(results: Json) -> str:
    body = []
    for system, found in results["systems"].items():
        if "failed" in found:
            body.append([system, *[_NONE] * 6])
            continue
        again = found.get("reopened", {})
        body.append(
            [
                found["name"],
                _spread(Spread(**found["warm"])),
                f"{found['found']:.0%}",
                _number(again.get("open_ms"), ",.0f"),
                _number(again.get("first_ms"), ",.1f"),
                _number(found["disk_bytes"] / found["records"], ",.0f") if found["disk_bytes"] else _NONE,
                _number(again.get("resident_bytes", found["resident_bytes"]) / 2**20, ",.0f"),
            ]
        )
    head = ["system", "p50 / p95 ms", "results", "open ms", "first search ms", "disk bytes/record", "resident MB"]
    title = f"### Searching one user's 100 of {results['records']:,} records, the query's vector given"
    return f"{title.replace('100', str(results['records'] // 100))}\n\n{table(head, body)}"


def _searches(results: Json) -> str:
    places = {
        "small": "a partition of 100",
        LARGE: f"a partition of {results['large']:,}, exact",
        "approximate": f"a partition of {results['large']:,}, approximate",
        "everything": f"all {results['scale']:,}",
    }
    body = []
    for place, words in places.items():
        both = {store: reading.warm(results, store, place) for store in _STORES}
        if not any(both.values()):
            continue
        sqlite, postgres = both["sqlite"], both["postgres"]
        ratio = reading.ratio(postgres.p50_ms, sqlite.p50_ms) if sqlite and postgres else None
        cold = [_spread(reading.cold(results, store, place)) for store in _STORES]
        body.append([words, _spread(sqlite), _spread(postgres), _number(ratio, ".2f"), *cold])
    opening = [_number(reading.opening_ms(results, store), ".0f") for store in _STORES]
    body.append(["opening the store, embedder loaded", *[_NONE] * 3, *opening])
    head = [
        f"search among {results['scale']:,}",
        "SQLite, warm p50 / p95 ms",
        "PostgreSQL, warm",
        "PostgreSQL ÷ SQLite",
        "SQLite, cold",
        "PostgreSQL, cold",
    ]
    return f"### Searching at scale, async API, the query's vector given\n\n{table(head, body)}"


def _growth(results: Json) -> str:
    body = []
    for store, name in _STORES.items():
        for size in reading.sizes(results):
            step = reading.figure(results, store, size)
            if step is None:
                continue
            if "failed" in step["fill"]:
                body.append([name, f"{size:,}", *[_NONE] * 6, step["fill"]["failed"]])
                continue
            adds = step["adds"]
            body.append(
                [
                    name,
                    f"{size:,}",
                    _number(step["fill"]["per_second"], ",.0f"),
                    _spread(reading.warm(results, store, "small", size)),
                    *(_number(adds.get(kind), ",.0f") for kind in ("one", "one_async", "at_once_async", "batches")),
                    _number(step["disk_bytes"] / size, ",.0f"),
                ]
            )
    head = [
        "store",
        "memories",
        "filled at /s",
        "partition of 100, p50 / p95 ms",
        "add one /s",
        "add one, async /s",
        "8 at once, async /s",
        "batches of 100 /s",
        "disk bytes/record",
    ]
    return f"### Growing\n\n{table(head, body)}"


def _disk(results: Json) -> str:
    body = []
    for store, name in _STORES.items():
        resident = reading.figure(results, store, results["scale"], "warm", "resident") or {}
        steps = ("started", "opened", "small", LARGE, "everything")
        per_record = reading.memory_per_record(results, store)
        megabytes = [None if step not in resident else resident[step] / 2**20 for step in steps]
        body.append([name, *(_number(value, ",.0f") for value in megabytes), _number(per_record, ",.0f")])
    head = [
        f"resident MB at {results['scale']:,}",
        "before opening",
        "opened",
        "ten partitions of 100 searched",
        f"{results['large']:,} searched",
        "everything searched",
        "bytes/record searched",
    ]
    return f"### Memory of the process\n\n{table(head, body)}"


def _asked(results: Json) -> str:
    verdict = {True: "yes", False: "no", None: _NONE}
    body = [[row.asked, row.measured or "not measured in this run", verdict[row.holds]] for row in asked.rows(results)]
    return f"### Asked and measured\n\n{table(['asked', 'measured', 'holds'], body)}"


def _rate(found: Json) -> str:
    if "failed" in found:
        return "failed"
    return _number(found["per_second"], ",.0f") + (
        f" ({found['count']:,})" if found["count"] < found["planned"] else ""
    )


def _note(found: Json) -> str:
    """The note on a system, with the results of its threads."""
    said = [f"{words}: {found['threads'][key]}" for key, words in _THREADS.items() if key in found["threads"]]
    return "; ".join(part for part in (found["note"], *said) if part)


def _spread(found: Spread | None) -> str:
    if found is None:
        return _NONE
    form = ".2f" if found.p50_ms < 10 else ",.0f"
    return f"{found.p50_ms:{form}} / {found.p95_ms:{form}}"


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
