"""`agent memory`: shows the curated files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.agent.options import Workspace
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, group
from holdfast.cli.terminal_safety import on_one_line
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from holdfast.agent.config import AgentConfig
    from holdfast.agent.curated.files import CuratedFile, MemoryStore

app = group("Show the agent's curated files.")


@app.command()
def show(workspace: Workspace = None, as_json: Json = False) -> None:
    """Show the entries of USER.md and MEMORY.md, as the model sees them, and how full the files are.

    An entry that holds an injected instruction is shown as blocked. You may edit the files with any editor.
    """
    from holdfast.agent.config import read_config

    config = read_config(workspace, read_settings())
    if as_json:
        print_json(_to_document(config))
    else:
        show_curated(config)


def _to_document(config: AgentConfig) -> dict[str, object]:
    gateway = config.memory.gateway
    return {
        "mode": config.memory.mode,
        "files": [
            {
                "target": held.target,
                "path": str(store.folder / held.target.file),
                "entries": views,
                "usage": held.usage,
                "problem": held.problem or None,
            }
            for store, held, views in _read_files(config)
        ],
        "gateway": None if gateway is None else {"base_url": gateway.base_url, "user_id": gateway.user_id},
    }


def show_curated(config: AgentConfig) -> None:
    from rich.text import Text

    from holdfast.cli import render

    screen = render.console()
    if not config.memory.mode.has_curated:
        screen.print(f"memory.mode is {config.memory.mode}: the agent does not use these files.")
    for store, held, views in _read_files(config):
        if not config.memory.mode.has_curated and not views:
            continue
        path = on_one_line(str(store.folder / held.target.file))
        screen.print(Text(path, style="bold").append(f"  {held.usage}", style="dim"), soft_wrap=True)
        for number, view in enumerate(views, 1):
            render.print_hanging(screen, Text(f"{number:>4}  ", style="dim"), view, indent=6)
        if held.problem:
            screen.print(Text(f"      not used: {on_one_line(held.problem)}", style="yellow"), soft_wrap=True)
        elif not views:
            screen.print(Text("      nothing yet", style="dim"))
    if config.memory.gateway is not None:
        gateway = config.memory.gateway
        line = f"Memory Gateway: {gateway.base_url}, user {gateway.user_id}; it keeps every conversation."
        screen.print(Text(on_one_line(line), style="dim"), soft_wrap=True)


def _read_files(config: AgentConfig) -> list[tuple[MemoryStore, CuratedFile, tuple[str, ...]]]:
    """The curated files, USER.md first, with each entry as a model may see it."""
    from holdfast.agent.curated import CuratedTarget, MemoryStore
    from holdfast.agent.curated.entries import visible_entries

    limits = config.memory
    store = MemoryStore(config.memories, memory_chars=limits.memory_chars, user_chars=limits.user_chars)
    found = store.read()
    return [
        (store, found[target], visible_entries(found[target].entries))
        for target in (CuratedTarget.USER, CuratedTarget.MEMORY)
    ]
