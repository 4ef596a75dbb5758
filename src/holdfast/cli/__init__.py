"""The command line: parses arguments, calls the library, prints the result. It decides nothing about memory.

`main` is the only entry point: it turns every error into a line or two on stderr and an exit code (`exits`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from holdfast.cli import exits
from holdfast.cli.program import app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return exits.run(app, list(sys.argv[1:] if argv is None else argv))
