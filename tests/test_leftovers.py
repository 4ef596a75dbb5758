"""An interrupted test run leaves no process behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = """
import subprocess, sys, time
import leftovers
leftovers.kill_when_we_are_gone()
started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(started.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_what_a_killed_run_had_started_ends_with_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        started = int(run.stdout.readline())
        run.kill()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{started}").exists() and "Z" not in Path(f"/proc/{started}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "it is still running"
        time.sleep(0.02)
