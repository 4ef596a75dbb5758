"""Bindings and their targets: operators create and change them, and each change commits with an event.

A binding to an external provider makes the service call an address with a secret, so only an operator of the whole
store may create or reconfigure one. Events name who changed which fields, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from holdfast.control import validation
from holdfast.control.binding_resolution import read_resolution, require_provider, require_providers
from holdfast.control.dispatch import timeout_of
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.bindings import HOOKS_AT_FIRST, Binding, Target, TargetKind, checked_key
from holdfast.domain.checks import checked_flag, checked_whole
from holdfast.domain.contract import Capabilities, HookKind
from holdfast.domain.control import BindingList, ProviderInfo, ResolvedBinding
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import BindingId
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Scope, check_part
from holdfast.domain.secret_references import check_references
from holdfast.errors import (
    AccessDenied,
    BindingNotFound,
    InvalidInput,
    InvalidScope,
    ProviderMisconfigured,
    RevisionConflict,
    UnknownProvider,
)
from holdfast.ports import Reader, Transaction
from holdfast.ports.provider import Provider, Providers
from holdfast.runtime.activity_events import activity_event
from holdfast.runtime.gate import AttributedRequest, Core, Read, Write

_MAX_NAMES_CHARS = 500


@dataclass(frozen=True, slots=True)
class CreateBinding(AttributedRequest, Write[tuple[Binding, Event], Binding]):
    """Create a binding; `BindingExists` if the key is taken. Hooks that are not named get their defaults."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    scope: Scope
    key: str
    provider: str
    config: Mapping[str, Any] = field(default_factory=dict)
    hooks: Mapping[HookKind, bool] = field(default_factory=dict)
    enabled: bool = True
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        checked_key(self.key)
        if not isinstance(self.provider, str):
            raise InvalidInput("provider", f"expected text, got {type(self.provider).__name__}")
        validation.check_data(self.config, "config")
        _check_hooks(self.hooks)
        checked_flag(self.enabled, "enabled")

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    async def prepare(self, core: Core, grant: Grant) -> tuple[Binding, Event]:
        provider = require_providers(core).get(self.provider)
        _check_may_configure(grant, provider)
        now = core.clock.now()
        binding = Binding(
            id=BindingId(core.ids.new(ids.BINDING)),
            space=self.scope.space,
            key=self.key,
            provider=provider.key,
            config=validate_config(require_providers(core), provider, self.config),
            hooks={**HOOKS_AT_FIRST, **self.hooks},
            enabled=self.enabled,
            created_at=now,
            updated_at=now,
        )
        timeout_of(binding)
        details = {"provider": provider.key, "enabled": str(self.enabled).lower()}
        return binding, activity_event(core, grant, EventKind.BINDING_CREATED, self.key, details)

    def apply(self, transaction: Transaction, prepared: tuple[Binding, Event]) -> Binding:
        binding, event = prepared
        transaction.add_binding(binding)
        transaction.append_event(event)
        return binding

    def replay_state(self, result: Binding) -> dict[str, Any]:
        return {"key": result.key}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Binding:
        return _require_binding(transaction, self.key)

    def record_count(self, result: Binding) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class _BindingChange:
    """A validated change, and the binding that it was validated against."""

    seen: Binding
    config: Mapping[str, Any] | None
    now: datetime
    core: Core
    grant: Grant


