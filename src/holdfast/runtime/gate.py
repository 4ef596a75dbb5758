"""The gate: every request to the runtime passes through `perform`.

Every verb is a frozen request with `prepare` (may be slow; holds no transaction) and `apply` (short; one transaction).
The gate authorizes, prepares, applies, and writes exactly one operation row: in the same commit for a write; soon
after for a read. A refusal or failure changed nothing, so its row is written alone. Nothing else writes operations.

A write with an idempotency key is applied once: a repeated call is answered from the stored replay state.

A composite request runs several steps: it resolves the binding, then uses our own store or an external provider
(`CompositeRequest`, `Call`). It also writes one row. Before an external provider is called, the row is committed as
`unknown`: if the process dies before it records the outcome, the row stays `unknown`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Actor, Grant, authorize, same_space
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import HoldfastError, RevisionConflict, StoreError
from holdfast.ports.observer import MetricsObserver
from holdfast.runtime.call import (
    CUT_OFF,
    AuditState,
    Call,
    OperationEntry,
    StaleRead,
    apply_read,
    apply_write,
    make_cost_recorder,
)
from holdfast.runtime.idempotency import check_key
from holdfast.runtime.requests import CompositeRequest, Core, Read, Request, Write

__all__ = ["Call", "CompositeRequest", "Core", "Read", "Request", "Write", "perform"]

P = TypeVar("P")
R = TypeVar("R")
log = logging.getLogger("holdfast")


async def perform(core: Core, actor: Actor, action: Action, make: Callable[[], Request[Any, R]], *, space: str) -> R:
    """Make, authorize, prepare, apply and audit one verb.

    A request that fails validation, or that addresses a foreign space, is audited in the actor's own space.
    """
    scope = _space_scope(actor.space or space)
    operation_id = OperationId(core.ids.new(ids.OPERATION))
    entry = OperationEntry(operation_id, actor, action, scope, core.clock.now(), time.perf_counter(), operation_id)
    if core.watcher is None:
        return await _run(core, entry, make)
    try:
        return await _run(core, entry, make)
    finally:
        _notify_watcher(core.watcher, entry)


async def _run(core: Core, entry: OperationEntry, make: Callable[[], Request[Any, R]]) -> R:
    try:
        verb = make()
        if same_space(entry.actor, verb.scope):
            # Otherwise the row stays in the actor's own space: no company can write into another's audit trail.
            entry.scope, entry.attribution = verb.scope, verb.attribution()
        if isinstance(verb, Write | CompositeRequest):
            check_key(verb.idempotency_key)
        grant = authorize(entry.actor, entry.action, verb.scope)
        if isinstance(verb, CompositeRequest):
            return await _run_composite(core, grant, verb, entry)
        prepared = await verb.prepare(core, grant)
        if isinstance(verb, Write):
            # The digest is only needed with a key.
            digest = None if verb.idempotency_key is None else verb.digest()
            result = await core.store.write(
                grant, lambda transaction: apply_write(verb, transaction, prepared, entry, digest)
            )
        else:
            result = await _run_read(core, grant, verb, prepared, entry)
    except (Exception, *CUT_OFF) as error:
        if isinstance(error, HoldfastError):
            error.operation_id = entry.id
        await _record_failure(core, entry, error)
        raise
    return await verb.finish(core, result, entry.done_by)


def _notify_watcher(watcher: MetricsObserver, entry: OperationEntry) -> None:
    """Report the outcome of a call. If an external call was answered but not stored, its row stays `unknown`."""
    if entry.told is None:
        return
    stored = entry.written is not AuditState.ANSWERED
    watcher.on_operation(entry.told if stored else replace(entry.told, outcome=Outcome.UNKNOWN))
    if stored and entry.costs:
        watcher.on_costs(entry.costs)


async def _run_composite(core: Core, grant: Grant, verb: CompositeRequest[R], entry: OperationEntry) -> R:
    try:
        result = await _run_and_verify(core, verb, Call(core, verb, entry, grant))
    except StaleRead:
        entry.reset(verb.attribution())
        result = await verb.carry_out(core, Call(core, verb, entry, grant, trusts=False))
    if entry.failure is not None:
        await _record_failure(core, entry, entry.failure)
    elif entry.written is AuditState.NOTHING:
        touched = verb.record_count(result) if entry.touched is None else entry.touched
        await _record_read(core, grant, entry, touched)
    return result


async def _run_and_verify(core: Core, verb: CompositeRequest[R], call: Call) -> R:
    """Run the request, then verify its optimistic reads, also on failure: a stale read may have caused it."""
    try:
        result = await verb.carry_out(core, call)
    except StaleRead:
        raise
    except Exception:
        with suppress(StoreError):
            await call.verify_reads()
        raise
    await call.verify_reads()
    return result


async def _record_failure(core: Core, entry: OperationEntry, error: BaseException) -> None:
    """Record how a call failed. If an external call was answered but not stored, its row stays `unknown`."""
    if entry.written is AuditState.NOTHING:
        await core.store.audit(entry.failure_row(error))
    elif entry.written in (AuditState.INTENT, AuditState.PERHAPS):
        row = entry.unknown_row(error) if entry.asked and isinstance(error, CUT_OFF) else entry.failure_row(error)
        try:
            await core.store.write(
                authorize(entry.actor, entry.action, entry.scope), lambda t: t.operations.settle(row)
            )
        except RevisionConflict:
            # The intent was never written, or the call was a replay; an existing row is kept.
            await core.store.audit(row)
        except StoreError as store_error:
            log.warning("operation %s stays unknown: its outcome could not be written (%s)", entry.id, store_error.code)


@lru_cache(maxsize=1_024)
def _space_scope(space: str) -> Scope:
    return Scope(space=space)


async def _run_read(core: Core, grant: Grant, verb: Request[P, R], prepared: P, entry: OperationEntry) -> R:
    result: R = await core.store.read(grant, lambda reader: apply_read(verb, reader, prepared))
    entry.took = verb.metered_usage(prepared)
    await _record_read(core, grant, entry, verb.record_count(result))
    return result


async def _record_read(core: Core, grant: Grant, entry: OperationEntry, touched: int) -> None:
    """Write the row of a call that changed nothing: soon after it; if it was metered, at once with its costs."""
    if not entry.took or entry.scope.space == EVERYWHERE:
        await core.store.audit(entry.build_row(Outcome.SUCCEEDED, touched))
        return
    await core.store.write(grant, make_cost_recorder(core, entry, touched))
