"""`python -m bench.protocol.echo`: echoes over stdio, or with `http` over HTTP at the address that it prints."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server


async def _call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    text = types.TextContent(type="text", text=json.dumps(arguments))
    return types.CallToolResult(content=[text], structured_content=arguments)


async def _list(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])


async def _serve_lines(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    server = Server("echo", on_list_tools=_list, on_call_tool=_call)
    if "http" not in sys.argv:
        asyncio.run(_serve_lines(server))
        return
    # With the protocol TCP: asyncio disables Nagle's algorithm only on sockets that name it.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_config=None)).serve([listening]))


if __name__ == "__main__":
    main()
