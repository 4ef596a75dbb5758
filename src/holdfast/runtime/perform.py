"""The gate: the only way in.

Every verb is a frozen request with `prepare` (may be slow; holds no transaction) and `apply` (short; one transaction).
The gate authorizes, prepares, applies, and leaves exactly one operation row: in the same commit for what changes
something; soon after for a read. A refusal or failure changed nothing, so its row is written alone. Nothing else
writes operations.

A write with an idempotency key happens once: made again, it answers from what was kept of the first answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Actor, Grant, authorize
from holdfast.domain.ids import JobId, OperationId
from holdfast.domain.jobs import NewJob
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, Conflict, HoldfastError, IdempotencyConflict, InvalidInput, NotFound
from holdfast.failpoints import reach
from holdfast.ports import (
    Analyzer,
    Answer,
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
from holdfast.runtime.idempotency import answer_key, check_key, digest_of_fields

P = TypeVar("P")
R = TypeVar("R")

# The caller's doing, not ours.
_REFUSALS = (AccessDenied, InvalidInput, NotFound, Conflict)
# Somebody did not want to wait any longer. A call without an event loop is interrupted in its own thread.
_CUT_OFF = (asyncio.CancelledError, KeyboardInterrupt)


@dataclass(frozen=True, slots=True)
class Core:
    """Everything the verbs need from outside. `wake` tells the worker that there is something to do; `drain` has it do
    what is due, and waits. Partitions of `approximate_from` records and more get an approximate index; 0 is never.
    Without a `curator` no model is asked, and `maintain` is refused.
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


class Request(ABC, Generic[P, R]):
    """What every verb has. Subclasses are frozen dataclasses with a `scope`."""

    action: ClassVar[Action]
    scope: Scope

    @abstractmethod
    async def prepare(self, core: Core, grant: Grant) -> P:
        """Whatever is slow. No transaction is open; what is read here may have changed by the time of `apply`."""

    async def finish(self, core: Core, result: R, operation_id: OperationId) -> R:
        """What can only be done after the commit, knowing the call's operation row."""
        return result

    def touched(self, result: R) -> int:
        """How many records were written, returned or removed."""
        return 0

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


@dataclass(slots=True)
class _Entry:
    """The operation row of one call, while it is under way."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    started_at: datetime
    started: float
    done_by: OperationId  # which call did it: this one, or the first with its idempotency key

    def row(self, outcome: Outcome, touched: int = 0, error: BaseException | None = None) -> Operation:
        return Operation(
            id=self.id,
            actor=self.actor,
            action=self.action,
            scope=self.scope,
            outcome=outcome,
            error_code=_code(error),
            touched=touched,
            started_at=self.started_at,
            duration_micros=int((time.perf_counter() - self.started) * 1e6),
        )


async def perform(core: Core, actor: Actor, action: Action, make: Callable[[], Request[Any, R]], *, space: str) -> R:
    """Make, authorize, prepare, apply and audit one verb. What cannot even be made is audited in the actor's space."""
    scope = _whole(actor.space or space)
    operation_id = OperationId(core.ids.new(ids.OPERATION))
    entry = _Entry(operation_id, actor, action, scope, core.clock.now(), time.perf_counter(), operation_id)
    try:
        verb = make()
        entry.scope = verb.scope
        if isinstance(verb, Write):
            check_key(verb.idempotency_key)
        grant = authorize(actor, action, verb.scope)
        prepared = await verb.prepare(core, grant)
        if isinstance(verb, Write):
            # Of a call without a key nobody asks for the digest.
            digest = None if verb.idempotency_key is None else verb.digest()
            result = await core.store.write(
                grant, lambda transaction: _applied(verb, transaction, prepared, entry, digest)
            )
        else:
            result = await _read(core, grant, verb, prepared, entry)
    except (Exception, *_CUT_OFF) as error:
        refused = isinstance(error, _REFUSALS)
        await core.store.audit(entry.row(Outcome.REFUSED if refused else Outcome.FAILED, error=error))
        raise
    return await verb.finish(core, result, entry.done_by)


@lru_cache(maxsize=1_024)
def _whole(space: str) -> Scope:
    return Scope(space=space)


def _applied(verb: Write[P, R], transaction: Transaction, prepared: P, entry: _Entry, digest: str | None) -> R:
    reach("write.before")
    result, touched = _result(verb, transaction, prepared, entry, digest)
    transaction.record(entry.row(Outcome.SUCCEEDED, touched))
    reach("write.after")
    return result


def _result(
    verb: Write[P, R], transaction: Transaction, prepared: P, entry: _Entry, digest: str | None
) -> tuple[R, int]:
    """What the verb answers, and how many records it touched: none, if it had been done before."""
    if verb.idempotency_key is None or digest is None:
        result = verb.apply(transaction, prepared)
        return result, verb.touched(result)
    partition, key = verb.scope.partition, answer_key(verb.scope, verb.idempotency_key)
    known = transaction.answer(partition, key)
    if known is None:
        result = verb.apply(transaction, prepared)
        body = json.dumps({"operation_id": entry.id, **verb.kept(result)})
        transaction.keep_answer(partition, key, Answer(digest, body), entry.started_at)
        entry.done_by = entry.id
        return result, verb.touched(result)
    if known.digest != digest:
        raise IdempotencyConflict("idempotency_key: was used for another call; use a new key for each new call")
    kept = json.loads(known.body)
    entry.done_by = kept.get("operation_id", entry.id)
    return verb.replayed(transaction, kept), 0


async def _read(core: Core, grant: Grant, verb: Request[P, R], prepared: P, entry: _Entry) -> R:
    if not isinstance(verb, Read):
        raise TypeError(f"{type(verb).__name__} neither reads nor writes")
    result: R = await core.store.read(grant, lambda reader: verb.apply(reader, prepared))
    await core.store.audit(entry.row(Outcome.SUCCEEDED, verb.touched(result)))
    return result


def _code(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, _CUT_OFF):
        return "cancelled"
    return error.code if isinstance(error, HoldfastError) else "internal_error"
