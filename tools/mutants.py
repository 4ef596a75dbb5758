"""Break seven promises on purpose, one at a time, and check that the tests of `make test` notice: `make mutants`.

Each mutant is a copy of the source with one line changed. The tests run against the copy; at least one must fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKE_TEST = "not alone and not postgres"


@dataclass(frozen=True)
class Mutant:
    promise: str
    file: str
    line: str
    becomes: str
    tests: str  # the part of `make test` that must notice


MUTANTS = (
    Mutant(
        "a commit is synced before it is acknowledged",
        "stores/sqlite/connection.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = OFF",
        "tests/reliability/test_power_loss.py",
    ),
    Mutant(
        "a grant limits every statement",
        "stores/sql/grant_scope.py",
        "if self.grant.partitions is not None:\n            return self._named_partitions",
        "if False:\n            return self._named_partitions",
        "tests/stores/test_sqlite_contract.py",
    ),
    Mutant(
        "every call leaves one operation row",
        "runtime/gate.py",
        '    transaction.operations.add(entry.build_row(Outcome.SUCCEEDED, touched))\n    reach("write.after")\n',
        '    reach("write.after")\n',
        "tests/runtime/test_perform.py",
    ),
    Mutant(
        "a masked turn is shown to nobody",
        "domain/redaction.py",
        "TranscriptState.MASKED:      _row(_MASK, _MASK_MODEL, _MASK, _MASK, _MASK)",
        "TranscriptState.MASKED:      _row(_MASK, _MASK_MODEL, _MASK, _MASK, _OPEN)",
        "tests/domain/test_redaction.py",
    ),
    Mutant(
        "a forgotten message does not come back",
        "stores/sql/records/forget.py",
        '        self._scope.dialect.insert(self._db, "tombstones", TOMBSTONE_COLUMNS, tombstones)\n',
        "",
        "tests/stores/test_sqlite_contract.py",
    ),
    Mutant(
        "a changed weight of the ranking is seen",
        "domain/ranking.py",
        "    words: float = 0.15\n",
        "    words: float = 0.20\n",
        "tests/replay/test_fixtures.py",
    ),
    Mutant(
        "a changed cell of the redaction is seen",
        "domain/redaction.py",
        "Authority.OPERATOR_DIAGNOSTIC:      _row(_SHOWN, _OPERATOR, _OPERATOR, _OPERATOR, _OPERATOR)",
        "Authority.OPERATOR_DIAGNOSTIC:      _row(_SHOWN, _OPERATOR, _OPERATOR, _OPERATOR, _SHOWN)",
        "tests/replay/test_fixtures.py",
    ),
)


def is_caught(mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        path = Path(folder) / "src" / "holdfast" / mutant.file
        text = path.read_text("utf-8")
        if text.count(mutant.line) != 1:
            sys.exit(f"{mutant.file} does not hold this line once; update {Path(__file__).name}: {mutant.line!r}")
        path.write_text(text.replace(mutant.line, mutant.becomes), "utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", MAKE_TEST, mutant.tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(Path(folder) / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode not in (0, 1):
        sys.exit(f"the tests did not run:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.returncode == 1


def main() -> int:
    survivors = 0
    for mutant in MUTANTS:
        caught = is_caught(mutant)
        survivors += not caught
        print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.promise}  ({mutant.tests})", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
