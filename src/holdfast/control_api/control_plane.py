"""`AsyncControlPlane`, with every call as a method, and `ControlPlane`, its blocking facade."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self, Unpack

from holdfast.control_api.target_calls import TargetCalls
from holdfast.control_api.verb_methods import BlockingVerbMethods, VerbMethods
from holdfast.domain.call_errors import explain_arguments
from holdfast.loops import blocking
from holdfast.opening import Opening, opening_call
from holdfast.opening import Options as PlaneOptions
from holdfast.pending_call import pending_methods


@pending_methods("plane")
class AsyncControlPlane(VerbMethods, TargetCalls):
    """The control plane of one space. Every call leaves one operation row, however it ends.

    Keywords set the scope: agent, subject, project, issue, run, conversation, namespace.
    """

    @classmethod
    @opening_call
    async def open(
        cls, location: str | os.PathLike[str] = "memory.db", **options: Unpack[PlaneOptions]
    ) -> AsyncControlPlane:
        """Open or create a store, as `holdfast.open_async` does, and return one space's control plane.

        `actor` is the caller.
        """
        service, actor, space = await Opening(location, options).open_service()
        return cls(service, actor=actor, space=space)

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


class ControlPlane(BlockingVerbMethods[AsyncControlPlane]):
    """The blocking control plane of one space. Methods are those of `AsyncControlPlane`."""

    _opened_by = 'holdfast.ControlPlane.open("memory.db")'
    _opened_async_by = "async with await holdfast.AsyncControlPlane.open(...) as plane"

    @classmethod
    @opening_call
    def open(cls, location: str | os.PathLike[str] = "memory.db", **options: Unpack[PlaneOptions]) -> ControlPlane:
        """Open or create a store, and return one space's control plane."""
        return cls(lambda: AsyncControlPlane.open(location, **options))

    @property
    def space(self) -> str:
        """The space that calls work in."""
        return self._behind.space

    bindings = blocking(AsyncControlPlane.bindings)
    set_default = blocking(AsyncControlPlane.set_default)
    clear_default = blocking(AsyncControlPlane.clear_default)
    set_override = blocking(AsyncControlPlane.set_override)
    clear_override = blocking(AsyncControlPlane.clear_override)

    @explain_arguments
    def close(self) -> None:
        """Finish accepted calls, and close the store."""
        self._close_behind()
