"""`mcp`: serves the memory to the program that starts this command, over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from holdfast.cli.exits import UsageError
from holdfast.cli.mcp.options import McpOptions, McpScopeOptions, check_mcp_installed
from holdfast.domain.location import is_server_url
from holdfast.opening import Opening, Options
from holdfast.private_files import make_private_folder
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.mcp.tool_choices import ToolChoice
    from holdfast.transports.adapter import TransportAdapter


def serve(context: typer.Context, chosen: McpOptions, where: McpScopeOptions) -> None:
    """Give other programs this memory, over the Model Context Protocol.

    Without a command it serves the program that started it, over stdin and stdout, until stdin ends. `holdfast mcp
    install claude-code` makes Claude Code start it; `holdfast mcp install --help` lists the other programs.
    """
    if context.invoked_subcommand is not None:
        return
    check_mcp_installed()
    from holdfast.mcp.tool_choices import ToolChoice

    names = [each.value for each in ToolChoice]
    if chosen.tools not in names:
        raise UsageError(f"--tools: use one of {', '.join(names)}")
    if chosen.in_default_folder:
        make_private_folder(Path(chosen.location).parent)
    with contextlib.suppress(asyncio.CancelledError):  # stopped by a signal
        asyncio.run(_serve(chosen, where, ToolChoice(chosen.tools)))


async def _serve(chosen: McpOptions, where: McpScopeOptions, choice: ToolChoice) -> None:
    from holdfast.mcp.session import ToolCaller
    from holdfast.mcp.stdio import serve_stdio

    serving = asyncio.current_task()
    assert serving is not None
    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    settings = chosen.settings()
    options: Options = {"settings": settings, "space": where.space, "embedder": chosen.embedder}
    service, actor, space = await Opening(chosen.location, options).open_service()
    try:
        adapter = None if is_server_url(chosen.location) else _make_adapter(settings)
        await serve_stdio(ToolCaller(service, actor, space, adapter, where.scope_parts()), choice)
    finally:
        await service.close()


def _make_adapter(settings: Settings) -> TransportAdapter:
    """Make the adapter of the runtime's tools. It asks no model: `maintain` is not among them."""
    from holdfast.sdk.builder import Plan
    from holdfast.sdk.runtime import make_governance
    from holdfast.transports.adapter import TransportAdapter

    return TransportAdapter(make_governance(Plan(profile=settings.profile), settings.skill_folders, model=False))
