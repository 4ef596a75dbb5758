"""The provider `gateway`: memory in another service that implements the gateway's HTTP API, or EverOS's."""

from holdfast.providers.gateway.adapter import GatewayAdapter
from holdfast.providers.gateway.provider import GatewayProvider

__all__ = ["GatewayAdapter", "GatewayProvider"]
