"""Calls on bindings: create and change them, set defaults and overrides, list providers and the change log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from holdfast.control.activity import ListActivity
from holdfast.control.bindings import (
    ClearTarget,
    CreateBinding,
    DeleteBinding,
    GetBinding,
    ListBindings,
    ListProviders,
    ListTargets,
    ResolveBinding,
    SetTarget,
    UpdateBinding,
)
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action
from holdfast.domain.bindings import Binding, Target, TargetKind
from holdfast.domain.contract import HookKind
from holdfast.domain.control import ActivityPage, ProviderInfo, ResolvedBinding
from holdfast.errors import InvalidInput
from holdfast.inputs import ScopeKwargs, parse_enum

Hooks = Mapping[HookKind, bool] | Mapping[str, bool]


class BindingCalls(ControlCalls):
    async def providers(self) -> tuple[ProviderInfo, ...]:
        """List the installed providers with their capabilities and configuration schemas."""
        return await self._perform(Action.READ_BINDINGS, lambda: ListProviders(self._company()))

    async def bindings(self) -> tuple[Binding, ...]:
        """List the company's bindings by key. A company that never had any has `default`, bound to `local`."""
        return (await self._perform(Action.READ_BINDINGS, lambda: ListBindings(self._company()))).items

    async def binding(self, key: str) -> Binding:
        """Get one binding by its key."""
        return await self._perform(Action.READ_BINDINGS, lambda: GetBinding(self._company(), key))

    async def create_binding(
        self,
        key: str,
        provider: str,
        *,
        config: Mapping[str, Any] | None = None,
        hooks: Hooks | None = None,
        enabled: bool = True,
        idempotency_key: str | None = None,
    ) -> Binding:
        """Create a binding to a provider. Give a secret as a reference: `env://NAME` or `file://PATH`."""

        def make() -> CreateBinding:
            return CreateBinding(
                self._company(), key, provider, dict(config or {}), _hooks(hooks or {}), enabled, idempotency_key
            )

        return await self._perform(Action.MANAGE_BINDINGS, make)

    async def update_binding(
        self,
        key: str,
        *,
        config: Mapping[str, Any] | None = None,
        hooks: Hooks | None = None,
        enabled: bool | None = None,
        expected_revision: int | None = None,
        idempotency_key: str | None = None,
    ) -> Binding:
        """Update a binding. `config` replaces the whole configuration; `hooks` switches those that it names."""

        def make() -> UpdateBinding:
            return UpdateBinding(
                self._company(),
                key,
                None if config is None else dict(config),
                None if hooks is None else _hooks(hooks),
                enabled,
                expected_revision,
                idempotency_key,
            )

        return await self._perform(Action.MANAGE_BINDINGS, make)

    async def delete_binding(self, key: str, *, idempotency_key: str | None = None) -> None:
        """Delete a binding and its targets. Its operations stay, and so does the data at an external provider."""
        await self._perform(Action.MANAGE_BINDINGS, lambda: DeleteBinding(self._company(), key, idempotency_key))

    async def targets(self) -> tuple[Target, ...]:
        """List the targets of all bindings: the company, then agents."""
        return await self._perform(Action.READ_BINDINGS, lambda: ListTargets(self._company()))

    async def set_default(self, key: str, *, idempotency_key: str | None = None) -> Target:
        """Make this binding the company's default, for every agent without an override."""
        return await self._bind(TargetKind.COMPANY, self.space, key, idempotency_key)

    async def clear_default(self, *, idempotency_key: str | None = None) -> bool:
        """Remove the company's default; return False if there was none. Only overrides serve then."""
        return await self._unbind(TargetKind.COMPANY, self.space, idempotency_key)

    async def set_override(self, agent: str, key: str, *, idempotency_key: str | None = None) -> Target:
        """Make this binding serve one agent."""
        return await self._bind(TargetKind.AGENT, agent, key, idempotency_key)

    async def clear_override(self, agent: str, *, idempotency_key: str | None = None) -> bool:
        """Return an agent to the company's default; return False if it had no override."""
        return await self._unbind(TargetKind.AGENT, agent, idempotency_key)

    async def resolve(self, key: str | None = None, **where: Unpack[ScopeKwargs]) -> ResolvedBinding:
        """Resolve the binding that serves a scope, with the rule that chose it and the candidates checked."""
        return await self._perform(Action.RESOLVE_BINDING, lambda: ResolveBinding(self._scope(where), key))

    async def activity(self, *, cursor: str | None = None, limit: int = 50) -> ActivityPage:
        """List administrative changes and who made them, newest first."""
        return await self._perform(Action.READ_BINDINGS, lambda: ListActivity(self._company(), cursor, limit))

    async def _bind(self, kind: TargetKind, target: str, key: str, idempotency_key: str | None) -> Target:
        return await self._perform(
            Action.MANAGE_BINDINGS,
            lambda: SetTarget(self._company(), kind, target, key, idempotency_key=idempotency_key),
        )

    async def _unbind(self, kind: TargetKind, target: str, idempotency_key: str | None) -> bool:
        return await self._perform(
            Action.MANAGE_BINDINGS,
            lambda: ClearTarget(self._company(), kind, target, idempotency_key=idempotency_key),
        )


def _hooks(hooks: Hooks) -> dict[HookKind, bool]:
    if not isinstance(hooks, Mapping):
        raise InvalidInput("hooks", f"expected a dictionary of true or false, got {type(hooks).__name__}")
    return {parse_enum(HookKind, name, "hooks"): enabled for name, enabled in hooks.items()}
