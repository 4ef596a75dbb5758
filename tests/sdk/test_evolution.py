"""Proposals through the runtime: validated, decided by operators, written by `write`, gone with their evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind
from holdfast.app import _open_archive
from holdfast.domain.access import SYSTEM, Action, ActorRole, authorize
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.operations import Outcome
from holdfast.domain.profiles import PROFILES
from holdfast.domain.proposals import MAX_PENDING
from holdfast.domain.runtime_skills import SkillStatus
from holdfast.errors import AccessDenied, BudgetExceeded, CapabilityUnavailable, InvalidInput, NotFound
from holdfast.sdk import (
    GovernanceNoteCandidate,
    MemoryMaintainRequest,
    MemoryProposal,
    MemoryRuntime,
    MemoryScope,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryWriteRequest,
    ProceduralMemoryCandidate,
    ProposalApproveRequest,
    ProposalListRequest,
    ProposalRejectRequest,
    ProposalStatus,
    RuntimeSkillDetailRequest,
    RuntimeSkillWrite,
    SkillSource,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.sdk.builder import Plan
from holdfast.settings import Settings, read_settings
from holdfast.stores.copying import TABLES
from holdfast.testing.fakes import ScriptedPrompts
from holdfast.testing.replay.proposal_trial import try_proposal
from holdfast.testing.store_suite.scribe import EVERYTHING
from probes import audit_trail

PROFILE = "server-linux-dev-full"
CHAT = MemoryScope("web", conversation_id="shop")
STEPS = "Build the image.\nRun the migration on port 5432.\nSwitch the traffic."
DEPLOY = RuntimeSkillWrite(STEPS, title="Deploy the shop", topic="deployment", summary="Build, migrate, switch.")
NAME = "runtime_skill__deploy_the_shop"
CANARY = "zanzibar"
PROPOSAL = MemoryProposal("p-1", PROFILE, (ProceduralMemoryCandidate(DEPLOY),), ("ticket 7",), "It failed twice.")
NOTE = GovernanceNoteCandidate(NAME, "Retire it: the shop is closed.")


def builder(location: str, **identity: Any) -> Any:
    given = {"subject_id": "ana", **identity}
    return MemoryRuntime.builder().store(location).embedder("fake").without_worker().identity(**given)


@pytest.fixture
def runtime(location: str) -> Iterator[MemoryRuntime]:
    with builder(location).open() as runtime:
        yield runtime


def contents(runtime: MemoryRuntime, location: str) -> Mapping[str, Any]:
    """All rows of the store but the audit trail."""
    runtime._portal.run(audit_trail(runtime._behind))  # waits for pending rows
    with closing(_open_archive(location, read_settings(), create=False)) as archive:
        return {
            table.name: [tuple(row) for row in archive.rows(table, None, 1_000_000)]
            for table in TABLES
            if table.name != "operations"
        }


def rows_since(runtime: MemoryRuntime, before: int) -> list[tuple[str, Outcome]]:
    return [(row.action, row.outcome) for row in runtime._portal.run(audit_trail(runtime._behind))[before:]]


def row_count(runtime: MemoryRuntime) -> int:
    return len(runtime._portal.run(audit_trail(runtime._behind)))


def fail(runtime: MemoryRuntime, *turns: str, note: str = "The port was wrong.") -> tuple[str, ...]:
    """Report that the skill failed in each of these turns; return the proposals made."""
    made: tuple[str, ...] = ()
    for text in turns:
        said = (TurnMessage(text), TurnMessage("I will try.", role="assistant"))
        runtime.commit_transcript(MemoryTranscriptCommitRequest(TranscriptTurnInput(text[:60], said, CHAT)))
        used = MemoryMaintainRequest(
            scope=CHAT, runtime_skill_selected_ids=(NAME,), reuse_outcome="mismatch", reuse_outcome_note=note
        )
        made += runtime.maintain(used).evolution_proposals
    return made


# --- a proposal and its approval --------------------------------------------------------------------------------------


def test_an_approved_proposal_is_written_as_a_skill_and_reported(runtime: MemoryRuntime) -> None:
    proposed = runtime.propose(PROPOSAL)
    assert (proposed.accepted, proposed.changed, proposed.reason) == (True, True, "proposed")
    assert runtime.list_runtime_skills().total == 0
    (listed,) = runtime.list_proposals().proposals
    assert (listed.proposal_id, listed.status, listed.author) == ("p-1", ProposalStatus.PENDING, "operator:local")
    before = row_count(runtime)
    report = runtime.approve_proposal(ProposalApproveRequest("p-1", "it works on staging"))
    assert rows_since(runtime, before) == [(Action.APPROVE_PROPOSAL, Outcome.SUCCEEDED)]
    assert (report.accepted, report.reason, report.profile) == (True, "procedural_memory", PROFILE)
    assert (report.submitted_candidates, report.committed_writes) == (1, (NAME,))
    assert (report.write_operation, report.lifecycle_operations) == ("procedural", ("write",))
    assert report.validation is not None
    assert report.validation.accepted
    skill = runtime.get_runtime_skill(RuntimeSkillDetailRequest(NAME))
    assert (skill.procedure_text, skill.source) == (STEPS, SkillSource.PROGRAMMABLE_REASONING)
    shown = runtime.get_proposal("p-1")
    assert (shown.summary.status, shown.decided_by) == (ProposalStatus.APPROVED, "operator:local")
    assert shown.decision_reason == "it works on staging"
    assert shown.proposal == PROPOSAL
    assert runtime.list_proposals().pending == 0
    assert len(runtime.list_proposals(ProposalListRequest(include_decided=True)).proposals) == 1


def test_each_change_of_a_proposal_is_in_the_event_log(runtime: MemoryRuntime, location: str) -> None:
    runtime.propose(PROPOSAL)
    runtime.propose(replace(PROPOSAL, proposal_id="p-2", candidates=(NOTE,)))
    runtime.approve_proposal("p-1")
    runtime.reject_proposal("p-2")
    with holdfast.open(location, embedder="fake", work=False) as memory:
        events = [event for event in memory.events().items if "procedures" in event.details]
    found = [(event.kind.value, event.details["operation"], event.details["notes"]) for event in reversed(events)]
    assert found == [
        ("memory.maintenance", "propose", 0),
        ("memory.maintenance", "propose", 1),
        ("operator.action", "approve_proposal", 0),
        ("operator.action", "reject_proposal", 1),
    ]


def test_a_proposal_sent_again_is_not_stored_twice(runtime: MemoryRuntime) -> None:
    runtime.propose(PROPOSAL)
    again = runtime.propose(PROPOSAL)
    assert (again.accepted, again.changed, again.reason) == (True, False, "proposal_exists")
    other = runtime.propose(replace(PROPOSAL, rationale="Another reason."))
    assert (other.accepted, other.changed, other.reason) == (False, False, "proposal_exists")
    assert runtime.list_proposals().pending == 1


def test_nobody_can_bury_an_operator_in_proposals(runtime: MemoryRuntime) -> None:
    for number in range(MAX_PENDING):
        runtime.propose(replace(PROPOSAL, proposal_id=f"p-{number}", candidates=(NOTE,)))
    with pytest.raises(BudgetExceeded, match="wait for a decision"):
        runtime.propose(replace(PROPOSAL, proposal_id="one more"))
    runtime.reject_proposal("p-0")
    assert runtime.propose(replace(PROPOSAL, proposal_id="one more")).accepted


# --- refusals ---------------------------------------------------------------------------------------------------------


def with_write(**changes: Any) -> MemoryProposal:
    return replace(PROPOSAL, candidates=(ProceduralMemoryCandidate(replace(DEPLOY, **changes)),))


REJECTED: dict[str, MemoryProposal] = {
    "proposal_profile_mismatch": replace(PROPOSAL, profile="esp-embedded-sdk"),
    "proposal_id_empty": replace(PROPOSAL, proposal_id=" "),
    "proposal_evidence_empty": replace(PROPOSAL, evidence_refs=()),
    "proposal_rationale_empty": replace(PROPOSAL, rationale=""),
    "proposal_candidates_empty": replace(PROPOSAL, candidates=()),
    "procedural_candidate_incomplete": with_write(topic=" "),
    "governance_note_incomplete": replace(PROPOSAL, candidates=(NOTE, GovernanceNoteCandidate("", "Retire it."))),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_what_is_not_valid_is_reported_with_its_reason_and_not_stored(
    runtime: MemoryRuntime, location: str, reason: str
) -> None:
    before, rows = contents(runtime, location), row_count(runtime)
    validation = runtime.validate_proposal(REJECTED[reason])
    report = runtime.propose(REJECTED[reason])
    assert (report.accepted, report.changed, report.reason) == (False, False, reason)
    assert report.validation == validation
    assert validation.rejected_count == 1
    assert [each.reason for each in validation.decisions][-1] == reason
    assert rows_since(runtime, rows) == [
        (Action.VALIDATE_PROPOSAL, Outcome.SUCCEEDED),
        (Action.PROPOSE, Outcome.SUCCEEDED),
    ]
    after = contents(runtime, location)
    assert {name for name in before if before[name] != after[name]} <= {"partitions"}


DECISIONS: dict[str, tuple[str, Callable[[MemoryRuntime], Any]]] = {
    "no_such_proposal": ("unknown", lambda it: None),
    "proposal_already_approved": ("p-1", lambda it: (it.propose(PROPOSAL), it.approve_proposal("p-1"))),
    "proposal_already_rejected": ("p-1", lambda it: (it.propose(PROPOSAL), it.reject_proposal("p-1"))),
    "governance_note_requires_future_sdk_operation": (
        "p-1", lambda it: it.propose(replace(PROPOSAL, candidates=(*PROPOSAL.candidates, NOTE))),
    ),
    "raw_payload_or_log": ("p-1", lambda it: it.propose(with_write(content='{"a": [1, 2]}'))),
    "weak_procedure": ("p-1", lambda it: it.propose(with_write(content="Thanks!"))),
}  # fmt: skip


@pytest.mark.parametrize("reason", DECISIONS)
def test_an_approval_that_cannot_be_carried_out_changes_nothing(
    runtime: MemoryRuntime, location: str, reason: str
) -> None:
    proposal_id, prepare = DECISIONS[reason]
    prepare(runtime)
    before, rows = contents(runtime, location), row_count(runtime)
    report = runtime.approve_proposal(proposal_id)
    assert (report.accepted, report.reason, report.committed_writes) == (False, reason, ())
    assert rows_since(runtime, rows) == [(Action.APPROVE_PROPOSAL, Outcome.SUCCEEDED)]
    assert contents(runtime, location) == before


def test_a_proposal_about_a_deleted_skill_is_gone_with_it(runtime: MemoryRuntime) -> None:
    runtime.write(MemoryWriteRequest.procedural(DEPLOY))
    runtime.propose(with_write(name=NAME, content=STEPS.replace("5432", "5433")))
    runtime.propose(replace(PROPOSAL, proposal_id="p-2", candidates=(NOTE,)))
    runtime.propose(replace(PROPOSAL, proposal_id="p-3", evidence_refs=(NAME,)))
    runtime.delete_runtime_skill(NAME)
    assert runtime.list_proposals().pending == 0
    for proposal_id in ("p-1", "p-2", "p-3"):
        assert runtime.approve_proposal(proposal_id).reason == "no_such_proposal"
    assert runtime.list_runtime_skills().total == 0
    with pytest.raises(NotFound, match="list them"):
        runtime.get_proposal("p-1")


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda: replace(PROPOSAL, candidates=("a text",)), r"candidates\[0\]"),
        (lambda: replace(PROPOSAL, candidates=(ProceduralMemoryCandidate("x"),)), r"candidates\[0\].write"),  # type: ignore[arg-type]
        (lambda: replace(PROPOSAL, evidence_refs="ticket"), "evidence_refs"),
        (lambda: replace(PROPOSAL, evidence_refs=(7,)), "evidence_refs"),
        (lambda: replace(PROPOSAL, rationale="x" * 5_000), "rationale"),
        (lambda: replace(PROPOSAL, proposal_id="a\0b"), "proposal_id"),
        (lambda: with_write(title="x" * 500), r"candidates\[0\].write.title"),
        (lambda: with_write(content="x" * 50_000), r"candidates\[0\].write.content"),
        (
            lambda: replace(PROPOSAL, candidates=with_write(content="x" * 9_000).candidates * 2),
            "candidates: hold 18,000",
        ),
    ],
)
def test_a_malformed_proposal_is_refused_by_its_field(
    runtime: MemoryRuntime, spoil: Callable[[], MemoryProposal], field: str
) -> None:
    rows = row_count(runtime)
    with pytest.raises(InvalidInput, match=field):
        runtime.propose(spoil())
    assert rows_since(runtime, rows) == [(Action.PROPOSE, Outcome.REFUSED)]


# --- who decides ------------------------------------------------------------------------------------------------------

ACTORS = {
    "a user": (Actor(ActorKind.USER, "ana"), {}),
    "an agent": (Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"})), {"agent_id": "bot"}),
    "a curator": (Actor(ActorKind.AGENT, "bot", role=ActorRole.CURATOR), {"agent_id": "bot", "subject_id": None}),
}


@pytest.mark.parametrize("who", ACTORS)
def test_whoever_may_write_may_propose_and_only_an_operator_decides(location: str, who: str) -> None:
    actor, identity = ACTORS[who]
    with builder(location, **identity).actor(actor).open() as runtime:
        assert runtime.propose(PROPOSAL).accepted
        assert runtime.list_proposals().proposals[0].author == str(actor)
        for decide in (runtime.approve_proposal, runtime.reject_proposal):
            with pytest.raises(AccessDenied, match="ask an operator"):
                decide("p-1")
        assert runtime.list_runtime_skills().total == 0
    clerk = Actor(ActorKind.OPERATOR, "clerk", space="default")
    with builder(location, **identity).actor(clerk).open() as operator:
        assert operator.approve_proposal("p-1").accepted


@pytest.mark.parametrize("action", [Action.APPROVE_PROPOSAL, Action.REJECT_PROPOSAL])
def test_not_even_the_system_decides(action: Action) -> None:
    with pytest.raises(AccessDenied, match="ask an operator"):
        authorize(SYSTEM, action, MemoryIdentity(subject_id="ana").scope)


TIERS = {"server-linux-dev-full": "full", "esp-standalone-memory": "preview", "esp-embedded-sdk": "preview"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_tries_and_submits_what_its_capabilities_allow(profile: str) -> None:
    proposal, tier = replace(PROPOSAL, profile=f"profile-{profile}"), TIERS.get(profile, "compact")
    with builder(":memory:").profile(profile).open() as runtime:
        validation = runtime.validate_proposal(proposal)
        assert validation.tier == tier
        if tier == "preview":
            assert validation.reason == "procedural_candidate_sandbox_not_allowed"
            assert runtime.propose(replace(proposal, candidates=(NOTE,))).accepted
            assert runtime.approve_proposal("p-1").reason == "proposal_submission_not_allowed_for_profile"
        else:
            assert runtime.propose(proposal).accepted
            assert runtime.approve_proposal("p-1").accepted


def test_a_host_can_switch_proposals_off(location: str) -> None:
    with builder(location).switch_off("propose").open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(DEPLOY))
        assert fail(runtime, "It did not work.", "It failed again.") == ()
        assert runtime.list_proposals().pending == 0
    with builder(location).switch_off("proposal_preview", "approve_proposal").open() as runtime:
        assert runtime.propose(PROPOSAL).reason == "proposal_preview_not_allowed_for_profile"
        with pytest.raises(CapabilityUnavailable, match="approve_proposal"):
            runtime.approve_proposal("p-1")


# --- the sandbox ------------------------------------------------------------------------------------------------------


def test_a_trial_measures_on_a_copy_and_changes_nothing(location: str) -> None:
    plan = Plan(location=location, identity=MemoryIdentity(subject_id="ana"), embedder="fake", settings=Settings())
    with builder(location).open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(DEPLOY))
        proposal = with_write(title="Back up the shop", content="Mount the disk.\nCopy the archive.\nCompare sums.")
        runtime.propose(proposal)
        runtime.validate_proposal(proposal)
        before = contents(runtime, location)
        trial = asyncio.run(try_proposal(plan, proposal))
        after = contents(runtime, location)
        assert {name for name in before if before[name] != after[name]} <= {"events"}
        assert (trial.cases, trial.passed, trial.rejected) == (1, True, ())
        assert trial.before.mrr == trial.after.mrr == 1.0
        assert [each.measurement.name for each in trial.results] == [NAME, "runtime_skill__back_up_the_shop"]
        assert "copy" in trial.measured
        assert runtime.list_runtime_skills().total == 1


def test_a_trial_fails_if_a_known_skill_is_found_worse(location: str) -> None:
    plan = Plan(location=location, identity=MemoryIdentity(subject_id="ana"), embedder="fake", settings=Settings())
    known = RuntimeSkillWrite("Open the box.\nSort the letters.", title="Post", topic="post", summary="Sort it.")
    with builder(location).open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(known))
        loud = [
            RuntimeSkillWrite(
                f"Post post post.\nPost {each} post.", title=f"Post {each}", topic="post", summary="Post."
            )
            for each in ("north", "south", "east", "west", "up", "down")
        ]
        proposal = replace(PROPOSAL, candidates=tuple(ProceduralMemoryCandidate(each) for each in loud))
        trial = asyncio.run(try_proposal(plan, proposal))
        assert not trial.passed
        assert "runtime_skill__post" in trial.changed
        assert trial.after.mrr < trial.before.mrr
        assert runtime.list_runtime_skills().total == 1
    with pytest.raises(CapabilityUnavailable, match="full_proposal_sandbox"):
        asyncio.run(try_proposal(replace(plan, profile="linux-device-standalone-memory"), proposal))


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_forgetting_the_evidence_of_a_proposal_leaves_no_byte_of_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with builder(str(path)).open() as runtime:
        said = runtime.commit_transcript(
            MemoryTranscriptCommitRequest(TranscriptTurnInput("t-1", (TurnMessage("I hid it there."),), CHAT))
        )
        steps = f"Take the boat to {CANARY}.\nAsk for the key."
        for number, evidence in enumerate((f"chat#message={said.message_ids[0]}", said.message_ids[0])):
            runtime.propose(
                replace(with_write(content=steps), proposal_id=f"{CANARY}-{number}", evidence_refs=(evidence,))
            )
        runtime.approve_proposal(f"{CANARY}-0")
        runtime.delete_runtime_skill(NAME)
        assert runtime.list_proposals().pending == 1
        assert runtime.get_proposal(f"{CANARY}-1").evidence[0].known
    with holdfast.open(path, embedder="fake", work=False) as memory:
        assert memory.forget(said.message_ids[0], subject="ana").scrubbed
        assert memory.verify().ok
    with builder(str(path)).open() as runtime:
        assert runtime.list_proposals(ProposalListRequest(include_decided=True)).proposals == ()
    raw = b"".join(each.read_bytes() for each in tmp_path.glob("memory.db*"))
    assert CANARY.encode() not in raw


def test_a_proposal_goes_with_the_document_that_it_rests_on(runtime: MemoryRuntime, location: str) -> None:
    with holdfast.open(location, embedder="fake", work=False) as memory:
        document = memory.add_resource("Take the boat.", name="boats.txt", subject="ana").resource
        runtime.propose(replace(PROPOSAL, evidence_refs=(document.id,)))
        assert runtime.get_proposal("p-1").evidence[0].known
        memory.delete_resource(document.id, subject="ana")
    assert runtime.list_proposals().pending == 0


@pytest.mark.parametrize(("transition", "shown_after_restoring"), [("mask", True), ("delete_raw", False)])
def test_a_proposal_is_hidden_with_its_masked_turn_and_gone_with_a_deleted_one(
    runtime: MemoryRuntime, transition: str, shown_after_restoring: bool
) -> None:
    said = runtime.commit_transcript(
        MemoryTranscriptCommitRequest(TranscriptTurnInput("t-1", (TurnMessage("I hid it there."),), CHAT))
    )
    runtime.propose(replace(PROPOSAL, evidence_refs=said.message_ids[:1]))
    runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest(transition, "asked for", CHAT))
    assert runtime.list_proposals().proposals == ()
    assert runtime.approve_proposal("p-1").reason == "no_such_proposal"
    assert runtime.reject_proposal("p-1").reason == "no_such_proposal"
    runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("restore", "asked for", CHAT))
    assert len(runtime.list_proposals().proposals) == shown_after_restoring


# --- proposals of `maintain` ------------------------------------------------------------------------------------------


def test_a_skill_that_failed_twice_becomes_a_note_without_a_model(runtime: MemoryRuntime) -> None:
    runtime.write(MemoryWriteRequest.procedural(DEPLOY))
    assert fail(runtime, "It did not work.") == ()
    (proposal_id,) = fail(runtime, "It failed again.", "And again.")
    shown = runtime.get_proposal(proposal_id)
    assert [type(each) for each in shown.proposal.candidates] == [GovernanceNoteCandidate]
    assert shown.proposal.notes[0].target == NAME
    assert shown.summary.author == "maintain"
    assert all(each.known for each in shown.evidence)
    kinds = [each.reference.partition("_")[0] for each in shown.evidence]
    assert kinds == ["mem", "evt", "evt", "msg", "msg"]
    assert runtime.list_proposals().pending == 1
    runtime.reject_proposal(ProposalRejectRequest(proposal_id, "edited by hand"))
    assert len(fail(runtime, "It still fails.")) == 1


def test_a_skill_that_failed_twice_is_worded_again_by_a_model(location: str) -> None:
    model = ScriptedPrompts()
    steps = STEPS.replace("5432", "5433").splitlines()
    model.answers = {"procedures": [{"title": "Deploy", "steps": steps, "messages": [1]}]}
    with builder(location).model(model).open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(DEPLOY))
        (proposal_id,) = fail(runtime, "It did not work.", "The port is 5433.", "It is 5433.")
        shown = runtime.get_proposal(proposal_id)
        (write,) = shown.proposal.writes
        assert (write.name, write.content, shown.summary.author) == (NAME, "\n".join(steps), "curator:scripted")
        assert shown.validation.accepted
        costs = runtime._portal.run(
            runtime._behind.service._core.store.read(EVERYTHING, lambda r: r.costs.page(None, 9))
        )  # type: ignore[attr-defined]
        charged = [each.operation_id for each in costs if "job" not in each.usage.details]
        operations = {row.id: row.action for row in runtime._portal.run(audit_trail(runtime._behind))}
        assert [operations[each] for each in charged] == [Action.MAINTAIN]
        skill = runtime.get_runtime_skill(NAME)
        assert (skill.procedure_text, skill.summary.status) == (STEPS, SkillStatus.LOW_VALUE)
        assert runtime.approve_proposal(proposal_id).committed_writes == (NAME,)
        skill = runtime.get_runtime_skill(NAME)
        assert (skill.procedure_text, skill.summary.status) == ("\n".join(steps), SkillStatus.ACTIVE)
        assert not skill.summary.revision_pending


@pytest.mark.parametrize("steps", [[], STEPS.splitlines(), ["Thanks!"]], ids=["none", "the same", "weak"])
def test_a_model_without_a_better_wording_leads_to_a_note(location: str, steps: list[str]) -> None:
    model = ScriptedPrompts()
    with builder(location).model(model).open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(DEPLOY))
        model.answers = {"procedures": [{"title": "Deploy", "steps": steps, "messages": [1]}] if steps else []}
        (proposal_id,) = fail(runtime, "It did not work.", "It failed again.")
        assert runtime.get_proposal(proposal_id).summary.notes == 1
