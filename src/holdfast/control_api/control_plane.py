"""`AsyncControlPlane`, with every call as a method, and `ControlPlane`, its blocking facade."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self, Unpack

from holdfast.control_api.bindings import BindingCalls
from holdfast.control_api.costs import CostCalls
from holdfast.control_api.hooks import HookCalls
from holdfast.control_api.jobs import JobCalls
from holdfast.control_api.memory import MemoryCalls
from holdfast.control_api.opening import PlaneOptions, open_control_plane
from holdfast.control_api.operations import TrailCalls
from holdfast.loops import BlockingFacade, blocking


class AsyncControlPlane(BindingCalls, MemoryCalls, HookCalls, TrailCalls, JobCalls, CostCalls):
    """The control plane of one company. Every call leaves one operation row, however it ends.

    Keywords set the scope: agent, subject, project, issue, run, conversation, namespace.
    """

    @classmethod
    async def open(
        cls, location: str | os.PathLike[str] = "memory.db", **options: Unpack[PlaneOptions]
    ) -> AsyncControlPlane:
        """Open or create a store, as `holdfast.open_async` does, and return one company's control plane.

        `space` is the company, `actor` the caller. Other options are those of a memory: `embedder`, `settings`, `work`…
        """
        return cls(**await open_control_plane(location, options))

    @property
    def _sync_safe(self) -> bool:
        return self._service.sync_safe

    async def close(self) -> None:
        """Finish accepted calls, and close the store."""
        await self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class ControlPlane(BlockingFacade[AsyncControlPlane]):
    """The blocking control plane of one company. Methods are those of `AsyncControlPlane`."""

    @classmethod
    def open(cls, location: str | os.PathLike[str] = "memory.db", **options: Unpack[PlaneOptions]) -> ControlPlane:
        """Open or create a store, and return one company's control plane."""
        return cls(lambda: AsyncControlPlane.open(location, **options))

    @property
    def space(self) -> str:
        """The company that calls work in."""
        return self._behind.space

    providers = blocking(AsyncControlPlane.providers)
    bindings = blocking(AsyncControlPlane.bindings)
    binding = blocking(AsyncControlPlane.binding)
    create_binding = blocking(AsyncControlPlane.create_binding)
    update_binding = blocking(AsyncControlPlane.update_binding)
    delete_binding = blocking(AsyncControlPlane.delete_binding)
    targets = blocking(AsyncControlPlane.targets)
    set_default = blocking(AsyncControlPlane.set_default)
    clear_default = blocking(AsyncControlPlane.clear_default)
    set_override = blocking(AsyncControlPlane.set_override)
    clear_override = blocking(AsyncControlPlane.clear_override)
    resolve = blocking(AsyncControlPlane.resolve)
    activity = blocking(AsyncControlPlane.activity)
    capture = blocking(AsyncControlPlane.capture)
    upsert = blocking(AsyncControlPlane.upsert)
    query = blocking(AsyncControlPlane.query)
    explain = blocking(AsyncControlPlane.explain)
    list = blocking(AsyncControlPlane.list)
    get = blocking(AsyncControlPlane.get)
    forget = blocking(AsyncControlPlane.forget)
    correct = blocking(AsyncControlPlane.correct)
    profile = blocking(AsyncControlPlane.profile)
    provider_jobs = blocking(AsyncControlPlane.provider_jobs)
    retry_provider_job = blocking(AsyncControlPlane.retry_provider_job)
    operations = blocking(AsyncControlPlane.operations)
    operation = blocking(AsyncControlPlane.operation)
    metrics = blocking(AsyncControlPlane.metrics)
    emit = blocking(AsyncControlPlane.emit)
    hydrate = blocking(AsyncControlPlane.hydrate)
    deliveries = blocking(AsyncControlPlane.deliveries)
    delivery = blocking(AsyncControlPlane.delivery)
    retry_delivery = blocking(AsyncControlPlane.retry_delivery)
    drop_delivery = blocking(AsyncControlPlane.drop_delivery)
    jobs = blocking(AsyncControlPlane.jobs)
    job = blocking(AsyncControlPlane.job)
    retry_job = blocking(AsyncControlPlane.retry_job)
    cancel_job = blocking(AsyncControlPlane.cancel_job)
    cost_summary = blocking(AsyncControlPlane.cost_summary)
    cost_events = blocking(AsyncControlPlane.cost_events)
    add_fee = blocking(AsyncControlPlane.add_fee)
    finance_events = blocking(AsyncControlPlane.finance_events)
    prices = blocking(AsyncControlPlane.prices)
    set_price = blocking(AsyncControlPlane.set_price)
    remove_price = blocking(AsyncControlPlane.remove_price)

    def close(self) -> None:
        """Finish accepted calls, and close the store."""
        self._close_behind()
