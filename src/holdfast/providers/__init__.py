"""Providers of memory: our own, and what others need to write theirs.

Whoever keeps memory for Holdfast implements `ports.provider.Adapter`, and a provider that opens one per binding:
`ConfiguredProvider`, with a `Configuration` that says what a binding may tell it. `holdfast.testing.provider_contract`
says whether it keeps its promises, and an entry point of the group `holdfast.providers` makes it known.
"""

from holdfast.providers.configured import (
    Configuration,
    ConfiguredProvider,
    OutsideConfiguration,
    SecretReference,
)

__all__ = ["Configuration", "ConfiguredProvider", "OutsideConfiguration", "SecretReference"]
