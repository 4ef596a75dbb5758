"""Write messages, memories and resources. Each write leaves its event in the same commit; nothing else writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.domain.events import EventKind
from holdfast.domain.memory import Plane
from holdfast.domain.resources import Resource
from holdfast.ports import ForgetPlan, NewRevision, NewTurn, StoredMessages, Transaction
from holdfast.runtime.event_log import append_event, new_event_id
from holdfast.runtime.requests import Core
from holdfast.runtime.revisions import RESTATED

Details = Mapping[str, str | int | None]


def add_turn(transaction: Transaction, core: Core, turn: NewTurn) -> StoredMessages:
    stored = transaction.transcripts.add_turn(turn, core.embedder.fingerprint, core.analyzer.version)
    if stored.new:
        # One event for all messages: it names their turn.
        details = {"messages": len(stored.new)}
        append_event(transaction, core, EventKind.WRITE, turn.scope, record_key=turn.id, details=details)
    return stored


def add_revision(
    transaction: Transaction,
    core: Core,
    revision: NewRevision,
    details: Details | None = None,
    *,
    merges: bool | None = None,
) -> int:
    """Add a revision; its event says which, and has `details` besides. Return its number.

    By default, a revision that only adds evidence to a statement merges it with another.
    """
    number = transaction.records.add_revision(revision, core.embedder.fingerprint, core.analyzer.version)
    _append(transaction, core, revision, {"revision": number, **(details or {})}, merges=merges)
    return number


def add_history(transaction: Transaction, core: Core, revisions: Sequence[NewRevision]) -> None:
    """Add all revisions of a memory from elsewhere, oldest first, with one event."""
    number = None
    for revision in revisions:
        number = transaction.records.add_revision(
            replace(revision, supersedes=number), core.embedder.fingerprint, core.analyzer.version
        )
    _append(transaction, core, revisions[-1], {"revisions": len(revisions)})


def add_resource(transaction: Transaction, core: Core, resource: Resource, chunks: Sequence[NewRevision]) -> None:
    transaction.resources.add(resource, chunks, core.embedder.fingerprint, core.analyzer.version)
    append_event(
        transaction,
        core,
        EventKind.WRITE,
        resource.scope,
        plane=Plane.RESOURCE,
        record_key=resource.id,
        details={"chunks": len(chunks)},
    )


def forget_records(transaction: Transaction, core: Core, plan: ForgetPlan) -> tuple[int, int]:
    """Forget; return the number of tombstones, and of records that can still be found (0)."""
    return transaction.records.forget(plan, core.clock.now(), partial(new_event_id, core))


def _append(
    transaction: Transaction, core: Core, revision: NewRevision, details: Details, *, merges: bool | None = None
) -> None:
    if merges is None:
        merges = revision.repeats is not None and revision.reason == RESTATED
    append_event(
        transaction,
        core,
        EventKind.MERGE if merges else EventKind.WRITE,
        revision.scope,
        plane=revision.plane,
        record_key=revision.id,
        content_hash=hashlib.sha256(revision.text.encode()).hexdigest(),
        details=details,
    )
