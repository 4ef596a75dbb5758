"""Bindings and their targets: operators create and change them, and each change commits with an event.

A binding to an external provider makes the service call an address with a secret, so only an operator of the whole
store may create or reconfigure one. Events name who changed which fields, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar

from holdfast.control.binding_resolution import read_resolution, require_provider, require_providers
from holdfast.control.company_requests import CompanyRead, CompanyRequest, CompanyWrite, log_change
from holdfast.control.dispatch import timeout_of
from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey, Rule, text_rule, whole_number
from holdfast.domain.bindings import HOOKS_AT_FIRST, Binding, Key, Target, TargetKind
from holdfast.domain.checks import check_enum, checked_flag
from holdfast.domain.contract import Capabilities, Config, HookKind, check_config
from holdfast.domain.control import BindingList, ProviderInfo, ResolvedBinding
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import BindingId
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Part
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
from holdfast.runtime.gate import Core, Write

P = TypeVar("P")
R = TypeVar("R")
_MAX_NAMES_CHARS = 500
MAX_PROVIDER_CHARS = 128


def _check_hooks(hooks: object, field_name: str) -> None:
    if not isinstance(hooks, Mapping):
        raise InvalidInput(field_name, f"expected an object, got {type(hooks).__name__}")
    for kind, on in hooks.items():
        check_enum(kind, HookKind, field_name)
        checked_flag(on, f"{field_name}.{kind}")


ProviderKey = Annotated[str, text_rule(MAX_PROVIDER_CHARS, "PROVIDER"), "The key of the provider, such as local."]
Hooks = Annotated[Mapping[HookKind, bool], Rule(_check_hooks, "KIND=on|off", max_length=len(HookKind))]


class _BindingWrite(CompanyRequest, Write[P, R]):
    """A change of one binding. A repeated call builds its result again, so no part of it is stored."""

    __slots__ = ()
    action: ClassVar[Action] = Action.MANAGE_BINDINGS

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)  # type: ignore[attr-defined]

    def replay_state(self, result: R) -> dict[str, Any]:
        return {}

    def record_count(self, result: R) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class CreateBinding(_BindingWrite[tuple[Binding, Event], Binding]):
    """Create a binding to a provider; `BindingExists` if the key is taken."""

    key: Annotated[Key, "The key of the new binding."]
    provider: ProviderKey
    config: Annotated[
        Config, "The provider's configuration. Give a secret as a reference: env://NAME or file://PATH."
    ] = field(default_factory=dict)
    hooks: Annotated[Hooks, "True or false by kind of hook; the others get their defaults."] = field(
        default_factory=dict
    )
    enabled: Annotated[bool, "Serve calls from now on."] = True
    idempotency_key: IdempotencyKey | None = None

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
        transaction.bindings.add(binding)
        transaction.events.append(event)
        return binding

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Binding:
        return _require_binding(transaction, self.key)


@dataclass(frozen=True, slots=True)
class _BindingChange:
    """A validated change, and the binding that it was validated against."""

    seen: Binding
    config: Mapping[str, Any] | None
    core: Core
    grant: Grant


@dataclass(frozen=True, slots=True)
class UpdateBinding(_BindingWrite[_BindingChange, Binding]):
    """Change a binding: replace its configuration, switch single hooks, enable or disable it."""

    key: Key
    config: Annotated[Config | None, "Replaces the whole configuration."] = None
    hooks: Annotated[Hooks | None, "Switches the hooks that it names."] = None
    enabled: Annotated[bool | None, "Enable or disable it."] = None
    expected_revision: Annotated[int | None, whole_number(1, 2**31 - 1), "Only if it is still at this revision."] = None
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        CompanyRequest.__post_init__(self)
        if self.config is None and self.hooks is None and self.enabled is None:
            raise InvalidInput("changes", "there is nothing to change; give config, hooks or enabled")

    async def prepare(self, core: Core, grant: Grant) -> _BindingChange:
        seen = await core.store.read(grant, lambda reader: _require_binding(reader, self.key))
        config = None
        if self.config is not None:
            provider = require_provider(core, seen)
            _check_may_configure(grant, provider)
            config = validate_config(require_providers(core), provider, self.config)
            timeout_of(replace(seen, config=config))
        return _BindingChange(seen, config, core, grant)

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
        now = prepared.core.clock.now()
        changed = replace(changed, revision=there.revision + 1, created_at=there.created_at or now, updated_at=now)
        transaction.bindings.replace(changed)
        for kind, details in _change_events(there, changed):
            transaction.events.append(activity_event(prepared.core, prepared.grant, kind, self.key, details))
        return changed

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Binding:
        return _require_binding(transaction, self.key)


@dataclass(frozen=True, slots=True)
class DeleteBinding(_BindingWrite[tuple[datetime, Event], None]):
    """Delete a binding and its targets. Its operations stay, and so does the data at an external provider.

    Its agents fall back to the default binding, if any.
    """

    key: Key
    idempotency_key: IdempotencyKey | None = None

    async def prepare(self, core: Core, grant: Grant) -> tuple[datetime, Event]:
        return core.clock.now(), activity_event(core, grant, EventKind.BINDING_DELETED, self.key)

    def apply(self, transaction: Transaction, prepared: tuple[datetime, Event]) -> None:
        at, event = prepared
        _require_binding(transaction, self.key)
        transaction.bindings.remove(self.key, at)
        transaction.events.append(event)

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SetTarget(_BindingWrite[Event, Target]):
    """Bind a whole space (`target_id` is its own id) or one of its agents to a binding."""

    kind: TargetKind
    target_id: Part
    key: Key
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        _check_target(self)

    async def prepare(self, core: Core, grant: Grant) -> Event:
        kind = EventKind.DEFAULT_SET if self.kind is TargetKind.COMPANY else EventKind.AGENT_OVERRIDE_SET
        return activity_event(core, grant, kind, self.key, {"target": self.target_id})

    def apply(self, transaction: Transaction, prepared: Event) -> Target:
        _require_binding(transaction, self.key)
        target = Target(self.kind, self.target_id, self.key)
        if target not in transaction.bindings.targets((self.target_id,)):
            transaction.bindings.set_target(target)
            transaction.events.append(prepared)
        return target

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Target:
        return Target(self.kind, self.target_id, self.key)


@dataclass(frozen=True, slots=True)
class ClearTarget(CompanyWrite[bool]):
    """Clear a target; True if there was one. An agent then uses the space's binding; a space has none."""

    action: ClassVar[Action] = Action.MANAGE_BINDINGS
    kind: TargetKind
    target_id: Part
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        _check_target(self)

    def apply(self, transaction: Transaction, prepared: tuple[Core, Grant]) -> bool:
        bound = {
            (target.kind, target.target_id): target.binding_key
            for target in transaction.bindings.targets((self.target_id,))
        }
        key = bound.get((self.kind, self.target_id))
        if key is None:
            return False
        transaction.bindings.clear_target(self.kind, self.target_id)
        kind = EventKind.DEFAULT_CLEARED if self.kind is TargetKind.COMPANY else EventKind.AGENT_OVERRIDE_CLEARED
        log_change(transaction, prepared, kind, key, {"target": self.target_id})
        return True

    def replay_state(self, result: bool) -> dict[str, Any]:
        return {"cleared": result}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> bool:
        return bool(kept["cleared"])

    def record_count(self, result: bool) -> int:
        return int(result)


