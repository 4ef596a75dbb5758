"""Holdfast's clients: the Memory Gateway's client for agents, and the transport of `holdfast.open("http://…")`."""

from __future__ import annotations

from holdfast.client.gateway import (
    BlockingGatewayClient,
    Category,
    ChatMessage,
    GatewayClient,
    GatewayError,
    GatewayHit,
    GatewayReceipt,
)

__all__ = [
    "BlockingGatewayClient",
    "Category",
    "ChatMessage",
    "GatewayClient",
    "GatewayError",
    "GatewayHit",
    "GatewayReceipt",
]
