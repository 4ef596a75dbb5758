"""For developers who build on Holdfast: conformance suites for stores and providers, replay fixtures, and test fakes.

`holdfast.testing.store_contract` needs pytest, and is imported by its own name. `holdfast.testing.replay` has the
replay fixtures and gates.
"""

from holdfast.testing.fakes import CountingIds, FixedClock, ScriptedPrompts

__all__ = ["CountingIds", "FixedClock", "ScriptedPrompts"]
