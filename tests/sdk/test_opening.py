"""The short way into a runtime: one call opens it, texts are requests, and an empty block says why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blank import blank
from holdfast.domain.lifecycle import Disposition
from holdfast.errors import InvalidCall
from holdfast.sdk import (
    AsyncMemoryRuntime,
    CanonicalTurnDelta,
    MemoryExportRequest,
    MemoryInspectionRequest,
    MemoryProjectionRequest,
    MemoryRecallRequest,
    MemoryReplayRequest,
    MemoryRuntime,
    MemoryScope,
    MemoryTranscriptReplayRequest,
    MemoryWriteRequest,
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillListRequest,
    RuntimeSkillWrite,
)

CHAT = MemoryScope(conversation_id="launch")
TURN = CanonicalTurnDelta("t1", "delivered", ("I live in Porto.",), "Noted.", CHAT)
SKILL = "runtime_skill__ship"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(blank(tmp_path / "host.db"))


def test_both_runtimes_open_in_one_call(path: str) -> None:
    with MemoryRuntime.open(path, subject="ana") as runtime:
        runtime.finalize_turn_and_maintain(TURN)
        assert "Porto" in runtime.project("Where do I live?").system_memory_block

    async def again() -> str:
        async with AsyncMemoryRuntime.open(path, subject="ana") as twin:
            return (await twin.recall("Porto")).query

    assert asyncio.run(again()) == "Porto"
    with pytest.raises(InvalidCall, match="subjet"):
        MemoryRuntime.open(path, subjet="ana")  # type: ignore[call-arg]


TEXTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "recall": ("Porto", MemoryRecallRequest),
    "project": ("Porto", MemoryProjectionRequest),
    "inspect": ("Porto", MemoryInspectionRequest),
    "replay": ("launch", MemoryReplayRequest),
    "export": ("launch", MemoryExportRequest),
    "replay_transcript": ("host_ui", MemoryTranscriptReplayRequest),
    "list_runtime_skills": ("ship", RuntimeSkillListRequest),
    "get_runtime_skill": (SKILL, RuntimeSkillDetailRequest),
    "delete_runtime_skill": (SKILL, RuntimeSkillDeleteRequest),
}


@pytest.mark.parametrize("operation", TEXTS)
def test_a_text_is_the_request_with_its_one_obvious_field(path: str, operation: str) -> None:
    text, request = TEXTS[operation]
    skill = MemoryWriteRequest.procedural(RuntimeSkillWrite("Tag it, then publish it.", title="Ship"))
    answers = []
    with MemoryRuntime.builder().store(path).identity(subject_id="ana").without_worker().open() as runtime:
        runtime.finalize_turn_and_maintain(TURN)
        for given in (text, request(text)):
            runtime.write(skill)
            answer = getattr(runtime, operation)(given).to_dict()
            answers.append({name: value for name, value in answer.items() if name not in DIFFERENT})
    assert answers[0] == answers[1]
    assert answers[0]


# Two calls differ in their times; the events of an inspection have one more.
DIFFERENT = frozenset({"lifecycle_report", "operator_action_report", "snapshot", "document"})


def test_spaces_and_snapshots_move_by_a_text(path: str, tmp_path: Path) -> None:
    file = str(tmp_path / "space.jsonl")
    with MemoryRuntime.open(path, subject="ana") as runtime:
        runtime.finalize_turn_and_maintain(TURN)
        runtime.recover()
        assert runtime.export_space(file).accepted
        document = runtime.export("launch").document
        assert document is not None
    with MemoryRuntime.open(str(blank(tmp_path / "other.db")), subject="ana") as other:
        assert other.import_space(file).accepted
        assert other.import_(document).accepted
        closed = other.close("moved")
        assert closed is not None
        assert closed.reason == "moved"


@pytest.mark.parametrize("operation", ["recall", "project"])
def test_a_runtime_without_an_owner_says_why_it_shows_nothing(
    path: str, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    with MemoryRuntime.open(path, subject="ana") as runtime:
        runtime.finalize_turn_and_maintain(TURN)
    with MemoryRuntime.open(path) as nobody, caplog.at_level(logging.WARNING, "holdfast"):
        for _ in range(2):
            report = getattr(nobody, operation)("Where do I live?")
            assert "names no subject and no agent" in report.reason
            assert "reason=" in repr(report) or operation == "recall"
        assert "names no subject" in (nobody.inspect("Where do I live?").working.reason or "")
    assert [record.message for record in caplog.records] == [report.reason]


def test_what_is_shown_needs_no_reason_and_a_stranger_gets_no_advice(path: str) -> None:
    with MemoryRuntime.open(path, subject="ana") as runtime:
        runtime.finalize_turn_and_maintain(TURN)
        assert runtime.project("Where do I live?").reason is None
        assert runtime.recall("Where do I live?").reason is None
        too_short = runtime.project(MemoryProjectionRequest("Where do I live?", system_max_len=1))
        assert too_short.system_memory_block == ""
        assert too_short.reason is not None
    with MemoryRuntime.open(path, subject="ben") as stranger:
        reason = stranger.project("Where does Ana live?").reason
        assert reason is not None
        assert "subject=" not in reason


def test_without_a_model_a_runtime_learns_by_rules_unless_maintenance_is_switched_off(path: str) -> None:
    opened = MemoryRuntime.builder().store(path).without_worker()
    with opened.identity(subject_id="ana").open() as runtime:
        assert runtime.finalize_turn_and_maintain(TURN).maintenance.reason == "learns_by_rules"
        assert runtime.recover().finished == {"extract": 1}
        assert any(hit.kind == "memory" and "Porto" in hit.text for hit in runtime.recall("Porto").working.hits)
    with opened.identity(subject_id="ben").switch_off("maintain").open() as quiet:
        maintenance = quiet.finalize_turn_and_maintain(TURN).maintenance
        assert maintenance.disposition is Disposition.REJECT
        assert maintenance.job_id is None
