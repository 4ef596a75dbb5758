"""`python -m bench.gateway`: measure, print a table, and save the results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.gateway.run import Json, Run

RESULTS = Path(__file__).parents[1] / "results" / "gateway.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--soak", type=float, default=30.0, help="seconds at 70 %% of the highest load")
    given = parser.parse_args()
    found = Run(given.seconds, given.soak).all()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: Json) -> str:
    search, turns = found["search"], found["turns"]
    steady, too_much, memory, shared = (
        found["at_70_percent"], found["at_200_percent"], found["memory_mb"], found["postgres"],
    )  # fmt: skip
    asked, bare = found["at_140"], found["arithmetic"]
    rows = [
        ("search in a partition of 100, one core, /s", f"{search['per_second']:.0f}", "at least 200"),
        ("… ÷ the same call in process", f"{search['per_second'] / found['search_in_process']['per_second']:.2f}", ""),
        ("… p99 ÷ p50 at 70 % of 200/s", f"{asked['p99_ms'] / asked['p50_ms']:.1f}", "under 5"),
        ("… p99 ÷ p50 at 70 % of its highest load", f"{steady['p99_ms'] / steady['p50_ms']:.1f}", "under 5"),
        ("… of arithmetic alone on that core, as busy", f"{bare['p99_ms'] / bare['p50_ms']:.1f}", ""),
        ("add + flush of a turn, 16 callers, /s", f"{turns['per_second']:.0f}", "at least 120"),
        ("… ÷ the same calls in process", f"{turns['per_second'] / found['turns_in_process']['per_second']:.2f}", ""),
        (f"errors in {steady['seconds']:.0f} s at 70 %", str(_wrong(steady)), "none"),
        ("memory before and after it, MB", f"{memory['before']:.0f}, {memory['after']:.0f}", "flat"),
        ("answers at twice the load", str(too_much["statuses"]), "200, 429, 503"),
        ("seconds until all is well again", f"{found['recovered_seconds']:.1f}", "at most 10"),
        ("two services ÷ one on PostgreSQL, search", f"{shared['two'] / shared['one']:.2f}", "at least 0.9"),
        ("… turns", f"{shared['two_turns'] / shared['one_turns']:.2f}", "at least 0.9"),
    ]
    lines = ["| what | measured | asked |", "| --- | --- | --- |", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]
    return "\n".join(lines)


def _wrong(told: Json) -> int:
    return sum(count for status, count in told["statuses"].items() if int(status) != 200)


if __name__ == "__main__":
    main()
