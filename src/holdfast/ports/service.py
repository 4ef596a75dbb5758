"""What ranks, and what edges call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from holdfast.domain.access import Action, Actor
from holdfast.domain.ranking import IntArray
from holdfast.domain.scope import Scope
from holdfast.domain.searching import Order, QueryVector, Ranked, Wanted
from holdfast.ports.store import Reader

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Searcher(Protocol):
    """Ranks what a reader reaches, by a vector made beforehand; or made on the way, where that takes microseconds."""

    def text_to_embed(self, reader: Reader, scope: Scope, query: str, wanted: Wanted) -> str:
        """What the query's vector is to be made of: the query without the names of the participants it can see.

        Whom a query names is matched against who said something, not against texts that mention the name.
        """

    def rank(
        self,
        reader: Reader,
        scope: Scope,
        query: str,
        vector: QueryVector,
        wanted: Wanted,
        target: int | None = None,
        *,
        explained: bool = False,
    ) -> Ranked: ...

    def browse(self, reader: Reader, scope: Scope, wanted: Wanted, order: Order) -> IntArray:
        """The numbers of all that a search could find, oldest first. What ranks is left out of account."""


class Verb(Protocol[T_co]):
    """One request, made by an edge and carried out behind the gate. Each is a frozen dataclass of the runtime's."""

    @property
    def scope(self) -> Scope: ...

    def answers(self) -> T_co:
        """Never called: it names the type of the verb's result."""


class Service(Protocol):
    """What every edge calls.

    If it is `loopless`, calls that only read or write records need no event loop: without one they block their thread.
    A store or an embedder says so of itself by an attribute of that name, if it is so.
    """

    @property
    def loopless(self) -> bool: ...

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        """Make the request and carry it out. One that cannot even be made leaves its audit row too, in `space`."""

    async def close(self) -> None: ...


class Directory(Protocol):
    """Who a key belongs to."""

    async def actor_of(self, key: str) -> Actor | None:
        """A user, an agent or an operator of a space. None if nobody has this key, or it was revoked: the same work
        whatever the outcome."""
