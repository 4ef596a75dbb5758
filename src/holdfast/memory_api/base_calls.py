"""The base class of the library's methods: a service, an actor, and the scopes of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor
from holdfast.domain.call_errors import ExplainAttributes
from holdfast.domain.scope import DEFAULT_SPACE, EVERYWHERE, Scope
from holdfast.inputs import scope_of
from holdfast.ports import Service, Verb

T = TypeVar("T")
Part = str | None


class MemoryCalls(ExplainAttributes):
    """Calls of one actor, by default in one space."""

    def __init__(
        self,
        service: Service,
        *,
        actor: Actor = LOCAL_OPERATOR,
        space: str = DEFAULT_SPACE,
        subject: str | None = None,
    ) -> None:
        """Use a service. `subject` is the default subject of calls, for a caller who may act for only one."""
        self._service = service
        self._actor = actor
        self._space = space
        self._subject = subject

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._service.origin})"

    async def _perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self._service.perform(self._actor, action, make, space=self._space)

    def _scope(
        self,
        space: Part,
        app: Part,
        project: Part,
        agent: Part,
        subject: Part,
        channel: Part,
        conversation: Part,
        run: Part,
        issue: Part,
        namespace: Part,
    ) -> Scope:
        if space is None:
            space = self._space
        if subject is None:
            subject = self._subject
        return scope_of(space, app, project, agent, subject, channel, conversation, run, issue, namespace)

    def _space_scope(self, space: Part) -> Scope:
        """Return the scope of a whole space, without the default subject."""
        return Scope(self._space if space is None else space)

    def _store_scope(self) -> Scope:
        return Scope(EVERYWHERE)
