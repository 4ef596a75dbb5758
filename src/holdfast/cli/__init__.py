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
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exits.run(app, arguments, as_json=_wants_json(arguments))


def _wants_json(arguments: Sequence[str]) -> bool:
    """True if `--json` was given. Checked before parsing, because parse errors are reported as JSON too."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options
