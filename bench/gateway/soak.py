"""Memory under mixed load: a real `holdfast serve`, sampled while it is called, against the bound of its guide.

    python -m bench.gateway.soak --seconds 3600 --rate 20

Prints a line per sample, then the peak, the growth in the second half, the answers, and whether the bound held; exit
code 1 if it did not. The bound is the formula of docs/how-to/run-the-service.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.gateway.load import Ask, Line
from bench.gateway.mixed import MixedLoad
from bench.gateway.run import free_port
from bench.gateway.service import Service, serving

TOKEN = "operator-token-of-the-soak"
MB = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """The service at one moment; memory in MiB."""

    at: float
    resident: float
    cache: float
    views: int
    evicted: int
    files: int
    threads: int
    calls: int

    HEADER = "     s     RSS   cache  views  evicted  files  threads   calls"

    def __str__(self) -> str:
        return (
            f"{self.at:6.0f} {self.resident:7.1f} {self.cache:7.1f} {self.views:6d} {self.evicted:8d} {self.files:6d}"
            f" {self.threads:8d} {self.calls:7d}"
        )


async def sample(service: Service, line: Line, load: MixedLoad, began: float) -> Sample:
    _, page = await line.exchange(Ask.of("GET", "/metrics", TOKEN))
    shown = {
        name: float(value) for name, value in re.findall(r"^(holdfast_view_cache_\w+) (\S+)$", page.decode(), re.M)
    }
    proc = Path(f"/proc/{service.pid}")
    resident = re.search(r"^Rss:\s+(\d+)", (proc / "smaps_rollup").read_text(), re.M)
    assert resident is not None
    return Sample(
        time.monotonic() - began,
        int(resident[1]) / 1024,
        shown.get("holdfast_view_cache_bytes", 0) / MB,
        int(shown.get("holdfast_view_cache_partitions", 0)),
        int(shown.get("holdfast_view_cache_evictions_total", 0)),
        service.open_files,
        len(list((proc / "task").iterdir())),
        sum(load.tally.answers.values()),
    )


async def soak(service: Service, given: argparse.Namespace) -> tuple[list[Sample], MixedLoad]:
    load, line, began = MixedLoad(service.port, TOKEN), Line(service.port), time.monotonic()
    samples = [await sample(service, line, load, began)]
    print(f"{Sample.HEADER}\n{samples[0]}", flush=True)
    filling = asyncio.create_task(load.fill(given.users, given.records))
    calling = asyncio.create_task(_after(filling, load, given))
    while not calling.done():
        await asyncio.wait([calling], timeout=given.every)
        samples.append(await sample(service, line, load, began))
        print(samples[-1], flush=True)
    await calling
    line.close()
    return samples, load


async def _after(filling: asyncio.Task[None], load: MixedLoad, given: argparse.Namespace) -> None:
    await filling
    print(f"-- {len(load.users)} users are filled; {given.rate:g} calls per second from here on", flush=True)
    await load.run(given.rate, given.callers, time.monotonic() + given.seconds)


@dataclass(frozen=True, slots=True)
class Outcome:
    samples: list[Sample]
    load: MixedLoad
    largest: int  # records of the largest partition
    cache_mib: float

    @property
    def peak(self) -> float:
        return max(each.resident for each in self.samples)

    @property
    def bound(self) -> float:
        """The bound that docs/how-to/run-the-service.md states, in MiB; bodies and results are small here."""
        readers = min(8, (os.cpu_count() or 1) + 2)
        return 220 + 16 * (readers + 1) + 1.25 * self.cache_mib + readers * self.largest * 4 / 1024

    @property
    def held(self) -> bool:
        return self.peak <= self.bound


def run(given: argparse.Namespace) -> Outcome:
    place = Path(tempfile.mkdtemp(prefix="bench-soak-"))
    settings = {"HOLDFAST_OPERATOR_TOKEN": TOKEN, "HOLDFAST_CACHE_BYTES": str(int(given.cache_mib * MB))}
    try:
        with serving(str(place / "memory.db"), free_port(), settings=settings) as service:
            samples, load = asyncio.run(soak(service, given))
        return Outcome(samples, load, largest_partition(place / "memory.db"), given.cache_mib)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def largest_partition(store: Path) -> int:
    connection = sqlite3.connect(store)
    sizes = connection.execute("SELECT count(*) FROM records GROUP BY partition_id").fetchall()
    connection.close()
    return max(size for (size,) in sizes)


def report(outcome: Outcome) -> None:
    late = outcome.samples[len(outcome.samples) // 2 :]
    print(f"\nanswers: {dict(sorted(outcome.load.tally.answers.items()))}")
    for line in outcome.load.tally.unexpected:
        print(f"unexpected: {line}")
    print(f"files {late[0].files} to {late[-1].files}, threads {late[0].threads} to {late[-1].threads}")
    print(f"the largest partition has {outcome.largest:,} records")
    print(f"peak RSS {outcome.peak:.0f} MiB; in the second half {late[0].resident:.0f} to {late[-1].resident:.0f} MiB")
    print(f"bound {outcome.bound:.0f} MiB: {'held' if outcome.held else 'EXCEEDED'}")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.gateway.soak", description=__doc__)
    made.add_argument("--seconds", type=float, default=180.0, help="of mixed load, after users are filled")
    made.add_argument("--rate", type=float, default=40.0, help="calls per second")
    made.add_argument("--callers", type=int, default=16)
    made.add_argument("--users", type=int, default=150)
    made.add_argument("--records", type=int, default=60_000, help="of all users, before the load")
    made.add_argument("--cache-mib", type=float, default=64, help="HOLDFAST_CACHE_BYTES, in MiB")
    made.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    return made


def main() -> None:
    outcome = run(parser().parse_args())
    report(outcome)
    sys.exit(not outcome.held)


if __name__ == "__main__":
    main()
