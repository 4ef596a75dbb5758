"""The engine: the service on a store, with its background workers, the system's clock and time-ordered ids."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import uuid_utils

from holdfast.domain.access import Action, Actor, storewide_grant
from holdfast.domain.location import redact_location
from holdfast.domain.profiles import Backend, Profile
from holdfast.domain.results import StoreUsage
from holdfast.domain.search import ViewCacheUsage
from holdfast.domain.users import key_digest
from holdfast.errors import StoreError
from holdfast.ports import Verb
from holdfast.ports.hooks import Subscribers
from holdfast.runtime.gate import Core, Request, perform
from holdfast.runtime.transcripts.manifest_and_events import check_manifest
from holdfast.runtime.worker_pool import WorkerPool

T = TypeVar("T")
# Wraps a verb so that the provider bound to its space serves it.
Route = Callable[[Request[Any, Any]], Request[Any, Any]]


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class TimeOrderedIds:
    """UUIDv7 ids: they sort by time and reveal nothing about other ids."""

    def new(self, prefix: str) -> str:
        return f"{prefix}_{uuid_utils.uuid7().hex}"


class Engine:
    """Implements `ports.Service` and `ports.KeyDirectory`. `newest_schema` is asked when a manifest is checked."""

    def __init__(
        self,
        core: Core,
        crew: WorkerPool,
        newest_schema: Callable[[], int],
        *,
        sync_safe: bool = False,
        route: Route | None = None,
    ) -> None:
        self.sync_safe = sync_safe
        self.crew = crew
        self._core = core
        self._newest_schema = newest_schema
        self._route = route
        self._task: asyncio.Task[None] | None = None

    def perform(
        self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str
    ) -> Coroutine[Any, Any, T]:
        making = cast(Callable[[], Request[Any, T]], make)
        if (route := self._route) is not None:
            return perform(self._core, actor, action, lambda: route(making()), space=space)
        return perform(self._core, actor, action, making, space=space)

    @property
    def origin(self) -> str:
        # The kind alone: a fingerprint has digests, and addresses that may hold a key.
        embedder = self._core.embedder.fingerprint.partition(":")[0]
        return f"{redact_location(self._core.store.location)!r}, embedder={embedder!r}"

    @property
    def hooks(self) -> Subscribers:
        """The registry in which a host program subscribes to hooks."""
        assert self._core.subscribers is not None
        return self._core.subscribers

    @property
    def cache_usage(self) -> ViewCacheUsage:
        """The use of the cache of partitions, for metrics."""
        return self._core.searcher.cache_usage

    async def store_usage(self) -> StoreUsage:
        """Measure the store, for metrics."""
        now = self._core.clock.now()
        return await self._core.store.read(storewide_grant(), lambda reader: reader.maintenance.usage(now))

    async def actor_of(self, key: str) -> Actor | None:
        digest = key_digest(key)
        found = await self._core.store.read(storewide_grant(), lambda reader: reader.users.find_by_key(digest))
        return None if found is None or found.revoked_at is not None else found.actor

    async def present(self, profile: Profile, backend: Backend, space: str) -> None:
        """Check the store's manifest, or create it; `ManifestMismatch` if it is for another profile or backend.

        From then on the profile's budgets limit this engine's cache and event log.
        """
        self._core = replace(self._core, events_kept=profile.budget.events)
        self._core.searcher.limit_cache(profile.budget.cache_entries)
        await check_manifest(self._core, profile, backend, self._newest_schema(), space)

    def start_worker(self) -> None:
        self._task = asyncio.create_task(self.crew.run(), name="holdfast-worker")

    async def close(self) -> None:
        self.crew.stop()
        if self._task is not None:
            self._task.cancel()
            # The store must be closed however the worker ended.
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(StoreError):  # then the leases expire
            await self.crew.release()
        if self._core.outsiders is not None:
            # Before the store: outcomes of running external calls are still recorded.
            await self._core.outsiders.close()
        if self._core.subscribers is not None:
            await self._core.subscribers.close()
        await self._core.store.close()
        await self._core.embedder.close()
        curator, flush_model = self._core.curator, self._core.flush_model
        if curator is not None:
            await curator.close()
        if flush_model is not None and flush_model.curator is not curator:
            await flush_model.curator.close()