@dataclass(frozen=True, slots=True)
class UpdateBinding(AttributedRequest, Write[_BindingChange, Binding]):
    """Update a binding: replace its configuration, switch single hooks, enable or disable it."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    scope: Scope
    key: str
    config: Mapping[str, Any] | None = None
    hooks: Mapping[HookKind, bool] | None = None
    enabled: bool | None = None
    expected_revision: int | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        checked_key(self.key)
        if self.config is None and self.hooks is None and self.enabled is None:
            raise InvalidInput("changes", "there is nothing to change; give config, hooks or enabled")
        if self.config is not None:
            validation.check_data(self.config, "config")
        if self.hooks is not None:
            _check_hooks(self.hooks)
        if self.enabled is not None:
            checked_flag(self.enabled, "enabled")
        if self.expected_revision is not None:
            checked_whole(self.expected_revision, "expected_revision", 1, 2**31 - 1)

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    async def prepare(self, core: Core, grant: Grant) -> _BindingChange:
        seen = await core.store.read(grant, lambda reader: _require_binding(reader, self.key))
        config = None
        if self.config is not None:
            provider = require_provider(core, seen)
            _check_may_configure(grant, provider)
            config = validate_config(require_providers(core), provider, self.config)
            timeout_of(replace(seen, config=config))
        return _BindingChange(seen, config, core.clock.now(), core, grant)

    def apply(self, transaction: Transaction, prepared: _BindingChange) -> Binding:
        there = _require_binding(transaction, self.key)
        if self.expected_revision is not None and there.revision != self.expected_revision:
            raise RevisionConflict(
                f"the binding {self.key!r} is at revision {there.revision}, not {self.expected_revision}; read it again"
            )
        # The configuration was validated against the provider of the binding as read in `prepare`.
        if prepared.config is not None and (there.id, there.revision) != (prepared.seen.id, prepared.seen.revision):
            raise RevisionConflict(f"the binding {self.key!r} was changed concurrently; read it again")
        changed = replace(
            there,
            config=there.config if prepared.config is None else prepared.config,
            hooks={**there.hooks, **(self.hooks or {})},
            enabled=there.enabled if self.enabled is None else self.enabled,
        )
        if changed == there:
            return there
        changed = replace(
            changed,
            revision=there.revision + 1,
            created_at=there.created_at or prepared.now,
            updated_at=prepared.now,
        )
        transaction.put_binding(changed)
        for kind, details in _change_events(there, changed):
            transaction.append_event(activity_event(prepared.core, prepared.grant, kind, self.key, details))
        return changed

    def replay_state(self, result: Binding) -> dict[str, Any]:
        return {"key": result.key}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Binding:
        return _require_binding(transaction, self.key)

    def record_count(self, result: Binding) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class DeleteBinding(AttributedRequest, Write[tuple[datetime, Event], None]):
    """Delete a binding and its targets. Its operations stay. Its agents fall back to the default binding, if any."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    scope: Scope
    key: str
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        checked_key(self.key)

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    async def prepare(self, core: Core, grant: Grant) -> tuple[datetime, Event]:
        return core.clock.now(), activity_event(core, grant, EventKind.BINDING_DELETED, self.key)

    def apply(self, transaction: Transaction, prepared: tuple[datetime, Event]) -> None:
        at, event = prepared
        _require_binding(transaction, self.key)
        transaction.remove_binding(self.key, at)
        transaction.append_event(event)

    def replay_state(self, result: None) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> None:
        return None

    def record_count(self, result: None) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class SetTarget(AttributedRequest, Write[Event, Target]):
    """Bind a whole company (`target_id` is its own id) or one of its agents to a binding."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    scope: Scope
    kind: TargetKind
    target_id: str
    key: str
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        _check_target(self.scope, self.kind, self.target_id)
        checked_key(self.key)

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    async def prepare(self, core: Core, grant: Grant) -> Event:
        kind = EventKind.DEFAULT_SET if self.kind is TargetKind.COMPANY else EventKind.AGENT_OVERRIDE_SET
        return activity_event(core, grant, kind, self.key, {"target": self.target_id})

    def apply(self, transaction: Transaction, prepared: Event) -> Target:
        _require_binding(transaction, self.key)
        target = Target(self.kind, self.target_id, self.key)
        if target not in transaction.targets((self.target_id,)):
            transaction.set_target(target)
            transaction.append_event(prepared)
        return target

    def replay_state(self, result: Target) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Target:
        return Target(self.kind, self.target_id, self.key)

    def record_count(self, result: Target) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ClearTarget(Write[tuple[Core, Grant], bool]):
    """Clear a target; True if there was one. An agent then uses the company's binding; a company has none."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    scope: Scope
    kind: TargetKind
    target_id: str
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        _check_target(self.scope, self.kind, self.target_id)

    async def prepare(self, core: Core, grant: Grant) -> tuple[Core, Grant]:
        return core, grant

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> bool:
        core, grant = prepared
        bound = {
            (target.kind, target.target_id): target.binding_key for target in transaction.targets((self.target_id,))
        }
        key = bound.get((self.kind, self.target_id))
        if key is None:
            return False
        transaction.clear_target(self.kind, self.target_id)
        kind = EventKind.DEFAULT_CLEARED if self.kind is TargetKind.COMPANY else EventKind.AGENT_OVERRIDE_CLEARED
        transaction.append_event(activity_event(core, grant, kind, key, {"target": self.target_id}))
        return True

    def replay_state(self, result: bool) -> dict[str, Any]:
        return {"cleared": result}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> bool:
        return bool(kept["cleared"])

    def record_count(self, result: bool) -> int:
        return int(result)


