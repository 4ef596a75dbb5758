"""The command line: reads what was typed, calls the library, prints the answer. It decides nothing about memory.

`main` is the only way in: it turns every error into a line or two on stderr and an exit code (`exits`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from holdfast.cli import exits
from holdfast.cli.program import app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    return exits.run(app, given, as_json=_wants_json(given))


def _wants_json(given: Sequence[str]) -> bool:
    """Known before the options are parsed, since a mistake in them is reported as JSON too."""
    options = given[: given.index("--")] if "--" in given else given
    return "--json" in options
