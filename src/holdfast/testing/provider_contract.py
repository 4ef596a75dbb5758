"""What every provider of memory promises, as tests.

Subclass `ProviderContract` and define a fixture `adapters` that gives a factory: an asynchronous callable that opens
the adapter under test. Called again, it opens another one on the same memory.

    class TestMyProvider(ProviderContract):
        @pytest.fixture
        def adapters(self, tmp_path: Path) -> AdapterFactory:
            async def opened() -> Adapter:
                return MyAdapter(tmp_path)

            return opened

A provider whose writes take a while to be found says so in `visible_within_seconds`; then the tests wait for them that
long, and no longer. Each test works in a company of its own, so that the memory need not be empty. Nothing here knows
how a provider works inside, and none of it may be skipped: what a provider cannot do, its capabilities say.
"""

from __future__ import annotations

from typing import ClassVar

from holdfast.testing.providing.conduct import ConductContract
from holdfast.testing.providing.forgetting import ForgettingProviderContract
from holdfast.testing.providing.gated import GatedContract
from holdfast.testing.providing.reading import ReadingContract
from holdfast.testing.providing.trial import AdapterFactory
from holdfast.testing.providing.walls import WallContract
from holdfast.testing.providing.writing import WritingContract

__all__ = ["AdapterFactory", "ProviderContract"]


class ProviderContract(
    WritingContract,
    ReadingContract,
    WallContract,
    ForgettingProviderContract,
    GatedContract,
    ConductContract,
):
    """What every provider promises. Subclass it and supply an `adapters` fixture: a factory of adapters."""

    visible_within_seconds: ClassVar[float] = 0.0
