"""`python -m bench.skills [--embedder static] [--list]`: how many tool calls do learned skills save?

`play.py` describes the agent, `tasks.json` has its 40 tasks.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from bench.skills.play import Attempt, load_tasks, play_passes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.skills", description="Measure what learned skills save.")
    parser.add_argument("--embedder", default="static", help="static or onnx:DIRECTORY")
    parser.add_argument("--list", action="store_true", help="list the calls of each task")
    options = parser.parse_args()
    tasks = load_tasks()
    passes = asyncio.run(play_passes(tasks, ":memory:", options.embedder))
    misled = [each for each in passes.second if False in each.followed]
    print("| pass | tool calls | by the first |")
    print("|---|---|---|")
    for name, attempts in (
        ("first, nothing learned", passes.first),
        (f"second, {passes.learned} skills", passes.second),
        ("skills switched off", passes.disabled),
    ):
        print(f"| {name} | {count_calls(attempts):,} | {count_calls(attempts) / count_calls(passes.first):.2f} |")
    print(f"\n{len(misled)} of {len(tasks)} tasks followed a wrong skill first; {_solved(passes.second)} a right one.")
    if options.list:
        for task, *played in zip(tasks, passes.first, passes.second, strict=True):
            first, second = played
            print(f"{len(first.calls):3} {len(second.calls):3} {second.followed} {task.again}")


def count_calls(attempts: Sequence[Attempt]) -> int:
    return sum(len(attempt.calls) for attempt in attempts)


def _solved(attempts: Sequence[Attempt]) -> int:
    return sum(True in attempt.followed for attempt in attempts)


if __name__ == "__main__":
    main()
