"""A client of the Model Context Protocol that writes its lines itself: for old revisions, and for broken input."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any, TextIO

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from holdfast.mcp.server import create_server
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.stdio import serve_stdio
from holdfast.mcp.tool_choices import ToolChoice

REVISIONS = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
Opened = Callable[..., AbstractAsyncContextManager[ToolCaller]]


def server_of(caller: ToolCaller, choice: ToolChoice = ToolChoice.SIMPLE) -> Any:
    return create_server(choice, lambda _: caller)


class Lines:
    """The lines to and from a server."""

    def __init__(self, asks: TextIO, answers: TextIO) -> None:
        self._asks = asks
        self._answers = answers
        self._number = 0

    def write(self, line: str) -> None:
        self._asks.write(f"{line}\n")

    async def read(self) -> Any:
        return json.loads(await asyncio.to_thread(self._answers.readline))

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request, and return its whole response."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method}
        self.write(json.dumps(request if params is None else {**request, "params": params}))
        while (answer := await self.read()).get("id") != self._number:
            pass
        return answer

    async def initialize(self, revision: str) -> dict[str, Any]:
        client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
        result: dict[str, Any] = (await self.ask("initialize", client))["result"]
        self.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        return result


@asynccontextmanager
async def speaking(caller: ToolCaller, choice: ToolChoice) -> AsyncIterator[Lines]:
    """Serve a caller over pipes, as over stdin and stdout."""
    with ExitStack() as files:
        (to_read, to_write), (back_read, back_write) = os.pipe(), os.pipe()
        incoming = files.enter_context(os.fdopen(to_read, "rb"))
        asks = files.enter_context(os.fdopen(to_write, "w", buffering=1, encoding="utf-8", errors="surrogateescape"))
        answers = files.enter_context(os.fdopen(back_read, encoding="utf-8"))
        outgoing = files.enter_context(os.fdopen(back_write, "w", encoding="utf-8"))
        serving = asyncio.create_task(serve_stdio(caller, choice, incoming, outgoing))
        try:
            yield Lines(asks, answers)
        finally:
            asks.close()
            await serving
