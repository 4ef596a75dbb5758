"""Hydrate a run with a memory preamble before it begins: within a time budget, or empty with a reason.

It never stops the run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from holdfast.control.binding_resolution import attribute_binding, read_resolution
from holdfast.control.company_requests import CompanyRequest
from holdfast.control.memory import query_binding
from holdfast.domain.access import Action
from holdfast.domain.arguments import whole_number
from holdfast.domain.bindings import Binding, BindingKey, Resolution
from holdfast.domain.contract import ContextBundle, HookContext, HookKind, Intent, QueryRequest, QueryText
from holdfast.domain.control import ProviderResponse
from holdfast.domain.hooks import Hydration, skip_reason
from holdfast.domain.hydration import (
    DEFAULT_BUDGET_MS,
    DEFAULT_CHARS,
    DEFAULT_SNIPPETS,
    LEAST_BUDGET_MS,
    LEAST_CHARS,
    MOST_BUDGET_MS,
    MOST_CHARS,
    MOST_SNIPPETS,
    preamble,
)
from holdfast.domain.ids import Id
from holdfast.domain.recall_policy import Floor
from holdfast.errors import BindingDisabled, BindingNotFound, HoldfastError, ProviderTimeout
from holdfast.loops import running_loop
from holdfast.runtime.gate import Call, CompositeRequest, Core

NOTHING_FOUND = "nothing_found"
# The share of the time budget reserved for writing the operation row.
_FOR_THE_TRAIL = 0.1


@dataclass(frozen=True, slots=True)
class Hydrate(CompanyRequest, CompositeRequest[Hydration]):
    """Return a bounded preamble for a run within `budget_ms`, or none with a reason. It never stops the run.

    The provider that serves the scope is queried. Only the caller's own mistakes are raised.
    """

    action: ClassVar[Action] = Action.QUERY
    query: QueryText
    hook_id: Annotated[Id | None, "The id of the event; the operation's id by default."] = None
    top_k: Annotated[int, whole_number(1, MOST_SNIPPETS), "At most so many snippets."] = DEFAULT_SNIPPETS
    max_chars: Annotated[int, whole_number(LEAST_CHARS, MOST_CHARS), "The longest preamble."] = DEFAULT_CHARS
    budget_ms: Annotated[int, whole_number(LEAST_BUDGET_MS, MOST_BUDGET_MS), "The longest wait, in milliseconds."] = (
        DEFAULT_BUDGET_MS
    )
    binding_key: BindingKey | None = None
    min_score: Floor | None = None

    async def carry_out(self, core: Core, call: Call) -> Hydration:
        hook = HookContext(
            HookKind.PRE_RUN_HYDRATE,
            self.hook_id or call.operation_id,
            core.clock.now(),
            self.scope.agent,
            self.scope.run,
        )
        call.attribute(hook=hook)
        binding: Binding | None = None
        try:
            async with _apply_timeout(self.budget_ms / 1000):
                found = await call.read(lambda reader: read_resolution(reader, self.scope, self.binding_key))
                binding = found.binding
                attribute_binding(call, found)
                reason = skip_reason(binding, HookKind.PRE_RUN_HYDRATE)
                if binding is None or reason is not None:
                    # No provider was called, so this does not count as a query without an answer.
                    call.entry.failure = _refusal(found)
                    key = None if binding is None else binding.key
                    call.attribute(provider_called=False)
                    return Hydration(call.operation_id, binding=key, reason=reason)
                answer = await self._query_memory(core, call, binding)
        except TimeoutError:
            failure: HoldfastError = ProviderTimeout(f"memory did not answer within {self.budget_ms} ms")
        except HoldfastError as error:
            if binding is None and isinstance(error, BindingNotFound):  # the caller named a key that does not exist
                raise
            failure = error
        else:
            return self._to_result(call, answer)
        call.entry.failure = failure
        return Hydration(call.operation_id, binding=None if binding is None else binding.key, reason=failure.code)

    async def _query_memory(self, core: Core, call: Call, binding: Binding) -> ProviderResponse[ContextBundle]:
        request = QueryRequest(
            binding.key, self.scope, self.query, self.top_k, Intent.AGENT_PREAMBLE, min_score=self.min_score
        )
        seconds = self.budget_ms / 1000 * (1 - _FOR_THE_TRAIL)
        return await query_binding(core, call, binding, request, seconds)

    def _to_result(self, call: Call, answer: ProviderResponse[ContextBundle]) -> Hydration:
        shown, text = preamble(answer.result.snippets, self.max_chars, self.query)
        return Hydration(
            call.operation_id,
            text,
            shown,
            answer.binding,
            None if shown else NOTHING_FOUND,
            answer.dropped,
        )

    def record_count(self, result: Hydration) -> int:
        return len(result.snippets)


def _refusal(found: Resolution) -> HoldfastError:
    """Return the error that a direct call to the binding would get."""
    try:
        binding = found.usable()
    except (BindingNotFound, BindingDisabled) as error:
        return error
    return BindingDisabled(f"the binding `{binding.key}` has {HookKind.PRE_RUN_HYDRATE} disabled; enable it")


@contextlib.asynccontextmanager
async def _apply_timeout(seconds: float) -> AsyncIterator[None]:
    """Apply a timeout. Without an event loop none can be enforced; external providers are not called there."""
    if not running_loop():
        yield
        return
    async with asyncio.timeout(seconds):
        yield
