"""Memory providers: Holdfast's own, and the base classes for third-party ones.

A third-party provider implements `ports.provider.Adapter`, and a `ConfiguredProvider` that opens one adapter per
binding; its `Configuration` is the schema of a binding's settings. `holdfast.testing.provider_contract` is the
conformance suite, and an entry point of the group `holdfast.providers` registers it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.providers.configuration import (
        Configuration,
        ConfiguredProvider,
        OutsideConfiguration,
        SecretReference,
    )

__all__ = ["Configuration", "ConfiguredProvider", "OutsideConfiguration", "SecretReference"]


def __getattr__(name: str) -> Any:
    """Import lazily: every memory has a registry, but few have external bindings."""
    if name in __all__:
        return getattr(import_module("holdfast.providers.configuration"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
