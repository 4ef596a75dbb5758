"""The operation rows of a store, for the contract of transports."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.app import Engine
from holdfast.domain.access import storewide_grant
from holdfast.domain.operations import Operation


async def rows_of(engine: Engine) -> Sequence[Operation]:
    """All operation rows, oldest first. Those of reads are written with the next commit, which is made here."""
    store = engine._core.store
    await store.wait_for_audits()
    return (await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=1_000_000)))[::-1]
