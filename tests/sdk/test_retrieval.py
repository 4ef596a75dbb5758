"""Recall, projection and inspection: what they show, what they withhold, and what they report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from retrieval_world import HERE, World, opened

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.capabilities import Privacy
from holdfast.domain.events import EventKind
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.lifecycle import Disposition, ModeInput
from holdfast.domain.memory import Plane, Status, Validity
from holdfast.domain.operations import Outcome
from holdfast.domain.profiles import PERCENT, Pressure
from holdfast.domain.projection_block import OmissionReason, PrivateGate, SectionAudit, SourceAudit
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
    ProjectionAudit,
    ToolRegistryRef,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.errors import (
    AccessDenied,
    AliasNotTrusted,
    CapabilityUnavailable,
    InvalidInput,
    InvalidScope,
    InvalidText,
)
from holdfast.testing.full_repr import full_repr
from postgres import ON_POSTGRES
from probes import SteppingClock

IN_HERE = MemoryScope(conversation_id="here")
WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppingClock) -> Iterator[World]:
    postgres = request.param == "postgres"
    with opened(request.getfixturevalue("postgres_url") if postgres else str(tmp_path / "m.db"), clock) as found:
        yield found


def project(world: World, query: str = "lamp", runtime: Any = None, **given: Any) -> MemoryProjectionReport:
    given.setdefault("scope", IN_HERE)
    chosen = runtime or world.runtime()
    report: MemoryProjectionReport = world.run(chosen.project(MemoryProjectionRequest(query, **given)))
    return report


def recall(world: World, query: str = "lamp", runtime: Any = None, **given: Any) -> MemoryRecallReport:
    given.setdefault("scope", IN_HERE)
    chosen = runtime or world.runtime()
    report: MemoryRecallReport = world.run(chosen.recall(MemoryRecallRequest(query, **given)))
    return report


def inspect(world: World, query: str | None = "lamp", runtime: Any = None, **given: Any) -> MemoryInspectionReport:
    given.setdefault("scope", IN_HERE)
    chosen = runtime or world.runtime()
    report: MemoryInspectionReport = world.run(chosen.inspect(MemoryInspectionRequest(query, **given)))
    return report


# --- content ----------------------------------------------------------------------------------------------------------


def test_a_block_holds_memories_what_was_said_here_and_the_last_messages(world: World) -> None:
    fact = world.remember("The lamp in the hall is blue.")
    how = world.remember("To mend a lamp, pull the plug first.", plane=Plane.PROCEDURAL)
    (old,) = world.say("I broke a lamp.")
    world.say("It was new.", role=Role.ASSISTANT, authority=Authority.ASSISTANT_UTTERANCE)
    (last,) = world.say("Which lamp was it?")
    report = project(world, recent_messages_limit=1)
    assert report.system_memory_block.splitlines()[1:] == [
        # Sections stand in the order of their best records.
        "## Said earlier in this conversation",
        "- [said by Ana, 2026-03-01] I broke a lamp.",
        "- [said by Ana, 2026-03-01] It was new.",
        "## Procedures",
        "- [memory, 2026-03-01] To mend a lamp, pull the plug first.",
        "## Memories",
        "- [memory, 2026-03-01] The lamp in the hall is blue.",
        "## Last messages of this conversation",
        "- [user] Which lamp was it?",
    ]
    assert [record.id for record in report.context.records if record.id in (fact, how, old)] == [old, how, fact]
    assert [message.id for message in report.context.recent_messages] == [last]
    audit = report.audit
    assert (audit.conversation_id, audit.subject_id, audit.memory_space_id) == ("here", "ana", "default")
    assert audit.system_memory_chars == len(report.system_memory_block)
    assert audit.injected
    assert not audit.truncated
    assert {source.plane: source.selected_count for source in audit.sources if source.selected_count} == {
        "long_term": 1, "procedural": 1, "transcript": 2, "recent_messages": 1
    }  # fmt: skip
    assert audit.source_authority.authorities == {"legacy_transcript": 1}
    assert audit.source_authority.trust == {"stated": 2}
    assert report.projection_faithfulness.faithful


def test_recall_tells_procedures_from_the_rest_and_names_evidence_without_quoting_it(world: World) -> None:
    elsewhere = replace(HERE, conversation="elsewhere")
    (said,) = world.say("Yes, the lamp is blue, keep it secret.", thread=elsewhere)
    fact = world.remember("The lamp is blue.", evidence=[said])
    how = world.remember("To mend a lamp, pull the plug first.", plane=Plane.PROCEDURAL)
    report = recall(world)
    assert [hit.id for hit in report.procedural_hits] == [how]
    assert [(hit.id, hit.evidence_ids) for hit in report.working.hits] == [(fact, (said,))]
    assert "secret" not in full_repr(report)
    assert (report.agent_skill_hits, report.agent_skill_reason) == ((), "no_agent_skill_directory")
    assert (report.agent_tool_hints, report.tool_experience_status.reason) == ((), "no_governed_tool_experience")
    assert (report.graph_hits, report.graph_reason) == ((), "no_memory_graph")


def test_what_was_said_elsewhere_is_not_shown_though_what_was_learned_from_it_is(world: World) -> None:
    for thread in (
        replace(HERE, conversation="elsewhere"),
        replace(HERE, channel="mail"),
        replace(HERE, app="other"),
        replace(HERE, subject="bob"),
        Scope(conversation="here"),
    ):
        world.say("The lamp is a canary.", thread=thread)
    world.remember("The lamp is bound to another talk, canary.", Scope(subject="ana", conversation="elsewhere"))
    world.remember("The lamp is Bob's canary.", Scope(subject="bob"))
    mine = world.remember("The lamp is Ana's.")
    ours = world.remember("The lamp is everybody's.", Scope())
    bound = world.remember("The lamp is of this talk.", Scope(subject="ana", conversation="here"))
    shown = project(world)
    assert {record.id for record in shown.context.records} == {mine, ours, bound}
    assert {hit.id for hit in recall(world).working.hits} == {mine, ours, bound}
    assert "canary" not in full_repr((shown, recall(world), inspect(world)))


def test_without_a_conversation_only_what_was_learned_is_shown(world: World) -> None:
    world.say("The lamp was said.")
    fact = world.remember("The lamp was learned.")
    report = project(world, scope=None)
    assert [record.id for record in report.context.records] == [fact]
    assert report.context.recent_messages == ()
    assert report.audit.conversation_id is None
    missed = {source.plane: source.miss_reason for source in report.audit.sources}
    assert missed["transcript"] is missed["recent_messages"] is OmissionReason.NO_CONVERSATION
    assert [hit.id for hit in recall(world, scope=None).working.hits] == [fact]


def test_the_conversation_committed_last_is_the_one_that_is_meant(world: World) -> None:
    (said,) = world.say("The lamp was said.")
    runtime = world.runtime()
    runtime._last = IN_HERE
    assert [hit.id for hit in recall(world, runtime=runtime, scope=None).working.hits] == [said]
    assert project(world, runtime=runtime, scope=None).audit.conversation_id == "here"
    assert project(world, runtime=runtime, scope=MemoryScope(conversation_id="x")).audit.conversation_id == "x"
    assert inspect(world, None, runtime=runtime, scope=None).hygiene.turns == 1


@pytest.mark.parametrize("state", [TranscriptState.MASKED, TranscriptState.ARCHIVED, TranscriptState.RAW_DELETED])
def test_what_is_put_away_masked_or_deleted_is_gone_at_once(world: World, state: TranscriptState) -> None:
    (said,) = world.say("The lamp is a canary.")
    assert "canary" in project(world).system_memory_block
    world.become(state, 1)
    after = project(world)
    assert "canary" not in full_repr((after, recall(world), inspect(world)))
    assert after.system_memory_block == ""
    assert not after.audit.injected
    assert after.context.transcript.redacted_messages == 1
    assert said not in full_repr(after)


def test_what_is_in_quarantine_or_no_longer_true_is_not_shown(world: World) -> None:
    world.remember("The lamp is a canary.", status=Status.QUARANTINED)
    world.remember("The lamp was a canary.", validity=Validity(until=WHEN - timedelta(days=1)))
    assert "canary" not in full_repr((project(world), recall(world)))


@pytest.mark.parametrize(
    "authority", [Authority.PRIVATE_GARDEN_INTERNAL, Authority.SOUL_GOVERNANCE, Authority.OPERATOR_DIAGNOSTIC]
)
def test_a_message_on_private_ground_is_not_shown_even_if_the_private_gate_is_open(
    world: World, authority: Authority
) -> None:
    world.say("The lamp is a canary.", authority=authority)
    runtime = world.runtime(privacy=Privacy(private_plane_projection=True))
    report = project(world, runtime=runtime, include_private=True)
    assert report.audit.private_gate.open
    assert "canary" not in full_repr((report, recall(world), inspect(world)))
    assert report.context.transcript.redacted_messages == 1


def test_a_space_that_is_nobodys_shows_what_is_shared_and_nothing_of_anybodys(world: World) -> None:
    world.remember("The lamp is Ana's canary.")
    world.remember("The lamp is an agent's canary.", Scope(agent="helper"))
    world.say("The lamp is a canary.")
    ours = world.remember("The lamp is everybody's.", Scope())
    runtime = world.runtime(MemoryIdentity())
    reports = [call(world, runtime=runtime) for call in (project, recall, inspect)]
    assert "canary" not in full_repr(reports)
    assert [record.id for record in project(world, runtime=runtime).context.records] == [ours]
    assert inspect(world, None, runtime=runtime).hygiene.memories == 1


def test_another_space_is_another_memory(world: World) -> None:
    world.remember("The lamp is a canary.")
    world.say("The lamp is a canary.")
    runtime = world.runtime(MemoryIdentity("elsewhere", "ana"))
    assert "canary" not in full_repr([call(world, runtime=runtime) for call in (project, recall, inspect)])


# --- chat ids ---------------------------------------------------------------------------------------------------------


def test_a_chat_id_leads_where_a_commit_said_and_one_that_led_to_two_places_leads_nowhere(world: World) -> None:
    world.say("The lamp was said here.")
    by_chat = MemoryScope(chat_id="chat-1")
    assert project(world, scope=by_chat).audit.conversation_id == "chat-1"
    world.alias("chat-1")
    report = project(world, scope=by_chat)
    assert report.audit.conversation_id == "here"
    assert "said here" in report.system_memory_block
    assert recall(world, scope=by_chat).working.hits[0].text == "The lamp was said here."
    assert inspect(world, scope=by_chat).hygiene.turns == 1
    world.say("Another.", thread=replace(HERE, conversation="there"))
    world.alias("chat-1", replace(HERE, conversation="there"))
    for call in (project, recall, inspect):
        with pytest.raises(AliasNotTrusted):
            call(world, scope=by_chat)
        assert [row.outcome for row in world.operations()] == [Outcome.REFUSED]
    # The conversation's own id is unambiguous.
    assert project(world, scope=replace(by_chat, conversation_id="here")).audit.conversation_id == "here"


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pressure", Pressure)
def test_pressure_leaves_its_share_of_the_budget(world: World, pressure: Pressure) -> None:
    for number in range(60):
        world.remember(f"The lamp number {number} is {'very ' * 10} bright.")
    for given in ({"pressure": pressure}, {"mode_input": ModeInput(pressure=pressure)}):
        report = project(world, system_max_len=3_000, **given)
        most = 3_000 * PERCENT[pressure] // 100
        assert report.audit.render_budget_chars == most
        assert report.audit.source_budget_chars == 16_384 * PERCENT[pressure] // 100
        assert most - 120 < len(report.system_memory_block) <= most
        assert report.audit.truncated
        assert report.audit.pressure is pressure
        assert report.lifecycle_report.admission.disposition is Disposition.EXECUTE_NOW


def test_the_least_of_profile_request_and_provider_counts(world: World) -> None:
    for number in range(80):
        world.remember(f"The lamp number {number} is {'very ' * 10} bright.")
    small = world.runtime(profile="esp-embedded-sdk")
    assert project(world, runtime=small, system_max_len=9_000_000).audit.render_budget_chars == 2_048
    assert project(world, runtime=small, system_max_len=9_000_000).audit.source_budget_chars == 1_024
    # The block's texts have their own ceiling.
    report = project(world, runtime=small, system_max_len=9_000_000)
    assert sum(len(record.text) for record in report.context.records) <= 1_024
    assert project(world, system_max_len=500).audit.render_budget_chars == 500
    assert project(world, system_max_len=500, provider_max_chars=300).audit.render_budget_chars == 300
    assert project(world, runtime=small, recent_messages_limit=500).audit.recent_messages_limit == 4


@pytest.mark.parametrize("most", [1, 50, 90, 150, 400])
def test_a_small_block_is_small_or_none(world: World, most: int) -> None:
    world.remember("The lamp is blue. " * 50)
    world.say("The lamp is said to be blue. " * 50)
    report = project(world, system_max_len=most)
    assert len(report.system_memory_block) <= most
    assert report.audit.truncated
    assert report.audit.injected == bool(report.system_memory_block)
    assert all(record.cut for record in report.context.records)


def test_a_host_that_sends_the_conversation_itself_asks_for_no_recent_messages(world: World) -> None:
    world.say("Good morning.")
    report = project(world, recent_messages_limit=0)
    assert report.context.recent_messages == ()


def test_the_last_messages_are_counted_by_message_and_not_by_turn(world: World) -> None:
    *_, last = world.say("One.", "Two.", "Three.")
    assert [message.id for message in project(world, recent_messages_limit=1).context.recent_messages] == [last]


def test_many_short_records_fill_a_block_and_those_that_were_not_looked_at_count_as_cut_off(world: World) -> None:
    for number in range(110):
        world.remember(f"Lamp {number}.")
    report = project(world, system_max_len=4_000)
    assert report.projection_faithfulness.lines == 100
    assert report.audit.candidates == 110
    assert report.audit.omitted == {}
    assert report.audit.truncated


def test_recall_gives_few_procedures_and_no_more_than_were_asked_for(world: World) -> None:
    for number in range(6):
        world.remember(f"To mend lamp {number}, pull the plug.", plane=Plane.PROCEDURAL)
    assert [len(recall(world, limit=limit).procedural_hits) for limit in (2, 8)] == [2, 4]
    (said,) = world.say("My lamp is broken.")
    assert [(hit.id, hit.evidence_ids) for hit in recall(world).working.hits] == [(said, ())]


def test_the_same_state_gives_the_same_projection_whenever_it_is_asked(world: World) -> None:
    for number in range(30):
        world.remember(f"The lamp number {number} is bright.")
    world.say("The lamp is out.", "Indeed.")
    first = project(world, system_max_len=900)
    world.clock.advance(days=40)
    again = project(world, system_max_len=900)
    assert replace(first, lifecycle_report=again.lifecycle_report) == again
    assert first.audit.projection_id.startswith("prj_")
    world.remember("The lamp is gone.")
    assert project(world, system_max_len=900).audit.projection_id != first.audit.projection_id


# --- the private gate -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "given", "reason"),
    [
        (True, {"include_private": True}, "allowed"),
        (True, {}, "not_requested"),
        (False, {"include_private": True}, "privacy_policy"),
        (True, {"include_private": True, "mode_input": ModeInput(foreground=False)}, "foreground_disclosure"),
        (True, {"include_private": True, "mode_input": ModeInput(booting=True)}, "lifecycle_private_depth"),
        (True, {"include_private": True, "pressure": Pressure.CAUTIOUS}, "lifecycle_private_depth"),
    ],
)
@pytest.mark.parametrize("plane", [Plane.PRIVATE, Plane.SOUL_CANDIDATE])
def test_private_memories_are_shown_only_through_an_open_gate(
    world: World, plane: Plane, policy: bool, given: dict[str, Any], reason: str
) -> None:
    secret = world.remember("The lamp is a canary.", plane=plane)
    world.remember("The lamp is blue.")
    runtime = world.runtime(privacy=Privacy(private_plane_projection=policy))
    report = project(world, runtime=runtime, **given)
    gate = report.audit.private_gate
    assert gate.reason == reason
    assert gate.requested == ("include_private" in given)
    assert gate.open == (reason == "allowed") == ("canary" in report.system_memory_block)
    assert (secret in full_repr(report)) == gate.open
    assert report.private_disclosure_integrity.private_records == int(gate.open)
    assert report.private_disclosure_integrity.kept
    assert "The lamp is blue." in report.system_memory_block
    # Recall and inspection have no such gate, and never show private records.
    assert "canary" not in full_repr((recall(world, runtime=runtime), inspect(world, runtime=runtime)))


def test_what_is_forbidden_keeps_the_gate_closed_too(world: World) -> None:
    world.remember("The lamp is a canary.", plane=Plane.PRIVATE)
    runtime = world.runtime(
        privacy=Privacy(private_plane_projection=True), forbidden=frozenset({"project_private_planes"})
    )
    report = project(world, runtime=runtime, include_private=True)
    assert report.audit.private_gate.reason == "runtime_private_context"
    assert "canary" not in full_repr(report)


# --- inspection -------------------------------------------------------------------------------------------------------


def test_an_inspection_says_what_there_is_and_what_was_deferred(world: World) -> None:
    world.remember("The lamp is blue.")
    deferred = world.remember("The lamp is, it says of itself, wise.", status=Status.QUARANTINED)
    world.say("One lamp.")
    world.say("Two lamps.")
    world.become(TranscriptState.MASKED, 2)
    report = inspect(world)
    hygiene = report.hygiene
    assert (hygiene.memories, hygiene.turns, hygiene.turns_counted) == (2, 2, 2)
    assert hygiene.turns_by_state == {TranscriptState.ACTIVE: 1, TranscriptState.MASKED: 1}
    assert [memory.id for memory in report.deferred_governance.memories] == [deferred]
    assert not report.deferred_governance.more
    assert "wise" not in full_repr(report)
    assert report.working.recall is not None
    assert report.working.projection is not None
    assert {hit.kind for hit in report.working.recall.hits} == {HitKind.MEMORY, HitKind.MESSAGE}
    assert report.capabilities["recall"].visible
    assert (report.agent_skill_directory.entries, report.agent_skill_directory.reason) == (
        (),
        "no_agent_skill_directory",
    )
    assert (report.agent_tool_registry.registries, report.agent_tool_registry.reason) == ((), "no_agent_tool_registry")
    assert report.operator_action_report.events == ()


def test_an_inspection_without_a_query_recalls_nothing(world: World) -> None:
    world.remember("The lamp is blue.")
    report = inspect(world, None, scope=None)
    assert (report.working.recall, report.working.projection) == (None, None)
    assert report.hygiene.memories == 1
    assert (report.hygiene.turns, report.hygiene.turns_by_state) == (0, {})


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_each_call_leaves_one_row_and_changes_nothing(world: World) -> None:
    world.remember("The lamp is blue.")
    world.say("The lamp is out.")
    partition = Scope(subject="ana").partition
    before = world.read(lambda reader: reader.index.change_of(partition))
    rows = len(world.operations(1_000))
    runtime = world.runtime()
    for call, action, touched in (
        (project, Action.PROJECT, 2),
        (recall, Action.RECALL, 2),
        (inspect, Action.INSPECT, 0),
    ):
        report = call(world, runtime=runtime)
        found = world.operations(1_000)
        assert len(found) == (rows := rows + 1)
        assert (found[-1].action, found[-1].outcome, found[-1].record_count) == (action, Outcome.SUCCEEDED, touched)
        course = report.lifecycle_report
        assert (course.operation, course.success, course.changed, course.event_id) == (action, True, False, None)
        assert course.started_at <= course.finished_at
    assert world.read(lambda reader: reader.index.change_of(partition)) == before
    assert world.read(lambda reader: list(reader.events.page(10))) == []


def test_a_projection_for_an_audit_leaves_an_event_that_names_what_was_shown_and_holds_no_text(world: World) -> None:
    remembered = world.remember("The lamp is blue.")
    (said,) = world.say("The lamp is out.")
    report = project(world, audit_id="audit-7")
    events = world.read(lambda reader: list(reader.events.page(10)))
    # At once, and with its row: the trail is read here before anything else is committed.
    (row,) = world.read(lambda reader: list(reader.operations.page(limit=1)))
    assert (row.action, row.record_count) == (Action.PROJECT, 2)
    assert [(event.kind, event.id, event.scope) for event in events] == [
        (EventKind.PROJECTION, report.lifecycle_report.event_id, HERE)
    ]
    assert (events[0].record_key, events[0].content_hash) == (None, None)
    details = dict(events[0].details)
    assert set(str(details.pop("ids")).split()) == {remembered, said}
    assert details == {"audit_id": "audit-7", "records": 2, "private": 0, "chars": len(report.system_memory_block)}
    assert "lamp" not in full_repr(events)
    user = world.runtime(actor=Actor(ActorKind.USER, "ana"))
    assert project(world, runtime=user, audit_id="audit-8").lifecycle_report.event_id is not None
    assert len(world.read(lambda reader: list(reader.events.page(10)))) == 2


P, R, I = MemoryProjectionRequest, MemoryRecallRequest, MemoryInspectionRequest  # noqa: E741
WRONG: list[tuple[Any, str]] = [
    *((P("lamp", system_max_len=value), "system_max_len") for value in (0, -1, 10**9, True, 4_096.0, "4096", None)),
    *((I("lamp", system_max_len=value), "system_max_len") for value in (0, -1, 10**9)),
    *((P("lamp", recent_messages_limit=value), "recent_messages_limit") for value in (-1, 10**6, True, None)),
    *((P("lamp", provider_max_chars=value), "provider_max_chars") for value in (0, -5, "1")),
    *((P("lamp", audit_id=value), "audit_id") for value in ("", " ", "x" * 257, 7)),
    *((P("lamp", pressure=value), "pressure") for value in ("high", None, 1)),
    *((P("lamp", include_private=value), "include_private") for value in ("no", 1, None)),
    *((P("lamp", mode_input=value), "mode_input") for value in (None, "normal", {})),
    (P("lamp", mode_input=ModeInput(booting="no")), "mode_input.booting"),
    (P("lamp", mode_input=ModeInput(pressure="high")), "pressure"),
    *((P(value), "user_query") for value in ("", "  ", None, 7, "x" * 20_001, "a\x00")),
    *((R(value), "query") for value in ("", None, "\ud800")),
    *((R("lamp", limit=value), "limit") for value in (0, -1, 201, True, "8")),
    *((kind("lamp", tool_registry_refs=value), "tool_registry_refs") for kind in (P, R) for value in ("x", ("x",), [])),
    (R("lamp", tool_registry_refs=(ToolRegistryRef("", "f"),)), "tool_registry_refs.registry_id"),
    *((kind("lamp", scope=value), "scope") for kind in (P, R, I) for value in ("here", 7, {})),
    (P("lamp", scope=MemoryScope(conversation_id="")), "conversation_id"),
    (R("lamp", scope=MemoryScope(channel="", conversation_id="x")), "channel"),
    (I("lamp", scope=MemoryScope(chat_id=" ")), "chat_id"),
    (P("lamp", scope=MemoryScope()), "conversation_id"),
    *((kind("lamp", min_score=wrong), "min_score") for kind in (P, R) for wrong in (-0.1, 1.1, float("nan"), "0.5")),
    (b"lamp", "request"),
]


@pytest.mark.parametrize(("request_given", "field"), WRONG, ids=lambda value: str(value)[:60])
def test_bad_input_is_refused_by_name_with_a_row(clock: SteppingClock, request_given: Any, field: str) -> None:
    with opened(":memory:", clock) as world:
        runtime = world.runtime()
        call = {P: runtime.project, R: runtime.recall, I: runtime.inspect}.get(type(request_given), runtime.project)
        with pytest.raises((InvalidInput, InvalidScope, InvalidText)) as refused:
            world.run(call(request_given))
        assert refused.value.field == field
        assert [(row.outcome, row.error_code) for row in world.operations()] == [(Outcome.REFUSED, refused.value.code)]


def test_what_the_policy_forbids_is_unavailable_and_leaves_its_row(world: World) -> None:
    runtime = world.runtime(privacy=Privacy(prompt_projection=False))
    with pytest.raises(CapabilityUnavailable, match="privacy"):
        project(world, runtime=runtime)
    assert [row.action for row in world.operations()] == [Action.PROJECT]
    recall(world, runtime=runtime)


@pytest.mark.parametrize(
    "identity", [MemoryIdentity(subject_id="ana"), MemoryIdentity(), MemoryIdentity("south", "bob")]
)
def test_a_stranger_is_refused(world: World, identity: MemoryIdentity) -> None:
    runtime = world.runtime(identity, actor=Actor(ActorKind.USER, "bob"))
    for call in (project, recall, inspect):
        with pytest.raises(AccessDenied):
            call(world, runtime=runtime)
    assert {row.outcome for row in world.operations(3)} == {Outcome.REFUSED}


def test_a_user_sees_its_own_memory(world: World) -> None:
    world.remember("The lamp is Bob's.", Scope(subject="bob"))
    runtime = world.runtime(MemoryIdentity(subject_id="bob"), actor=Actor(ActorKind.USER, "bob"))
    assert "Bob's" in project(world, runtime=runtime).system_memory_block


# --- the reports ------------------------------------------------------------------------------------------------------

CONTRACT = {
    MemoryRecallReport: "query procedural_hits agent_skill_hits agent_tool_hints tool_experience_status working"
    " lifecycle_report",
    MemoryProjectionReport: "system_memory_block context audit runtime_projection life_projection work_integrity"
    " subject_projection projection_faithfulness private_disclosure_integrity lifecycle_report",
    ProjectionAudit: "projection_id profile identity scope memory_space_id subject_id conversation_id"
    " source_budget_chars render_budget_chars system_memory_chars injected truncated private_gate source_authority"
    " agent_skills agent_tools"
    " sources sections",
    PrivateGate: "privacy_policy_allowed lifecycle_private_depth_allowed runtime_private_context_allowed"
    " foreground_disclosure_allowed reason",
    SourceAudit: "plane backend candidate_count selected_count selected_ids miss_reason",
    SectionAudit: "name chars included",
    MemoryInspectionReport: "working hygiene deferred_governance agent_skill_directory agent_tool_registry capabilities"
    " operator_action_report lifecycle_report",
}


@pytest.mark.parametrize("report", CONTRACT, ids=lambda report: report.__name__)
def test_every_field_of_the_contract_is_there(report: Any) -> None:
    assert set(CONTRACT[report].split()) <= {part.name for part in fields(report)}


def test_every_empty_list_has_its_reason(world: World) -> None:
    for report in (project(world), project(world).audit, recall(world)):
        given = {part.name: getattr(report, part.name) for part in fields(report)}
        for name in (
            "agent_skills",
            "agent_tools",
            "runtime_projection",
            "life_projection",
            "work_integrity",
            "graph_hits",
        ):
            if name in given:
                assert given[name] == ()
                assert given.get(f"{name}_reason") or given["graph_reason"]
    assert asdict(project(world).audit)["private_gate"]["reason"] == "not_requested"
