"""Curated memory in a folder, and functions that write to it in child processes of `faults.zygote`."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from faults.disk import FAULTS, Call, Fault, Shim
from faults.zygote import Tell
from holdfast.agent.curated import MemoryService, MemorySnapshot, MemoryStore, memory_tool

DISKS = {**FAULTS, "a sync fails": Fault(Call.SYNC, errno.EIO)}


class Curated:
    """Curated memory in a folder, called synchronously; the agent loop calls the same tool and service."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.folder = folder
        self.service = MemoryService(MemoryStore(folder, **limits))
        self._tool = memory_tool(self.service)

    def __call__(self, *args: Any, **arguments: Any) -> dict[str, Any]:
        answer = asyncio.run(self._tool(*args, **arguments))  # type: ignore[arg-type]
        assert json.loads(json.dumps(answer)) == answer
        return answer

    def snapshot(self) -> MemorySnapshot:
        return asyncio.run(self.service.snapshot())

    def text(self, name: str = "MEMORY.md") -> str:
        return (self.folder / name).read_text("utf-8")

    def texts(self) -> tuple[str, str]:
        """Both files as they are on disk."""
        found = (self.folder / "MEMORY.md", self.folder / "USER.md")
        memory, user = (path.read_text("utf-8") if path.exists() else "" for path in found)
        return memory, user

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


# --- functions for child processes ------------------------------------------------------------------------------------


def add_entries(tell: Tell, folder: str, name: str, count: int, limit: int) -> None:
    """Add entries to one file or to both at once; report each one that was acknowledged."""
    curated = Curated(Path(folder), memory_chars=limit, user_chars=limit)
    chance = random.Random(name)
    for number in range(count):
        targets = chance.choice([["memory"], ["user"], ["memory", "user"]])
        content = f"{name} keeps {number}{' twice' if len(targets) > 1 else ''}."
        tell(trying=content, targets=targets)
        answer = curated(operations=[{"action": "add", "target": target, "content": content} for target in targets])
        if answer["success"]:
            tell(kept=content, targets=targets)
        else:
            assert f"{limit:,} fit" in answer["error"], answer["error"]


def count_up(tell: Tell, folder: str, times: int) -> None:
    """Increment the number in an entry; another process may have incremented it meanwhile."""
    curated = Curated(Path(folder))
    done = 0
    while done < times:
        [current] = curated.snapshot().memory
        following = f"Counted to {int(current.split()[2]) + 1} so far."
        answer = curated("replace", "memory", following, current)
        assert answer["success"] or "in no entry" in answer["error"], answer["error"]
        done += answer["success"]
    tell(done=done)


def look(tell: Tell, folder: str, limit: int, times: int) -> None:
    """Take snapshots and check that each one is consistent."""
    curated = Curated(Path(folder), memory_chars=limit, user_chars=limit)
    for _ in range(times):
        seen = curated.snapshot()
        assert not seen.problems, seen.problems
        for entries in (seen.memory, seen.user):
            assert len("\n§\n".join(entries)) <= limit
            assert all(entry.endswith(".") and " keeps " in entry for entry in entries), entries
        assert {each for each in seen.memory if "twice" in each} == {each for each in seen.user if "twice" in each}
    tell(looked=times)


def die_at_step(tell: Tell, folder: str, step: int, operations: list[dict[str, Any]]) -> None:
    """Make a change; kill this process before its n-th disk operation."""
    curated = Curated(Path(folder))
    taken = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal taken
        if event in ("open", "os.rename", "os.remove") and str(arguments[0]).startswith(folder):
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    tell(kept=curated(operations=operations)["success"])


def change_on_a_bad_disk(tell: Tell, folder: str, control: str, fault: str, at: int, operations: list[Any]) -> None:
    """Make a change while the n-th call on the folder's files fails; with `at=0`, only count the calls."""
    curated, shim = Curated(Path(folder)), Shim(Path(control))
    if at:
        shim.fail(folder, DISKS[fault], at)
    else:
        shim.count(folder, DISKS[fault].calls)
    answer = curated(operations=operations)
    calls, failed = shim.disarm()
    tell(calls=calls, failed=failed, answer=answer)
