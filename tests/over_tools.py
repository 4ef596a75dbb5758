"""Envelopes as calls of the runtime's tools, over a pair of streams of lines as on stdio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from holdfast.mcp.runtime_tools import META_PREFIX, RUNTIME_TOOLS
from holdfast.mcp.session import ToolCaller
from holdfast.mcp.tool_choices import ToolChoice
from holdfast.testing.transport_contract import Answer
from holdfast.transports.envelope import AdapterEnvelope
from mcp_lines import speaking

# The names of tools by operation.
NAMES = {name.removeprefix("memory_").removesuffix("_candidate"): name for name in RUNTIME_TOOLS.definitions}
Send = Callable[[AdapterEnvelope], Awaitable[Answer]]
_REVISION = "2025-06-18"


def call_of(envelope: AdapterEnvelope) -> dict[str, Any]:
    """The parameters of a tool call for an envelope."""
    parts = {
        "request_id": envelope.request_id,
        "audit_id": envelope.audit_id,
        "idempotency_key": envelope.idempotency_key,
        "channel": envelope.source.channel,
        "chat_id": envelope.source.chat_id,
    }
    meta = {META_PREFIX + name: value for name, value in parts.items() if value is not None}
    return {"name": NAMES[envelope.operation], "arguments": dict(envelope.payload), "meta": meta}


@asynccontextmanager
async def calling_tools(caller: ToolCaller) -> AsyncIterator[Send]:
    async with speaking(caller, ToolChoice.RUNTIME) as lines:
        assert (await lines.initialize(_REVISION))["protocolVersion"] == _REVISION

        async def send(envelope: AdapterEnvelope) -> Answer:
            params = call_of(envelope)
            answer = await lines.ask("tools/call", {**params, "_meta": params.pop("meta")})
            return dict(answer["result"]["structuredContent"])

        yield send
