"""Tables that are piped fit 100 columns, whatever names and texts are stored, and break no id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.cells import cell_len

from holdfast import ControlPlane
from holdfast.cli.program import app
from holdfast.domain.profiles import DEFAULT_PROFILE
from holdfast.sdk import AgentTool, AgentToolRegistry, GovernanceNoteCandidate, MemoryProposal, MemoryRuntime

from .conftest import Holdfast

WIDTH = 100
LONG = "a-name-that-goes-on-" * 6 + "and-ends"  # one word
WORDS = "A description of many words, 長い説明, that goes on and on. " * 6
# The ids that a list shows.
IDS = {
    "operations list": "operation_id",
    "jobs list": "job_id",
    "deliveries list": "delivery_id",
    "costs events": "operation_id",
    "resource list": "id",
    "agent sessions": "id",
}
# Commands that print a table or a list of rows, and their arguments. The test finds those that it has not.
COMMANDS: dict[str, tuple[str, ...]] = {
    "operations list": ("--all",),
    "operations metrics": (),
    "jobs list": (),
    "deliveries list": (),
    "costs summary": (),
    "costs events": (),
    "costs fees": (),
    "costs prices list": (),
    "binding list": (),
    "binding activity": (),
    "credential list": (),
    "provider list": (),
    "provider show": ("gateway",),
    "platform profiles": (),
    "user list": (),
    "resource list": (),
    "store jobs": (),
    "store events": (),
    "runtime skill list": (),
    "runtime tool-registry list": (),
    "evolution list": (),
    "agent sessions": (),
}


def table_commands() -> Iterator[str]:
    """Every command that is called a list, or whose module prints a table."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, (*path, name))
        if path[-1:] in (("list",), ("activity",), ("metrics",), ("summary",), ("events",), ("fees",), ("profiles",)):
            yield " ".join(path)

    return walk(typer.main.get_command(app), ())


@pytest.fixture
def crowded(holdfast: Holdfast, quiet_environment: Path) -> Holdfast:
    """The command line with a store in which every name and text is long."""
    with ControlPlane.open(quiet_environment / "memory.db", embedder="fake", work=False) as plane:
        for key in (LONG[:60], "far"):
            plane.create_binding(key, "gateway", config={"url": "http://127.0.0.1:9", "user_id": "u"})
        plane.set_override(LONG, "far")
        plane.set_default("default")
        source = {"kind": "run", "run_id": LONG}
        plane.emit("post_run_capture", "h1", "I live in Porto.", source=source, agent="builder", run=LONG)
        plane.emit("post_run_capture", "h2", "I live in Faro.", source=source, agent=LONG, run=LONG)
        plane.query("Where do I live?", agent="builder", run=LONG)
        plane.set_price("local", LONG[:100], input_micros=150_000)
        plane.add_fee("subscription", WORDS[:200], 19_900_000, provider=LONG[:100], external_invoice_id=LONG[:100])
    for name in ("ana", LONG):
        assert holdfast("user", "create", name).code == 0
        assert holdfast("credential", "create", name, "--subject", LONG, "--subject", "ben").code == 0
    (quiet_environment / "note.txt").write_text("Herons eat fish.")
    added = holdfast("resource", "add", "note.txt", "--name", WORDS[:150], "--uri", f"https://example.org/{LONG}")
    assert added.code == 0, added.err
    written = holdfast("runtime", "write-procedural", "Tag the commit, then publish the package.", "--title", LONG)
    assert written.code == 0, written.err
    with MemoryRuntime.open(quiet_environment / "memory.db", subject="owner-default", agent="agent-main") as runtime:
        tools = tuple(AgentTool(f"{LONG[:100]}-{number}", "schema-1") for number in range(3))
        runtime.upsert_agent_tool_registry(AgentToolRegistry(LONG[:120], tools))
        note = GovernanceNoteCandidate(LONG, WORDS)
        proposal = MemoryProposal(LONG[:100], DEFAULT_PROFILE, (note,), (LONG,), WORDS)
        assert runtime.propose(proposal).accepted
    assert holdfast("agent", "run", WORDS, "--provider", "scripted").code == 0
    return holdfast


def test_what_is_known_about_a_record_fits_and_breaks_no_id(holdfast: Holdfast) -> None:
    where = ("--subject", "ana", "--conversation", "長い会話" * 6)
    assert holdfast("add", "A long way.", *where, "--sender", "Ana " * 10, "--flush").code == 0
    made = holdfast("remember", "A long life.", *where, "--valid-from", "2026-01-01", "--json").json["id"]
    os.environ["COLUMNS"] = "250"  # a pipe has no columns
    for command in ("search long", "explain long", "list", "browse", f"history {made}", f"get {made}", "store verify"):
        shown = holdfast(*command.split(), *(where if command != "store verify" else ()))
        assert shown.code == 0, (command, shown.err)
        assert command == "store verify" or made in shown.out.split(), command
        assert [line for line in shown.out.splitlines() if cell_len(line) > WIDTH] == [], command


def test_every_command_with_a_list_is_here() -> None:
    # Texts of memories are printed as they are: a line of a pipe is searched for them.
    texts = {"list"}
    assert set(table_commands()) - texts <= set(COMMANDS)


def test_piped_tables_fit_and_break_no_id(crowded: Holdfast) -> None:
    assert os.environ["COLUMNS"] == str(WIDTH)
    os.environ["COLUMNS"] = "250"  # a pipe has no columns
    for command, more in COMMANDS.items():
        shown = crowded(*command.split(), *more)
        assert shown.code == 0, (command, shown.err)
        for line in shown.out.splitlines():
            # One word that is longer is not broken, if it is what the next command is given.
            assert cell_len(line) <= WIDTH or " " not in line.strip(), (command, line)
    for command, key in IDS.items():
        listed = next(iter(crowded(*command.split(), *COMMANDS[command], "--json").json.values()))
        shown = crowded(*command.split(), *COMMANDS[command])
        assert {each[key] for each in listed} <= set(re.split(r"\s", shown.out)), command
        assert listed or command == "costs events"
    skills = crowded("runtime", "skill", "list", "--json").json["runtime_skills"]
    assert {each["name"] for each in skills} <= set(crowded("runtime", "skill", "list").out.split())
