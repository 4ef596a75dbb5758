"""Dispatches a call to its provider: our own store inside the gate, or an external one after recording the intent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.control.checking import Bounds, Told, told
from holdfast.control.outside import named
from holdfast.control.resolving import outsiders_of, provider_of
from holdfast.domain.bindings import Binding
from holdfast.domain.contract import Capabilities
from holdfast.domain.control import ProviderResponse
from holdfast.domain.usage import attribution_of
from holdfast.errors import CapabilityUnavailable, InvalidConfiguration, ProviderError, SecretUnavailable
from holdfast.ports import Transaction
from holdfast.ports.provider import Adapter
from holdfast.runtime.metering import record_costs
from holdfast.runtime.perform import Call, Core

T = TypeVar("T")
Also = Callable[[Transaction], None]

DEFAULT_SECONDS = 10.0
LEAST_SECONDS = 0.1
MOST_SECONDS = 60.0


async def ask(
    core: Core,
    call: Call,
    binding: Binding,
    work: Callable[[Adapter], Awaitable[T]],
    check: Callable[[object, Bounds], Told[T]],
    *,
    needs: str | None = None,
    also: Also | None = None,
    timeout_seconds: float | None = None,
) -> ProviderResponse[T]:
    """Run `work` on the binding's provider, and validate its response. `needs` names the required capability.

    `also` runs in the commit that records a write. `timeout_seconds` can only shorten the binding's own timeout.
    """
    provider = provider_of(core, binding)
    if needs is not None and not has(provider.capabilities, needs):
        raise _cannot(binding, needs)
    if provider.outside:
        return await _outside(core, call, binding, work, check, needs, also, timeout_seconds)
    beneath = call if also is None else call.nested(lambda transaction, _: also(transaction))
    result = told(await work(provider.open(binding.config, {}, beneath)))
    return _answered(call, binding, result)


async def _outside(
    core: Core,
    call: Call,
    binding: Binding,
    work: Callable[[Adapter], Awaitable[T]],
    check: Callable[[object, Bounds], Told[T]],
    needs: str | None,
    also: Also | None,
    timeout_seconds: float | None,
) -> ProviderResponse[T]:
    outsiders = outsiders_of(core)
    bounds = Bounds(binding.provider, call.grant)
    seconds = min(deadline_of(binding), timeout_seconds or MOST_SECONDS)

    def run(adapter: Adapter) -> Awaitable[T]:
        # An adapter may have fewer capabilities than its provider, and they may change.
        if needs is not None and not has(adapter.capabilities, needs):
            raise _cannot(binding, needs)
        call.mark_external_call()
        return work(adapter)

    async def request() -> Told[T]:
        try:
            answer = check(await outsiders.run(binding, run, seconds), bounds)
        except (ProviderError, SecretUnavailable) as error:
            failure = named(error, binding)
        else:
            return record(answer)
        raise failure

    def record(answer: Told[T]) -> Told[T]:
        call.attribute(dropped=answer.dropped, usage=answer.usage, handles=answer.handles)
        call.set_record_count(answer.touched)
        return answer

    def settle(transaction: Transaction, answer: Told[T]) -> None:
        named = call.attribution.binding
        costs = record_costs(
            transaction, core, call.operation_id, named, call.grant.scope, answer.usage, core.clock.now()
        )
        call.attribute(mode=attribution_of(answer.usage))
        call.set_costs(costs)

    return _answered(call, binding, await call.run_external(request, settle, also))


def _answered(call: Call, binding: Binding, result: Told[T]) -> ProviderResponse[T]:
    if result.handles or result.usage:
        call.attribute(handles=result.handles, usage=result.usage)
    return ProviderResponse(binding.key, binding.provider, call.operation_id, result.value, result.dropped)


def has(capabilities: Any, name: str) -> bool:
    return isinstance(capabilities, Capabilities) and getattr(capabilities, name) is True


def deadline_of(binding: Binding) -> float:
    """Return the timeout of one call to the binding's provider, in seconds."""
    seconds = binding.config.get("timeout_seconds", DEFAULT_SECONDS)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not LEAST_SECONDS <= seconds <= MOST_SECONDS
    ):
        problem = f"must be a number of seconds from {LEAST_SECONDS} to {MOST_SECONDS:.0f}"
        raise InvalidConfiguration("config.timeout_seconds", problem)
    return float(seconds)


def _cannot(binding: Binding, needs: str) -> CapabilityUnavailable:
    return CapabilityUnavailable(
        f"the binding {binding.key!r} is served by {binding.provider!r:.80}, which lacks the capability {needs}; bind"
        " a provider that has it"
    )
