"""The gate: every request to the runtime passes through `perform`, and nothing else writes operation rows.

Every verb is a frozen request with `prepare` (may be slow; holds no transaction) and `apply` (short; one transaction).
The gate authorizes, prepares, applies, and writes exactly one operation row: in the same commit for a write; soon
after for a read. A refusal or failure changed nothing, so its row is written alone.

A write with an idempotency key is applied once: a repeated call is answered from the stored replay state.

A composite request runs several steps: it resolves the binding, then uses our own store or an external provider
(`CompositeRequest`, `Call`). It also writes one row. Before an external provider is called, the row is committed as
`unknown`: if the process dies before it records the outcome, the row stays `unknown`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Actor, Grant, authorize, is_read, same_space
from holdfast.domain.contract import Usage
from holdfast.domain.costs import CostEvent
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Attribution, Operation, Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.usage import attribution_of
from holdfast.errors import AccessDenied, Conflict, HoldfastError, InvalidInput, NotFound, RevisionConflict, StoreError
from holdfast.failpoints import reach
from holdfast.ports import Reader, Transaction, Verb
from holdfast.ports.observer import MetricsObserver
from holdfast.runtime.idempotency import check_key, load_replay, store_replay
from holdfast.runtime.metering import Effect, record_costs
from holdfast.runtime.requests import CompositeRequest, Core, Read, Request, Write

__all__ = ["Call", "CompositeRequest", "Core", "Read", "Request", "Write", "perform"]

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S", bound=Reader)
T = TypeVar("T")
log = logging.getLogger("holdfast")

# Errors caused by the caller: recorded as refused, not failed.
_REFUSALS = (AccessDenied, InvalidInput, NotFound, Conflict)
# Maximum number of record ids in an operation row.
NAMED = 20
# The caller stopped waiting. A call without an event loop is interrupted in its own thread.
CUT_OFF = (asyncio.CancelledError, KeyboardInterrupt)
# Maximum size of the cache of optimistic reads; it is cleared when full.
_MOST_SUPPOSED = 4_096


async def perform(core: Core, actor: Actor, action: Action, make: Callable[[], Request[Any, R]], *, space: str) -> R:
    """Make, authorize, prepare, apply and audit one verb.

    A request that fails validation, or that addresses a foreign space, is audited in the actor's own space.
    """
    scope = _space_scope(actor.space or space)
    operation_id = OperationId(core.ids.new(ids.OPERATION))
    entry = OperationEntry(operation_id, actor, action, scope, core.clock.now(), time.perf_counter(), operation_id)
    try:
        try:
            verb = make()
            if same_space(actor, verb.scope):
                # Otherwise the row stays in the actor's own space: no space can write into another's audit trail.
                entry.scope = verb.scope
                entry.attribution = verb.attribution() if verb.is_attributed else None
            if verb.idempotency_key is not None:
                check_key(verb.idempotency_key)
            grant = authorize(actor, action, verb.scope)
            if isinstance(verb, CompositeRequest):
                return await _run_composite(core, grant, verb, entry)
            prepared = await verb.prepare(core, grant)
            if not isinstance(verb, Write):
                found = await _run_read(core, grant, verb, prepared, entry)
                return await verb.finish(core, found, entry.id)
            # The digest is only needed with a key.
            digest = None if verb.idempotency_key is None else verb.digest()
            result: R = await core.store.write(
                grant, lambda transaction: _apply_write(verb, transaction, prepared, entry, digest)
            )
        except (Exception, *CUT_OFF) as error:
            if isinstance(error, HoldfastError):
                error.operation_id = entry.id
            await _record_failure(core, entry, error)
            raise
        return await verb.finish(core, result, entry.done_by)  # type: ignore[no-any-return]
    finally:
        if core.watcher is not None:
            _notify_watcher(core.watcher, entry)


@lru_cache(maxsize=1_024)
def _space_scope(space: str) -> Scope:
    return Scope(space=space)


async def _run_read(core: Core, grant: Grant, verb: Request[P, R], prepared: P, entry: OperationEntry) -> R:
    if not isinstance(verb, Read):
        raise TypeError(f"{type(verb).__name__} is neither a Read nor a Write")
    result: R = await core.store.read(grant, lambda reader: verb.apply(reader, prepared))
    entry.took = verb.metered_usage(prepared)
    await _record_read(core, grant, entry, verb.record_count(result), verb.event_writer(core, result))
    return result


async def _run_composite(core: Core, grant: Grant, verb: CompositeRequest[R], entry: OperationEntry) -> R:
    call = Call(core, verb, entry, grant)
    try:
        try:
            result = await verb.carry_out(core, call)
        except StaleRead:
            raise
        except Exception:
            with suppress(StoreError):
                await call.verify_reads()  # a stale read may have caused the failure
            raise
        await call.verify_reads()
    except StaleRead:
        entry.attribution = verb.attribution() if verb.is_attributed else None
        entry.record_count, entry.failure, entry.costs = None, None, ()
        result = await verb.carry_out(core, Call(core, verb, entry, grant, trusts=False))
    if entry.failure is not None:
        await _record_failure(core, entry, entry.failure)
    elif entry.written is AuditState.NOTHING:
        record_count = verb.record_count(result) if entry.record_count is None else entry.record_count
        await _record_read(core, grant, entry, record_count)
    return result


# --- the operation row ------------------------------------------------------------------------------------------------


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
    record_count: int | None = None  # if it is known before the result is built
    written: AuditState = AuditState.NOTHING
    provider_called: bool = False  # True once an external provider was called
    failure: BaseException | None = None  # set if it failed but its caller still gets a result
    told: Operation | None = None  # the row, as last built
    took: tuple[Usage, ...] = ()  # metered usage of its reads, including those before a restart
    costs: tuple[CostEvent, ...] = ()  # the cost events it wrote

    def build_row(self, outcome: Outcome, record_count: int = 0, error: BaseException | None = None) -> Operation:
        self.told = Operation(
            id=self.id,
            actor=self.actor,
            action=self.action,
            scope=self.scope,
            outcome=outcome,
            error_code=None if error is None else _error_code(error),
            record_count=record_count,
            started_at=self.started_at,
            duration_micros=int((time.perf_counter() - self.started) * 1e6),
            attribution=self.attribution,
        )
        return self.told

    def note_replay(self, state: Mapping[str, Any]) -> None:
        """Note that the first call with this idempotency key did the work."""
        self.done_by = state.get("operation_id", self.id)
        if self.attribution is not None:
            self.attribution = replace(self.attribution, provider_called=False)

    def failure_row(self, error: BaseException) -> Operation:
        return self.build_row(Outcome.REFUSED if isinstance(error, _REFUSALS) else Outcome.FAILED, error=error)


def _error_code(error: BaseException) -> str:
    if isinstance(error, CUT_OFF):
        return "cancelled"
    return error.code if isinstance(error, HoldfastError) else "internal_error"


async def _record_read(
    core: Core, grant: Grant, entry: OperationEntry, record_count: int, append_event: Effect | None = None
) -> None:
    """Write the row of a call that changed nothing: soon after it; at once with its costs and its event, if any."""
    if append_event is None and (not entry.took or entry.scope.space == EVERYWHERE):
        await core.store.audit(entry.build_row(Outcome.SUCCEEDED, record_count))
        return
    before = entry.attribution or Attribution()
    usage = (*before.usage, *entry.took)

    def write(transaction: Transaction) -> None:
        if entry.took:
            now = core.clock.now()
            entry.costs = record_costs(transaction, core, entry.id, before.binding, entry.scope, entry.took, now)
            events = tuple(event.id for event in entry.costs)
            entry.attribution = replace(before, usage=usage, mode=attribution_of(usage), cost_events=events)
        if append_event is not None:
            append_event(transaction)
        transaction.operations.add(entry.build_row(Outcome.SUCCEEDED, record_count))

    await core.store.write(grant, write)


async def _record_failure(core: Core, entry: OperationEntry, error: BaseException) -> None:
    """Record how a call failed. If an external call was answered but not stored, its row stays `unknown`."""
    if entry.written is AuditState.NOTHING:
        await core.store.audit(entry.failure_row(error))
    elif entry.written in (AuditState.INTENT, AuditState.PERHAPS):
        # The provider may have carried out a cancelled call.
        unknown = entry.provider_called and isinstance(error, CUT_OFF)
        row = entry.build_row(Outcome.UNKNOWN, error=error) if unknown else entry.failure_row(error)
        try:
            await core.store.write(
                authorize(entry.actor, entry.action, entry.scope), lambda t: t.operations.settle(row)
            )
        except RevisionConflict:
            # The intent was never written, or the call was a replay; an existing row is kept.
            await core.store.audit(row)
        except StoreError as store_error:
            log.warning("operation %s stays unknown: its outcome could not be written (%s)", entry.id, store_error.code)


def _notify_watcher(watcher: MetricsObserver, entry: OperationEntry) -> None:
    """Report the outcome of a call. If an external call was answered but not stored, its row stays `unknown`."""
    if entry.told is None:
        return
    stored = entry.written is not AuditState.ANSWERED
    watcher.on_operation(entry.told if stored else replace(entry.told, outcome=Outcome.UNKNOWN))
    if stored and entry.costs:
        watcher.on_costs(entry.costs)


# --- writes, and their replays ----------------------------------------------------------------------------------------


def _apply_write(
    verb: Write[P, R],
    transaction: Transaction,
    prepared: P,
    entry: OperationEntry,
    digest: str | None,
    also: Effect | None = None,
) -> R:
    """Apply a write, or replay it, and record its row. It has a `digest` if it has an idempotency key."""
    reach("write.before")
    state = None if digest is None else load_replay(transaction, verb, digest)
    if state is None:
        result = verb.apply(transaction, prepared)
        record_count = verb.record_count(result)
        if digest is not None:
            store_replay(transaction, verb, digest, entry.id, verb.replay_state(result), entry.started_at)
            entry.done_by = entry.id  # an earlier attempt of this transaction may have been a replay
    else:
        entry.note_replay(state)
        result, record_count = verb.from_replay(transaction, state), 0
    if entry.attribution is not None and (record_ids := verb.written_ids(result)):
        entry.attribution = replace(entry.attribution, handles=tuple(record_ids[:NAMED]))
    if also is not None:
        also(transaction)
    transaction.operations.add(entry.build_row(Outcome.SUCCEEDED, record_count))
    reach("write.after")
    return result


# --- composite calls --------------------------------------------------------------------------------------------------


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


class Call:
    """One running composite call: its verb's only access to the store. Implements `ports.provider.NestedCall`.

    A change commits together with the call's row, so only one step may write. With `trusts`, optimistic reads use
    results cached by earlier calls. A verb sets in `entry`: `failure` if it failed although its caller gets a result,
    `record_count` if the number of records is known before the result is built, `provider_called` when it calls an
    external provider.
    """

    def __init__(
        self, core: Core, verb: CompositeRequest[Any], entry: OperationEntry, grant: Grant, trusts: bool = True
    ) -> None:
        self._core = core
        self._verb = verb
        self.entry = entry
        self.grant = grant
        self._trusts = trusts
        self._supposed: _OptimisticRead | None = None
        self._also: Effect | None = None

    @property
    def operation_id(self) -> OperationId:
        return self.entry.id

    @property
    def idempotency_key(self) -> str | None:
        return self._verb.idempotency_key

    @property
    def attribution(self) -> Attribution:
        return self.entry.attribution or Attribution()

    def attribute(self, **changes: Any) -> None:
        """Set fields of the row's attribution, also if the call fails. Replaces values: a transaction may run twice."""
        self.entry.attribution = replace(self.attribution, **changes)

    def set_costs(self, costs: tuple[CostEvent, ...]) -> None:
        """Set the cost events this call writes, inside the transaction that writes them. Replaces earlier ones."""
        self.entry.costs = costs
        self.attribute(cost_events=tuple(event.id for event in costs))

    def add_effect(self, also: Effect) -> None:
        """Run `also` in the commit of the nested verb or external call that writes, also if that is a replay."""
        self._also = also

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
            transaction.operations.add(self.entry.build_row(Outcome.SUCCEEDED, self.entry.record_count or 0))
            reach("write.after")
            return result

        self._require_first_write()
        result = await self._step(self._core.store.write, self.grant, write_with_row)
        self.entry.written = AuditState.WHOLE
        return result

    async def run(self, verb: Verb[T]) -> T:
        """Run a verb of the runtime nested in this call: with this call's permission, in the verb's own reach.

        If it writes, the row commits with it.
        """
        if not isinstance(verb, Read) and not isinstance(verb, Write):
            raise TypeError(f"{type(verb).__name__} cannot run nested in another call")
        outer, inner = self.grant.scope, verb.scope
        if (inner.space, inner.subject, inner.agent) != (outer.space, outer.subject, outer.agent):
            raise TypeError(f"{type(verb).__name__} addresses a different memory than the call it is nested in")
        if isinstance(verb, Write) and is_read(self.grant.action):
            raise TypeError(f"{type(verb).__name__} writes, but is nested in a read-only call")
        grant = authorize(self.grant.actor, self.grant.action, inner, beneath=verb.action)
        prepared = await verb.prepare(self._core, grant)
        if isinstance(verb, Write):
            return await self._run_write(grant, verb, prepared)
        self.entry.took += verb.metered_usage(prepared)
        result: T = await self._step(self._core.store.read, grant, lambda reader: verb.apply(reader, prepared))
        return result

    async def _run_write(self, grant: Grant, verb: Write[P, T], prepared: P) -> T:
        self._require_first_write()
        if (key := self._verb.idempotency_key) is not None and _accepts_key(verb):
            verb = replace(verb, idempotency_key=key)  # type: ignore[type-var]
            # The key is the outer call's, so its digest covers the whole outer request, as for external steps.
            digest: str | None = self._verb.digest()
        else:
            check_key(verb.idempotency_key)
            digest = None if verb.idempotency_key is None else verb.digest()
        entry, also = self.entry, self._also
        result = await self._step(
            self._core.store.write, grant, lambda each: _apply_write(verb, each, prepared, entry, digest, also)
        )
        entry.written = AuditState.WHOLE
        return await verb.finish(self._core, result, entry.done_by)

    async def run_external(
        self, work: Callable[[], Awaitable[T]], settle: Callable[[Transaction, T], None] | None = None
    ) -> T:
        """Call an external provider: commit the intent first; afterwards commit `settle` and the outcome together."""
        self._require_first_write()
        entry = self.entry
        try:
            replay_state = await self._step(self._core.store.write, self.grant, self._record_intent)
        except CUT_OFF:
            entry.written = AuditState.PERHAPS
            raise
        if replay_state is not None:
            entry.written = AuditState.WHOLE
            return self._verb.from_replay(replay_state)  # type: ignore[no-any-return]
        entry.written = AuditState.INTENT
        reach("outside.before")
        result = await work()
        reach("outside.after")
        # From here on the external call has happened, even if its row cannot be written.
        entry.written = AuditState.ANSWERED
        await self._core.store.write(self.grant, lambda transaction: self._settle(transaction, result, settle))
        entry.written = AuditState.WHOLE
        return result

    def _require_first_write(self) -> None:
        if self.entry.written is not AuditState.NOTHING:
            raise TypeError(f"{type(self._verb).__name__} writes in more than one step; only one step may write")

    def _record_intent(self, transaction: Transaction) -> dict[str, Any] | None:
        """Record the intent and return None; if the call is a replay, return its stored replay state."""
        verb, entry = self._verb, self.entry
        state = None if verb.idempotency_key is None else load_replay(transaction, verb, verb.digest())
        if state is None:
            transaction.operations.add(entry.build_row(Outcome.UNKNOWN))
            return None
        entry.note_replay(state)
        if self._also is not None:
            self._also(transaction)
        transaction.operations.add(entry.build_row(Outcome.SUCCEEDED))
        return state

    def _settle(self, transaction: Transaction, result: T, settle: Callable[[Transaction, T], None] | None) -> None:
        verb, entry = self._verb, self.entry
        if settle is not None:
            settle(transaction, result)
        if self._also is not None:
            self._also(transaction)
        if verb.idempotency_key is not None:
            store_replay(transaction, verb, verb.digest(), entry.id, verb.replay_state(result), entry.started_at)
        if entry.failure is None:
            transaction.operations.settle(entry.build_row(Outcome.SUCCEEDED, entry.record_count or 0))
        else:
            transaction.operations.settle(entry.failure_row(entry.failure))


def _accepts_key(verb: Write[Any, Any]) -> bool:
    """True if the verb can take the outer call's key; a verb that cannot handles repeats itself."""
    return verb.idempotency_key is None and any(each.name == "idempotency_key" for each in fields(verb))  # type: ignore[arg-type]
