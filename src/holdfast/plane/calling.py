"""What every group of calls stands on: a service, who is calling, and in which company."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.scope import DEFAULT_SPACE, Scope
from holdfast.inputs import scope_from
from holdfast.ports import Service, Verb

T = TypeVar("T")


class Calls:
    """Whoever may speak for one alone need not say for whom: a user's calls are about that user, an agent's are its."""

    def __init__(self, service: Service, *, actor: Actor = LOCAL_OPERATOR, space: str = DEFAULT_SPACE) -> None:
        self._service = service
        self._actor = actor
        self._space = space

    @property
    def space(self) -> str:
        """The company whose memory this is."""
        return self._space

    @property
    def actor(self) -> Actor:
        """In whose name everything is called."""
        return self._actor

    async def _perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self._service.perform(self._actor, action, make, space=self._space)

    def _scope(self, where: Mapping[str, Any]) -> Scope:
        given = {name: value for name, value in where.items() if value is not None}
        if self._actor.kind is ActorKind.AGENT:
            given.setdefault("agent", self._actor.id)
        elif self._actor.kind in (ActorKind.USER, ActorKind.DEVICE):
            given.setdefault("subject", self._actor.id)
        return scope_from(given, self._space)

    def _company(self) -> Scope:
        """For what concerns the company as a whole, whoever is calling."""
        return Scope(self._space)
