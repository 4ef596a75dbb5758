"""What every group of the runtime's operations stands on: the way to the gate, and the conversation last committed."""

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
    """One runtime: a service, who is calling it, and what it was opened with."""

    def __init__(self, service: Service, actor: Actor, governance: Governance) -> None:
        self._service = service
        self._actor = actor
        self._governance = governance
        self._last: MemoryScope | None = None

    async def _perform(self, action: Action, capability: str, make: Callable[[Governance], Verb[T]]) -> T:
        """Through the gate, if the runtime has this capability. What cannot be made is refused there, with its row."""

        def checked() -> Verb[T]:
            self._governance.require(capability)
            return make(self._governance)

        return await self._service.perform(self._actor, action, checked, space=self._governance.identity.space)

    def _where(self, given: MemoryScope | None) -> MemoryScope:
        """The conversation that is meant: the one given, else the one committed last. Called behind the gate."""
        found = given or self._last
        if found is None:
            raise InvalidInput("scope", "is not given, and nothing was committed yet; say which conversation is meant")
        return found
