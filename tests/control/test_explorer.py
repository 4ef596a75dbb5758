"""The explorer of the audit trail: filters, cursors, and isolation between companies."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OPERATOR, OTHER, WHOLE, Desk, rows_of, text
from misbehaving import raising

from holdfast.control.memory import Capture, CorrectRecord, Query, UpsertRecords
from holdfast.control.operations import GetMetrics, GetOperation, ListOperations
from holdfast.domain.access import Action, Actor, ActorKind, ActorRole
from holdfast.domain.contract import NewRecord, SourceKind, SourceRef
from holdfast.domain.operations import OperationFilter, OperationType, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, InvalidInput, NotFound, ProviderError, StoreBusy
from holdfast.failpoints import arm


def scoped(**parts: str) -> Scope:
    return Scope(space=ACME, **parts)


@pytest.fixture
def filled(desk: Desk, runner: asyncio.Runner) -> Desk:
    """A store with calls of many kinds."""
    run = runner.run
    run(
        desk.do(
            Capture(scoped(agent="bot", issue="i1"), SourceRef(SourceKind.ISSUE, ACME, issue_id="i1"), text("One."))
        )
    )
    run(desk.do(Capture(scoped(agent="aid", project="p1"), NOTE, text("Two."))))
    run(desk.do(Query(scoped(agent="bot", run="r1"), "one"), AGENT))
    run(desk.do(UpsertRecords(scoped(agent="bot"), (NewRecord("Three."),))))
    run(desk.do(Query(Scope(space=OTHER), "one")))
    run(desk.bind_outside())
    desk.hostile.does["query"] = raising(RuntimeError("x"))
    with pytest.raises(ProviderError):
        run(desk.do(Query(scoped(agent="bot"), "one"), AGENT))
    with pytest.raises(AccessDenied):
        run(desk.do(Query(scoped(agent="spy"), "one"), AGENT))
    return desk


WANTED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "an agent's queries": (
        {"agent": "bot", "type": OperationType.QUERY}, [("query", "failed"), ("query", "succeeded")],
    ),
    "an issue": ({"issue": "i1"}, [("capture", "succeeded")]),
    "a project": ({"project": "p1"}, [("capture", "succeeded")]),
    "a run": ({"run": "r1"}, [("query", "succeeded")]),
    "a kind of source": ({"source_kind": SourceKind.MANUAL_NOTE}, [("capture", "succeeded")]),
    "a type": ({"type": OperationType.RECORD_UPSERT}, [("record_upsert", "succeeded")]),
    "an action": ({"action": Action.CAPTURE}, [("capture", "succeeded")] * 2),
    "what failed": ({"outcome": Outcome.FAILED}, [("query", "failed")]),
    "what was refused": ({"outcome": Outcome.REFUSED}, [("query", "refused")]),
    "a binding": (
        {"binding": "elsewhere", "type": OperationType.QUERY}, [("query", "failed")],
    ),
    "what was before all of it": ({"until": datetime(2020, 1, 1, tzinfo=UTC)}, []),
    "nothing that there is": ({"agent": "nobody"}, []),
}  # fmt: skip


@pytest.mark.parametrize("named", WANTED)
def test_a_filter_finds_what_it_names_and_nothing_else(filled: Desk, runner: asyncio.Runner, named: str) -> None:
    wanted, expected = WANTED[named]
    assert [(row.action, row.outcome) for row in runner.run(filled.listed(**wanted))] == expected


def test_pages_hold_everything_once_newest_first(filled: Desk, runner: asyncio.Runner) -> None:
    runner.run(filled.rows())
    wanted = OperationFilter(until=datetime.now(UTC) + timedelta(hours=1), type=OperationType.QUERY)
    seen, cursor = [], None
    while True:
        page = runner.run(filled.do(ListOperations(WHOLE, wanted, cursor, 2)))
        seen += [row.id for row in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == 3
    first = runner.run(filled.do(ListOperations(WHOLE, wanted, None, 1)))
    with pytest.raises(InvalidInput, match="another query"):
        runner.run(filled.do(ListOperations(WHOLE, OperationFilter(), first.next_cursor, 1)))


def test_a_read_is_in_the_trail_as_soon_as_it_was_answered(desk: Desk, runner: asyncio.Runner) -> None:
    for count in range(1, 4):
        runner.run(desk.do(Query(BOT, "cat")))
        wanted = OperationFilter(type=OperationType.QUERY)
        assert len(runner.run(desk.do(ListOperations(WHOLE, wanted))).items) == count
        assert runner.run(desk.do(GetMetrics(WHOLE))).queries == count


def test_a_store_that_takes_no_row_shows_those_that_it_has(
    desk: Desk, runner: asyncio.Runner, request: pytest.FixtureRequest
) -> None:
    def full(point: str) -> None:
        if point.startswith("audit."):
            raise StoreBusy("the disk is full")

    runner.run(desk.do(Query(BOT, "cat")))
    shown = [row.action for row in reversed(runner.run(desk.rows())) if row.scope.space == ACME]
    request.addfinalizer(lambda: arm(None))
    arm(full)
    for _ in range(2):
        assert [row.action for row in runner.run(desk.listed())] == shown
    assert runner.run(desk.do(GetMetrics(WHOLE))).queries == 1


def test_looking_is_an_operation_too(desk: Desk, runner: asyncio.Runner) -> None:
    with rows_of(desk, runner.run) as rows:
        runner.run(desk.do(ListOperations(WHOLE), OPERATOR))
        runner.run(desk.do(GetMetrics(WHOLE), OPERATOR))
    assert [row.action for row in rows] == ["read_operations", "read_operations"]


def test_an_operation_of_another_company_is_not_found(filled: Desk, runner: asyncio.Runner) -> None:
    (row,) = [row for row in runner.run(filled.rows()) if row.scope.space == OTHER and row.action == "query"]
    assert runner.run(filled.do(GetOperation(Scope(space=OTHER), row.id))).id == row.id
    with pytest.raises(NotFound):
        runner.run(filled.do(GetOperation(WHOLE, row.id)))


@pytest.mark.parametrize(
    "actor", [AGENT, Actor(ActorKind.USER, "ana", ACME), Actor(ActorKind.OPERATOR, "rival", OTHER)], ids=str
)
def test_only_operators_of_the_company_look(desk: Desk, runner: asyncio.Runner, actor: Actor) -> None:
    for verb in (ListOperations(WHOLE), GetOperation(WHOLE, "op_1"), GetMetrics(WHOLE)):
        with pytest.raises(AccessDenied):
            runner.run(desk.do(verb, actor))


def test_an_auditor_looks_and_touches_nothing(filled: Desk, runner: asyncio.Runner) -> None:
    auditor = Actor(ActorKind.OPERATOR, "eye", ACME, role=ActorRole.AUDITOR)
    assert runner.run(filled.do(ListOperations(WHOLE), auditor)).items
    assert runner.run(filled.do(GetMetrics(WHOLE), auditor)).queries == 1
    for verb in (Query(BOT, "one"), Capture(BOT, NOTE, text("x"))):
        with pytest.raises(AccessDenied, match=r"has the role auditor and may not .*; ask an admin$"):
            runner.run(filled.do(verb, auditor))


BAD: dict[str, tuple[Any, str]] = {
    "an agent of no name": (OperationFilter(agent=""), "agent"),
    "a binding in capitals": (OperationFilter(binding="A"), "binding"),
    "a type that there is not": (OperationFilter(type="learn"), "type"),  # type: ignore[arg-type]
    "an outcome that there is not": (OperationFilter(outcome="well"), "outcome"),  # type: ignore[arg-type]
    "a time without an offset": (OperationFilter(since=datetime(2026, 1, 1)), "since"),
    "a time that ends before it begins": (
        OperationFilter(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 1, 1, tzinfo=UTC)), "until",
    ),
    "whether it is of memory, in words": (OperationFilter(of_memory="no"), "of_memory"),  # type: ignore[arg-type]
    "no filter": ("all", "filter"),
}  # fmt: skip


@pytest.mark.parametrize("named", BAD)
def test_a_filter_that_is_wrong_is_named(desk: Desk, runner: asyncio.Runner, named: str) -> None:
    wanted, field = BAD[named]
    with pytest.raises(InvalidInput) as raised:
        runner.run(desk.make(lambda: ListOperations(WHOLE, wanted), ListOperations))
    assert raised.value.field == field


def test_metrics_count_hits_corrections_and_what_each_binding_did(filled: Desk, runner: asyncio.Runner) -> None:
    run = runner.run
    kept = run(filled.do(UpsertRecords(BOT, (NewRecord("Four."),), binding_key="default")))
    run(filled.do(CorrectRecord(BOT, kept.result.records[0], "Five.", binding_key="default")))
    run(filled.do(Query(scoped(agent="empty"), "nothing", binding_key="default")))
    found = run(filled.do(GetMetrics(WHOLE)))
    assert (found.queries, found.empty_queries, found.corrections) == (2, 1, 1)
    assert (found.recalls, found.recall_hits) == (1, 1)  # the agent's query and its hit
    assert found.empty_query_rate == 0.5
    counts = {each.binding: (each.succeeded, each.failed) for each in found.bindings}
    assert counts["elsewhere"] == (0, 1)
