"""Holdfast's clients: the Memory Gateway's client for agents, and the transport of `holdfast.open("http://…")`."""

from __future__ import annotations

from holdfast.client.gateway import (
    Accepted,
    BlockingGatewayClient,
    Category,
    ChatMessage,
    Found,
    GatewayClient,
    GatewayError,
)

__all__ = ["Accepted", "BlockingGatewayClient", "Category", "ChatMessage", "Found", "GatewayClient", "GatewayError"]
