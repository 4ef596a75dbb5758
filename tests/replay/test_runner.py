"""The runner: what it refuses, what it compares, and that a run depends on nothing but its fixture."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blank import blank
from holdfast.domain.redaction import AUTHORITIES, REFERENCES, STATES, RedactionReason, RefShown
from holdfast.domain.transcript_turns import TranscriptState, View
from holdfast.errors import CapabilityUnavailable, InvalidFixture, InvalidInput
from holdfast.sdk import (
    AsyncMemoryRuntime,
    MemorySpaceExportRequest,
    MemoryTranscriptCommitRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.testing import ScriptedPrompts
from holdfast.testing.replay import (
    HARNESS,
    ReplayExpectation,
    ReplayFixture,
    compare_stores,
    record_expectation,
    run_fixture,
    run_harness,
)
from holdfast.testing.replay.fixture import COMPACT_OPERATIONS
from holdfast.testing.replay.operations import CHAT
from holdfast.testing.replay.runner import AGENT, OWNER

ESP = "esp-embedded-sdk"
TURN = {"operation": "commit_transcript", "turn": {"turn_id": "t1", "messages": [{"text": "I play the cello."}]}}
RECALL = {"operation": "recall", "query": "What do I play?"}
FIXTURE = ReplayFixture("cello", (TURN, RECALL), embedder="fake")


def document(**changes: Any) -> str:
    return json.dumps(json.loads(FIXTURE.to_text()) | changes)


def stages(fixture: ReplayFixture, *place: str, **options: Any) -> list[str]:
    return [failure.stage for failure in run_fixture(fixture, *place, **options).failures]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (document(version=2), "version"),
        (document(version=True), "version"),
        (document(format="holdfast_space"), "format"),
        (document(surprise=1), "file"),
        (document(profile="mainframe"), "profile"),
        (document(fixture_id="../x"), "fixture_id"),
        (document(operations=[{"operation": "explode"}]), "operations[0].operation"),
        (document(operations=[TURN, {"operation": "recall"}]), "operations[1].query"),
        (document(operations=[{**RECALL, "limt": 3}]), "operations[0]"),
        (document(operations=[{"operation": "wait", "seconds": -1}]), "operations[0].seconds"),
        ("[]", "file"),
        ("{", "file"),
    ],
)
def test_a_fixture_that_does_not_fit_is_refused_by_its_field_before_anything_runs(
    text: str, field: str, tmp_path: Path
) -> None:
    place = tmp_path / "memory.db"
    with pytest.raises(InvalidFixture) as refused:
        run_fixture(ReplayFixture.from_json(text), str(place))
    assert refused.value.field == field
    assert not place.exists()


def test_a_fixture_is_the_same_after_writing_and_reading() -> None:
    recorded = record_expectation(FIXTURE)
    assert ReplayFixture.from_json(recorded.to_text()) == recorded


def test_a_run_depends_on_neither_the_environment_nor_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record_expectation(FIXTURE)
    for name, value in {"HOLDFAST_MODEL": "gpt", "HOLDFAST_EMBEDDER": "none", "HOLDFAST_BUSY_SECONDS": "x"}.items():
        monkeypatch.setenv(name, value)
    compared = compare_stores(recorded, [":memory:", str(blank(tmp_path / "memory.db"))])
    assert compared.passed
    assert [run.expectation() for run in compared.runs] == [recorded.expected] * 2
    assert "HOLDFAST_MODEL" in os.environ


def test_the_number_of_ids_made_in_between_does_not_matter() -> None:
    """A fingerprint numbers ids in their order, so that two ids of one record stay one."""
    once, other = (record_expectation(replace(FIXTURE, fixture_id=name)).expected for name in ("a", "b"))
    assert once == other


@pytest.mark.parametrize(
    ("expected", "stage"),
    [
        (ReplayExpectation(state_fingerprint="0"), "state_fingerprint"),
        (ReplayExpectation(event_fingerprint="0"), "event_fingerprint"),
        (ReplayExpectation(lifecycle_operations=("write",)), "lifecycle_operation"),
        (ReplayExpectation(min_reports=3), "report_count"),
        (ReplayExpectation(required_report_fragments=("hit 1: message user: I play the tuba.",)), "report_fragment"),
    ],
)
def test_each_part_of_an_expectation_is_checked(expected: ReplayExpectation, stage: str) -> None:
    assert stages(FIXTURE) == []
    assert stages(FIXTURE.expecting(expected)) == [stage]


def test_the_first_error_stops_the_run() -> None:
    wrong = {"operation": "recall", "query": " "}
    report = run_fixture(replace(FIXTURE, operations=(TURN, wrong, RECALL)))
    assert (report.operations_run, [failure.stage for failure in report.failures]) == (1, ["recall"])
    assert "operation 2" in report.failures[0].reason


def test_a_store_that_does_not_fit_is_named_and_not_used(tmp_path: Path) -> None:
    place = str(blank(tmp_path / "memory.db"))
    assert stages(FIXTURE, profile=ESP) == ["fixture_profile"]
    assert stages(FIXTURE, place) == []
    assert stages(FIXTURE, place) == ["store"]
    assert stages(replace(FIXTURE, fixture_id="other"), place) == []
    assert stages(replace(FIXTURE, fixture_id="third", profile="server-linux-memory-gateway"), place) == [
        "fixture_profile"
    ]


async def _export_cello() -> list[dict[str, Any]]:
    builder = AsyncMemoryRuntime.builder().store(":memory:").embedder("fake").identity(subject_id=OWNER, agent_id=AGENT)
    async with builder.without_worker().open() as runtime:
        turn = TranscriptTurnInput("t1", (TurnMessage("I play the cello."),), CHAT)
        await runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))
        report = await runtime.export_space(MemorySpaceExportRequest(include_private=True))
    assert report.content is not None
    return [json.loads(line) for line in report.content.splitlines()]


def test_a_snapshot_is_the_state_before_the_first_operation() -> None:
    lines = asyncio.run(_export_cello())
    fixture = replace(FIXTURE, operations=(RECALL,), store_snapshot=tuple(lines))
    recorded = ReplayFixture.from_json(record_expectation(fixture).to_text())
    assert "1 recall: hit 1: message user: I play the cello." in recorded.expected.required_report_fragments
    assert stages(recorded) == []
    damaged = (*lines[:-1], {**lines[-1], "sha256": "0" * 64})
    assert stages(replace(fixture, store_snapshot=damaged)) == ["store_snapshot"]


def test_long_fixtures_need_the_full_suite_and_devices_have_no_harness() -> None:
    long = replace(FIXTURE, operations=(TURN, *[RECALL] * COMPACT_OPERATIONS))
    assert stages(long) == []
    with pytest.raises(CapabilityUnavailable, match="full_replay_suite"):
        run_fixture(replace(long, profile=ESP))
    with pytest.raises(CapabilityUnavailable, match="memory_harness"):
        run_harness(profile=ESP)
    assert stages(replace(FIXTURE, profile=ESP)) == []


def test_the_harness_passes_and_notices_what_is_missing() -> None:
    assert run_harness().passed
    without_write = replace(HARNESS, operations=HARNESS.operations[1:])
    assert "report_fragment" in stages(without_write)


def test_a_model_that_cannot_answer_is_refused_by_the_builder() -> None:
    for model, url in ((3, None), (ScriptedPrompts(), "http://127.0.0.1:8000/v1")):
        with pytest.raises(InvalidInput) as refused:
            AsyncMemoryRuntime.builder().model(model, url=url)  # type: ignore[arg-type]
        assert refused.value.field == "model"


def test_a_report_with_a_line_too_many_fails() -> None:
    recorded = record_expectation(FIXTURE)
    fewer = replace(recorded.expected, required_report_fragments=recorded.expected.required_report_fragments[1:])
    assert stages(recorded.expecting(replace(fewer, report_fingerprint="0"))) == ["report_fingerprint"]
    assert stages(recorded.expecting(replace(fewer, report_fingerprint=""))) == []


COMMITTED = Path(__file__).parent / "fixtures"
TABLES: list[tuple[str, Any, Any]] = [
    *(("authority", *each) for each in AUTHORITIES.items()),
    *(("reference", *each) for each in REFERENCES.items()),
    *(("state", *each) for each in STATES.items()),
]


@pytest.mark.parametrize(("table", "name", "row"), TABLES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_changed_cell_of_the_redaction_turns_the_gate_red(
    table: str, name: str, row: Any, static_embedder: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = "reference-host-ui" if table == "state" else f"{table}-{name.replace('_', '-')}"
    # One view for each row, in turn: each of the others gives the same lines.
    view = list(View)[1 + [each for _, each, _ in TABLES].index(name) % (len(View) - 1)]
    others = {
        "authority": [None, RedactionReason.PRIVATE_AUTHORITY],
        "reference": list(RefShown),
        "state": [STATES[TranscriptState.ACTIVE][view], STATES[TranscriptState.RAW_DELETED][View.MODEL_CONTEXT]],
    }
    changed = next(cell for cell in others[table] if cell != row[view])
    monkeypatch.setitem(row, view, changed)
    report = run_fixture(ReplayFixture.read(COMMITTED / f"{fixture}.json"), embedder=static_embedder)
    assert {failure.stage for failure in report.failures} & {"report_fragment", "report_fingerprint"}
    assert any(view in failure.reason for failure in report.failures)
