"""Holdfast's clients: the Memory Gateway's three calls for agents, and what `holdfast.open("http://…")` stands on."""

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
