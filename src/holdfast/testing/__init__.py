"""For developers who build on Holdfast: conformance suites for stores and providers, and test fakes.

`holdfast.testing.store_contract` needs pytest, and is imported by its own name.
"""

from holdfast.testing.fakes import CountingIds, FixedClock

__all__ = ["CountingIds", "FixedClock"]
