"""Opens a store with the governance for a runtime's operations on it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from holdfast.app import Engine, open_engine
from holdfast.cli.options import StoreOptions
from holdfast.cli.store_access import require_local_store
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.settings import read_settings


@contextlib.asynccontextmanager
async def open_governed(
    chosen: StoreOptions, identity: MemoryIdentity, profile_name: str = DEFAULT_PROFILE, *, create: bool = False
) -> AsyncIterator[tuple[Engine, Governance]]:
    """Open the engine, and build the governance for a runtime's operations on it."""
    profile = profile_of(profile_name)
    engine = await open_engine(
        require_local_store(chosen, create=create), read_settings(), embedder=chosen.embedder, work=False
    )
    try:
        yield engine, Governance(identity, profile, catalogue(profile))
    finally:
        await engine.close()
