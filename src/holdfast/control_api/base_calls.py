"""The base class of the control plane's call groups: a service, an actor and a space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.call_errors import ExplainAttributes
from holdfast.domain.scope import DEFAULT_SPACE, SCOPE_PARTS, Scope
from holdfast.inputs import scope_of
from holdfast.ports import Service, Verb

T = TypeVar("T")

_FILTERS = ("agent", "project", "issue", "run")


class ControlCalls(ExplainAttributes):
    """Calls of one actor in one space. A user's calls default to that user as subject, an agent's to that agent."""

    def __init__(self, service: Service, *, actor: Actor = LOCAL_OPERATOR, space: str = DEFAULT_SPACE) -> None:
        self._service = service
        self._actor = actor
        self._space = space

    @property
    def space(self) -> str:
        """The space that calls work in."""
        return self._space

    @property
    def actor(self) -> Actor:
        """The actor that makes every call."""
        return self._actor

    async def _perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self._service.perform(self._actor, action, make, space=self._space)

    def _scope(self, where: Mapping[str, Any]) -> Scope:
        parts = {name: value for name, value in where.items() if value is not None}
        if self._actor.kind is ActorKind.AGENT:
            parts.setdefault("agent", self._actor.id)
        elif self._actor.kind in (ActorKind.USER, ActorKind.DEVICE):
            parts.setdefault("subject", self._actor.id)
        parts.setdefault("space", self._space)
        return scope_of(*map(parts.get, SCOPE_PARTS))

    def _visible_scope(self, where: Mapping[str, Any]) -> Scope:
        """Return the scope to read: an operator sees the whole space's jobs, other actors only their own."""
        if self._actor.kind is ActorKind.OPERATOR:
            where = {name: value for name, value in where.items() if name not in _FILTERS}
        return self._scope(where)

    def _company(self) -> Scope:
        """Return the scope of the whole space, whoever is calling."""
        return Scope(self._space)
