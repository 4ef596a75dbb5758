"""`python -m bench.engine.disks`: the rate of adds by the disk's sync time.

The same adds by Holdfast and by mem0, with the probe in between, on ever slower disks: `strace` delays each return of
`fsync` and `fdatasync`, equally for all three. With instant syncs, the comparison is of processor work; with syncs of a
millisecond, of the number of syncs.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from bench.engine import report
from bench.engine.child import Failed, Json, fresh_under
from bench.engine.rounds import pooled

_SYSTEMS = ("holdfast", "mem0")
_PATIENCE_SECONDS = 1_200
_HEADS = (
    "syncs take longer by", "raw commits /s", "Holdfast, one at a time /s", "÷ raw commits", "mem0, one at a time /s",
    "one at a time ÷ mem0", "from 8 threads ÷ mem0", "in batches of 100 ÷ mem0",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.engine.disks", description=__doc__)
    parser.add_argument("--delays", default="0,250,1000,3000", help="how much longer a sync takes, in microseconds")
    parser.add_argument("--records", type=int, default=5_000, help="how many each system is given")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured, in turns")
    parser.add_argument("--limit-seconds", type=float, default=15.0, help="for each rate")
    given = parser.parse_args()
    delays = [int(part) for part in given.delays.split(",")]
    if any(delays) and shutil.which("strace") is None:
        raise SystemExit("strace is not installed: it holds back the syncs (on Debian: apt install strace)")
    rows = [_row(delay, _measured(delay, given.records, given.rounds, given.limit_seconds)) for delay in delays]
    print(report.table(_HEADS, rows))


def _measured(delay_micros: int, records: int, rounds: int, limit_seconds: float) -> dict[str, Json]:
    found: dict[str, list[Json]] = {system: [] for system in _SYSTEMS}
    with tempfile.TemporaryDirectory(prefix="bench-disks-") as folder:
        for turn in range(rounds):
            for system in _SYSTEMS:
                directory = Path(folder) / f"{system}-{turn}"
                directory.mkdir()
                asked = {"system": system, "directory": directory, "url": "", "records": records}
                asked["limit_seconds"] = limit_seconds
                answer = fresh_under(_slowed(delay_micros), "measure", Path(folder) / "log", _PATIENCE_SECONDS, asked)
                if isinstance(answer, Failed):
                    raise SystemExit(f"{system} could not be measured: {answer.reason}")
                found[system].append(answer)
    return {system: pooled(answers) for system, answers in found.items()}


def _slowed(delay_micros: int) -> list[str]:
    if not delay_micros:
        return []
    # Stop only at syncs: everything else runs at full speed.
    watched = ["-e", "trace=fsync,fdatasync", "-e", f"inject=fsync,fdatasync:delay_exit={delay_micros}"]
    return ["strace", "-q", "-f", "--seccomp-bpf", "-o", "/dev/null", *watched]


def _row(delay_micros: int, found: dict[str, Json]) -> tuple[str, ...]:
    ours, theirs = found["holdfast"], found["mem0"]
    one, mem0 = ours["one"]["per_second"], theirs["one"]["per_second"]
    # mem0 may fail from several threads; then use its rate one at a time.
    threads = theirs["threads"].get("per_second", mem0)
    return (
        f"{delay_micros / 1_000:g} ms",
        f"{ours['commits']:,.0f}",
        f"{one:,.0f}",
        f"{one / ours['commits']:.2f}",
        f"{mem0:,.0f}",
        f"{one / mem0:.1f}",
        f"{ours['threads']['per_second'] / threads:.1f}",
        f"{ours['batches']['per_second'] / theirs['batches']['per_second']:.1f}",
    )


if __name__ == "__main__":
    main()
