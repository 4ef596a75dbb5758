"""What is asked for by its id is looked up by its id: no statement walks through a partition or a table for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from openers import opened

from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.ports import Indexed
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.testing.contract.scribe import ANALYZER, EMBEDDER, Scribe, vector

ANA = Scope(subject="ana", app="app", conversation="c")


class Watched(sqlite3.Connection):
    """Notes how SQLite is going to find the rows of each statement."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.walks: list[str] = []

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        if statement.split()[0] in {"SELECT", "UPDATE", "DELETE"}:
            steps = [row[3] for row in super().execute(f"EXPLAIN QUERY PLAN {statement}", values)]
            walks = [step for step in steps if step.startswith("SCAN") or step.endswith("(partition_id=?)")]
            self.walks += [f"{walk}: {statement}" for walk in walks]
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
    transaction.add_turn(scribe.turn(ANA, message, gone), EMBEDDER, ANALYZER)
    transaction.add_revision(memory, EMBEDDER, ANALYZER)
    found = transaction.find(memory.id)
    assert found is not None
    now = scribe.clock.now()
    everywhere = NewJob(JobKind.SCRUB, Scope(space=EVERYWHERE))
    calls: list[Callable[[], object]] = [
        lambda: transaction.find(memory.id, now),
        lambda: transaction.revisions(memory.id),
        lambda: transaction.fetch([1, 2, found[0]]),
        lambda: transaction.waiting([message.id, memory.id], "another", ANALYZER),
        lambda: transaction.index([Indexed(found[0], [vector()])], EMBEDDER, ANALYZER),
        lambda: transaction.add_turn(scribe.turn(ANA, scribe.message("said", external_id="m1")), EMBEDDER, ANALYZER),
        lambda: transaction.add_revision(
            scribe.revision(ANA, "better", of=memory, supersedes=1, evidence=[message.id]), EMBEDDER, ANALYZER
        ),
        lambda: transaction.forget(transaction.doomed(ForgetTarget(ids=(gone.id,))), now),
        lambda: transaction.enqueue(scribe.job_id(), everywhere, now),
        lambda: transaction.due(now),
        lambda: transaction.claim(frozenset(JobKind), now, timedelta(seconds=1)),
    ]
    for call in calls:
        call()
    assert [walk for walk in watched.walks if "FROM partitions" not in walk] == []
