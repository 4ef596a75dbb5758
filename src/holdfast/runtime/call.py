"""One call while it is under way: its operation row, and, for a composed one, the steps that it is made of."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from holdfast.domain.access import Action, Actor, Grant, authorize, only_reads
from holdfast.domain.contract import Usage
from holdfast.domain.costs import CostEvent
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Attribution, Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.usage import mode_of
from holdfast.errors import AccessDenied, Conflict, HoldfastError, IdempotencyConflict, InvalidInput, NotFound
from holdfast.failpoints import reach
from holdfast.ports import Answer, Reader, Transaction, Verb
from holdfast.ports.provider import Beneath
from holdfast.runtime.charging import charged
from holdfast.runtime.idempotency import answer_key, check_key, is_of, sealed
from holdfast.runtime.requests import Composed, Core, Read, Request, Write

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S", bound=Reader)
T = TypeVar("T")

# The caller's doing, not ours.
_REFUSALS = (AccessDenied, InvalidInput, NotFound, Conflict)
# How many of the records that a call named its row names.
NAMED = 20
# Somebody did not want to wait any longer. A call without an event loop is interrupted in its own thread.
CUT_OFF = (asyncio.CancelledError, KeyboardInterrupt)


# When so much is supposed, it is forgotten, and learned again.
_MOST_SUPPOSED = 4_096


class Outdated(Exception):
    """What a call supposed is so no longer. Nothing was done; the call begins anew."""


@dataclass(slots=True)
class _Supposed:
    look: Callable[[Reader], Any]
    found: Any
    held: bool = False

    def check(self, reader: Reader) -> None:
        if self.look(reader) != self.found:
            raise Outdated
        self.held = True


class Written(Enum):
    """How much of a call's row is in the store."""

    NOTHING = "nothing"
    PERHAPS = "perhaps"  # cut off while the intent was being written; nobody was asked
    INTENT = "intent"  # as `unknown`, and somebody outside was asked
    ANSWERED = "answered"  # still so, but they have answered
    WHOLE = "whole"


