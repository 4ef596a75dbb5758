"""Which binding serves a call. It is looked up in the transaction that the call makes anyway, every time: a change is
seen at once, by every process."""

from __future__ import annotations

from holdfast.domain.bindings import Binding, Resolution, resolve
from holdfast.domain.scope import Scope
from holdfast.errors import ProviderMisconfigured, UnknownProvider
from holdfast.ports import Reader
from holdfast.ports.provider import Outsiders, Provider, Providers
from holdfast.runtime.perform import Call, Core


def resolution_of(reader: Reader, scope: Scope, key: str | None) -> Resolution:
    """Only what is looked at is read: a company may have very many bindings, and an agent each a target."""
    if key is not None:
        return resolve(reader.bindings((key,)), (), scope.space, key, scope.agent)
    targets = reader.targets([scope.space] if scope.agent is None else [scope.space, scope.agent])
    return resolve(reader.bindings({each.binding_key for each in targets}), targets, scope.space, None, scope.agent)


async def serving(call: Call, key: str | None) -> Binding:
    """The binding that serves the call, if it can be used. The call's row names it, also if it cannot."""
    scope = call.grant.scope
    found = await call.supposing((scope.space, scope.agent, key), lambda reader: resolution_of(reader, scope, key))
    if found.binding is not None:
        call.attribute(binding=found.binding.key, provider=found.binding.provider)
    return found.usable()


def providers_of(core: Core) -> Providers:
    if core.providers is None:
        raise ProviderMisconfigured("no providers of memory are installed here; open the store with them")
    return core.providers


def outsiders_of(core: Core) -> Outsiders:
    if core.outsiders is None:
        raise ProviderMisconfigured("nothing here runs providers that reach outside; open the store with them")
    return core.outsiders


def provider_of(core: Core, binding: Binding) -> Provider:
    """What was bound may have been uninstalled since: that is no mistake of whoever calls."""
    try:
        return providers_of(core).get(binding.provider)
    except UnknownProvider:
        named = f"the binding {binding.key!r} names the provider {binding.provider!r:.80}"
    failure = ProviderMisconfigured(f"{named}, which is not installed here; install it, or bind another")
    failure.public = str(failure)
    raise failure
