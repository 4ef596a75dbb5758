"""Providers of memory: our own, and what others need to write theirs.

Whoever keeps memory for Holdfast implements `ports.provider.Adapter`, and a provider that opens one per binding:
`ConfiguredProvider`, with a `Configuration` that says what a binding may tell it. `holdfast.testing.provider_contract`
says whether it keeps its promises, and an entry point of the group `holdfast.providers` makes it known.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.providers.configured import (
        Configuration,
        ConfiguredProvider,
        OutsideConfiguration,
        SecretReference,
    )

__all__ = ["Configuration", "ConfiguredProvider", "OutsideConfiguration", "SecretReference"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: every memory has a registry, few have anything bound."""
    if name in __all__:
        return getattr(import_module("holdfast.providers.configured"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
