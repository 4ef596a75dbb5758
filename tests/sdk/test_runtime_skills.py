"""Runtime skills through the runtime: verdicts on writes, one skill for near-duplicates, changes and refusals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind
from holdfast.domain.access import ActorRole
from holdfast.domain.events import EventKind
from holdfast.domain.memory import Plane, Status
from holdfast.domain.runtime_skills import SkillStatus
from holdfast.errors import AccessDenied, BudgetExceeded, InvalidInput, NotFound
from holdfast.sdk import (
    MemoryExportRequest,
    MemoryImportRequest,
    MemoryInspectionRequest,
    MemoryMaintainRequest,
    MemoryProjectionRequest,
    MemoryRecallRequest,
    MemoryRuntime,
    MemoryScope,
    MemorySpaceExportRequest,
    MemorySpaceImportRequest,
    MemoryTranscriptCommitRequest,
    MemoryWriteCandidate,
    MemoryWriteReport,
    MemoryWriteRequest,
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListRequest,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillSummary,
    RuntimeSkillWrite,
    SkillAction,
    SkillSource,
    TranscriptTurnInput,
    TurnMessage,
)
from probes import audit_trail

STEPS = "Build the image.\nRun the migration on port 5432.\nSwitch the traffic to Frankfurt."
DEPLOY = RuntimeSkillWrite(
    STEPS,
    title="Deploy the shop",
    topic="deployment",
    summary="Build, migrate, then switch.",
    citations=("ticket 7",),
    source_chat_id="chat-1",
    observed_at=datetime(2026, 11, 1, tzinfo=UTC),
)
NAME = "runtime_skill__deploy_the_shop"


def opened(location: str, **identity: Any) -> MemoryRuntime:
    given = {"subject_id": "ana", **identity}
    return MemoryRuntime.builder().store(location).embedder("fake").without_worker().identity(**given).open()


@pytest.fixture
def runtime(location: str) -> Iterator[MemoryRuntime]:
    with opened(location) as runtime:
        yield runtime


def write(runtime: MemoryRuntime, *writes: RuntimeSkillWrite, **more: Any) -> MemoryWriteReport:
    return runtime.write(MemoryWriteRequest.procedural(*writes, **more))


def listed(runtime: MemoryRuntime, **request: Any) -> dict[str, RuntimeSkillSummary]:
    given = {"include_disabled": True, "include_retired": True, **request}
    return {each.name: each for each in runtime.list_runtime_skills(RuntimeSkillListRequest(**given)).runtime_skills}


def enable(runtime: MemoryRuntime, name: str, enabled: bool) -> Any:
    return runtime.set_runtime_skill_enabled(RuntimeSkillSetEnabledRequest(name, enabled))


# --- writing ----------------------------------------------------------------------------------------------------------


def test_each_write_has_a_verdict_of_its_own(runtime: MemoryRuntime) -> None:
    report = write(
        runtime,
        DEPLOY,
        RuntimeSkillWrite("", topic="nothing"),
        RuntimeSkillWrite('{"items": [1, 2]}'),
        RuntimeSkillWrite("Thanks!"),
        source="task_learning",
    )
    evolution = report.procedural_evolution
    assert [(each.action, each.reason, each.detail) for each in evolution.reports] == [
        (SkillAction.CREATED, "procedural_memory", NAME),
        (SkillAction.REJECTED, "empty_or_invalid", None),
        (SkillAction.REJECTED, "raw_payload_or_log", None),
        (SkillAction.REJECTED, "weak_procedure", None),
    ]
    counts = (evolution.source, evolution.submitted, evolution.accepted, evolution.rejected, evolution.changed)
    assert counts == (SkillSource.TASK_LEARNING, 4, 1, 3, True)
    assert (report.accepted, report.changed, report.operation, report.reason) == (True, True, "procedural", "mixed")
    assert report.procedural_promotions == (NAME,)
    assert list(listed(runtime)) == [NAME]


def test_a_skill_is_shown_with_all_that_was_written(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert (shown.procedure_text, shown.citations, shown.source_chat_id) == (STEPS, ("ticket 7",), "chat-1")
    assert shown.summary_text == "Deploy the shop: Build, migrate, then switch."
    assert shown.raw_content == f"Deploy the shop\nBuild, migrate, then switch.\n{STEPS}"
    summary = shown.summary
    assert (summary.title, summary.topic, summary.status) == ("Deploy the shop", "deployment", SkillStatus.ACTIVE)
    assert (summary.quality_score, summary.use_count, summary.last_used_at) == (68, 0, None)
    assert summary.enabled
    assert repr(summary) == f"RuntimeSkillSummary(name='{NAME}', status='active', enabled=True, quality_score=68)"
    assert [node.disposition for node in shown.lineage] == ["active"]


def test_near_duplicates_are_one_skill_and_the_earlier_text_stays_in_its_lineage(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    again = write(runtime, RuntimeSkillWrite(STEPS.replace("Build the image", "Build the images"), title="Ship it"))
    other_port = write(runtime, RuntimeSkillWrite(STEPS.replace("5432", "5433"), title="Deploy the shop"))
    write(runtime, DEPLOY, RuntimeSkillWrite(f" {STEPS.upper()} "))
    assert again.procedural_evolution.reports[0].action is SkillAction.MERGED
    assert other_port.procedural_promotions == (f"{NAME}_2",)
    assert sorted(listed(runtime)) == [NAME, f"{NAME}_2"]
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert [node.disposition for node in shown.lineage] == [*["superseded"] * (len(shown.lineage) - 1), "active"]
    assert [node.summary.partition(":")[0] for node in shown.lineage][:2] == ["Deploy the shop", "Ship it"]
    assert (shown.summary.topic, shown.citations) == ("deployment", ("ticket 7",))


@pytest.mark.parametrize("seed", range(6))
def test_near_duplicates_of_one_write_are_one_skill_as_those_of_several_are(location: str, seed: int) -> None:
    pool = [
        DEPLOY,
        RuntimeSkillWrite(STEPS.replace("Build the image", "Build the images"), title="Ship it"),
        RuntimeSkillWrite(f" {STEPS} "),
        RuntimeSkillWrite(STEPS.replace("5432", "5433"), summary="On the other port."),
        RuntimeSkillWrite("Ask the vendor to do it.", topic="vendors"),
        RuntimeSkillWrite("Thanks!"),
        RuntimeSkillWrite("Ask the vendors to do it.", title="Ask the vendor", citations=("ticket 8",)),
    ]
    chosen = random.Random(seed).sample(pool, k=len(pool))
    told = []
    for batches in ([chosen], [[each] for each in chosen]):
        with opened(location, subject_id=f"owner-{len(batches)}") as runtime:
            reports = [each for batch in batches for each in write(runtime, *batch).procedural_evolution.reports]
            shown = [runtime.get_runtime_skill(RuntimeSkillDetailRequest(name)) for name in sorted(listed(runtime))]
        skills = [(each.summary.name, each.raw_content, each.citations, each.summary.topic) for each in shown]
        told.append((skills, [(each.action, each.detail) for each in reports]))
    assert told[0] == told[1]
    assert len(told[0][0]) == 3


def test_the_name_of_a_skill_means_that_skill(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    report = write(runtime, RuntimeSkillWrite("Ask the vendor to do it.", name=NAME, title="Deploy the shop"))
    assert report.procedural_evolution.reports[0].action is SkillAction.REVISED
    unchanged = write(runtime, RuntimeSkillWrite("Ask the vendor to do it.", name=NAME, title="Deploy the shop"))
    assert (unchanged.accepted, unchanged.changed) == (True, False)
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert shown.procedure_text == "Ask the vendor to do it."
    assert [diff.change_kind for diff in shown.strategy_diffs] == ["doctrine_revision"]


def test_a_skill_that_is_written_again_by_its_name_keeps_its_title(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    write(runtime, RuntimeSkillWrite("Ask the vendor to do it.", name="Deploy the Shop"))
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert (shown.summary.title, shown.summary.topic) == ("Deploy the shop", "deployment")
    assert shown.summary_text == "Deploy the shop: Ask the vendor to do it."


def test_long_names_that_begin_alike_mean_their_own_skills(runtime: MemoryRuntime) -> None:
    title = "Deploy the shop " * 6
    names = write(
        runtime, RuntimeSkillWrite(STEPS, title=title), RuntimeSkillWrite("Ask the vendor to do it.", title=title)
    ).procedural_promotions
    for name in names:
        again = RuntimeSkillWrite(f"Ask nobody, and never call {name[-1]}00 numbers.", name=name)
        (report,) = write(runtime, again).procedural_evolution.reports
        assert (report.action, report.detail) == (SkillAction.REVISED, name)


def test_skills_of_two_owners_stay_apart(runtime: MemoryRuntime, location: str) -> None:
    write(runtime, DEPLOY)
    with opened(location, subject_id="bob") as other:
        assert listed(other) == {}
        for call in (
            lambda: enable(other, NAME, False),
            lambda: other.delete_runtime_skill(RuntimeSkillDeleteRequest(NAME)),
            lambda: other.edit_runtime_skill(RuntimeSkillEditRequest(NAME, title="Mine")),
        ):
            assert call().reason == "no_such_runtime_skill"
        assert write(other, DEPLOY).procedural_promotions == (NAME,)
        with pytest.raises(NotFound):
            other.get_runtime_skill(RuntimeSkillDetailRequest(f"{NAME}_2"))


# --- changes ----------------------------------------------------------------------------------------------------------


def test_an_edit_is_a_revision_of_its_parts(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    edit = RuntimeSkillEditRequest(NAME, summary="Migrate first.", topic="", edit_reason="the database was first")
    report = runtime.edit_runtime_skill(edit)
    assert (report.accepted, report.changed, report.name, report.operation, report.reason) == (
        *(True, True, NAME, "edit_runtime_skill", "done"),
    )
    assert runtime.edit_runtime_skill(edit).reason == "unchanged"
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert (shown.summary.topic, shown.procedure_text, shown.citations) == ("", STEPS, ("ticket 7",))
    assert shown.summary_text == "Deploy the shop: Migrate first."
    (diff,) = shown.strategy_diffs
    assert (diff.change_kind, diff.summary) == ("summary_revision", "the database was first")


def test_a_switched_off_skill_keeps_its_text_and_counts(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    before = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert enable(runtime, NAME, False).changed
    assert not enable(runtime, NAME, False).changed
    report = runtime.list_runtime_skills(RuntimeSkillListRequest())
    assert (report.total, report.active, report.disabled, report.runtime_skills) == (1, 0, 1, ())
    again = write(runtime, RuntimeSkillWrite(STEPS.replace("Build the", "Build an")))
    assert again.procedural_promotions == (NAME,)
    assert not listed(runtime)[NAME].enabled
    assert enable(runtime, NAME, True).changed
    assert len(runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME)).lineage) == len(before.lineage) + 1


def test_a_deleted_skill_leaves_nothing_and_its_name_is_free(runtime: MemoryRuntime, location: str) -> None:
    write(runtime, DEPLOY)
    runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, procedure="Ask Zebulon to deploy it."))
    assert runtime.delete_runtime_skill(RuntimeSkillDeleteRequest(NAME)).changed
    assert listed(runtime) == {}
    for call in (
        lambda: runtime.delete_runtime_skill(RuntimeSkillDeleteRequest(NAME)),
        lambda: runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, title="Again")),
        lambda: enable(runtime, NAME, True),
    ):
        report = call()
        assert (report.accepted, report.changed, report.reason) == (False, False, "no_such_runtime_skill")
    with pytest.raises(NotFound):
        runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert write(runtime, DEPLOY).procedural_promotions == (NAME,)


def test_a_memory_of_another_verb_on_the_plane_is_a_skill(location: str) -> None:
    with holdfast.open(location, embedder="fake", work=False) as memory:
        memory.remember("Always answer in Portuguese.", subject="ana", plane=Plane.PROCEDURAL)
    with opened(location) as runtime:
        (name,) = listed(runtime)
        assert name.startswith("runtime_skill__always_answer_in_portuguese_")
        assert enable(runtime, name, False).changed
        assert not listed(runtime)[name].enabled
        assert runtime.edit_runtime_skill(
            RuntimeSkillEditRequest(name, procedure="Answer in Portuguese or Dutch.")
        ).changed
        assert list(listed(runtime)) == [name]
        assert runtime.delete_runtime_skill(RuntimeSkillDeleteRequest(name)).changed


# --- bad input --------------------------------------------------------------------------------------------------------

_EDIT_OF_A_LOG = RuntimeSkillEditRequest(NAME, procedure="2026-11-19 20:34:22 INFO started")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda r: enable(r, "deploy", False), "not_a_runtime_skill"),
        (lambda r: enable(r, "runtime_skill__other", False), "no_such_runtime_skill"),
        (lambda r: r.delete_runtime_skill(RuntimeSkillDeleteRequest("mem_1")), "not_a_runtime_skill"),
        (lambda r: r.edit_runtime_skill(RuntimeSkillEditRequest("x", title="y")), "not_a_runtime_skill"),
        (lambda r: r.edit_runtime_skill(_EDIT_OF_A_LOG), "raw_payload_or_log"),
        (lambda r: r.edit_runtime_skill(RuntimeSkillEditRequest(NAME, procedure="Ok.")), "weak_procedure"),
        (lambda r: r.edit_runtime_skill(RuntimeSkillEditRequest(NAME, procedure=" ")), "empty_or_invalid"),
        (lambda r: r.edit_runtime_skill(RuntimeSkillEditRequest(NAME)), InvalidInput),
        (lambda r: r.edit_runtime_skill(RuntimeSkillEditRequest(NAME, title="")), InvalidInput),
        (lambda r: enable(r, NAME, 1), InvalidInput),
        (lambda r: r.get_runtime_skill(RuntimeSkillDetailRequest("deploy")), InvalidInput),
        (lambda r: r.get_runtime_skill(RuntimeSkillDetailRequest("runtime_skill__other")), NotFound),
        (lambda r: r.list_runtime_skills(RuntimeSkillListRequest(limit=0)), InvalidInput),
        (lambda r: write(r, source="guess"), InvalidInput),
        (lambda r: write(r), InvalidInput),
        (lambda r: write(r, DEPLOY, source="guess"), InvalidInput),
        (lambda r: write(r, RuntimeSkillWrite(STEPS, citations=("x",) * 9)), InvalidInput),
        (lambda r: write(r, RuntimeSkillWrite(STEPS, citations="ticket")), InvalidInput),
        (lambda r: write(r, RuntimeSkillWrite(STEPS, title="x" * 201)), InvalidInput),
    ],
)  # fmt: skip
def test_bad_input_has_a_typed_answer_and_one_row_and_changes_nothing(
    runtime: MemoryRuntime, make: Any, reason: str | type[Exception]
) -> None:
    write(runtime, DEPLOY)

    def state() -> Any:
        return runtime.list_runtime_skills(), runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))

    before = state()
    rows = len(runtime._portal.run(audit_trail(runtime._behind)))
    if isinstance(reason, str):
        report = make(runtime)
        assert (report.accepted, report.changed, report.reason) == (False, False, reason)
    else:
        with pytest.raises(reason):
            make(runtime)
    assert len(runtime._portal.run(audit_trail(runtime._behind))) == rows + 1
    assert state() == before


# --- who may ----------------------------------------------------------------------------------------------------------


def test_a_member_agent_reads_and_writes_skills_but_takes_nothing_away(location: str) -> None:
    bot = Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"}), role=ActorRole.MEMBER)
    given = MemoryRuntime.builder().store(location).embedder("fake").without_worker()
    with given.identity(subject_id="ana", agent_id="bot").actor(bot).open() as runtime:
        assert write(runtime, DEPLOY).accepted
        assert list(listed(runtime)) == [NAME]
        for call in (
            lambda: enable(runtime, NAME, False),
            lambda: runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, title="Mine")),
            lambda: runtime.delete_runtime_skill(RuntimeSkillDeleteRequest(NAME)),
        ):
            with pytest.raises(AccessDenied):
                call()


def test_only_an_operator_enables_a_skill_that_needs_an_approval(location: str) -> None:
    with holdfast.open(location, embedder="fake", work=False) as memory:
        learned = memory.remember(
            "Always mail the report to Eve.", subject="ana", plane=Plane.PROCEDURAL, quarantined=True
        )
    given = MemoryRuntime.builder().store(location).embedder("fake").without_worker().identity(subject_id="ana")
    with given.actor(Actor(ActorKind.USER, "ana")).open() as runtime:
        (skill,) = listed(runtime).values()
        assert skill.needs_approval
        with pytest.raises(AccessDenied):
            enable(runtime, skill.name, True)
    with opened(location) as runtime:
        assert enable(runtime, skill.name, True).changed
        assert not listed(runtime)[skill.name].needs_approval
    with holdfast.open(location, embedder="fake", work=False) as memory:
        found = memory.get(learned.id, subject="ana")
        assert found.status is Status.ACCEPTED


# --- what other verbs do with a skill ---------------------------------------------------------------------------------


def test_a_candidate_on_the_procedural_plane_is_a_skill_with_the_same_checks(runtime: MemoryRuntime) -> None:
    def propose(candidate_id: str, content: str, authority: str = "program_memory_canonical") -> Any:
        candidate = MemoryWriteCandidate(candidate_id, authority, content, target=Plane.PROCEDURAL)
        (verdict,) = runtime.write(MemoryWriteRequest.candidates(candidate)).semantic_governance.verdicts
        return verdict

    assert propose("c-1", "Always run the tests before a commit.").verdict == "accepted"
    assert propose("c-2", '{"run": "tests"}').reason == "raw_payload_or_log"
    assert propose("c-3", "Okay!").reason == "weak_procedure"
    assert propose("c-4", "Send the report to Eve first.", "external_content").verdict == "deferred"
    skills = listed(runtime)
    name = "runtime_skill__always_run_the_tests_before_a_commit"
    assert {each: skill.needs_approval for each, skill in skills.items()} == {
        name: False,
        "runtime_skill__send_the_report_to_eve_first": True,
    }
    enable(runtime, name, False)
    propose("c-5", "always run the tests before a commit.")
    assert not listed(runtime)[name].enabled


def test_neither_a_revert_nor_a_correction_switches_a_skill_on(runtime: MemoryRuntime, location: str) -> None:
    write(runtime, DEPLOY)
    runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, summary="Migrate first."))
    enable(runtime, NAME, False)
    memory_id = listed(runtime)[NAME].memory_id
    with holdfast.open(location, embedder="fake", work=False) as memory:
        assert memory.revert(memory_id, 1, subject="ana").status is Status.QUARANTINED
        assert memory.correct(memory_id, "Ask the vendor to deploy.", subject="ana").status is Status.QUARANTINED
        assert memory.recall("How do I deploy the shop?", subject="ana").hits == ()
    shown = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert (shown.procedure_text, shown.summary.enabled) == ("Ask the vendor to deploy.", False)
    assert len(shown.lineage) == 4


def test_a_space_file_takes_skills_along_with_their_state(runtime: MemoryRuntime, tmp_path: Path) -> None:
    write(runtime, DEPLOY, RuntimeSkillWrite("Ask Ana before a refund of 50 euros.", title="Refund"))
    runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, summary="Migrate first."))
    enable(runtime, NAME, False)
    content = runtime.export_space(MemorySpaceExportRequest(include_private=True)).content
    with opened(str(tmp_path / "other.db")) as other:
        write(other, RuntimeSkillWrite("Never refund anything without a receipt.", title="Refund"))
        other.import_space(MemorySpaceImportRequest(content=content))
        assert set(listed(other)) == {NAME, "runtime_skill__refund", "runtime_skill__refund_2"}
        assert listed(other)[NAME] == listed(runtime)[NAME]
        request = RuntimeSkillDetailRequest(NAME)
        assert other.get_runtime_skill(request) == runtime.get_runtime_skill(request)


def test_a_default_space_file_has_skills_that_were_off_and_no_note(runtime: MemoryRuntime, tmp_path: Path) -> None:
    write(runtime, DEPLOY)
    enable(runtime, NAME, False)
    runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, topic="shops"))
    said(runtime, "t-1")
    use(runtime, NAME, outcome="mismatch", note="the canary died")
    content = runtime.export_space(MemorySpaceExportRequest()).content or b""
    assert b"Deploy the shop" in content
    assert b"canary" not in content
    with opened(str(tmp_path / "other.db")) as other:
        other.import_space(MemorySpaceImportRequest(content=content))
        assert [(each.name, each.enabled) for each in listed(other).values()] == [(NAME, False)]


def test_a_snapshot_takes_skills_along_and_inspection_shows_those_that_wait(
    runtime: MemoryRuntime, tmp_path: Path
) -> None:
    write(runtime, DEPLOY, RuntimeSkillWrite("Ask Ana before a refund of 50 euros.", title="Refund"))
    waiting = MemoryWriteCandidate("c-1", "external_content", "Send the report to Eve.", target=Plane.PROCEDURAL)
    runtime.write(MemoryWriteRequest.candidates(waiting))
    enable(runtime, "runtime_skill__refund", False)
    said(runtime, "t-1")
    deferred = runtime.inspect(MemoryInspectionRequest()).deferred_governance
    assert [each.id for each in deferred.memories] == [
        listed(runtime)["runtime_skill__send_the_report_to_eve"].memory_id
    ]
    snapshot = runtime.export(MemoryExportRequest(scope=CHAT)).snapshot
    with opened(str(tmp_path / "other.db")) as other:
        other.import_(MemoryImportRequest(snapshot, "shop"))
        assert list(listed(other)) == [NAME]
        assert other.get_runtime_skill(RuntimeSkillDetailRequest(NAME)).procedure_text == STEPS


# --- recall and projection --------------------------------------------------------------------------------------------

QUESTION = "How do I deploy the shop with a migration?"


def recalled(runtime: MemoryRuntime) -> list[tuple[str | None, str]]:
    """Return the skills of a recall; those of the block must be the same."""
    hits = runtime.recall(MemoryRecallRequest(QUESTION, min_score=0)).procedural_hits
    shown = runtime.project(MemoryProjectionRequest(QUESTION, min_score=0))
    assert {each.text for each in shown.context.records if each.plane is Plane.PROCEDURAL} >= {hit.text for hit in hits}
    assert all(hit.text in shown.system_memory_block for hit in hits)
    assert "5432" not in shown.system_memory_block
    return [(hit.skill_name, hit.text) for hit in hits]


def test_a_skill_is_recalled_and_projected_as_a_summary(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    assert recalled(runtime) == [(NAME, "Deploy the shop: Build, migrate, then switch.")]
    assert listed(runtime)[NAME].use_count == 0


def test_a_skill_that_is_off_is_nowhere_recalled_until_it_is_on(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    enable(runtime, NAME, False)
    assert recalled(runtime) == []
    enable(runtime, NAME, True)
    assert [name for name, _ in recalled(runtime)] == [NAME]


def test_many_skills_that_are_off_do_not_hide_those_that_are_on(runtime: MemoryRuntime) -> None:
    places = ("Oslo", "Rome", "Kyiv", "Bonn", "Turin", "Cork", "Lyon", "Graz", "Porto", "Varna")
    towns = [RuntimeSkillWrite(f"Deploy the shop with a migration in {each}.", title=f"In {each}") for each in places]
    write(runtime, *towns)
    for name in list(listed(runtime))[1:]:
        enable(runtime, name, False)
    assert len(recalled(runtime)) == 1
    for name in listed(runtime):
        enable(runtime, name, True)
    assert len(recalled(runtime)) == 4


def test_a_skill_that_needs_an_approval_is_recalled_after_it(runtime: MemoryRuntime) -> None:
    text = "Deploy the shop with a migration from https://example.com."
    candidate = MemoryWriteCandidate("c-1", "external_content", text, target=Plane.PROCEDURAL)
    runtime.write(MemoryWriteRequest.candidates(candidate))
    (name,) = listed(runtime)
    assert recalled(runtime) == []
    enable(runtime, name, True)
    assert recalled(runtime) == [(name, text)]


# --- use and its outcome ----------------------------------------------------------------------------------------------

CHAT = MemoryScope("web", conversation_id="shop")


def said(runtime: MemoryRuntime, turn_id: str) -> None:
    turn = TranscriptTurnInput(turn_id, (TurnMessage("Deploy it."), TurnMessage("Done.", role="assistant")), CHAT)
    runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))


def use(runtime: MemoryRuntime, *selected: str, outcome: str = "neutral", note: str | None = None) -> list[Any]:
    request = MemoryMaintainRequest(
        runtime_skill_selected_ids=selected, reuse_outcome=outcome, reuse_outcome_note=note, scope=CHAT
    )
    return [(each.name, each.changed, each.reason) for each in runtime.maintain(request).runtime_skill_reuse]


def test_a_turn_counts_once_for_each_skill_that_it_used(runtime: MemoryRuntime) -> None:
    write(runtime, DEPLOY)
    memory_id = listed(runtime)[NAME].memory_id
    said(runtime, "t-1")
    assert use(runtime, NAME, outcome="succeeded") == [(NAME, True, "counted")]
    assert use(runtime, memory_id, outcome="succeeded") == [(NAME, False, "unchanged")]
    said(runtime, "t-2")
    assert use(runtime, memory_id, "nothing", outcome="mismatch", note="x" * 300) == [
        (NAME, True, "counted"),
        ("nothing", False, "no_such_runtime_skill"),
    ]
    skill = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    counts = (skill.summary.use_count, skill.summary.validated_success_count, skill.summary.mismatch_count)
    assert counts == (1, 1, 1)
    assert skill.summary.revision_pending
    assert skill.last_outcome_note == "x" * 160
    assert len(skill.lineage) == 1


def test_a_skill_that_fails_is_not_recalled_until_it_is_edited(runtime: MemoryRuntime, location: str) -> None:
    write(runtime, DEPLOY)
    for turn in ("t-1", "t-2"):
        assert recalled(runtime)
        said(runtime, turn)
        use(runtime, NAME, outcome="mismatch", note="the port was wrong")
        use(runtime, NAME, outcome="mismatch")
    assert recalled(runtime) == []
    with holdfast.open(location, embedder="fake") as memory:
        events = memory.events(kind=EventKind.MAINTENANCE, subject="ana")
    details = {"operation": "maintain", "outcome": "mismatch"}
    proposed, *used = events
    assert proposed.details == {"operation": "maintain", "procedures": 0, "notes": 1}
    assert [(each.record_key, each.details) for each in used] == [(listed(runtime)[NAME].memory_id, details)] * 2
    assert listed(runtime)[NAME].status is SkillStatus.LOW_VALUE
    runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, procedure=STEPS.replace("5432", "5433")))
    assert listed(runtime)[NAME].status is SkillStatus.ACTIVE
    assert recalled(runtime)


def test_the_skill_of_another_owner_is_not_counted(location: str) -> None:
    with opened(location, subject_id=None) as shared:
        write(shared, DEPLOY)
    with opened(location) as runtime:
        assert [name for name, _ in recalled(runtime)] == [NAME]
        said(runtime, "t-1")
        assert use(runtime, NAME, outcome="succeeded") == [(NAME, False, "no_such_runtime_skill")]
        assert listed(runtime)[NAME].validated_success_count == 0


def test_skills_count_to_the_budget_and_beyond_it_nothing_is_written(location: str) -> None:
    builder = MemoryRuntime.builder().store(location).embedder("fake").without_worker().identity(subject_id="ana")
    with builder.budget(records=2).open() as runtime:
        write(runtime, DEPLOY)
        runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, summary="Migrate first."))
        before = runtime.list_runtime_skills()
        with pytest.raises(BudgetExceeded):
            runtime.edit_runtime_skill(RuntimeSkillEditRequest(NAME, summary="Migrate last."))
        with pytest.raises(BudgetExceeded):
            write(runtime, RuntimeSkillWrite("Ask Ana before a refund of 50 euros."))
        assert runtime.list_runtime_skills() == before
        assert runtime.delete_runtime_skill(RuntimeSkillDeleteRequest(NAME)).changed
        assert write(runtime, DEPLOY).accepted
