"""Lookups by id use an index: no statement scans a partition or a table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from openers import opened

from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import DeliveryFilter, HookDeliveryStatus, NewDelivery
from holdfast.domain.jobs import JobFilter, JobKind, JobState, NewJob
from holdfast.domain.operations import OperationFilter, OperationType, Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.transcript_turns import TranscriptState
from holdfast.ports import IndexUpdate
from holdfast.stores.sqlite.writer import SqliteTransaction
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import ANALYZER, EMBEDDER, Scribe, event_id, vector

ANA = Scope(subject="ana", app="app", conversation="c")


class Watched(sqlite3.Connection):
    """Records the query plan of each statement."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.walks: list[str] = []
        self.steps: list[str] = []

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        if statement.split()[0] in {"SELECT", "UPDATE", "DELETE"}:
            steps = [row[3] for row in super().execute(f"EXPLAIN QUERY PLAN {statement}", values)]
            walks = [step for step in steps if step.startswith("SCAN") or step.endswith("(partition_id=?)")]
            self.walks += [f"{walk}: {statement}" for walk in walks]
            self.steps += [f"{step}: {statement}" for step in steps]
        return super().execute(statement, values)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    opened(tmp_path / "memory.db")
    return sqlite3.connect(tmp_path / "memory.db", isolation_level=None, factory=Watched)


@pytest.mark.parametrize("scope", [Scope(subject="ana"), ANA, Scope()], ids=["subject", "all parts", "space"])
def test_lookups_by_id_walk_through_nothing(watched: Watched, scope: Scope) -> None:
    scribe = Scribe()
    message, gone = scribe.message("said", external_id="m1"), scribe.message("gone")
    memory = scribe.revision(ANA, "learned", evidence=[message.id, gone.id])
    transaction = SqliteTransaction(watched, authorize(LOCAL_OPERATOR, Action.ADD, scope))
    transaction.transcripts.add_turn(scribe.turn(ANA, message, gone), EMBEDDER, ANALYZER)
    transaction.records.add_revision(memory, EMBEDDER, ANALYZER)
    found = transaction.records.find(memory.id)
    assert found is not None
    now = scribe.clock.now()
    everywhere = NewJob(JobKind.SCRUB, Scope(space=EVERYWHERE))
    calls: list[Callable[[], object]] = [
        lambda: transaction.records.find(memory.id, now),
        lambda: transaction.records.revisions(memory.id),
        lambda: transaction.records.fetch([1, 2, found[0]]),
        lambda: transaction.index.backlog_of([message.id, memory.id], "another", ANALYZER),
        lambda: transaction.index.update([IndexUpdate(found[0], [vector()])], EMBEDDER, ANALYZER),
        lambda: transaction.transcripts.add_turn(
            scribe.turn(ANA, scribe.message("said", external_id="m1")), EMBEDDER, ANALYZER
        ),
        lambda: transaction.records.add_revision(
            scribe.revision(ANA, "better", of=memory, supersedes=1, evidence=[message.id]), EMBEDDER, ANALYZER
        ),
        lambda: transaction.records.forget(
            transaction.records.plan_forget(ForgetTarget(ids=(gone.id,))), now, event_id
        ),
        lambda: transaction.jobs.enqueue(scribe.job_id(), everywhere, now),
        lambda: transaction.jobs.has_due(now),
        lambda: transaction.jobs.claim(frozenset(JobKind), now, timedelta(seconds=1)),
    ]
    for call in calls:
        call()
    assert [walk for walk in watched.walks if "FROM partitions" not in walk] == []


def test_whose_conversation_it_is_is_sought_by_its_name(watched: Watched) -> None:
    transaction, scribe = SqliteTransaction(watched, authorize(LOCAL_OPERATOR, Action.ADD, ANA)), Scribe()
    transaction.transcripts.add_turn(scribe.turn(ANA, scribe.message("said")), EMBEDDER, ANALYZER)
    watched.steps.clear()
    everybody = authorize(LOCAL_OPERATOR, Action.LIST, Scope(conversation="c"))
    assert [each.owner for each in SqliteTransaction(watched, everybody).records.occupied_partitions()] == ["ana"]
    sought = [step for step in watched.steps if step.startswith(("SCAN", "SEARCH s "))]
    assert len(sought) == 1
    assert "(partition_id=? AND conversation=?)" in sought[0]


