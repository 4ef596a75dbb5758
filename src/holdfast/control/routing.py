"""Routes the library's verbs to the provider that their space is bound to.

If that is our own store, the verb runs unchanged inside the gate, and its operation row names the binding. For an
external provider, the verb is translated to the provider API (`provider_translation`). A verb without an equivalent
there is refused; it never falls back to a memory other than the bound one. Forgetting alone reaches what our own store
keeps, whoever is bound (`outside_forgetting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

from holdfast.control.binding_resolution import require_provider, resolve_for_call
from holdfast.control.dispatch import call_provider
from holdfast.control.outside_forgetting import Forgetting, forget_here
from holdfast.control.provider_translation import TRANSLATIONS
from holdfast.control.response_validation import Bounds, ValidatedResponse
from holdfast.domain.bindings import Binding
from holdfast.domain.results import Flushed
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import CapabilityUnavailable
from holdfast.runtime.browse import Browse
from holdfast.runtime.flush import Flush
from holdfast.runtime.forget import PreviewForget
from holdfast.runtime.gate import Call, CompositeRequest, Core, Request, Write
from holdfast.runtime.lookup import GetHistory
from holdfast.runtime.resources import AddResource, DeleteResource, GetResource, ListResources
from holdfast.runtime.revert import Revert
from holdfast.runtime.search import Explain

R = TypeVar("R")

# Verbs on memory that the provider API has no equivalent of.
_OURS_ALONE = (Explain, Browse, GetHistory, Revert, AddResource, ListResources, GetResource)
ROUTED = frozenset({*TRANSLATIONS, Flush, PreviewForget, DeleteResource, *_OURS_ALONE})


def route_verb(verb: Request[Any, R]) -> Request[Any, R]:
    """Wrap a memory verb so that the provider bound to its space serves it; return other verbs unchanged."""
    if type(verb) not in ROUTED or verb.scope.space == EVERYWHERE:
        return verb
    return cast(Request[Any, R], RoutedVerb(verb.scope, verb, verb.idempotency_key))


@dataclass(frozen=True, slots=True)
class RoutedVerb(CompositeRequest[Any]):
    scope: Scope
    verb: Request[Any, Any]
    idempotency_key: str | None = None

    async def carry_out(self, core: Core, call: Call) -> Any:
        binding = await resolve_for_call(call, None)
        if isinstance(self.verb, Forgetting):
            answer = await forget_here(core, call, binding, self.verb)
            if answer is not None:
                return answer
        if not require_provider(core, binding).outside:
            return await call.run(self.verb)
        if isinstance(self.verb, Flush):
            # An external provider extracts on its own schedule; there is nothing to flush.
            return Flushed(self.scope.conversation or "", 0)
        kind = TRANSLATIONS.get(type(self.verb))
        if kind is None:
            raise _capability_error(binding, f"the provider API has no equivalent of {self.verb.action}")
        translation = kind(self.verb, binding, core.clock.now())
        if (problem := translation.unsupported_reason()) is not None:
            raise _capability_error(binding, problem)

        def check(found: object, bounds: Bounds) -> ValidatedResponse[Any]:
            checked = translation.check(found, bounds)
            call.entry.failure = translation.failure(checked.value)  # an external call's row records it too
            return checked

        response = await call_provider(core, call, binding, translation.ask, check, needs=translation.needs)
        return translation.answer(response.result, call.operation_id)

    def record_count(self, result: Any) -> int:
        return self.verb.record_count(result)

    def digest(self) -> str:
        return self.verb.digest() if isinstance(self.verb, Write) else super().digest()

    def replay_state(self, outcome: ValidatedResponse[Any]) -> dict[str, Any]:
        return TRANSLATIONS[type(self.verb)].replay_state(outcome.value)

    def from_replay(self, kept: dict[str, Any]) -> ValidatedResponse[Any]:
        return ValidatedResponse(TRANSLATIONS[type(self.verb)].from_replay(kept))


def _capability_error(binding: Binding, problem: str) -> CapabilityUnavailable:
    return CapabilityUnavailable(
        f"the binding `{binding.key}` is served by `{binding.provider:.80}`: {problem}; bind the space to `local` to"
        " use it"
    )
