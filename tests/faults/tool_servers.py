"""A server of tools over a pair of named pipes, as over stdin and stdout."""

from __future__ import annotations

import asyncio

from holdfast.app import open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.gateway.app import make_adapter
from holdfast.gateway.config import GatewayConfig
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.stdio import serve_stdio
from holdfast.mcp.tool_choices import ToolChoice
from holdfast.settings import Settings

from . import points
from .gateways import TOKEN
from .zygote import Tell


def serve(tell: Tell, location: str, asks: str, answers: str, die_at: str, passage: int) -> None:
    """Serve a runtime's tools to the user ana. It dies at the n-th passage of this point."""

    async def main() -> None:
        engine = await open_engine(location, Settings(), embedder="fake", work=False)
        adapter = make_adapter(GatewayConfig(operator_token=TOKEN))
        caller = ToolCaller(engine, Actor(ActorKind.USER, "ana", "default"), "default", adapter)
        points.die_at(die_at, passage)
        tell(ready=True)
        incoming = await asyncio.to_thread(open, asks, "rb")
        outgoing = await asyncio.to_thread(open, answers, "w", encoding="utf-8")
        with incoming, outgoing:
            await serve_stdio(caller, ToolChoice.RUNTIME, incoming, outgoing)

    asyncio.run(main())
