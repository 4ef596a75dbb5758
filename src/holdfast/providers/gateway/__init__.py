"""`gateway`: a memory behind another service that speaks the gateway's HTTP interface, or EverOS's."""

from holdfast.providers.gateway.adapter import GatewayAdapter
from holdfast.providers.gateway.provider import GatewayProvider

__all__ = ["GatewayAdapter", "GatewayProvider"]
