"""For those who build on Holdfast: conformance suites for their own stores, and stand-ins for tests.

`holdfast.testing.store_contract` needs pytest, and is imported by its own name.
"""

from holdfast.testing.fakes import CountingIds, FixedClock

__all__ = ["CountingIds", "FixedClock"]
