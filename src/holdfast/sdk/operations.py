"""Base of the runtime's operation groups: access to the gate, and the conversation committed last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from holdfast.domain.access import Action, Actor
from holdfast.domain.call_errors import ExplainAttributes
from holdfast.domain.capabilities import Gate
from holdfast.domain.checks import checked_instance
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.errors import InvalidInput
from holdfast.ports import Service, Verb

R = TypeVar("R")
T = TypeVar("T")


class ConversationRequest(Protocol):
    """A request that may name its conversation."""

    @property
    def scope(self) -> MemoryScope | None: ...


Q = TypeVar("Q", bound=ConversationRequest)


def request_from(given: R | str, kind: Callable[..., R], field: str) -> R:
    """Return the request; a text is the value of its one obvious field."""
    return kind(**{field: given}) if isinstance(given, str) else given


class Operations(ExplainAttributes):
    """One runtime: a service, its calling actor, and its governance."""

    def __init__(self, service: Service, actor: Actor, governance: Governance, last: MemoryScope | None = None) -> None:
        self._service = service
        self._actor = actor
        self._governance = governance
        self._last = last

    @property
    def service(self) -> Service:
        """The service below, for tools that read what no operation of a runtime shows."""
        return self._service

    @property
    def actor(self) -> Actor:
        """The calling actor."""
        return self._actor

    @property
    def governance(self) -> Governance:
        """The identity, profile and capabilities."""
        return self._governance

    async def _perform(self, action: Action, make: Callable[[Governance], Verb[T]]) -> T:
        """Perform a verb if the runtime has its capability. An invalid request is refused and audited by the gate."""

        def make_if_allowed() -> Verb[T]:
            self._require(action)
            return make(self._governance)

        return await self._service.perform(self._actor, action, make_if_allowed, space=self._governance.identity.space)

    async def _perform_in(
        self, action: Action, make: Callable[[Governance, MemoryScope, Q], Verb[T]], request: Q, kind: type[Q]
    ) -> T:
        """Perform a verb in the conversation of a request, which must be of this kind."""

        def make_in_conversation(governance: Governance) -> Verb[T]:
            checked = checked_instance(request, kind)
            return make(governance, self._resolve_scope(checked.scope), checked)

        return await self._perform(action, make_in_conversation)

    def _require(self, action: Action) -> None:
        """Refuse an action unless the runtime has the capability of the same name."""
        # The report of `maintain` itself says if no model is configured.
        if action is not Action.MAINTAIN or self._governance.catalogue[action].reason is not Gate.CONFIGURED:
            self._governance.require(action)

    def _resolve_scope(self, given: MemoryScope | None) -> MemoryScope:
        """The given conversation, else the one committed last. Called inside the gate."""
        found = given or self._last
        if found is None:
            raise InvalidInput("scope", "is missing, and nothing was committed yet; name the conversation")
        return found
