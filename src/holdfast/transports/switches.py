"""The switch of each transport: those that are not listed are off, and their capability says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# The capabilities of transports that have a switch, by the names in HOLDFAST_TRANSPORTS.
CAPABILITIES: Mapping[str, str] = {
    "http": "transport_http",
    "mcp": "transport_mcp",
    "ws": "transport_wss",
    "a2a": "transport_a2a",
}


def switched_off(listed: Iterable[str]) -> frozenset[str]:
    """Return the capabilities of the transports that are not listed."""
    listed = frozenset(listed)
    return frozenset(capability for name, capability in CAPABILITIES.items() if name not in listed)