@dataclass(frozen=True, slots=True)
class ListBindings(Read[None, BindingList]):
    """List bindings with their configurations, in which secrets are references."""

    action: ClassVar[Action] = Action.READ_BINDINGS
    scope: Scope

    def __post_init__(self) -> None:
        validation.check_company(self.scope)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> BindingList:
        return BindingList(tuple(reader.bindings()), tuple(reader.targets()))

    def record_count(self, result: BindingList) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class GetBinding(AttributedRequest, Read[None, Binding]):
    action: ClassVar[Action] = Action.READ_BINDINGS
    scope: Scope
    key: str

    def __post_init__(self) -> None:
        validation.check_company(self.scope)
        checked_key(self.key)

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> Binding:
        return _require_binding(reader, self.key)

    def record_count(self, result: Binding) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ListTargets(Read[None, tuple[Target, ...]]):
    action: ClassVar[Action] = Action.READ_BINDINGS
    scope: Scope

    def __post_init__(self) -> None:
        validation.check_company(self.scope)

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> tuple[Target, ...]:
        return tuple(reader.targets())

    def record_count(self, result: tuple[Target, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class ResolveBinding(Read[Core, ResolvedBinding]):
    """Resolve the binding that would serve this scope, disabled ones included. Anyone who may act in it can ask."""

    action: ClassVar[Action] = Action.RESOLVE_BINDING
    scope: Scope
    key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_binding_key(self.key)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core

    def apply(self, reader: Reader, prepared: Core) -> ResolvedBinding:
        found = read_resolution(reader, self.scope, self.key)
        if found.binding is None:
            return ResolvedBinding(found.source, found.checked)
        return ResolvedBinding(
            found.source,
            found.checked,
            found.binding.key,
            found.binding.provider,
            found.binding.enabled,
            _capabilities(prepared, found.binding),
        )

    def record_count(self, result: ResolvedBinding) -> int:
        return int(result.binding_key is not None)


@dataclass(frozen=True, slots=True)
class ListProviders(Read[tuple[ProviderInfo, ...], tuple[ProviderInfo, ...]]):
    """List the installed providers with their configuration schemas."""

    action: ClassVar[Action] = Action.READ_BINDINGS
    scope: Scope

    def __post_init__(self) -> None:
        validation.check_company(self.scope)

    async def prepare(self, core: Core, grant: Grant) -> tuple[ProviderInfo, ...]:
        return tuple(map(provider_info, require_providers(core).list_providers()))

    def apply(self, reader: Reader, prepared: tuple[ProviderInfo, ...]) -> tuple[ProviderInfo, ...]:
        return prepared

    def record_count(self, result: tuple[ProviderInfo, ...]) -> int:
        return len(result)


def provider_info(provider: Provider) -> ProviderInfo:
    return ProviderInfo(provider.key, provider.description, provider.outside, provider.capabilities, provider.schema())


def _require_binding(reader: Reader, key: str) -> Binding:
    for binding in reader.bindings((key,)):
        return binding
    raise BindingNotFound(f"there is no binding {key!r:.80} in this company; list its bindings")


def _capabilities(core: Core, binding: Binding) -> Capabilities | None:
    """Return the provider's capabilities, or None if it is not installed here."""
    try:
        return require_providers(core).get(binding.provider).capabilities
    except UnknownProvider:
        return None


def _check_may_configure(grant: Grant, provider: Provider) -> None:
    if provider.outside and grant.actor.space is not None:
        raise AccessDenied(
            f"{grant.actor.kind} {grant.actor.id!r} may not configure the external provider {provider.key!r:.80}: its"
            " configuration makes the service call an address with a secret; ask the operator of the service"
        )


def validate_config(providers: Providers, provider: Provider, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration as validated by its provider, with defaults.

    Secret references are checked here, before and after the provider's own check, so that a plain key is never stored.
    """
    schema = provider.schema()
    check_references(schema, config)
    checked = provider.check(config)
    if not isinstance(checked, Mapping):
        raise ProviderMisconfigured(
            f"the check of {provider.key!r:.80} returned no configuration; correct the provider"
        )
    validated = dict(checked)
    validation.check_data(validated, "config")
    check_references(schema, validated)
    providers.check_secrets(provider, validated)
    return validated


def _check_hooks(hooks: object) -> None:
    if not isinstance(hooks, Mapping):
        raise InvalidInput("hooks", f"expected an object, got {type(hooks).__name__}")
    for kind, on in hooks.items():
        validation.check_enum(kind, HookKind, "hooks")
        checked_flag(on, f"hooks.{kind}")


def _check_target(scope: Scope, kind: TargetKind, target_id: str) -> None:
    validation.check_company(scope)
    validation.check_enum(kind, TargetKind, "kind")
    check_part("target_id", target_id)
    if kind is TargetKind.COMPANY and target_id != scope.space:
        raise InvalidScope("target_id", "names another company; give the id of this company")


def _change_events(before: Binding, after: Binding) -> list[tuple[EventKind, dict[str, str | int | None]]]:
    """Return the events for a change, naming the changed fields."""
    names = [f"config.{name}" for name in _changed_names(before.config, after.config)]
    names += [f"hooks.{name}" for name in _changed_names(before.hooks, after.hooks)]
    found: list[tuple[EventKind, dict[str, str | int | None]]] = []
    if names:
        changed = ", ".join(names)[:_MAX_NAMES_CHARS]
        found.append((EventKind.BINDING_UPDATED, {"changed": changed, "revision": after.revision}))
    if before.enabled != after.enabled:
        kind = EventKind.BINDING_ENABLED if after.enabled else EventKind.BINDING_DISABLED
        found.append((kind, {"revision": after.revision}))
    return found


def _changed_names(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[str]:
    missing = object()
    return sorted(str(name) for name in {*before, *after} if before.get(name, missing) != after.get(name, missing))
