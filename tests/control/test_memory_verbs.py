"""Memory through the control plane: with any provider, one call leaves one row, which names the binding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OTHER, WHOLE, Desk, rows_of, text
from misbehaving import handle, snippet, soon

from holdfast.control.memory import (
    Capture,
    CorrectRecord,
    ExplainQuery,
    ForgetProviderRecords,
    GetRecord,
    ListRecords,
    Query,
    ReadProviderProfile,
    UpsertRecords,
)
from holdfast.domain.access import Actor, ActorKind, ActorRole
from holdfast.domain.contract import (
    CaptureMode,
    CaptureResult,
    ContextBundle,
    HookContext,
    HookKind,
    Intent,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import (
    AccessDenied,
    Conflict,
    IdempotencyConflict,
    InvalidInput,
    InvalidScope,
    InvalidText,
    NotFound,
)
from holdfast.testing.full_repr import full_repr

COMMENT = SourceRef(SourceKind.ISSUE_COMMENT, ACME, issue_id="i1", comment_id="c1")
HOOK = HookContext(HookKind.ISSUE_COMMENT_CAPTURE, "h1", datetime(2026, 1, 1, tzinfo=UTC), "bot", "r1")


def test_a_new_company_is_served_by_our_own_store(desk: Desk, runner: asyncio.Runner) -> None:
    with rows_of(desk, runner.run) as rows:
        captured = runner.run(desk.do(Capture(BOT, NOTE, text("The deploy key lives in the vault.")), AGENT))
        found = runner.run(desk.do(Query(BOT, "deploy key"), AGENT))
    assert (captured.binding, captured.provider) == ("default", "local")
    assert [each.text for each in found.result.snippets] == ["The deploy key lives in the vault."]
    assert [(row.action, row.outcome, row.record_count) for row in rows] == [
        ("capture", Outcome.SUCCEEDED, 1),
        ("query", Outcome.SUCCEEDED, 1),
    ]
    assert [row.id for row in rows] == [captured.operation_id, found.operation_id]


def test_a_row_says_what_a_call_was_for_and_what_it_named_and_holds_no_text(desk: Desk, runner: asyncio.Runner) -> None:
    scope = Scope(space=ACME, agent="bot", project="p1", issue="i1", run="r1")
    with rows_of(desk, runner.run) as rows:
        captured = runner.run(desk.do(Capture(scope, COMMENT, text("The cat sat."), hook=HOOK), AGENT))
        found = runner.run(desk.do(Query(scope, "cat", hook=HOOK, intent=Intent.AGENT_PREAMBLE), AGENT))
    wrote, read = rows
    assert (wrote.scope, str(wrote.actor)) == (scope, "agent:bot")
    assert wrote.attribution is not None
    assert wrote.attribution.source == COMMENT
    assert wrote.attribution.hook == HOOK
    assert (wrote.attribution.binding, wrote.attribution.provider) == ("default", "local")
    assert wrote.attribution.handles == tuple(each.record_id for each in captured.result.records)
    assert read.attribution is not None
    assert read.attribution.hook == HOOK
    assert read.attribution.handles == tuple(each.handle.record_id for each in found.result.snippets)
    assert "cat" not in full_repr(rows)
    assert [row.id for row in runner.run(desk.listed(source_kind=SourceKind.ISSUE_COMMENT))] == [wrote.id]
    assert [row.id for row in runner.run(desk.listed(issue="i1", agent="bot", binding="default"))] == [
        read.id,
        wrote.id,
    ]


def test_every_verb_is_served_by_our_own_store(desk: Desk, runner: asyncio.Runner) -> None:
    curator = Actor(ActorKind.AGENT, "bot", ACME, role=ActorRole.CURATOR)
    with rows_of(desk, runner.run) as rows:
        kept = runner.run(desk.do(UpsertRecords(BOT, (NewRecord("The cat is grey.", "A cat"),)), curator))
        (record,) = kept.result.records
        assert runner.run(desk.do(GetRecord(BOT, record), curator)).result.text == "The cat is grey."
        assert len(runner.run(desk.do(ListRecords(BOT), curator)).result.items) == 1
        assert "grey" in (runner.run(desk.do(ReadProviderProfile(BOT), curator)).result.summary or "")
        assert runner.run(desk.do(ExplainQuery(BOT, "cat"), curator)).result.trace["candidates"] == 1
        corrected = runner.run(desk.do(CorrectRecord(BOT, record, "The cat is black.", "It was dark."), curator))
        gone = runner.run(
            desk.do(ForgetProviderRecords(BOT, (corrected.result.record, RecordHandle("local", "mem_x"))), curator)
        )
    assert (len(gone.result.forgotten), len(gone.result.missing)) == (1, 1)
    with pytest.raises(NotFound):
        runner.run(desk.do(GetRecord(BOT, record), curator))
    assert [row.action for row in rows] == [
        "record_upsert", "get", "list", "profile", "explain", "correct", "forget",
    ]  # fmt: skip
    assert {(row.outcome, row.attribution and row.attribution.binding) for row in rows} == {("succeeded", "default")}


BAD: dict[str, tuple[Callable[[], Any], Any, type[InvalidInput], str]] = {
    "a query that is too long": (lambda: Query(WHOLE, "x" * 4_001), Query, InvalidText, "query"),
    "a query of nothing": (lambda: Query(WHOLE, "  "), Query, InvalidText, "query"),
    "no places": (lambda: Query(WHOLE, "cat", 0), Query, InvalidInput, "top_k"),
    "too many places": (lambda: Query(WHOLE, "cat", 26), Query, InvalidInput, "top_k"),
    "an intent that there is not": (lambda: Query(WHOLE, "cat", intent="x"), Query, InvalidInput, "intent"),  # type: ignore[arg-type]
    "a filter that is a list": (
        lambda: Query(WHOLE, "cat", metadata_filter=["x"]), Query, InvalidInput, "metadata_filter",  # type: ignore[arg-type]
    ),
    "a filter by an object": (
        lambda: Query(WHOLE, "cat", metadata_filter={"x": {}}), Query, InvalidInput, "metadata_filter['x']",
    ),
    "a binding's key in capitals": (lambda: Query(WHOLE, "cat", binding_key="A"), Query, InvalidInput, "binding_key"),
    "content that is too long": (
        lambda: Capture(WHOLE, NOTE, text("x" * 20_001)), Capture, InvalidText, "payload.text",
    ),
    "an object that is too large": (
        lambda: Capture(WHOLE, NOTE, SourcePayload(object={"x": "y" * 100_000})),
        Capture, InvalidText, "payload.object",
    ),
    "an object that is no JSON": (
        lambda: Capture(WHOLE, NOTE, SourcePayload(object={"x": object()})), Capture, InvalidInput, "payload.object",
    ),
    "content of nothing": (lambda: Capture(WHOLE, NOTE, SourcePayload()), Capture, InvalidInput, "payload"),
    "a source of another company": (
        lambda: Capture(WHOLE, SourceRef(SourceKind.RUN, OTHER), text("x")), Capture, InvalidScope, "source.space",
    ),
    "no source": (lambda: Capture(WHOLE, None, text("x")), Capture, InvalidInput, "source"),  # type: ignore[arg-type]
    "a source of no kind": (
        lambda: Capture(WHOLE, SourceRef("tweet", ACME), text("x")), Capture, InvalidInput, "source.kind",  # type: ignore[arg-type]
    ),
    "a hook without an id": (
        lambda: Capture(WHOLE, NOTE, text("x"), hook=replace(HOOK, hook_id="")), Capture, InvalidText, "hook.hook_id",
    ),
    "a hook at no moment": (
        lambda: Capture(WHOLE, NOTE, text("x"), hook=replace(HOOK, triggered_at=datetime(2026, 1, 1))),
        Capture, InvalidInput, "hook.triggered_at",
    ),
    "metadata of megabytes": (
        lambda: Capture(WHOLE, NOTE, text("x"), metadata={"x": "y" * 70_000}), Capture, InvalidText, "metadata",
    ),
    "a mode that there is not": (lambda: Capture(WHOLE, NOTE, text("x"), mode="all"), Capture, InvalidInput, "mode"),  # type: ignore[arg-type]
    "no records": (lambda: UpsertRecords(WHOLE, ()), UpsertRecords, InvalidInput, "records"),
    "too many records": (
        lambda: UpsertRecords(WHOLE, (NewRecord("x"),) * 101), UpsertRecords, InvalidInput, "records",
    ),
    "a summary that is too long": (
        lambda: UpsertRecords(WHOLE, (NewRecord("x", "y" * 2_001),)), UpsertRecords, InvalidText, "records[0].summary",
    ),
    "a record that is too long": (
        lambda: UpsertRecords(WHOLE, (NewRecord("x"), NewRecord("y" * 20_001))),
        UpsertRecords, InvalidText, "records[1].text",
    ),
    "too many handles": (
        lambda: ForgetProviderRecords(WHOLE, (handle(),) * 101),
        ForgetProviderRecords,
        InvalidInput,
        "handles",
    ),
    "no handles": (lambda: ForgetProviderRecords(WHOLE, ()), ForgetProviderRecords, InvalidInput, "handles"),
    "a handle that is a text": (lambda: GetRecord(WHOLE, "r1"), GetRecord, InvalidInput, "handle"),  # type: ignore[arg-type]
    "too long a page": (lambda: ListRecords(WHOLE, limit=201), ListRecords, InvalidInput, "limit"),
    "a cursor of megabytes": (lambda: ListRecords(WHOLE, cursor="x" * 10_000), ListRecords, InvalidInput, "cursor"),
    "a correction that is too long": (
        lambda: CorrectRecord(WHOLE, handle(), "x" * 20_001), CorrectRecord, InvalidText, "text",
    ),
    "all companies at once": (lambda: Query(Scope(space=EVERYWHERE), "cat"), Query, InvalidScope, "space"),
}  # fmt: skip


@pytest.mark.parametrize("named", BAD)
def test_what_is_wrong_is_named_and_nobody_is_asked(desk: Desk, runner: asyncio.Runner, named: str) -> None:
    runner.run(desk.bind_outside())
    make, verb, kind, field = BAD[named]
    with rows_of(desk, runner.run) as rows, pytest.raises(kind) as raised:
        runner.run(desk.make(make, verb))
    assert raised.value.field == field
    assert [(row.action, row.outcome, row.error_code) for row in rows] == [
        (verb.action, Outcome.REFUSED, raised.value.code)
    ]
    assert not desk.hostile.asked


STRANGERS = {
    "another agent": (AGENT, Scope(space=ACME, agent="spy")),
    "a subject that is not mounted": (AGENT, Scope(space=ACME, agent="bot", subject="eve")),
    "another company": (AGENT, Scope(space=OTHER, agent="bot")),
    "a whole company": (AGENT, WHOLE),
    "another user": (Actor(ActorKind.USER, "ana", ACME), Scope(space=ACME, subject="eve")),
}


@pytest.mark.parametrize("named", STRANGERS)
def test_whoever_asks_for_another_scope_is_refused_with_a_row(desk: Desk, runner: asyncio.Runner, named: str) -> None:
    runner.run(desk.bind_outside())
    actor, scope = STRANGERS[named]
    # A caller leaves nothing in another company, not even the row of its refusal.
    told = scope if scope.space == ACME else WHOLE
    source = replace(NOTE, space=scope.space)
    for verb in (
        Query(scope, "cat"),
        Capture(scope, source, text("x")),
        ListRecords(scope),
        GetRecord(scope, handle()),
    ):
        with rows_of(desk, runner.run) as rows, pytest.raises(AccessDenied):
            runner.run(desk.do(verb, actor))
        assert [(row.action, row.outcome, row.error_code, row.scope) for row in rows] == [
            (verb.action, Outcome.REFUSED, "access_denied", told)
        ]
    assert not desk.hostile.asked


def test_a_role_that_only_reads_captures_nothing(desk: Desk, runner: asyncio.Runner) -> None:
    reader = Actor(ActorKind.AGENT, "bot", ACME, role=ActorRole.READER)
    member = Actor(ActorKind.AGENT, "bot", ACME, role=ActorRole.MEMBER)
    with pytest.raises(AccessDenied, match="reader"):
        runner.run(desk.do(Capture(BOT, NOTE, text("x")), reader))
    runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat.")), member))
    (found,) = runner.run(desk.do(Query(BOT, "cat"), reader)).result.snippets
    for verb in (ForgetProviderRecords(BOT, (found.handle,)), CorrectRecord(BOT, found.handle, "x")):
        with pytest.raises(AccessDenied, match="member"):
            runner.run(desk.do(verb, member))


def test_a_handle_of_another_provider_is_not_found_here(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    ours = RecordHandle("local", "mem_1")
    for verb in (
        GetRecord(WHOLE, ours),
        ForgetProviderRecords(WHOLE, (handle(), ours)),
        CorrectRecord(WHOLE, ours, "x"),
    ):
        with pytest.raises(NotFound, match="`elsewhere`"):
            runner.run(desk.do(verb))
    assert not desk.hostile.asked


@pytest.mark.parametrize("served_by", ["elsewhere", "default"])
def test_a_record_that_is_not_there_is_refused_in_the_trail_too(
    desk: Desk, runner: asyncio.Runner, served_by: str
) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.does["get"] = soon(None)
    wanted = handle() if served_by == "elsewhere" else RecordHandle("local", "mem_1")
    with rows_of(desk, runner.run) as rows, pytest.raises(NotFound):
        runner.run(desk.do(GetRecord(WHOLE, wanted, binding_key=served_by)))
    assert [(row.outcome, row.error_code, row.record_count) for row in rows] == [(Outcome.REFUSED, "not_found", 0)]


def test_a_key_of_a_binding_chooses_it_for_one_call(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    runner.run(desk.do(Capture(WHOLE, NOTE, text("The cat sat."), binding_key="default")))
    assert runner.run(desk.do(Query(WHOLE, "cat", binding_key="default"))).binding == "default"
    assert runner.run(desk.do(Query(WHOLE, "cat"))).binding == "elsewhere"


def test_what_a_provider_is_given_is_the_scope_the_source_and_the_hook(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    scope = Scope(space=ACME, agent="bot", run="r1")
    payload = SourcePayload("The cat sat.", "text/plain", {"a": 1}, {"deep": [1, 2]})
    runner.run(desk.do(Capture(scope, COMMENT, payload, hook=HOOK, mode=CaptureMode.RECORD, metadata={"b": 2}), AGENT))
    ((_, (request,)),) = desk.hostile.asked
    assert (request.binding_key, request.scope, request.source, request.payload) == (
        "elsewhere", scope, COMMENT, payload,
    )  # fmt: skip
    assert (request.hook, request.mode, dict(request.metadata)) == (HOOK, CaptureMode.RECORD, {"b": 2})
    assert request.idempotency_id == "h1"


@pytest.mark.parametrize("outside", [False, True])
def test_made_again_with_its_key_a_capture_is_kept_once(desk: Desk, runner: asyncio.Runner, outside: bool) -> None:
    if outside:
        runner.run(desk.bind_outside())
    verb = Capture(BOT, NOTE, text("The cat sat."), idempotency_key="k")
    first, second = (runner.run(desk.do(verb, AGENT)) for _ in range(2))
    assert first.result.records == second.result.records
    assert first.operation_id != second.operation_id
    rows = runner.run(desk.listed(action=Capture.action))
    assert [(row.outcome, row.record_count) for row in rows] == [(Outcome.SUCCEEDED, 0), (Outcome.SUCCEEDED, 1)]
    assert len(desk.hostile.asked) == int(outside)
    if not outside:
        assert len(runner.run(desk.do(Query(BOT, "cat"), AGENT)).result.snippets) == 1
    with pytest.raises(IdempotencyConflict if outside else Conflict):
        runner.run(desk.do(replace(verb, payload=text("The dog ran.")), AGENT))


def test_a_correction_made_again_with_its_key_is_made_once(desk: Desk, runner: asyncio.Runner) -> None:
    kept = runner.run(desk.do(UpsertRecords(WHOLE, (NewRecord("The cat is grey."),))))
    verb = CorrectRecord(WHOLE, kept.result.records[0], "The cat is black.", idempotency_key="k")
    first, second = (runner.run(desk.do(verb)) for _ in range(2))
    assert first.result == second.result
    rows = runner.run(desk.listed(action=CorrectRecord.action))
    assert [row.record_count for row in rows] == [0, 1]


def test_a_metered_call_costs_what_its_provider_says_and_one_on_the_runs_account_nothing(
    desk: Desk, runner: asyncio.Runner
) -> None:
    from decimal import Decimal

    from holdfast.domain.access import storewide_grant
    from holdfast.domain.contract import AttributionMode, BillingType, Usage

    runner.run(desk.bind_outside())
    metered = Usage("hostile", billing_type=BillingType.METERED_API, cost_cents=Decimal("0.5"), input_tokens=7)
    included = Usage("hostile", attribution_mode=AttributionMode.INCLUDED_IN_RUN, cost_cents=Decimal(9))
    desk.hostile.does["query"] = soon(ContextBundle((snippet(),), usage=(metered,)))
    desk.hostile.does["capture"] = soon(CaptureResult((handle(),), usage=(included,)))
    with rows_of(desk, runner.run) as rows:
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
        runner.run(desk.do(Capture(BOT, NOTE, text("x")), AGENT))
    store = desk.engine._core.store
    (event,) = runner.run(store.read(storewide_grant(), lambda reader: reader.costs.page(None, 10)))
    assert (event.operation_id, event.binding, event.amount_micros) == (rows[0].id, "elsewhere", 5_000)
    assert event.scope == BOT
    assert rows[0].attribution is not None
    assert rows[0].attribution.cost_events == (event.id,)
    assert rows[0].attribution.mode is AttributionMode.BILLED_DIRECTLY
    assert rows[1].attribution is not None
    assert rows[1].attribution.mode is AttributionMode.INCLUDED_IN_RUN
