"""Ports of the searcher, and of the service that edges call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.domain.access import Action, Actor
from holdfast.domain.ranking import IntArray
from holdfast.domain.scope import Scope
from holdfast.domain.search import Order, QueryVector, RankedCandidates, SearchOptions, ViewCacheUsage

if TYPE_CHECKING:
    from holdfast.ports.repositories.index import IndexReader

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Searcher(Protocol):
    """Ranks the records of an index by a vector that was made beforehand, or on the way if that takes microseconds."""

    @property
    def cache_usage(self) -> ViewCacheUsage: ...

    def limit_cache(self, max_partitions: int) -> None:
        """Cache at most so many partitions."""

    def text_to_embed(self, index: IndexReader, scope: Scope, query: str, wanted: SearchOptions) -> str:
        """Return the text to embed: the query without the names of known participants.

        A name in a query is matched against speakers, not against texts that mention it.
        """

    def rank(
        self,
        index: IndexReader,
        scope: Scope,
        query: str,
        vector: QueryVector,
        wanted: SearchOptions,
        target: int | None = None,
        *,
        explained: bool = False,
    ) -> RankedCandidates: ...

    def browse(self, index: IndexReader, scope: Scope, wanted: SearchOptions, order: Order) -> IntArray:
        """Return the numbers of all records that a search could find, oldest first. Ranking options are ignored."""


class Verb(Protocol[T_co]):
    """One request, made by an edge and run after authorization. Each is a frozen dataclass of the runtime."""

    @property
    def scope(self) -> Scope: ...

    def result_type(self) -> T_co:
        """Never called: it declares the type of the verb's result."""


class Service(Protocol):
    """The service that every edge calls.

    If it is `sync_safe`, calls that only read or write records need no event loop: without one they block their thread.
    A store or an embedder declares this by an attribute of the same name.
    """

    @property
    def sync_safe(self) -> bool: ...

    @property
    def origin(self) -> str:
        """The place of the memory, and its embedder if it is known, as a `repr` shows them. It holds no key."""

    async def perform(self, actor: Actor, action: Action, make: Callable[[], Verb[T]], *, space: str) -> T:
        """Build the request and run it. A request that cannot be built leaves its audit row too, in `space`."""

    async def close(self) -> None: ...


class KeyDirectory(Protocol):
    """Looks up the owner of a key."""

    async def actor_of(self, key: str) -> Actor | None:
        """Return the user, agent or operator of a key; None if it is unknown or revoked. Does the same work in every
        case."""
