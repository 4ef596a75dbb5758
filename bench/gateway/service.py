"""A gateway in a separate process, on its own core if there are several, filled and ready for requests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOKEN = "operator-token-of-the-benchmarks"


@dataclass(frozen=True, slots=True)
class Service:
    port: int
    pid: int

    @property
    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@contextmanager
def serving(
    store: str, port: int, *, core: int | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Run `holdfast serve` until the end of the block."""
    given = {"HOLDFAST_RATE_PER_MINUTE": "0", "HOLDFAST_REQUEST_LOGS": "false", "HOLDFAST_OPERATOR_TOKEN": TOKEN}
    given |= settings or {}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "serve", "--store", store, "--port", str(port)],
        env={**os.environ, **given},
        stdout=subprocess.DEVNULL,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
    )
    try:
        _wait_for(port, process)
        yield Service(port, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).read()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the service does not answer")


def sign_up(port: int, user_id: str) -> str:
    """Create a user; return the key."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/users",
        json.dumps({"user_id": user_id}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        key: str = json.load(answer)["user_key"]
    return key