@dataclass(slots=True)
class Entry:
    """The operation row of one call, while it is under way."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    started_at: datetime
    started: float
    done_by: OperationId  # which call did it: this one, or the first with its idempotency key
    attribution: Attribution | None = None
    touched: int | None = None  # if it is known before the answer is made
    written: Written = Written.NOTHING
    asked: bool = False  # whether somebody outside was
    failure: BaseException | None = None  # if it failed, and its caller has an answer all the same
    told: Operation | None = None  # the row, as it was last made
    took: tuple[Usage, ...] = ()  # of somebody who is paid for it, on the way to what it read; also if it began anew
    costs: tuple[CostEvent, ...] = ()  # what it wrote into the ledger

    def row(self, outcome: Outcome, touched: int = 0, error: BaseException | None = None) -> Operation:
        self.told = Operation(
            id=self.id,
            actor=self.actor,
            action=self.action,
            scope=self.scope,
            outcome=outcome,
            error_code=_code(error),
            touched=touched,
            started_at=self.started_at,
            duration_micros=int((time.perf_counter() - self.started) * 1e6),
            attribution=self.attribution,
        )
        return self.told

    def end(self) -> Operation:
        """How a call ended that has an answer: well, unless somebody said that it failed."""
        return self.row(Outcome.SUCCEEDED, self.touched or 0) if self.failure is None else self.ended(self.failure)

    def begin_anew(self, attribution: Attribution | None) -> None:
        self.attribution, self.touched, self.failure, self.costs = attribution, None, None, ()

    def left(self, error: BaseException) -> Operation:
        """Nobody waited for what came of it, and somebody may have done it."""
        return self.row(Outcome.UNKNOWN, error=error)

    def ended(self, error: BaseException) -> Operation:
        return self.row(Outcome.REFUSED if isinstance(error, _REFUSALS) else Outcome.FAILED, error=error)


class Call:
    """One composed call while it is under way: the only hands that its verb has. Implements `ports.provider.Beneath`.

    Whatever changes something commits together with the call's row, so only one step may. One that `trusts` begins
    with what calls before it found.
    """

    def __init__(self, core: Core, verb: Composed[Any], entry: Entry, grant: Grant, trusts: bool = True) -> None:
        self._core = core
        self._verb = verb
        self._entry = entry
        self.grant = grant
        self._trusts = trusts
        self._supposed: _Supposed | None = None

    @property
    def operation_id(self) -> OperationId:
        return self._entry.id

    @property
    def idempotency_key(self) -> str | None:
        return self._verb.idempotency_key

    @property
    def attribution(self) -> Attribution:
        return self._entry.attribution or Attribution()

    def attribute(self, **changes: Any) -> None:
        """Have the row say this too, also if the call fails. A transaction may run twice: what is said replaces."""
        self._entry.attribution = replace(self.attribution, **changes)

    def charge(self, costs: tuple[CostEvent, ...]) -> None:
        """Say what this call wrote into the ledger, in the transaction that does: what is said replaces."""
        self._entry.costs = costs
        self.attribute(cost_events=tuple(event.id for event in costs))

    def touch(self, records: int) -> None:
        """Say how many records were touched, before the answer is made."""
        self._entry.touched = records

    def fail(self, error: BaseException) -> None:
        """Have the row say that the call failed, though whoever made it gets an answer."""
        self._entry.failure = error

    def asked(self) -> None:
        """Say that somebody outside is asked now."""
        self._entry.asked = True

    async def supposing(self, key: Hashable, look: Callable[[Reader], T]) -> T:
        """What `look` finds in the store: supposed to be what it found the last time, which spares a read.

        The next step looks in its own transaction, before anything else. If it is not so, the call begins anew.
        """
        supposed = self._core.supposed
        if self._trusts and key in supposed:
            found: T = supposed[key]
            self._supposed = _Supposed(look, found)
            return found
        found = await self.read(look)
        if len(supposed) >= _MOST_SUPPOSED:
            supposed.clear()
        supposed[key] = found
        return found

    async def prove(self) -> None:
        """`Outdated` if something was supposed, no step has looked, and it is not so."""
        if self._supposed is not None and not self._supposed.held:
            await self.read(lambda reader: None)

    async def _step(
        self, kind: Callable[[Grant, Callable[[S], T]], Awaitable[T]], grant: Grant, work: Callable[[S], T]
    ) -> T:
        """A transaction of the store, which first sees whether what is supposed is so."""
        if (supposed := self._supposed) is None:
            return await kind(grant, work)

        def proven(transaction: S) -> T:
            supposed.check(transaction)
            return work(transaction)

        result = await kind(grant, proven)
        self._supposed = None
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        return await self._step(self._core.store.read, self.grant, work)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Change something; the call's row commits with it."""

        def whole(transaction: Transaction) -> T:
            reach("write.before")
            result = work(transaction)
            transaction.record(self._entry.row(Outcome.SUCCEEDED, self._entry.touched or 0))
            reach("write.after")
            return result

        self._begin()
        result = await self._step(self._core.store.write, self.grant, whole)
        self._entry.written = Written.WHOLE
        return result

    async def run(self, verb: Verb[T], also: Callable[[Transaction, T], None] | None = None) -> T:
        """A verb of the runtime, beneath the gate: allowed what this call is, reaching what the verb itself would.

        If it writes, the row commits with it, and so does what `also` does: also if the verb had been done before.
        """
        if not isinstance(verb, Request) or isinstance(verb, Composed):
            raise TypeError(f"{type(verb).__name__} does not run beneath another call")
        outer, inner = self.grant.scope, verb.scope
        if (inner.space, inner.subject, inner.agent) != (outer.space, outer.subject, outer.agent):
            raise TypeError(f"{type(verb).__name__} is about another memory than the call that it runs beneath")
        if isinstance(verb, Write) and only_reads(self.grant.action):
            raise TypeError(f"{type(verb).__name__} writes, beneath a call that only reads")
        grant = authorize(self.grant.actor, self.grant.action, inner, beneath=verb.action)
        prepared = await verb.prepare(self._core, grant)
        if isinstance(verb, Write):
            result = await self._written(grant, verb, prepared, also)
        else:
            self._entry.took += verb.took(prepared)
            result = await self._step(self._core.store.read, grant, lambda reader: seen(verb, reader, prepared))
        return await verb.finish(self._core, result, self._entry.done_by)  # type: ignore[no-any-return]

    def beneath(self, also: Callable[[Transaction, Any], None]) -> Beneath:
        """The same, for a step that is run by somebody else: whatever it writes, `also` is done with it."""
        return _Also(self, also)

    async def outside(
        self,
        work: Callable[[], Awaitable[T]],
        settle: Callable[[Transaction, T], None] | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> T:
        """Ask somebody outside, with the intent on record first; then `settle`, and what came of it, in one commit.

        `also` is done with it too, and if the call had been made before.
        """
        self._begin()
        try:
            known = await self._step(self._core.store.write, self.grant, lambda each: self._intend(each, also))
        except CUT_OFF:
            self._entry.written = Written.PERHAPS
            raise
        if known is not None:
            self._entry.written = Written.WHOLE
            return self._verb.replayed(known)  # type: ignore[no-any-return]
        self._entry.written = Written.INTENT
        reach("outside.before")
        result = await work()
        reach("outside.after")
        # From here on the call was made, whatever becomes of its row.
        self._entry.written = Written.ANSWERED
        await self._core.store.write(self.grant, lambda transaction: self._settle(transaction, result, settle, also))
        self._entry.written = Written.WHOLE
        return result

    def _begin(self) -> None:
        if self._entry.written is not Written.NOTHING:
            raise TypeError(f"{type(self._verb).__name__} changes something in more than one step")

    async def _written(
        self, grant: Grant, verb: Write[P, T], prepared: P, also: Callable[[Transaction, T], None] | None
    ) -> T:
        self._begin()
        digest = None
        if (key := self._verb.idempotency_key) is not None and _may_be_keyed(verb):
            verb = replace(verb, idempotency_key=key)  # type: ignore[type-var]
            # The key is the call's: another call is told from it by all that it asked for, as it is outside.
            digest = self._verb.digest()
        check_key(verb.idempotency_key)
        if digest is None and verb.idempotency_key is not None:
            digest = verb.digest()
        result: T = await self._step(
            self._core.store.write, grant, lambda each: applied(verb, each, prepared, self._entry, digest, also)
        )
        self._entry.written = Written.WHOLE
        return result

    def _intend(self, transaction: Transaction, also: Callable[[Transaction], None] | None) -> dict[str, Any] | None:
        """Record the intent; or, if the call had been made before, what was kept of it."""
        key, scope = self._verb.idempotency_key, self._verb.scope
        known = None if key is None else transaction.answer(scope.partition, answer_key(scope, key))
        if key is None or known is None:
            transaction.record(self._entry.row(Outcome.UNKNOWN))
            return None
        kept = _kept_of(known, self._verb.digest(), key, self._entry)
        self.attribute(asked=False)
        if also is not None:
            also(transaction)
        transaction.record(self._entry.row(Outcome.SUCCEEDED))
        return kept

    def _settle(
        self,
        transaction: Transaction,
        result: T,
        settle: Callable[[Transaction, T], None] | None,
        also: Callable[[Transaction], None] | None,
    ) -> None:
        if settle is not None:
            settle(transaction, result)
        if also is not None:
            also(transaction)
        if (key := self._verb.idempotency_key) is not None:
            scope, entry = self._verb.scope, self._entry
            body = json.dumps({"operation_id": entry.id, **self._verb.kept(result)})
            answer = Answer(sealed(self._verb.digest(), key), body)
            transaction.keep_answer(scope.partition, answer_key(scope, key), answer, entry.started_at)
        transaction.settle(self._entry.end())


def _may_be_keyed(verb: Write[Any, Any]) -> bool:
    """Whether a verb can take the key of the call above it; one that cannot minds repeats by itself."""
    return verb.idempotency_key is None and any(each.name == "idempotency_key" for each in fields(verb))  # type: ignore[arg-type]


class _Also:
    """Runs beneath a call, and does something besides in the commit of what is written."""

    def __init__(self, call: Call, also: Callable[[Transaction, Any], None]) -> None:
        self._call = call
        self._also = also

    @property
    def operation_id(self) -> OperationId:
        return self._call.operation_id

    @property
    def idempotency_key(self) -> str | None:
        return self._call.idempotency_key

    async def run(self, verb: Verb[T]) -> T:
        return await self._call.run(verb, self._also)


def applied(
    verb: Write[P, R],
    transaction: Transaction,
    prepared: P,
    entry: Entry,
    digest: str | None,
    also: Callable[[Transaction, R], None] | None = None,
) -> R:
    reach("write.before")
    result, touched = _result(verb, transaction, prepared, entry, digest)
    if entry.attribution is not None and (named := verb.named(result)):
        entry.attribution = replace(entry.attribution, handles=tuple(named[:NAMED]))
    if also is not None:
        also(transaction, result)
    transaction.record(entry.row(Outcome.SUCCEEDED, touched))
    reach("write.after")
    return result


def _result(
    verb: Write[P, R], transaction: Transaction, prepared: P, entry: Entry, digest: str | None
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
        answer = Answer(sealed(digest, verb.idempotency_key), body)
        transaction.keep_answer(partition, key, answer, entry.started_at)
        entry.done_by = entry.id
        return result, verb.touched(result)
    kept = _kept_of(known, digest, verb.idempotency_key, entry)
    if entry.attribution is not None:
        entry.attribution = replace(entry.attribution, asked=False)
    return verb.replayed(transaction, kept), 0


def _kept_of(known: Answer, digest: str, key: str, entry: Entry) -> dict[str, Any]:
    if not is_of(known, digest, key):
        raise IdempotencyConflict("idempotency_key: was used for another call; use a new key for each new call")
    kept: dict[str, Any] = json.loads(known.body)
    entry.done_by = kept.get("operation_id", entry.id)
    return kept


def seen(verb: Request[P, R], reader: Reader, prepared: P) -> R:
    if not isinstance(verb, Read):
        raise TypeError(f"{type(verb).__name__} neither reads nor writes")
    result: R = verb.apply(reader, prepared)
    return result


def charging(core: Core, entry: Entry, touched: int) -> Callable[[Transaction], None]:
    """What writes the row of a read together with what it took of somebody who is paid for it."""
    before = entry.attribution or Attribution()
    usage = (*before.usage, *entry.took)

    def write(transaction: Transaction) -> None:
        now = core.clock.now()
        entry.costs = charged(transaction, core, entry.id, before.binding, entry.scope, entry.took, now)
        events = tuple(event.id for event in entry.costs)
        entry.attribution = replace(before, usage=usage, mode=mode_of(usage), cost_events=events)
        transaction.record(entry.row(Outcome.SUCCEEDED, touched))

    return write


def _code(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, CUT_OFF):
        return "cancelled"
    return error.code if isinstance(error, HoldfastError) else "internal_error"
