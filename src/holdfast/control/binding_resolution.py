"""Resolves the binding that serves a call. A transaction that the call makes anyway reads or verifies it each time, so
every process sees a change at once."""

from __future__ import annotations

from holdfast.domain.bindings import Binding, Resolution, resolve
from holdfast.domain.scope import Scope
from holdfast.errors import ProviderMisconfigured, UnknownProvider
from holdfast.ports import Reader
from holdfast.ports.provider import ExternalRunner, Provider, Providers
from holdfast.runtime.gate import Call, Core


def read_resolution(reader: Reader, scope: Scope, key: str | None) -> Resolution:
    """Resolve with keyed reads only: a space may have very many bindings, and a target per agent."""
    if key is not None:
        return resolve(reader.bindings.find_all((key,)), (), scope.space, key, scope.agent)
    targets = reader.bindings.targets([scope.space] if scope.agent is None else [scope.space, scope.agent])
    return resolve(
        reader.bindings.find_all({each.binding_key for each in targets}), targets, scope.space, None, scope.agent
    )


async def resolve_for_call(call: Call, key: str | None) -> Binding:
    """Return the binding that serves the call, or raise if it is unusable. Either way the operation row names it."""
    scope = call.grant.scope
    found = await call.read_optimistic(
        (scope.space, scope.agent, key), lambda reader: read_resolution(reader, scope, key)
    )
    attribute_binding(call, found)
    return found.usable()


def attribute_binding(call: Call, found: Resolution) -> None:
    """Name the binding that was found in the call's operation row."""
    if found.binding is not None:
        call.attribute(binding=found.binding.key, provider=found.binding.provider)


def require_providers(core: Core) -> Providers:
    if core.providers is None:
        raise ProviderMisconfigured("this store was opened without memory providers; open it with them")
    return core.providers


def require_external_runner(core: Core) -> ExternalRunner:
    if core.outsiders is None:
        raise ProviderMisconfigured("this store was opened without a runner for external providers; open it with one")
    return core.outsiders


def require_provider(core: Core, binding: Binding) -> Provider:
    """Return the binding's provider. One uninstalled since is a configuration error, not the caller's mistake."""
    try:
        return require_providers(core).get(binding.provider)
    except UnknownProvider:
        problem = f"the binding `{binding.key}` names the provider `{binding.provider:.80}`"
    failure = ProviderMisconfigured(f"{problem}, which is not installed here; install it, or bind another")
    failure.public = str(failure)
    raise failure
