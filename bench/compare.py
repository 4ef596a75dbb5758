"""Compare the speed of two checkouts, in turn in one run: the calls of `bench.walk`, and the command line's cold start.

    python -m bench.compare --old ../before --new .

Each round runs both checkouts, one right after the other, in changing order. The figure is the median over the rounds
of new / old, so a slow minute of the machine affects both. Both run from compiled bytecode. The environment must have
the dependencies of both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

WARM_UP, CALLS = 50, 400
COMMANDS = {"holdfast --version": ["--version"], "holdfast --help": ["--help"], "holdfast search": ["search", "tea"]}


class Timer:
    """Takes the place of a `Walker`: measures the median of many calls, in microseconds."""

    def walk(self, call: Callable[[int], object]) -> float:
        spent = []
        for number in range(WARM_UP + CALLS):
            begun = time.perf_counter()
            call(number)
            spent.append(time.perf_counter() - begun)
        return median(spent[WARM_UP:]) * 1e6

    async def walk_async(self, call: Callable[[int], Awaitable[object]]) -> float:
        spent = []
        for number in range(WARM_UP + CALLS):
            begun = time.perf_counter()
            await call(number)
            spent.append(time.perf_counter() - begun)
        return median(spent[WARM_UP:]) * 1e6


def time_calls() -> dict[str, float]:
    """Time the calls in this process, through the `holdfast` that it imports."""
    import walk  # beside this file, which runs as a script here

    timer: Any = Timer()
    with tempfile.TemporaryDirectory() as folder:
        return {
            **walk.walk_library(timer, folder),
            **asyncio.run(walk.walk_service(timer, folder)),
            **walk.walk_control_plane(timer, folder),
        }


def measure(checkout: Path, bytecode: str) -> dict[str, float]:
    """Microseconds per call, and per process of each command."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "HOLDFAST_STORE": f"{folder}/memory.db"}
        environment |= {"PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(*arguments: str) -> str:
            command = [sys.executable, *arguments]
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True, cwd=folder
            ).stdout

        run("-m", "holdfast", "add", "I drink tea.")
        figures: dict[str, float] = json.loads(run(str(Path(__file__).resolve()), "--calls"))
        for name, arguments in COMMANDS.items():
            spent = []
            for _ in range(5):
                begun = time.perf_counter()
                run("-m", "holdfast", *arguments)
                spent.append(time.perf_counter() - begun)
            figures[name] = median(spent) * 1e6
        return figures


def compare(sides: dict[str, Path], rounds: int, bytecode: Path) -> dict[str, list[float]]:
    ratios: dict[str, list[float]] = {}
    for number in range(-1, rounds):
        order = sorted(sides, reverse=number % 2 == 0)
        found = {side: measure(sides[side], f"{bytecode}/{side}") for side in order}
        if number >= 0:  # the first round compiles
            for name, figure in found["new"].items():
                ratios.setdefault(name, []).append(figure / found["old"][name])
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", action="store_true", help="only time the calls of the installed code, as JSON")
    parser.add_argument("--old", type=Path, help="a checkout of the earlier code")
    parser.add_argument("--new", type=Path, default=Path(), help="a checkout of the later code (default: this one)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.calls:
        print(json.dumps(time_calls()))
        return
    if options.old is None:
        parser.error("--old is missing: the checkout to compare with")
    sides = {"old": options.old.resolve(), "new": options.new.resolve()}
    for checkout in sides.values():
        if not (checkout / "src" / "holdfast").is_dir():
            parser.error(f"{checkout} is no checkout of Holdfast: it has no src/holdfast")
    with tempfile.TemporaryDirectory() as folder:
        ratios = compare(sides, options.rounds, Path(folder))
    print(f"new / old, {options.rounds} rounds\n")
    print("| figure | median | quartiles |\n| --- | --- | --- |")
    for name, values in ratios.items():
        low, _, high = quantiles(values, n=4)
        print(f"| {name} | {median(values):.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
