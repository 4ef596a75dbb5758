"""Commands suggested in messages. A pasted one acts on the same store as the command that suggested it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    """`holdfast …`, quoted for a shell, with the given store and space.

    A password in the store's URL is masked, even here; the user must type it again.
    """
    store = None if chosen.store is None else redact_location(chosen.store)
    named = {"--kind": kind, "--space": company or space, "--store": store}
    options = [word for name, value in named.items() if value is not None for word in (name, quote_word(value))]
    words = [quote_word(each) for each in arguments]
    if any(each.startswith("-") for each in arguments):  # they would be parsed as options
        return " ".join(["holdfast", path, *options, "--", *words])
    return " ".join(["holdfast", path, *words, *options])


# Commands of other programs, and ours that do the same.
_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("find", "query", "ask"), "search"),
    **dict.fromkeys(("delete", "remove", "rm", "erase"), "forget"),
    **dict.fromkeys(("update", "edit", "change", "set"), "correct"),
    **dict.fromkeys(("save", "store-memory", "put", "insert", "create", "learn", "note"), "remember"),
    **dict.fromkeys(("ls", "all", "dump", "memories", "messages"), "list"),
    **dict.fromkeys(("show", "read", "cat"), "get"),
    **dict.fromkeys(("log", "revisions", "versions"), "history"),
    **dict.fromkeys(("undo", "restore", "rollback"), "revert"),
    **dict.fromkeys(("server", "start", "run", "up", "gateway"), "serve"),
    **dict.fromkeys(("repl", "console", "interactive"), "shell"),
    "chat": "agent chat",
    "documents": "resource",
    "docs": "resource",
    "users": "user",
    **{name: f"store {name}" for name in ("init", "stats", "verify", "rebuild", "migrate", "repair", "copy", "check")},
}


def suggest_name(wrong: str) -> str | None:
    """Return the command that another program's command probably means."""
    return _COMMANDS.get(wrong.lower())


def suggest_option(wrong: str, command: Any) -> str | None:
    """Return advice for an option that a command does not have: the one that it probably means."""
    from holdfast.domain.call_errors import likely_name

    typed: dict[str, str] = {}
    for each in command.params:
        name = next((option for option in each.opts if option.startswith("--")), None)
        shown = f"Did you mean {name}?" if name else f"Give {each.metavar} without an option name."
        for known in (each.name, (name or each.metavar or "").strip("-").replace("-", "_").lower()):
            typed.setdefault(known, shown)
    name = wrong.strip("-").replace("-", "_")
    # In Python, `from` is a keyword, so its synonym is `from_`.
    found = likely_name(name, list(typed)) or likely_name(f"{name}_", list(typed))
    return None if found is None else typed[found]


def explain_extra(extra: Sequence[str], command: Any) -> str:
    """Refuse arguments that a command does not take, without their passwords. One that looks like a store is named."""
    shown = [redact_location(each) for each in extra]
    problem = f"Got unexpected extra argument(s) ({' '.join(shown)})"
    takes_store = any("--store" in each.opts for each in command.params)
    if takes_store and len(extra) == 1 and ("://" in extra[0] or extra[0].endswith(".db")):
        return f"{problem}. Did you mean --store {quote_word(shown[0])}?"
    return problem


def this_program() -> str:
    """The running program, quoted for a shell. In another terminal it may not be on the path, so the path is named."""
    script = Path(sys.argv[0])
    if script.stem == "holdfast" and script.is_file():
        return quote_word(str(script.absolute()))
    return f"{quote_word(sys.executable)} -m holdfast"
