"""The conformance suite of memory providers.

Subclass `ProviderContract` and define a fixture `adapters` that gives a factory: an asynchronous callable that opens
the adapter under test. Called again, it opens another one on the same memory.

    class TestMyProvider(ProviderContract):
        @pytest.fixture
        def adapters(self, tmp_path: Path) -> AdapterFactory:
            async def opened() -> Adapter:
                return MyAdapter(tmp_path)

            return opened

If a provider's writes are visible only after a delay, set `visible_within_seconds`; the tests wait at most that long.
Each test works in a space of its own, so that the memory need not be empty. The tests use only the provider API, and
none may be skipped: a provider declares what it can do in its capabilities.
"""

from __future__ import annotations

from typing import ClassVar

from holdfast.testing.provider_suite.capabilities import CapabilityContract
from holdfast.testing.provider_suite.forgetting import ForgettingProviderContract
from holdfast.testing.provider_suite.isolation import IsolationContract
from holdfast.testing.provider_suite.reading import ReadingContract
from holdfast.testing.provider_suite.robustness import RobustnessContract
from holdfast.testing.provider_suite.trial import AdapterFactory
from holdfast.testing.provider_suite.writing import WritingContract

__all__ = ["AdapterFactory", "ProviderContract"]


class ProviderContract(
    WritingContract,
    ReadingContract,
    IsolationContract,
    ForgettingProviderContract,
    CapabilityContract,
    RobustnessContract,
):
    """The promises of every provider. Subclass it and supply an `adapters` fixture: a factory of adapters."""

    visible_within_seconds: ClassVar[float] = 0.0
