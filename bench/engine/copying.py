"""`holdfast store copy` between the two stores, timed as a command."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.engine import postgres
from bench.engine.child import Json

if TYPE_CHECKING:
    from bench.engine.run import Store

_COMMAND = [sys.executable, "-c", "import sys; from holdfast.cli import main; sys.exit(main())", "store", "copy"]
_PATIENCE_SECONDS = 900


def between(stores: list[Store], here: Path, server: postgres.Server | None, records: int) -> Json:
    """Copy from each store into a new one of the other kind, with the command's own verification."""
    found: Json = {}
    for store in stores:
        if store.server is not None:
            found[f"{store.name} to sqlite"] = _copied(store.location, str(here / "copy.db"), records)
        elif server is not None:
            found[f"{store.name} to postgres"] = _copied(store.location, server.database("copy"), records)
    return found


def _copied(origin: str, target: str, records: int) -> Json:
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [*_COMMAND, origin, target], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"gave up after {_PATIENCE_SECONDS} s"}
    seconds = time.perf_counter() - started
    if done.returncode:
        return {"failed": f"ended with {done.returncode}: {(done.stderr or done.stdout).strip()[:120]}"}
    return {"records": records, "seconds": seconds, "per_second": records / seconds}
