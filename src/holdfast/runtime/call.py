"""One running call: its operation row and, for a composite request, its steps."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from holdfast.domain.access import Action, Actor, Grant, authorize, is_read
from holdfast.domain.contract import Usage
from holdfast.domain.costs import CostEvent
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Attribution, Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.usage import attribution_of
from holdfast.errors import AccessDenied, Conflict, HoldfastError, IdempotencyConflict, InvalidInput, NotFound
from holdfast.failpoints import reach
from holdfast.ports import Reader, StoredResponse, Transaction, Verb
from holdfast.ports.provider import NestedCall
from holdfast.runtime.idempotency import answer_key, check_key, is_answer_to, seal_digest
from holdfast.runtime.metering import record_costs
from holdfast.runtime.requests import CompositeRequest, Core, Read, Request, Write

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S", bound=Reader)
T = TypeVar("T")

# Errors caused by the caller: recorded as refused, not failed.
_REFUSALS = (AccessDenied, InvalidInput, NotFound, Conflict)
# Maximum number of record ids in an operation row.
NAMED = 20
# The caller stopped waiting. A call without an event loop is interrupted in its own thread.
CUT_OFF = (asyncio.CancelledError, KeyboardInterrupt)


# Maximum size of the cache of optimistic reads; it is cleared when full.
_MOST_SUPPOSED = 4_096


class StaleRead(Exception):
    """A cached read was stale. Nothing was changed; the call restarts."""


@dataclass(slots=True)
class _OptimisticRead:
    look: Callable[[Reader], Any]
    found: Any
    held: bool = False

    def verify(self, reader: Reader) -> None:
        if self.look(reader) != self.found:
            raise StaleRead
        self.held = True


class AuditState(Enum):
    """The state of a call's row in the store."""

    NOTHING = "nothing"
    PERHAPS = "perhaps"  # cancelled while the intent was being written; the provider was not called
    INTENT = "intent"  # stored as `unknown`; the external provider was called
    ANSWERED = "answered"  # still stored as `unknown`, but the provider has answered
    WHOLE = "whole"


