"""Runs a task in a fresh process: it has its own memory and empty caches, and it can be abandoned.

    python -m bench.engine.child TASK ARGUMENTS RESULT

The arguments are JSON; the result goes into a file, because peers print to standard output.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Numbers, strings and lists of them; the parent reads the result of a task again.
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The reason why there is no result."""

    reason: str


def fresh(task: str, log: Path, patience_seconds: float, **arguments: object) -> Json | Failed:
    """The task's result, or the reason why there is none. Never raises for the task; its output goes into a log."""
    return fresh_under((), task, log, patience_seconds, arguments)


def fresh_under(
    command: Sequence[str], task: str, log: Path, patience_seconds: float, arguments: Mapping[str, object]
) -> Json | Failed:
    """The same in a process started by another command."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = Path(folder) / "result.json"
        asked = json.dumps(arguments, default=str)
        started = [*command, sys.executable, "-m", "bench.engine.child", task, asked, str(result)]
        try:
            with log.open("ab") as said:
                done = subprocess.run(started, stdout=said, stderr=said, timeout=patience_seconds, check=False)
        except subprocess.TimeoutExpired:
            return Failed(f"gave up after {patience_seconds:.0f} s")
        if not result.exists():
            return Failed(f"ended with {done.returncode}")
        answer: Json = json.loads(result.read_text(encoding="utf-8"))
    return Failed(str(answer["error"])) if "error" in answer else answer


def said(error: Exception) -> str:
    """An error in one line, without the paths of this machine."""
    words = f"{type(error).__name__}: {error}".split("\n")[0]
    return re.sub(r",? ?(?<![\w:/])/\S+", "", words).strip()[:140]


def main() -> None:
    task, arguments, result = sys.argv[1:]
    try:
        answer = _tasks()[task](**json.loads(arguments))
    except Exception as error:  # noqa: BLE001 - a peer's failure is a result
        traceback.print_exc()
        answer = {"error": said(error)}
    Path(result).write_text(json.dumps(answer), encoding="utf-8")


def _tasks() -> dict[str, Callable[..., Json]]:
    from bench.engine import comparison, scale

    return {**comparison.TASKS, **scale.TASKS}


if __name__ == "__main__":
    main()