def test_a_page_of_a_transcript_is_sought_whatever_lies_before_it(watched: Watched) -> None:
    scribe = Scribe()
    transaction = SqliteTransaction(watched, authorize(LOCAL_OPERATOR, Action.COMMIT_TRANSCRIPT, ANA))
    message = scribe.message("said")
    transaction.transcripts.add_turn(replace(scribe.turn(ANA, message, "more"), external_id="t1"), EMBEDDER, ANALYZER)
    transaction.transcripts.add_turn(scribe.turn(ANA, "after"), EMBEDDER, ANALYZER)
    transaction.records.add_revision(scribe.revision(ANA, "learned", evidence=[message.id]), EMBEDDER, ANALYZER)
    at = scribe.clock.now()
    calls: list[Callable[[], object]] = [
        lambda: transaction.transcripts.turns(ANA, 1, 5),
        lambda: transaction.transcripts.last_turns(ANA, 5),
        lambda: transaction.transcripts.tail(ANA, 5),
        lambda: transaction.transcripts.turn(ANA, "t1"),
        lambda: transaction.transcripts.turn(ANA, "t2"),
        lambda: transaction.transcripts.turn_count(ANA),
        lambda: transaction.transcripts.turn_states(ANA, 1, 5),
        lambda: transaction.transcripts.derived_from(ANA, [1], 5),
        lambda: transaction.transcripts.set_state(ANA, [1], TranscriptState.MASKED, at),
        lambda: transaction.transcripts.set_state(ANA, [1], TranscriptState.RAW_DELETED, at),
        lambda: transaction.transcripts.add_turn(
            replace(scribe.turn(ANA, "new"), external_id="t3"), EMBEDDER, ANALYZER
        ),
    ]
    watched.walks.clear()
    watched.steps.clear()
    for call in calls:
        call()
    assert [walk for walk in watched.walks if "FROM partitions" not in walk] == []
    # No step may search by conversation alone, which may be long: each also has a position or a key.
    whole = [step for step in watched.steps if "(conversation_id=?)" in step]
    assert [step for step in whole if "ORDER BY" not in step and "max(" not in step] == []


# --- queries of the control plane ---------------------------------------------------------------------------------

NOW = ControlScribe().now()
# Filters, and the index columns that serve them.
SOUGHT: list[tuple[OperationFilter | JobFilter | DeliveryFilter, str]] = [
    (OperationFilter(), "space=? AND action=?"),  # for each action in turn
    (OperationFilter(agent="a"), "space=? AND agent=?"),
    (OperationFilter(project="a"), "space=? AND project=?"),
    (OperationFilter(issue="a"), "space=? AND issue=?"),
    (OperationFilter(run="a"), "space=? AND run=?"),
    (OperationFilter(binding="a"), "space=? AND binding=?"),
    (OperationFilter(source_kind=SourceKind.RUN), "space=? AND source_kind=?"),
    *((OperationFilter(type=kind), "space=? AND action=?") for kind in OperationType),
    (OperationFilter(action=Action.JOBS), "space=? AND action=?"),
    *(
        (OperationFilter(outcome=outcome), "space=? AND outcome=?")
        for outcome in Outcome
        if outcome is not Outcome.SUCCEEDED
    ),
    (OperationFilter(outcome=Outcome.SUCCEEDED), "space=? AND action=?"),
    (OperationFilter(since=NOW, until=NOW), "space=? AND action=? AND id>? AND id<?"),
    (OperationFilter(agent="a", type=OperationType.QUERY), "space=? AND agent=? AND action=?"),
    (OperationFilter(agent="a", outcome=Outcome.FAILED), "space=? AND agent=? AND outcome=?"),
    (OperationFilter(agent="a", until=NOW), "space=? AND agent=? AND id<?"),
    (OperationFilter(agent="agent-1", run="r", binding="other"), "space=? AND run=?"),
    (JobFilter(), "space=?"),
    (JobFilter(agent="a"), "space=? AND agent=?"),
    (JobFilter(project="a"), "space=? AND project=?"),
    (JobFilter(issue="a"), "space=? AND issue=?"),
    (JobFilter(run="a"), "space=? AND run=?"),
    (JobFilter(binding="a"), "space=? AND binding=?"),
    (JobFilter(hook=HookKind.MANUAL_CAPTURE), "space=? AND hook=?"),
    (JobFilter(state=JobState.FAILED), "space=? AND status=?"),
    (JobFilter(state=JobState.CANCELLED), "space=? AND status=?"),
    (JobFilter(state=JobState.QUEUED), "status=?"),  # few jobs are pending
    (JobFilter(state=JobState.STUCK), "status=?"),
    (JobFilter(until=NOW), "space=? AND id<?"),
    (DeliveryFilter(), "space=?"),
    (DeliveryFilter(status=HookDeliveryStatus.DEAD), "space=? AND status=?"),
    (DeliveryFilter(kind=HookKind.MANUAL_CAPTURE), "space=? AND kind=?"),
    (DeliveryFilter(to="binding:other"), "space=? AND destination=?"),
    (DeliveryFilter(source_kind=SourceKind.RUN), "space=? AND source_kind=?"),
]


