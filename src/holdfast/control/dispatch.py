"""Dispatches a call to its provider: our own store inside the gate, or an external one after recording the intent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from holdfast.control.binding_resolution import require_external_runner, require_provider
from holdfast.control.bulkhead import describe_provider_error
from holdfast.control.response_validation import Bounds, ValidatedResponse, Validator, describe_response
from holdfast.domain.bindings import Binding
from holdfast.domain.contract import Capabilities
from holdfast.domain.control import ProviderResponse
from holdfast.domain.usage import attribution_of
from holdfast.errors import CapabilityUnavailable, InvalidConfiguration, ProviderError, SecretUnavailable
from holdfast.ports import Transaction
from holdfast.ports.provider import Adapter, FullAdapter
from holdfast.runtime.gate import Call, Core
from holdfast.runtime.metering import record_costs

T = TypeVar("T")
Also = Callable[[Transaction], None]

DEFAULT_SECONDS = 10.0
LEAST_SECONDS = 0.1
MOST_SECONDS = 60.0


async def call_provider(
    core: Core,
    call: Call,
    binding: Binding,
    work: Callable[[FullAdapter], Awaitable[T]],
    check: Validator[T],
    *,
    needs: str | None = None,
    also: Also | None = None,
    timeout_seconds: float | None = None,
) -> ProviderResponse[T]:
    """Run `work` on the binding's provider, and validate its response. `needs` names the required capability.

    `also` runs in the commit that records a write. `timeout_seconds` can only shorten the binding's own timeout.
    """
    provider = require_provider(core, binding)
    if needs is not None and not has_capability(provider.capabilities, needs):
        raise _capability_error(binding, needs)
    if also is not None:
        call.add_effect(also)
    if provider.outside:
        return await _call_external(core, call, binding, work, check, needs, timeout_seconds)
    result = describe_response(await work(cast(FullAdapter, provider.open(binding.config, {}, call))))
    return _build_result(call, binding, result)


async def _call_external(
    core: Core,
    call: Call,
    binding: Binding,
    work: Callable[[FullAdapter], Awaitable[T]],
    check: Validator[T],
    needs: str | None,
    timeout_seconds: float | None,
) -> ProviderResponse[T]:
    outsiders = require_external_runner(core)
    bounds = Bounds(binding.provider, call.grant)
    seconds = min(timeout_of(binding), timeout_seconds or MOST_SECONDS)

    def run(adapter: Adapter) -> Awaitable[T]:
        # An adapter may have fewer capabilities than its provider, and they may change.
        if needs is not None and not has_capability(adapter.capabilities, needs):
            raise _capability_error(binding, needs)
        call.entry.provider_called = True
        return work(cast(FullAdapter, adapter))

    async def request() -> ValidatedResponse[T]:
        try:
            answer = check(await outsiders.run(binding, run, seconds), bounds)
        except (ProviderError, SecretUnavailable) as error:
            failure = describe_provider_error(error, binding)
        else:
            call.attribute(dropped=answer.dropped, usage=answer.usage, handles=answer.handles)
            call.entry.record_count = answer.record_count
            return answer
        raise failure

    def settle(transaction: Transaction, answer: ValidatedResponse[T]) -> None:
        named = call.attribution.binding
        costs = record_costs(
            transaction, core, call.operation_id, named, call.grant.scope, answer.usage, core.clock.now()
        )
        call.attribute(mode=attribution_of(answer.usage))
        call.set_costs(costs)

    return _build_result(call, binding, await call.run_external(request, settle))


def _build_result(call: Call, binding: Binding, result: ValidatedResponse[T]) -> ProviderResponse[T]:
    if result.handles or result.usage:
        call.attribute(handles=result.handles, usage=result.usage)
    return ProviderResponse(binding.key, binding.provider, call.operation_id, result.value, result.dropped)


def has_capability(capabilities: Any, name: str) -> bool:
    return isinstance(capabilities, Capabilities) and getattr(capabilities, name) is True


def timeout_of(binding: Binding) -> float:
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


def _capability_error(binding: Binding, needs: str) -> CapabilityUnavailable:
    return CapabilityUnavailable(
        f"the binding `{binding.key}` is served by `{binding.provider:.80}`, which lacks the capability {needs}; bind"
        " a provider that has it"
    )
