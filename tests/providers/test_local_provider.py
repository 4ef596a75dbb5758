"""Behaviour specific to `local`: how the engine stores captures and records, and the scope of a query."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from beneath import OwnLocal, Through, opened_local

from holdfast.domain.access import LOCAL_OPERATOR, Actor, ActorKind, storewide_grant
from holdfast.domain.contract import (
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ExtractionStatus,
    HookContext,
    HookKind,
    ListRequest,
    NewRecord,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.domain.ids import JobId
from holdfast.domain.memory import MemoryRecord, Plane, Trust
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.errors import Conflict, DuplicateId, IdempotencyConflict, InvalidConfiguration, InvalidInput, NotFound
from holdfast.providers.local import LocalAdapter, LocalConfiguration, LocalProvider
from holdfast.runtime.lookup import Get
from holdfast.runtime.remember import Remember
from holdfast.runtime.store_maintenance import Drain

ANA = Scope("acme", subject="ana")
BOT = Scope("acme", agent="bot")
NOTE = SourceRef(SourceKind.MANUAL_NOTE, "acme")
COMMENT = SourceRef(SourceKind.ISSUE_COMMENT, "acme", issue_id="ISS-1", comment_id="c-9")
HOOK = HookContext(HookKind.ISSUE_COMMENT_CAPTURE, "hook-1", datetime(2026, 3, 1, tzinfo=UTC), "bot", "run-1")


@pytest.fixture
def local(tmp_path: Path, runner: asyncio.Runner) -> Iterator[OwnLocal]:
    opened = runner.run(opened_local(str(tmp_path / "memory.db")))
    yield opened
    runner.run(opened.close())


def captured(local: OwnLocal, runner: asyncio.Runner, text: str, scope: Scope = BOT, **more: Any) -> CaptureResult:
    given = {"source": NOTE, "payload": SourcePayload(text=text), **more}
    return runner.run(local.capture(CaptureRequest("default", scope, **given)))


def stored(local: OwnLocal, runner: asyncio.Runner, handle: RecordHandle, scope: Scope = BOT) -> Message | MemoryRecord:
    return runner.run(Through(local.engine).run(Get(Scope(scope.space), handle.record_id)))


@pytest.mark.parametrize(
    ("parts", "conversation"),
    [
        ({"conversation": "standup", "run": "r1"}, "standup"),
        ({"run": "r1", "issue": "ISS-1"}, "run:r1"),
        ({"issue": "ISS-1"}, "issue:ISS-1"),
        ({}, "default"),
    ],
)
def test_a_capture_is_said_in_the_conversation_of_its_scope(
    local: OwnLocal, runner: asyncio.Runner, parts: dict[str, str], conversation: str
) -> None:
    done = captured(local, runner, "It was said.", Scope("acme", agent="bot", **parts))
    found = stored(local, runner, done.records[0])
    assert isinstance(found, Message)
    assert found.scope == Scope("acme", agent="bot", **{**parts, "conversation": conversation})


def test_what_a_run_says_its_agent_said(local: OwnLocal, runner: asyncio.Runner) -> None:
    run = SourceRef(SourceKind.RUN, "acme", run_id="run-1")
    done = captured(local, runner, "Deployed.", source=run, hook=HOOK)
    found = stored(local, runner, done.records[0])
    assert isinstance(found, Message)
    assert (found.sender, found.role) == ("bot", "assistant")
    said = captured(local, runner, "Nice.", source=COMMENT, payload=SourcePayload("Nice.", metadata={"author": "kim"}))
    comment = stored(local, runner, said.records[0])
    assert isinstance(comment, Message)
    assert (comment.sender, comment.role) == ("kim", "user")


def test_extraction_is_queued_with_what_caused_it_and_its_facts_are_found(
    local: OwnLocal, runner: asyncio.Runner
) -> None:
    done = captured(local, runner, "I live in Porto.", ANA, source=COMMENT, hook=HOOK, idempotency_id="hook-1")
    (job,) = done.jobs
    assert (job.status, job.hook_kind, job.source) == (
        ExtractionStatus.QUEUED,
        HookKind.ISSUE_COMMENT_CAPTURE,
        COMMENT,
    )
    store = local.engine._core.store
    kept = runner.run(store.read(storewide_grant(), lambda reader: reader.jobs.find(job.provider_job_id)))
    assert kept is not None
    assert kept.cause is not None
    assert (kept.cause.operation_id, kept.cause.binding) == ("op_of_the_test", "default")
    assert (kept.cause.hook, kept.cause.source) == (HOOK, COMMENT)
    runner.run(Through(local.engine).run(Drain(Scope("acme"))))
    (seen,) = runner.run(local.list_extraction_jobs(replace(ANA, run="run-7", issue="ISS-1"), None)).items
    assert (seen.provider_job_id, seen.status, seen.source) == (
        job.provider_job_id,
        ExtractionStatus.SUCCEEDED,
        COMMENT,
    )
    assert seen.finished_at is not None
    found = runner.run(local.query(QueryRequest("default", ANA, "Where does ana live?"))).snippets
    assert [snippet for snippet in found if snippet.handle.record_id.startswith("mem_")]


def test_a_job_that_was_cancelled_is_tried_again_once(local: OwnLocal, runner: asyncio.Runner) -> None:
    (job,) = captured(local, runner, "I live in Porto.", ANA, source=COMMENT).jobs
    with pytest.raises(Conflict):
        runner.run(local.retry_extraction_job(job.provider_job_id, ANA))
    core = local.engine._core
    now = core.clock.now()
    runner.run(core.store.write(storewide_grant(), lambda t: t.jobs.cancel(JobId(job.provider_job_id), now)))
    with pytest.raises(NotFound):
        runner.run(local.retry_extraction_job(job.provider_job_id, Scope("acme", subject="bo")))
    (again,) = runner.run(local.retry_extraction_job(job.provider_job_id, ANA)).jobs
    assert again.provider_job_id != job.provider_job_id
    assert (again.status, again.source) == (ExtractionStatus.QUEUED, COMMENT)
    with pytest.raises(Conflict):
        runner.run(local.retry_extraction_job(job.provider_job_id, ANA))


def test_the_same_comment_is_there_once_and_an_edited_one_anew(local: OwnLocal, runner: asyncio.Runner) -> None:
    first = captured(local, runner, "Use port 80.", source=COMMENT)
    assert captured(local, runner, "Use port 80.", source=COMMENT).records == first.records
    assert captured(local, runner, "Use port 80.", source=COMMENT).jobs == ()
    assert captured(local, runner, "Use port 8080.", source=COMMENT).records != first.records
    assert captured(local, runner, "Just so.").records != captured(local, runner, "Just so.").records


@pytest.mark.parametrize(
    ("mode", "error"), [(CaptureMode.RESIDUE, DuplicateId), (CaptureMode.RECORD, IdempotencyConflict)]
)
def test_an_id_that_was_used_for_another_text_is_a_conflict(
    local: OwnLocal, runner: asyncio.Runner, mode: CaptureMode, error: type[Conflict]
) -> None:
    captured(local, runner, "One thing.", mode=mode, idempotency_id="id-1")
    with pytest.raises(error):
        captured(local, runner, "Another thing.", mode=mode, idempotency_id="id-1")


def test_what_was_forgotten_does_not_come_back_when_it_is_delivered_again(
    local: OwnLocal, runner: asyncio.Runner
) -> None:
    done = captured(local, runner, "My key is 1234.", idempotency_id="hook-1")
    runner.run(local.forget(done.records, BOT))
    again = captured(local, runner, "My key is 1234.", idempotency_id="hook-1")
    assert (again.records, again.jobs) == ((), ())
    assert runner.run(local.list(ListRequest("default", BOT))).items == ()


def test_a_record_of_a_key_keeps_its_handle_and_its_history(local: OwnLocal, runner: asyncio.Runner) -> None:
    def put(text: str) -> RecordHandle:
        request = RecordWriteRequest("default", BOT, (NewRecord(text, metadata={"key": "port"}),))
        (handle,) = runner.run(local.upsert_records(request)).records
        return handle

    assert put("Port 80.") == put("Port 80.") == put("Port 8080.")
    found = stored(local, runner, put("Port 8080."))
    assert isinstance(found, MemoryRecord)
    assert (found.text, found.revision) == ("Port 8080.", 2)


def test_what_comes_from_outside_is_trusted_less(local: OwnLocal, runner: asyncio.Runner) -> None:
    page = SourceRef(SourceKind.EXTERNAL_DOCUMENT, "acme", external_ref="https://example.org/page")
    for source, trust in ((page, Trust.LOW), (COMMENT, Trust.STATED), (None, Trust.STATED)):
        request = RecordWriteRequest("default", BOT, (NewRecord("A fact."),), source)
        found = stored(local, runner, runner.run(local.upsert_records(request)).records[0])
        assert isinstance(found, MemoryRecord)
        assert found.trust is trust
        assert (found.source is not None) == (source is page)


def test_what_is_noted_comes_back_whole(local: OwnLocal, runner: asyncio.Runner) -> None:
    noted = {"a": "text", "b": 1, "c": [1, {"d": None}], "empty": "", "é": True}
    record = NewRecord("A fact.", "short", noted)
    done = runner.run(local.upsert_records(RecordWriteRequest("default", BOT, (record,), COMMENT)))
    found = runner.run(local.get(done.records[0], BOT))
    assert found is not None
    assert (found.metadata, found.summary, found.source, found.scope) == (noted, "short", COMMENT, BOT)


@pytest.mark.parametrize(
    "metadata",
    [
        {"holdfast.source": "x"},
        {"x": object()},
        {"x": float("nan")},
        {"x": ["y" * 5_000]},
        {"x": "y\x00"},
        {f"n{number}": "x" for number in range(62)},
    ],
)
def test_what_cannot_be_noted_is_refused_and_nothing_written(
    local: OwnLocal, runner: asyncio.Runner, metadata: dict[str, Any]
) -> None:
    request = RecordWriteRequest("default", BOT, (NewRecord("Fine."), NewRecord("Not fine.", metadata=metadata)))
    with pytest.raises(InvalidInput):
        runner.run(local.upsert_records(request))
    assert runner.run(local.list(ListRequest("default", BOT))).items == ()


def test_a_list_goes_by_every_part_and_a_query_by_what_is_configured(local: OwnLocal, runner: asyncio.Runner) -> None:
    one = Scope("acme", agent="bot", run="r1", project="p1")
    two = Scope("acme", agent="bot", run="r2", project="p2")
    runner.run(local.upsert_records(RecordWriteRequest("default", one, (NewRecord("The port is 80."),))))
    assert runner.run(local.list(ListRequest("default", two))).items == ()
    asked = QueryRequest("default", two, "Which port?")
    assert runner.run(local.query(asked)).snippets
    for filter_by, seen in ((("run",), 0), (("project", "namespace"), 0), (("issue",), 1), ((), 1)):
        adapter = LocalAdapter(LocalConfiguration(filter_by=filter_by), Through(local.engine))
        assert len(runner.run(adapter.query(asked)).snippets) == seen, filter_by


def test_a_filter_that_is_none_is_refused_by_its_place() -> None:
    assert LocalProvider().check({"filter_by": ["run", "issue"]}) == {"filter_by": ["run", "issue"]}
    for wrong in (["agent"], "run", [1], None):
        with pytest.raises(InvalidConfiguration) as told:
            LocalProvider().check({"filter_by": wrong})
        assert told.value.field.startswith("config.filter_by")


def test_what_is_guarded_or_in_quarantine_is_not_for_providers(local: OwnLocal, runner: asyncio.Runner) -> None:
    through = Through(local.engine)
    hidden = [
        runner.run(through.run(Remember(BOT, "A private fact.", plane=Plane.PRIVATE))),
        runner.run(through.run(Remember(BOT, "A doubtful fact.", quarantined=True))),
    ]
    shown = runner.run(through.run(Remember(BOT, "A plain fact.")))
    for each in hidden:
        assert runner.run(local.get(RecordHandle("local", each.memory.id), BOT)) is None
    assert runner.run(local.get(RecordHandle("local", shown.memory.id), BOT)) is not None
    assert [each.text for each in runner.run(local.list(ListRequest("default", BOT))).items] == ["A plain fact."]
    assert [each.text for each in runner.run(local.query(QueryRequest("default", BOT, "fact"))).snippets] == [
        "A plain fact."
    ]
    assert runner.run(local.profile(BOT)).summary == "- A plain fact."


def test_an_agent_reads_what_is_shared_and_forgets_only_its_own(local: OwnLocal, runner: asyncio.Runner) -> None:
    shared = RecordWriteRequest("default", Scope("acme"), (NewRecord("The office is in Porto."),))
    (handle,) = runner.run(local.upsert_records(shared)).records
    agent = LocalAdapter(LocalConfiguration(), Through(local.engine, Actor(ActorKind.AGENT, "bot", "acme")))
    assert runner.run(agent.get(handle, BOT)) is not None
    assert runner.run(agent.forget([handle], BOT)).missing == (handle,)
    operator = LocalAdapter(LocalConfiguration(), Through(local.engine, LOCAL_OPERATOR))
    assert runner.run(operator.forget([handle], Scope("acme"))).forgotten == (handle,)


def test_a_filter_that_few_meet_gives_short_pages_and_an_end(local: OwnLocal, runner: asyncio.Runner) -> None:
    for start in range(0, 600, 100):
        records = tuple(
            NewRecord(f"Fact {start + number}.", metadata={"odd": (start + number) % 300 == 7}) for number in range(100)
        )
        runner.run(local.upsert_records(RecordWriteRequest("default", BOT, records)))
    found, cursor = [], None
    for _ in range(10):
        page = runner.run(local.list(ListRequest("default", BOT, cursor, 1, {"odd": True})))
        found += [snippet.text for snippet in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == ["Fact 307.", "Fact 7."]