@dataclass(frozen=True, slots=True)
class ListBindings(CompanyRead[BindingList]):
    """List bindings with their configurations, in which secrets are references."""

    action: ClassVar[Action] = Action.READ_BINDINGS

    def apply(self, reader: Reader, prepared: Core) -> BindingList:
        return BindingList(tuple(reader.bindings.find_all()), tuple(reader.bindings.targets()))


@dataclass(frozen=True, slots=True)
class GetBinding(CompanyRead[Binding]):
    """Get one binding by its key."""

    action: ClassVar[Action] = Action.READ_BINDINGS
    key: Key

    def attribution(self) -> Attribution:
        return Attribution(binding=self.key)

    def apply(self, reader: Reader, prepared: Core) -> Binding:
        return _require_binding(reader, self.key)


@dataclass(frozen=True, slots=True)
class ListTargets(CompanyRead[tuple[Target, ...]]):
    """List the targets of all bindings: the space, then agents."""

    action: ClassVar[Action] = Action.READ_BINDINGS

    def apply(self, reader: Reader, prepared: Core) -> tuple[Target, ...]:
        return tuple(reader.bindings.targets())


@dataclass(frozen=True, slots=True)
class ResolveBinding(CompanyRead[ResolvedBinding]):
    """Resolve the binding that serves a scope, disabled ones included, with the rule that chose it.

    Anyone who may act in the scope can ask.
    """

    action: ClassVar[Action] = Action.RESOLVE_BINDING
    binding_key: Annotated[Key | None, "As if this binding were requested."] = None

    def apply(self, reader: Reader, prepared: Core) -> ResolvedBinding:
        found = read_resolution(reader, self.scope, self.binding_key)
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
class ListProviders(CompanyRead[tuple[ProviderInfo, ...]]):
    """List the installed providers with their capabilities and configuration schemas."""

    action: ClassVar[Action] = Action.READ_BINDINGS

    async def prepare(self, core: Core, grant: Grant) -> Core:
        require_providers(core).list_providers()  # those that are not loaded yet are loaded here, which may be slow
        return core

    def apply(self, reader: Reader, prepared: Core) -> tuple[ProviderInfo, ...]:
        return tuple(map(provider_info, require_providers(prepared).list_providers()))


def provider_info(provider: Provider) -> ProviderInfo:
    return ProviderInfo(provider.key, provider.description, provider.outside, provider.capabilities, provider.schema())


def _require_binding(reader: Reader, key: str) -> Binding:
    for binding in reader.bindings.find_all((key,)):
        return binding
    raise BindingNotFound(f"there is no binding {key!r:.80} in this space; list its bindings")


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
    check_config(validated, "config")
    check_references(schema, validated)
    providers.check_secrets(provider, validated)
    return validated


def _check_target(request: SetTarget | ClearTarget) -> None:
    CompanyRequest.__post_init__(request)
    if request.kind is TargetKind.COMPANY and request.target_id != request.scope.space:
        raise InvalidScope("target_id", "names another space; give the id of this one")


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
