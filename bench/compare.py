"""Compare the speed of two checkouts: `add`, `search` and the cold start of the command line, in turn in one run.

    python -m bench.compare --old ../before --new .

Each round runs both checkouts, one right after the other, in changing order. The figure is the median over the rounds
of new / old, so a slow minute of the machine affects both. The environment must have the dependencies of both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

WORK = """
import json, sys, tempfile, time
import holdfast
from statistics import median

def timed(call, count):
    spent = []
    for number in range(count):
        begun = time.perf_counter()
        call(number)
        spent.append(time.perf_counter() - begun)
    return median(spent) * 1e6

with tempfile.TemporaryDirectory() as folder, holdfast.open(folder + "/memory.db", work=False) as memory:
    for number in range(200):
        memory.add(f"Note {number}: the train to town {number % 17} leaves at {number % 24}.", subject="ana")
    add = timed(lambda n: memory.add(f"I met {n} friends in town {n % 17} for tea.", subject="ana"), 400)
    search = timed(lambda n: memory.search(f"Who was in town {n % 17}?", subject="ana"), 400)
print(json.dumps({"add": add, "search": search}))
"""
COMMANDS = {"holdfast --version": ["--version"], "holdfast --help": ["--help"], "holdfast search": ["search", "tea"]}


def measure(checkout: Path) -> dict[str, float]:
    """Microseconds per call of `add` and `search`, and per process of each command."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "HOLDFAST_STORE": f"{folder}/memory.db"}

        def run(*arguments: str) -> str:
            command = [sys.executable, *arguments]
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True, cwd=folder
            ).stdout

        run("-m", "holdfast", "add", "I drink tea.")
        figures: dict[str, float] = json.loads(run("-c", WORK))
        for name, arguments in COMMANDS.items():
            spent = []
            for _ in range(5):
                begun = time.perf_counter()
                run("-m", "holdfast", *arguments)
                spent.append(time.perf_counter() - begun)
            figures[name] = median(spent) * 1e6
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True, help="a checkout of the earlier code")
    parser.add_argument("--new", type=Path, default=Path(), help="a checkout of the later code (default: this one)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    sides = {"old": options.old.resolve(), "new": options.new.resolve()}
    for checkout in sides.values():
        if not (checkout / "src" / "holdfast").is_dir():
            parser.error(f"{checkout} is no checkout of Holdfast: it has no src/holdfast")
    ratios: dict[str, list[float]] = {}
    for number in range(options.rounds):
        order = sorted(sides, reverse=number % 2 == 0)
        found = {side: measure(sides[side]) for side in order}
        for name, figure in found["new"].items():
            ratios.setdefault(name, []).append(figure / found["old"][name])
    print(f"new / old, {options.rounds} rounds\n")
    print("| figure | median | quartiles |\n| --- | --- | --- |")
    for name, values in ratios.items():
        low, _, high = quantiles(values, n=4)
        print(f"| {name} | {median(values):.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