@dataclass(slots=True)
class OperationEntry:
    """The operation row of one running call."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    started_at: datetime
    started: float
    done_by: OperationId  # the call that did the work: this one, or the first with its idempotency key
    attribution: Attribution | None = None
    touched: int | None = None  # if it is known before the result is built
    written: AuditState = AuditState.NOTHING
    asked: bool = False  # True once an external provider was called
    failure: BaseException | None = None  # set if it failed but its caller still gets a result
    told: Operation | None = None  # the row, as last built
    took: tuple[Usage, ...] = ()  # metered usage of its reads, including those before a restart
    costs: tuple[CostEvent, ...] = ()  # the cost events it wrote

    def build_row(self, outcome: Outcome, touched: int = 0, error: BaseException | None = None) -> Operation:
        self.told = Operation(
            id=self.id,
            actor=self.actor,
            action=self.action,
            scope=self.scope,
            outcome=outcome,
            error_code=_error_code(error),
            touched=touched,
            started_at=self.started_at,
            duration_micros=int((time.perf_counter() - self.started) * 1e6),
            attribution=self.attribution,
        )
        return self.told

    def final_row(self) -> Operation:
        """The final row of a call with a result: succeeded, unless `failure` is set."""
        return (
            self.build_row(Outcome.SUCCEEDED, self.touched or 0)
            if self.failure is None
            else self.failure_row(self.failure)
        )

    def reset(self, attribution: Attribution | None) -> None:
        self.attribution, self.touched, self.failure, self.costs = attribution, None, None, ()

    def unknown_row(self, error: BaseException) -> Operation:
        """The row of a cancelled call that an external provider may have carried out."""
        return self.build_row(Outcome.UNKNOWN, error=error)

    def failure_row(self, error: BaseException) -> Operation:
        return self.build_row(Outcome.REFUSED if isinstance(error, _REFUSALS) else Outcome.FAILED, error=error)


class Call:
    """One running composite call: its verb's only access to the store. Implements `ports.provider.NestedCall`.

    A change commits together with the call's row, so only one step may write. With `trusts`, optimistic reads use
    results cached by earlier calls.
    """

    def __init__(
        self, core: Core, verb: CompositeRequest[Any], entry: OperationEntry, grant: Grant, trusts: bool = True
    ) -> None:
        self._core = core
        self._verb = verb
        self._entry = entry
        self.grant = grant
        self._trusts = trusts
        self._supposed: _OptimisticRead | None = None

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
        """Set fields of the row's attribution, also if the call fails. Replaces values: a transaction may run twice."""
        self._entry.attribution = replace(self.attribution, **changes)

    def set_costs(self, costs: tuple[CostEvent, ...]) -> None:
        """Set the cost events this call writes, inside the transaction that writes them. Replaces earlier ones."""
        self._entry.costs = costs
        self.attribute(cost_events=tuple(event.id for event in costs))

    def set_record_count(self, records: int) -> None:
        """Set the number of touched records before the result is built."""
        self._entry.touched = records

    def fail(self, error: BaseException) -> None:
        """Record the call as failed although its caller gets a result."""
        self._entry.failure = error

    def mark_external_call(self) -> None:
        """Note that an external provider is being called."""
        self._entry.asked = True

    async def read_optimistic(self, key: Hashable, look: Callable[[Reader], T]) -> T:
        """Optimistic read: return the last result of `look` for this key, without reading the store.

        The next step verifies it first, in its own transaction. If it is stale, the call restarts.
        """
        cache = self._core.supposed
        if self._trusts and key in cache:
            found: T = cache[key]
            self._supposed = _OptimisticRead(look, found)
            return found
        found = await self.read(look)
        if len(cache) >= _MOST_SUPPOSED:
            cache.clear()
        cache[key] = found
        return found

    async def verify_reads(self) -> None:
        """Verify an optimistic read that no step has verified yet; raise `StaleRead` if it is stale."""
        if self._supposed is not None and not self._supposed.held:
            await self.read(lambda reader: None)

    async def _step(
        self, kind: Callable[[Grant, Callable[[S], T]], Awaitable[T]], grant: Grant, work: Callable[[S], T]
    ) -> T:
        """Run a store transaction that first verifies the pending optimistic read."""
        if (supposed := self._supposed) is None:
            return await kind(grant, work)

        def verify_then_work(transaction: S) -> T:
            supposed.verify(transaction)
            return work(transaction)

        result = await kind(grant, verify_then_work)
        self._supposed = None
        return result

    async def read(self, work: Callable[[Reader], T]) -> T:
        return await self._step(self._core.store.read, self.grant, work)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a write; the call's row commits with it."""

        def write_with_row(transaction: Transaction) -> T:
            reach("write.before")
            result = work(transaction)
            transaction.operations.add(self._entry.build_row(Outcome.SUCCEEDED, self._entry.touched or 0))
            reach("write.after")
            return result

        self._require_first_write()
        result = await self._step(self._core.store.write, self.grant, write_with_row)
        self._entry.written = AuditState.WHOLE
        return result

    async def run(self, verb: Verb[T], also: Callable[[Transaction, T], None] | None = None) -> T:
        """Run a verb of the runtime nested in this call: with this call's permission, in the verb's own reach.

        If it writes, the row and the effects of `also` commit with it, also if the verb is a replay.
        """
        if not isinstance(verb, Request) or isinstance(verb, CompositeRequest):
            raise TypeError(f"{type(verb).__name__} cannot run nested in another call")
        outer, inner = self.grant.scope, verb.scope
        if (inner.space, inner.subject, inner.agent) != (outer.space, outer.subject, outer.agent):
            raise TypeError(f"{type(verb).__name__} addresses a different memory than the call it is nested in")
        if isinstance(verb, Write) and is_read(self.grant.action):
            raise TypeError(f"{type(verb).__name__} writes, but is nested in a read-only call")
        grant = authorize(self.grant.actor, self.grant.action, inner, beneath=verb.action)
        prepared = await verb.prepare(self._core, grant)
        if isinstance(verb, Write):
            result = await self._run_write(grant, verb, prepared, also)
        else:
            self._entry.took += verb.metered_usage(prepared)
            result = await self._step(self._core.store.read, grant, lambda reader: apply_read(verb, reader, prepared))
        return await verb.finish(self._core, result, self._entry.done_by)  # type: ignore[no-any-return]

    def run_nested(self, also: Callable[[Transaction, Any], None]) -> NestedCall:
        """This call as a nested call for an adapter; `also` runs in the commit of whatever it writes."""
        return _CallWithEffect(self, also)

    async def run_external(
        self,
        work: Callable[[], Awaitable[T]],
        settle: Callable[[Transaction, T], None] | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> T:
        """Call an external provider: commit the intent first; afterwards commit `settle` and the outcome together.

        `also` runs in that commit too, and also if the call is a replay.
        """
        self._require_first_write()
        try:
            replay_state = await self._step(
                self._core.store.write, self.grant, lambda each: self._record_intent(each, also)
            )
        except CUT_OFF:
            self._entry.written = AuditState.PERHAPS
            raise
        if replay_state is not None:
            self._entry.written = AuditState.WHOLE
            return self._verb.from_replay(replay_state)  # type: ignore[no-any-return]
        self._entry.written = AuditState.INTENT
        reach("outside.before")
        result = await work()
        reach("outside.after")
        # From here on the external call has happened, even if its row cannot be written.
        self._entry.written = AuditState.ANSWERED
        await self._core.store.write(self.grant, lambda transaction: self._settle(transaction, result, settle, also))
        self._entry.written = AuditState.WHOLE
        return result

    def _require_first_write(self) -> None:
        if self._entry.written is not AuditState.NOTHING:
            raise TypeError(f"{type(self._verb).__name__} writes in more than one step; only one step may write")

    async def _run_write(
        self, grant: Grant, verb: Write[P, T], prepared: P, also: Callable[[Transaction, T], None] | None
    ) -> T:
        self._require_first_write()
        digest = None
        if (key := self._verb.idempotency_key) is not None and _accepts_key(verb):
            verb = replace(verb, idempotency_key=key)  # type: ignore[type-var]
            # The key is the outer call's, so its digest covers the whole outer request, as for external steps.
            digest = self._verb.digest()
        check_key(verb.idempotency_key)
        if digest is None and verb.idempotency_key is not None:
            digest = verb.digest()
        result: T = await self._step(
            self._core.store.write, grant, lambda each: apply_write(verb, each, prepared, self._entry, digest, also)
        )
        self._entry.written = AuditState.WHOLE
        return result

    def _record_intent(
        self, transaction: Transaction, also: Callable[[Transaction], None] | None
    ) -> dict[str, Any] | None:
        """Record the intent and return None; if the call is a replay, return its stored replay state."""
        key, scope = self._verb.idempotency_key, self._verb.scope
        stored = None if key is None else transaction.records.response(scope.partition, answer_key(scope, key))
        if key is None or stored is None:
            transaction.operations.add(self._entry.build_row(Outcome.UNKNOWN))
            return None
        replay_state = _load_replay_state(stored, self._verb.digest(), key, self._entry)
        self.attribute(asked=False)
        if also is not None:
            also(transaction)
        transaction.operations.add(self._entry.build_row(Outcome.SUCCEEDED))
        return replay_state

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
            body = json.dumps({"operation_id": entry.id, **self._verb.replay_state(result)})
            answer = StoredResponse(seal_digest(self._verb.digest(), key), body)
            transaction.records.put_response(scope.partition, answer_key(scope, key), answer, entry.started_at)
        transaction.operations.settle(self._entry.final_row())


def _accepts_key(verb: Write[Any, Any]) -> bool:
    """True if the verb can take the outer call's key; a verb that cannot handles repeats itself."""
    return verb.idempotency_key is None and any(each.name == "idempotency_key" for each in fields(verb))  # type: ignore[arg-type]


class _CallWithEffect:
    """A nested call that also runs an extra effect in the commit of each write."""

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


def apply_write(
    verb: Write[P, R],
    transaction: Transaction,
    prepared: P,
    entry: OperationEntry,
    digest: str | None,
    also: Callable[[Transaction, R], None] | None = None,
) -> R:
    reach("write.before")
    result, touched = _apply_once(verb, transaction, prepared, entry, digest)
    if entry.attribution is not None and (record_ids := verb.written_ids(result)):
        entry.attribution = replace(entry.attribution, handles=tuple(record_ids[:NAMED]))
    if also is not None:
        also(transaction, result)
    transaction.operations.add(entry.build_row(Outcome.SUCCEEDED, touched))
    reach("write.after")
    return result


def _apply_once(
    verb: Write[P, R], transaction: Transaction, prepared: P, entry: OperationEntry, digest: str | None
) -> tuple[R, int]:
    """Return the verb's result and the number of touched records: 0 for a replay."""
    if verb.idempotency_key is None or digest is None:
        result = verb.apply(transaction, prepared)
        return result, verb.record_count(result)
    partition, key = verb.scope.partition, answer_key(verb.scope, verb.idempotency_key)
    stored = transaction.records.response(partition, key)
    if stored is None:
        result = verb.apply(transaction, prepared)
        body = json.dumps({"operation_id": entry.id, **verb.replay_state(result)})
        answer = StoredResponse(seal_digest(digest, verb.idempotency_key), body)
        transaction.records.put_response(partition, key, answer, entry.started_at)
        entry.done_by = entry.id
        return result, verb.record_count(result)
    replay_state = _load_replay_state(stored, digest, verb.idempotency_key, entry)
    if entry.attribution is not None:
        entry.attribution = replace(entry.attribution, asked=False)
    return verb.from_replay(transaction, replay_state), 0


def _load_replay_state(stored: StoredResponse, digest: str, key: str, entry: OperationEntry) -> dict[str, Any]:
    if not is_answer_to(stored, digest, key):
        raise IdempotencyConflict("idempotency_key: was used for another call; use a new key for each new call")
    replay_state: dict[str, Any] = json.loads(stored.body)
    entry.done_by = replay_state.get("operation_id", entry.id)
    return replay_state


def apply_read(verb: Request[P, R], reader: Reader, prepared: P) -> R:
    if not isinstance(verb, Read):
        raise TypeError(f"{type(verb).__name__} is neither a Read nor a Write")
    result: R = verb.apply(reader, prepared)
    return result


def make_cost_recorder(core: Core, entry: OperationEntry, touched: int) -> Callable[[Transaction], None]:
    """Make the write that stores the row of a read together with its cost events."""
    before = entry.attribution or Attribution()
    usage = (*before.usage, *entry.took)

    def write(transaction: Transaction) -> None:
        now = core.clock.now()
        entry.costs = record_costs(transaction, core, entry.id, before.binding, entry.scope, entry.took, now)
        events = tuple(event.id for event in entry.costs)
        entry.attribution = replace(before, usage=usage, mode=attribution_of(usage), cost_events=events)
        transaction.operations.add(entry.build_row(Outcome.SUCCEEDED, touched))

    return write


def _error_code(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, CUT_OFF):
        return "cancelled"
    return error.code if isinstance(error, HoldfastError) else "internal_error"
