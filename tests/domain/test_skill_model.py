"""The model of runtime skills: names, content, quality, standing, checks, lineage, and which texts are one skill."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import MemoryId
from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane, Status, Trust
from holdfast.domain.runtime_skills import (
    LEAST_QUALITY,
    STALE_AFTER,
    UNRECALLED,
    USE_INTERVAL,
    ReuseOutcome,
    SkillContent,
    SkillSource,
    SkillState,
    SkillStatus,
    is_skill_name,
    name_from,
    name_of_unnamed,
    quality_of,
    status_of,
    visibility_of,
)
from holdfast.domain.scope import Scope
from holdfast.domain.skill_checks import SkillRejection, reject_procedure
from holdfast.domain.skill_lineage import ChangeKind, NodeDisposition, is_near_duplicate, trace_lineage

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DEPLOY = SkillContent(
    title="Deploy the shop",
    topic="deployment",
    summary="Build, migrate, then switch traffic.",
    procedure="Build the image.\nRun the migration on port 5432.\nSwitch the traffic to Frankfurt.",
    citations=("ticket 7",),
    source=SkillSource.TASK_LEARNING,
    source_chat_id="chat-1",
    observed_at=NOW,
)
PLAIN = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(str.strip)
LINE = PLAIN.map(str.strip)
CONTENTS = st.builds(
    SkillContent,
    title=LINE,
    procedure=st.lists(LINE, min_size=1, max_size=4).map("\n".join),
    topic=st.just("") | LINE,
    summary=st.just("") | LINE,
    citations=st.lists(LINE, max_size=8).map(tuple),
    source=st.sampled_from(SkillSource),
    source_chat_id=st.none() | LINE,
    observed_at=st.none() | st.just(NOW),
)
OUTCOMES = st.sampled_from(ReuseOutcome)


def record(content: SkillContent | str, *, revision: int = 1, at: datetime = NOW) -> MemoryRecord:
    text, metadata = (content, {}) if isinstance(content, str) else (content.text, content.metadata)
    return MemoryRecord(
        id=MemoryId("mem_0190aaaabbbbccccddddeeeeffff0001"),
        revision=revision,
        scope=Scope(subject="ana"),
        plane=Plane.PROCEDURAL,
        text=text,
        trust=Trust.STATED,
        status=Status.ACCEPTED,
        validity=ALWAYS,
        recorded_at=at,
        superseded_at=None,
        source=None,
        author="operator:local",
        reason=None,
        metadata=metadata,
    )


# --- content and names ------------------------------------------------------------------------------------------------


@given(CONTENTS)
def test_content_is_read_from_its_memory_as_it_was_written(content: SkillContent) -> None:
    assert SkillContent.of(record(content)) == content


@given(PLAIN)
def test_a_memory_that_was_not_written_as_a_skill_is_one(text: str) -> None:
    read = SkillContent.of(record(text))
    assert read.procedure == text
    assert read.title
    assert is_skill_name(name_of_unnamed(record(text).id, read))


def test_a_text_that_another_verb_corrected_is_the_procedure() -> None:
    corrected = replace(record(DEPLOY), text="Never deploy on Fridays.")
    read = SkillContent.of(corrected)
    assert (read.title, read.summary, read.procedure) == (DEPLOY.title, "", "Never deploy on Fridays.")


@given(PLAIN, st.integers(1, 500))
def test_a_name_is_short_plain_and_another_for_each_place(title: str, place: int) -> None:
    name = name_from(title, place)
    assert is_skill_name(name)
    assert name.isascii()
    assert name != name_from(title, place + 1)
    assert name_from(name_from(title)) == name_from(title)


# --- state, quality and standing --------------------------------------------------------------------------------------


@given(CONTENTS, st.lists(st.tuples(OUTCOMES, st.integers(0, 20)), max_size=30))
def test_counts_quality_and_visibility_follow_from_the_uses(
    content: SkillContent, uses: list[tuple[ReuseOutcome, int]]
) -> None:
    state, at, counted = SkillState("runtime_skill__x"), NOW, []
    for outcome, hours in uses:
        at += timedelta(hours=hours)
        state = state.with_use(at, outcome)
        if not counted or at - counted[-1] >= USE_INTERVAL:
            counted.append(at)
    outcomes = [outcome for outcome, _ in uses]
    assert (state.use_count, state.last_used_at) == (len(counted), counted[-1] if counted else None)
    assert state.validated_success_count == outcomes.count(ReuseOutcome.SUCCEEDED)
    assert state.mismatch_count == outcomes.count(ReuseOutcome.MISMATCH)
    decisive = [outcome for outcome in outcomes if outcome is not ReuseOutcome.NEUTRAL]
    assert state.revision_pending is (decisive[-1:] == [ReuseOutcome.MISMATCH])
    assert 0 <= quality_of(content, state) <= 100
    assert quality_of(content, state.with_use(at, ReuseOutcome.SUCCEEDED)) >= quality_of(content, state)
    status = status_of(content, state, NOW, at)
    assert visibility_of(content, state, at) is (Status.QUARANTINED if status in UNRECALLED else Status.ACCEPTED)
    for hidden in (replace(state, enabled=False), replace(state, needs_approval=True)):
        assert visibility_of(content, hidden, at) is Status.QUARANTINED


@given(CONTENTS, st.builds(SkillState, st.just("x"), mismatch_count=st.integers(0, 5), revision_pending=st.booleans()))
def test_time_alone_never_shows_or_hides_a_skill(content: SkillContent, state: SkillState) -> None:
    late = NOW + STALE_AFTER + timedelta(days=1)
    now, later = (status_of(content, state, NOW, at) for at in (NOW, late))
    assert (now in UNRECALLED) is (later in UNRECALLED)
    assert later in (SkillStatus.STALE, SkillStatus.RETIRED)


def test_the_parts_of_quality_add_up() -> None:
    assert quality_of(DEPLOY, SkillState("x")) == 20 + 18 + 10 + 14 + 6
    worn = SkillState("x", use_count=9, validated_success_count=9, mismatch_count=9, revision_pending=True)
    assert quality_of(SkillContent("a", "b c d"), worn) == 20 + 30 + 20 - 12 - 6


def test_two_failures_hide_a_skill_until_it_is_revised_or_works() -> None:
    state = SkillState("x")
    for _ in range(2):
        assert status_of(DEPLOY, state, NOW, NOW) is SkillStatus.ACTIVE
        state = state.with_use(NOW, ReuseOutcome.MISMATCH, "the port was wrong")
    assert status_of(DEPLOY, state, NOW, NOW) is SkillStatus.LOW_VALUE
    assert quality_of(DEPLOY, state) > LEAST_QUALITY
    for better in (state.with_new_text(), state.with_use(NOW, ReuseOutcome.SUCCEEDED)):
        assert status_of(DEPLOY, better, NOW, NOW) is SkillStatus.ACTIVE
    assert state.last_outcome_note == "the port was wrong"
    assert len(state.with_use(NOW, ReuseOutcome.NEUTRAL, "x" * 500).last_outcome_note or "") == 160


# --- checks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", SkillRejection.EMPTY_OR_INVALID),
        (" \n\t", SkillRejection.EMPTY_OR_INVALID),
        (None, SkillRejection.EMPTY_OR_INVALID),
        ("too long " * 100, SkillRejection.EMPTY_OR_INVALID),
        ("a\x00b steps to do", SkillRejection.EMPTY_OR_INVALID),
        ('{"status": 200, "items": [1, 2, 3]}', SkillRejection.RAW_PAYLOAD_OR_LOG),
        ("<!DOCTYPE html><html><body>Steps</body></html>", SkillRejection.RAW_PAYLOAD_OR_LOG),
        ("2026-11-19 20:34:22 INFO started\n2026-11-19 20:34:23 ERROR no port", SkillRejection.RAW_PAYLOAD_OR_LOG),
        ("Nov 19 20:34:22 host kernel: eth0 up\nNov 19 20:34:23 host sshd: in", SkillRejection.RAW_PAYLOAD_OR_LOG),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no',
            SkillRejection.RAW_PAYLOAD_OR_LOG,
        ),
        ("It failed:\n    at com.shop.Pay.run(Pay.java:12)\n", SkillRejection.RAW_PAYLOAD_OR_LOG),
        ("Decode this: " + "QUJD" * 60, SkillRejection.RAW_PAYLOAD_OR_LOG),
        ("Thanks a lot!", SkillRejection.WEAK_PROCEDURE),
        ("How do I deploy?", SkillRejection.WEAK_PROCEDURE),
        ("Deploy.", SkillRejection.WEAK_PROCEDURE),
        ("Build the image, then switch traffic.", None),
        ("Baue das Abbild und starte den Dienst neu.", None),
        ("先备份数据库,再运行迁移。", None),
        ("Run `jq '.items[] | {id}' dump.json`, then read the ids.", None),
        ("Never answer before 09:00:00.\nCheck the calendar first.\nAsk Ana if in doubt.", None),
    ],
)
def test_only_a_procedure_is_a_skill(text: object, reason: SkillRejection | None) -> None:
    assert reject_procedure(text, 500) is reason


# --- near-duplicates and lineage --------------------------------------------------------------------------------------

_SAME = "Build the image, run the migration on port 5432, then switch all traffic to Frankfurt."


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Build the images, run the migration on port 5432 and then switch all the traffic to Frankfurt!", True),
        ("Run the migration on port 5432, build the image, then switch all traffic to Frankfurt.", True),
        (_SAME.replace("5432", "5433"), False),
        (_SAME.replace("Frankfurt", "Dublin"), False),
        (_SAME.replace("run the migration", "do not run the migration"), False),
        ("Ask Ana, who knows how to bake bread.", False),
    ],
)
def test_two_texts_are_one_skill_if_names_numbers_and_negations_agree(text: str, same: bool) -> None:
    one, other = SkillContent("Deploy", _SAME), SkillContent("Ship it", text)
    assert is_near_duplicate(one, other) is is_near_duplicate(other, one) is same


def test_a_difference_behind_a_long_beginning_keeps_two_procedures_apart() -> None:
    long = "Check the valve and the pump. " * 200
    one, other = (SkillContent("Check", f"{long}Set it to {number}.") for number in (4, 5))
    assert is_near_duplicate(one, one)
    assert not is_near_duplicate(one, other)


@given(st.lists(CONTENTS, min_size=1, max_size=12))
def test_lineage_has_every_change_of_strategy(contents: list[SkillContent]) -> None:
    revisions = [record(content, revision=at + 1, at=NOW + timedelta(hours=at)) for at, content in enumerate(contents)]
    whole = trace_lineage("runtime_skill__x", revisions, SkillStatus.ACTIVE)
    digests = [node.strategy_digest for node in whole.nodes]
    assert all(earlier != later for earlier, later in pairwise(digests))
    assert [node.disposition for node in whole.nodes[:-1]] == [NodeDisposition.SUPERSEDED] * (len(digests) - 1)
    assert whole.nodes[-1].disposition is NodeDisposition.ACTIVE
    steps = [(diff.from_node_id, diff.to_node_id) for diff in whole.diffs]
    assert steps == list(pairwise(node.node_id for node in whole.nodes))
    assert whole.newest.nodes == whole.nodes[-8:]
    assert whole.newest.diffs == whole.diffs[-8:]


def test_a_difference_says_how_much_changed() -> None:
    summary = replace(DEPLOY, summary="Build first.")
    refined = replace(summary, procedure=f"{DEPLOY.procedure}\nTell the team.")
    other = replace(refined, procedure="Ask the vendor to do it.")
    history = [DEPLOY, summary, summary, refined, other]
    revisions = [record(content, revision=at, at=NOW + timedelta(at)) for at, content in enumerate(history, 1)]
    traced = trace_lineage("runtime_skill__x", revisions, SkillStatus.RETIRED)
    assert [diff.change_kind for diff in traced.diffs] == [
        ChangeKind.SUMMARY_REVISION,
        ChangeKind.PROCEDURE_REFINEMENT,
        ChangeKind.DOCTRINE_REVISION,
    ]
    assert traced.nodes[-1].disposition is NodeDisposition.RETIRED
