"""What every verb is: a frozen request with a scope that reads, writes, or is composed of steps. The gate is `perform`.

`Core` is what they have to work with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.contract import Usage
from holdfast.domain.ids import JobId, OperationId
from holdfast.domain.jobs import NewJob
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Scope
from holdfast.ports import (
    Analyzer,
    Clock,
    Curator,
    Documents,
    Embedder,
    Extractor,
    Ids,
    Reader,
    Searcher,
    Store,
    Transaction,
)
from holdfast.ports.hooks import Subscribers
from holdfast.ports.provider import Outsiders, Providers
from holdfast.ports.watching import Watcher
from holdfast.runtime.idempotency import digest_of_fields

if TYPE_CHECKING:
    from holdfast.runtime.call import Call

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Core:
    """Everything the verbs need from outside. `wake` tells the worker that there is something to do; `drain` has it do
    what is due, and waits. Partitions of `approximate_from` records and more get an approximate index; 0 is never.
    Without a `curator` no model is asked, and `maintain` is refused. `providers` are the memories that bindings can
    name, and `outsiders` runs those of them that reach beyond the store. `subscribers` hear of hooks besides, and a
    `watcher` of what was done. `supposed` is what calls found the last time (`Call.supposing`).
    """

    store: Store
    embedder: Embedder
    analyzer: Analyzer
    searcher: Searcher
    extractor: Extractor
    documents: Documents
    clock: Clock
    ids: Ids
    wake: Callable[[], None]
    drain: Callable[[], Awaitable[int]]
    approximate_from: int = 0
    curator: Curator | None = None
    providers: Providers | None = None
    outsiders: Outsiders | None = None
    subscribers: Subscribers | None = None
    watcher: Watcher | None = None
    supposed: dict[Hashable, Any] = field(default_factory=dict)


class Request(ABC, Generic[P, R]):
    """What every verb has. Subclasses are frozen dataclasses with a `scope`."""

    action: ClassVar[Action]
    scope: Scope

    @abstractmethod
    async def prepare(self, core: Core, grant: Grant) -> P:
        """Whatever is slow. No transaction is open; what is read here may have changed by the time of `apply`."""

    def took(self, prepared: P) -> tuple[Usage, ...]:
        """What preparing it took of somebody who is paid for it. Only a read waits for such a one."""
        return ()

    async def finish(self, core: Core, result: R, operation_id: OperationId) -> R:
        """What can only be done after the commit, knowing the call's operation row."""
        return result

    def touched(self, result: R) -> int:
        """How many records were written, returned or removed."""
        return 0

    def attribution(self) -> Attribution | None:
        """What its row says of it besides who, what and where."""
        return None

    def named(self, result: R) -> Sequence[str]:
        """The ids of the records that it wrote, for the trail of whoever had it run beneath another call."""
        return ()

    def answers(self) -> R:
        raise NotImplementedError


class Read(Request[P, R]):
    @abstractmethod
    def apply(self, reader: Reader, prepared: P) -> R: ...


class Write(Request[P, R]):
    """With an `idempotency_key`, where a verb has one, it happens once."""

    idempotency_key: str | None = None

    @abstractmethod
    def apply(self, transaction: Transaction, prepared: P) -> R: ...

    def digest(self) -> str:
        """Tells this request from another with the same key."""
        return digest_of_fields(self)

    def kept(self, result: R) -> dict[str, Any]:
        """What may be kept of the answer, as JSON: ids, counts, moments. Never a text, never a key."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made again")

    def replayed(self, transaction: Transaction, kept: dict[str, Any]) -> R:
        """The answer again, from what was kept of it."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made again")

    def enqueue(self, transaction: Transaction, core: Core, job: NewJob) -> JobId:
        """Queue work that this write causes; it exists if and only if the write does."""
        return transaction.enqueue(JobId(core.ids.new(ids.JOB)), job, core.clock.now())


class Composed(Request[None, R]):
    """A request of several steps, of which at most one changes something: in our store, or outside.

    Its answer is made of what the steps gave. With an `idempotency_key`, a step outside happens once; one in our own
    store takes the key into its verb.
    """

    idempotency_key: str | None = None

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    @abstractmethod
    async def carry_out(self, core: Core, call: Call) -> R: ...

    def digest(self) -> str:
        return digest_of_fields(self)

    def kept(self, outcome: Any) -> dict[str, Any]:
        """What may be kept of what a step outside gave: ids, counts, moments."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made again")

    def replayed(self, kept: dict[str, Any]) -> Any:
        """What the step outside gave, from what was kept of it."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made again")
