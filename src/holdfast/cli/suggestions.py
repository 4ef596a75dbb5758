"""Commands suggested in messages. A pasted one acts on the same store as the command that suggested it."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.cli.options import StoreOptions
from holdfast.cli.terminal_safety import quote_word
from holdfast.domain.location import redact_location


def suggest_command(
    chosen: StoreOptions,
    path: str,
    *arguments: str,
    company: str | None = None,
    space: str | None = None,
    kind: str | None = None,
) -> str:
    """`holdfast …`, quoted for a shell, with the given store and company or space.

    A password in the store's URL is masked, even here; the user must type it again.
    """
    store = None if chosen.store is None else redact_location(chosen.store)
    named = {"--kind": kind, "--company": company, "--space": space, "--store": store}
    options = [word for name, value in named.items() if value is not None for word in (name, quote_word(value))]
    words = [quote_word(each) for each in arguments]
    if any(each.startswith("-") for each in arguments):  # they would be parsed as options
        return " ".join(["holdfast", path, *options, "--", *words])
    return " ".join(["holdfast", path, *words, *options])


def this_program() -> str:
    """The running program, quoted for a shell. In another terminal it may not be on the path, so the path is named."""
    script = Path(sys.argv[0])
    if script.stem == "holdfast" and script.is_file():
        return quote_word(str(script.absolute()))
    return f"{quote_word(sys.executable)} -m holdfast"
