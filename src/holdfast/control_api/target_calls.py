"""Calls that are not plain verbs: the space's default binding, and the bindings of its agents."""

from __future__ import annotations

from holdfast.control.bindings import ClearTarget, ListBindings, SetTarget
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.presentable import Results
from holdfast.pending_call import pending_methods


@pending_methods("plane")
class TargetCalls(ControlCalls):
    async def bindings(self) -> Results[Binding]:
        """List the space's bindings by key. A space that never had any has `default`, bound to `local`."""
        return Results((await self._perform(ListBindings.action, lambda: ListBindings(self._company()))).items)

    async def set_default(self, key: str, *, idempotency_key: str | None = None) -> Target:
        """Make this binding the space's default, for every agent without an override."""
        return await self._set(TargetKind.COMPANY, self.space, key, idempotency_key)

    async def clear_default(self, *, idempotency_key: str | None = None) -> bool:
        """Remove the space's default; return False if there was none. Only overrides serve then."""
        return await self._clear(TargetKind.COMPANY, self.space, idempotency_key)

    async def set_override(self, agent: str, key: str, *, idempotency_key: str | None = None) -> Target:
        """Make this binding serve one agent."""
        return await self._set(TargetKind.AGENT, agent, key, idempotency_key)

    async def clear_override(self, agent: str, *, idempotency_key: str | None = None) -> bool:
        """Return an agent to the space's default; return False if it had no override."""
        return await self._clear(TargetKind.AGENT, agent, idempotency_key)

    async def _set(self, kind: TargetKind, target_id: str, key: str, idempotency_key: str | None) -> Target:
        return await self._perform(
            SetTarget.action, lambda: SetTarget(self._company(), kind, target_id, key, idempotency_key)
        )

    async def _clear(self, kind: TargetKind, target_id: str, idempotency_key: str | None) -> bool:
        return await self._perform(
            ClearTarget.action, lambda: ClearTarget(self._company(), kind, target_id, idempotency_key)
        )
