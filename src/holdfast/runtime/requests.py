"""Base classes of all verbs: a verb is a frozen request with a scope that reads, writes, or runs several steps.

`perform` is the gate that runs them. `Core` holds their dependencies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import check_arguments
from holdfast.domain.contract import Usage
from holdfast.domain.events import EVENTS_KEPT
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Scope
from holdfast.ports import (
    Analyzer,
    Clock,
    Curator,
    DocumentLoader,
    Embedder,
    Extractor,
    IdGenerator,
    Reader,
    Searcher,
    Store,
    Transaction,
)
from holdfast.ports.hooks import Subscribers
from holdfast.ports.observer import MetricsObserver
from holdfast.ports.provider import ExternalRunner, Providers
from holdfast.runtime.idempotency import digest_of_fields

if TYPE_CHECKING:
    from holdfast.runtime.gate import Call

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FlushModel:
    """The model that `flush` learns with, and its limits.

    It is shown the newest `max_messages` of a conversation. A job asks it no further after `max_seconds`.
    """

    curator: Curator
    max_messages: int = 2_000
    max_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Core:
    """The dependencies of the verbs. `wake` signals the worker that a job is queued; `drain` runs all due jobs and
    waits for them. Partitions of `approximate_from` records or more get an approximate index; 0 disables it.
    Without a `curator`, `maintain` is refused; without a `flush_model`, rules learn from what `flush` seals. Bindings
    name `providers`; `outsiders` runs the external ones. `subscribers` also receive hooks; a `watcher` observes
    finished operations. `supposed` caches the results of optimistic reads (`Call.read_optimistic`). `count_tokens`
    counts the tokens of a text, for budgets. The log of a space keeps about `events_kept` events.
    """

    store: Store
    embedder: Embedder
    analyzer: Analyzer
    searcher: Searcher
    extractor: Extractor
    documents: DocumentLoader
    clock: Clock
    ids: IdGenerator
    wake: Callable[[], None]
    drain: Callable[[], Awaitable[int]]
    approximate_from: int = 0
    allow_confusable_ids: bool = False
    curator: Curator | None = None
    flush_model: FlushModel | None = None
    providers: Providers | None = None
    outsiders: ExternalRunner | None = None
    subscribers: Subscribers | None = None
    watcher: MetricsObserver | None = None
    supposed: dict[Hashable, Any] = field(default_factory=dict)
    count_tokens: Callable[[str], int] | None = None
    events_kept: int = EVENTS_KEPT


class Request(ABC, Generic[P, R]):
    """The interface of every verb. Subclasses are frozen dataclasses with a `scope`.

    With an `idempotency_key`, where a verb that writes has one, it is applied once.
    """

    action: ClassVar[Action]
    scope: Scope
    idempotency_key: str | None = None
    is_attributed: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Known in advance, so that a call without an attribution does not ask for one.
        cls.is_attributed = cls.attribution is not Request.attribution

    @abstractmethod
    async def prepare(self, core: Core, grant: Grant) -> P:
        """Do the slow work. No transaction is open: data read here may have changed when `apply` runs."""

    async def finish(self, core: Core, result: R, operation_id: OperationId) -> R:
        """Run after the call, outside its transaction, with the id of the operation row that did the work."""
        return result

    def record_count(self, result: R) -> int:
        """The number of records written, returned or removed."""
        return 0

    def attribution(self) -> Attribution | None:
        """Further fields of the operation row, besides actor, action and scope."""
        return None

    def result_type(self) -> R:
        raise NotImplementedError


class Read(Request[P, R]):
    @abstractmethod
    def apply(self, reader: Reader, prepared: P) -> R: ...

    def metered_usage(self, prepared: P) -> tuple[Usage, ...]:
        """Metered usage during `prepare`. Only reads wait for a metered service."""
        return ()


class SimpleRead(Read[Core, R]):
    """A read with nothing slow to prepare. Its arguments obey the rules that they declare."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_arguments(self)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        return core


class Write(Request[P, R]):
    """A request that changes the store."""

    @abstractmethod
    def apply(self, transaction: Transaction, prepared: P) -> R: ...

    async def finish(self, core: Core, result: R, operation_id: OperationId) -> R:
        """Run after the commit, with the id of the call's operation row."""
        if self.has_work(core, result):
            core.wake()
        return result

    def has_work(self, core: Core, result: R) -> bool:
        """True if it queued jobs that a worker should start now."""
        return False

    def written_ids(self, result: R) -> Sequence[str]:
        """The ids of the records it wrote, for the operation row of the outer call if it ran nested."""
        return ()

    def digest(self) -> str:
        """Distinguishes this request from another with the same key."""
        return digest_of_fields(self)

    def replay_state(self, result: R) -> dict[str, Any]:
        """The part of the result to store for replay, as JSON: ids, counts, times. Never text, never a key."""
        raise NotImplementedError(f"{type(self).__name__} has no replay; it takes no idempotency key")

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> R:
        """Rebuild the result from the stored replay state."""
        raise NotImplementedError(f"{type(self).__name__} has no replay; it takes no idempotency key")

    def without_text(self, result: R) -> R:
        """The result as `KeyedWrite` may store it: ids, counts and words of ours, no text that could be forgotten."""
        return result

    def with_text(self, reader: Reader, result: R) -> R:
        """A stored result, with the texts that its request or the store has."""
        return result


class CompositeRequest(Request[None, R]):
    """A request of several steps, at most one of which changes something: in our store or in an external service.

    Its result is built from the steps' results. With an `idempotency_key`, an external step runs once; a step in our
    own store passes the key to its verb.
    """

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    @abstractmethod
    async def carry_out(self, core: Core, call: Call) -> R: ...

    def digest(self) -> str:
        return digest_of_fields(self)

    def replay_state(self, outcome: Any) -> dict[str, Any]:
        """The part of an external step's result to store for replay: ids, counts, times."""
        raise NotImplementedError(f"{type(self).__name__} has no replay; it takes no idempotency key")

    def from_replay(self, kept: dict[str, Any]) -> Any:
        """Rebuild the external step's result from the stored replay state."""
        raise NotImplementedError(f"{type(self).__name__} has no replay; it takes no idempotency key")