def _page(
    transaction: SqliteTransaction, wanted: OperationFilter | JobFilter | DeliveryFilter, before: str | None
) -> object:
    if isinstance(wanted, OperationFilter):
        return transaction.operations.page(wanted, before, 50)
    if isinstance(wanted, JobFilter):
        return transaction.jobs.page(wanted, NOW, before, 50)
    return transaction.deliveries.page(wanted, before, 50)


@pytest.mark.parametrize("before", [None, "op_0"])
@pytest.mark.parametrize(("wanted", "columns"), SOUGHT, ids=[str(number) for number in range(len(SOUGHT))])
def test_a_page_is_read_off_an_index_in_its_order(
    watched: Watched, wanted: OperationFilter | JobFilter | DeliveryFilter, columns: str, before: str | None
) -> None:
    transaction = SqliteTransaction(watched, management_grant())
    ControlScribe().everything()(transaction)
    watched.walks.clear()
    watched.steps.clear()
    _page(transaction, wanted, before)
    (asked,) = {step.split(": ")[0] for step in watched.steps if "LIMIT ?" in step and "TEMP B-TREE" not in step}
    assert asked.endswith((f"({columns})", f"({columns} AND id<?)"))
    # Probing each index counts the rows it found, a scan of that result only.
    assert [walk for walk in watched.walks if not walk.startswith("SCAN found")] == []
    # Rows come in index order; only pending jobs, which are few, are sorted.
    sorted_steps = [step for step in watched.steps if "TEMP B-TREE" in step]
    assert not sorted_steps or columns == "status=?"


def test_what_serves_a_call_is_found_however_many_bindings_and_agents_there_are(watched: Watched) -> None:
    transaction = SqliteTransaction(watched, management_grant())
    ControlScribe().everything()(transaction)
    watched.steps.clear()
    transaction.bindings.targets(("default", "bot"))
    transaction.bindings.find_all(("a", "default"))
    sought = " ".join(watched.steps)
    assert "(space=? AND kind=? AND target_id=?)" in sought
    assert "(space=? AND key=?)" in sought


def test_what_is_asked_by_its_id_or_changed_is_sought(watched: Watched) -> None:
    transaction, scribe = SqliteTransaction(watched, management_grant()), ControlScribe()
    left = scribe.everything()(transaction)
    watched.walks.clear()
    calls: list[Callable[[], object]] = [
        lambda: transaction.bindings.find_all(),
        lambda: transaction.bindings.targets(),
        lambda: transaction.bindings.find_all(("default", "other")),
        lambda: transaction.bindings.targets(("acme", "bot")),
        lambda: transaction.costs.prices(),
        lambda: transaction.operations.find(left.done.id),
        lambda: transaction.jobs.find(left.job),
        lambda: transaction.deliveries.find(left.pending.id),
        lambda: transaction.deliveries.find_by_hook(left.pending.to, left.pending.hook.hook_id, left.pending.scope),
        lambda: transaction.deliveries.payload(left.pending.id),
        lambda: transaction.operations.settle(replace(left.unknown, outcome=Outcome.FAILED)),
        lambda: transaction.deliveries.add(NewDelivery(scribe.delivery(), SourcePayload("new"))),
        lambda: transaction.deliveries.note_attempt(left.pending.id, scribe.now(), None, None),
        lambda: transaction.deliveries.end(
            left.pending.id, HookDeliveryStatus.DELIVERED, scribe.now(), None, None, tried=True
        ),
        lambda: transaction.deliveries.resume(
            left.skipped.id, NewDelivery(replace(left.skipped, status=HookDeliveryStatus.PENDING), SourcePayload("new"))
        ),
        lambda: transaction.deliveries.revive(left.dead.id, scribe.now()),
        lambda: transaction.jobs.cancel(left.job, scribe.now()),
        lambda: transaction.jobs.restart(left.cancelled, scribe.now()),
        lambda: transaction.costs.page("cost_9", 5),
        lambda: transaction.costs.finance_page(None, 5),
    ]
    for call in calls:
        call()
    assert watched.walks == []
