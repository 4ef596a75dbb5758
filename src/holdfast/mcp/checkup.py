"""A check of a server as a client would use it: start it, list its tools, and call each of them.

What it remembers, it forgets: nothing stays but rows of the audit trail.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

STATEMENT = "Holdfast's doctor was here."
# Read-only tools of the other sets, with arguments that need nothing to exist.
_READS: Mapping[str, Mapping[str, Any]] = {
    "memory.search": {"query": STATEMENT},
    "memory.list": {"limit": 1},
    "memory.jobs": {"limit": 1},
}


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """One call of a tool. `problem` is what it answered, if it refused."""

    tool: str
    seconds: float
    problem: str | None


@dataclass(frozen=True, slots=True)
class Checkup:
    """A server's revision of the protocol, its tools, and the calls of them."""

    protocol: str
    tools: tuple[str, ...]
    calls: tuple[ToolCheck, ...]

    @property
    def seconds(self) -> float:
        """The time of one call of each tool, all together."""
        return sum(each.seconds for each in self.calls)

    @property
    def ok(self) -> bool:
        return all(each.problem is None for each in self.calls)


async def check_server(command: str, args: tuple[str, ...]) -> Checkup:
    """Start a server as a client does, and call its tools."""
    # What the server says about itself belongs to this terminal, as to a client's log.
    async with Client(stdio_client(StdioServerParameters(command=command, args=list(args)))) as client:
        tools = tuple(tool.name for tool in (await client.list_tools()).tools)
        calls = [call async for call in _call_simple(client)] if "remember" in tools else []
        for name, arguments in _READS.items():
            if name in tools:
                calls.append((await _call(client, name, arguments))[0])
        return Checkup(client.protocol_version, tools, tuple(calls))


async def _call_simple(client: Client) -> Any:
    """Remember, find, correct and forget one statement. Each call is yielded; a refusal ends it."""
    call, written = await _call(client, "remember", {"text": STATEMENT})
    yield call
    for name in ("recall", "search"):
        yield (await _call(client, name, {"query": STATEMENT}))[0]
    if call.problem is not None:
        return
    record_id = written["record_id"]
    yield (await _call(client, "correct", {"record_id": record_id, "text": f"{STATEMENT} It found nothing wrong."}))[0]
    call, preview = await _call(client, "forget", {"record_ids": [record_id]})
    yield call
    if call.problem is None:
        call, _ = await _call(client, "forget", {"record_ids": [record_id], "token": preview["token"]})
        if call.problem is not None:
            yield call


async def _call(client: Client, name: str, arguments: Mapping[str, Any]) -> tuple[ToolCheck, dict[str, Any]]:
    started = time.perf_counter()
    result = await client.call_tool(name, dict(arguments))
    seconds = time.perf_counter() - started
    text = " ".join(part.text for part in result.content if isinstance(part, types.TextContent))
    return ToolCheck(name, seconds, text if result.is_error else None), dict(result.structured_content or {})
