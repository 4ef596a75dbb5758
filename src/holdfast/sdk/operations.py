"""Base of the runtime's operation groups: access to the gate, and the conversation committed last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.domain.access import Action, Actor
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.errors import InvalidInput
from holdfast.ports import Service, Verb

T = TypeVar("T")


class Operations:
    """One runtime: a service, its calling actor, and its governance."""

    def __init__(self, service: Service, actor: Actor, governance: Governance) -> None:
        self._service = service
        self._actor = actor
        self._governance = governance
        self._last: MemoryScope | None = None

    async def _perform(self, action: Action, capability: str, make: Callable[[Governance], Verb[T]]) -> T:
        """Perform a verb if the runtime has this capability. An invalid request is refused and audited by the gate."""

        def make_if_allowed() -> Verb[T]:
            self._governance.require(capability)
            return make(self._governance)

        return await self._service.perform(self._actor, action, make_if_allowed, space=self._governance.identity.space)

    def _resolve_scope(self, given: MemoryScope | None) -> MemoryScope:
        """The given conversation, else the one committed last. Called inside the gate."""
        found = given or self._last
        if found is None:
            raise InvalidInput("scope", "is missing, and nothing was committed yet; name the conversation")
        return found
