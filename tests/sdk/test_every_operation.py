"""Rules for every operation of a runtime: one row, typed refusals, and nothing of other owners."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind, Status
from holdfast.domain.access import LOCAL_OPERATOR, OF_THE_RUNTIME, Action
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.profiles import PROFILES
from holdfast.errors import (
    AccessDenied,
    CapabilityUnavailable,
    HoldfastError,
    InvalidCursor,
    InvalidInput,
    InvalidScope,
    InvalidSnapshot,
    ManifestMismatch,
    NotFound,
    StoreClosed,
)
from holdfast.sdk import (
    AgentTool,
    AgentToolRegistry,
    AgentToolRegistryDeleteRequest,
    AgentToolRegistryDetailRequest,
    AgentToolRegistryListRequest,
    AsyncMemoryRuntime,
    CanonicalTurnDelta,
    MemoryCloseRequest,
    MemoryExportRequest,
    MemoryImportRequest,
    MemoryInspectionRequest,
    MemoryMaintainRequest,
    MemoryProjectionRequest,
    MemoryProposal,
    MemoryRecallRequest,
    MemoryReplayRequest,
    MemoryRuntime,
    MemoryScope,
    MemorySpaceImportRequest,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayRequest,
    MemoryWriteCandidate,
    MemoryWriteRequest,
    ProceduralMemoryCandidate,
    ProposalApproveRequest,
    ProposalDetailRequest,
    ProposalListRequest,
    ProposalRejectRequest,
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListRequest,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillWrite,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.testing.full_repr import full_repr
from probes import audit_trail

SKILL = "runtime_skill__fly"
TOOLS = AgentToolRegistry("host-tools", (AgentTool("book", "schema-1"),))
CHAT = MemoryScope("web", conversation_id="trip")


def builder(location: str, **identity: Any) -> Any:
    given = {"subject_id": "ana", **identity}
    return MemoryRuntime.builder().store(location).embedder("fake").without_worker().identity(**given)


def turn(text: str, turn_id: str = "t-1", where: MemoryScope | None = CHAT) -> MemoryTranscriptCommitRequest:
    messages = (TurnMessage(text), TurnMessage("Noted.", role="assistant"))
    return MemoryTranscriptCommitRequest(TranscriptTurnInput(turn_id, messages, where))


def proposal(proposal_id: str, place: str = "Porto") -> MemoryProposal:
    write = RuntimeSkillWrite(
        f"Call the hotel in {place}.\nAsk for a late checkout.",
        title=f"Stay {proposal_id}",
        topic="trip",
        summary="Call.",
    )
    candidates = (ProceduralMemoryCandidate(write),)
    return MemoryProposal(proposal_id, "server-linux-dev-full", candidates, ("ticket 7",), f"{place} is far.")


class Known:
    """A runtime with a turn and a memory."""

    def __init__(self, runtime: MemoryRuntime) -> None:
        self.runtime = runtime
        self.committed = runtime.commit_transcript(turn("I fly to Porto on 3 May."))
        runtime.write(MemoryWriteRequest.candidates(self.candidate("c-1", "Ana flies to Porto on 3 May.")))
        flying = RuntimeSkillWrite("Book the flight, then the hotel.", title="Fly")
        packing = RuntimeSkillWrite("Pack light shirts and a rain coat.", title="Pack")
        runtime.write(MemoryWriteRequest.procedural(flying, packing))
        for proposal_id in ("p-1", "p-2"):
            runtime.propose(proposal(proposal_id))
        runtime.upsert_agent_tool_registry(TOOLS)
        runtime.upsert_agent_tool_registry(replace(TOOLS, registry_id="spare-tools"))
        self.space = runtime.export_space().content
        self.snapshot = runtime.export(MemoryExportRequest(scope=CHAT)).snapshot

    def candidate(self, candidate_id: str, content: str) -> MemoryWriteCandidate:
        return MemoryWriteCandidate(
            candidate_id, "user_asserted", content, evidence_refs=(self.committed.message_ids[0],)
        )


@pytest.fixture
def known(location: str) -> Iterator[Known]:
    with builder(location).open() as runtime:
        yield Known(runtime)


def trail(runtime: MemoryRuntime) -> Sequence[Operation]:
    return runtime._portal.run(audit_trail(runtime._behind))


def rows_of(runtime: MemoryRuntime, call: Callable[[], Any]) -> tuple[Any, Sequence[Operation]]:
    """Return the call's answer or error, and the rows it left."""
    before = len(trail(runtime))
    try:
        answer = call()
    except HoldfastError as error:
        answer = error
    return answer, trail(runtime)[before:]


DELTA = CanonicalTurnDelta("t-2", "delivered", (TurnMessage("And back on the 9th."),), "Noted.", CHAT)
OPERATIONS: dict[Action, Callable[[Known], Any]] = {
    Action.CAPABILITIES: lambda it: it.runtime.capabilities(),
    Action.WRITE: lambda it: it.runtime.write(
        MemoryWriteRequest.candidates(it.candidate("c-2", "Ana likes window seats."))
    ),
    Action.RECALL: lambda it: it.runtime.recall(MemoryRecallRequest("Porto")),
    Action.PROJECT: lambda it: it.runtime.project(MemoryProjectionRequest("Porto")),
    Action.MAINTAIN: lambda it: it.runtime.maintain(MemoryMaintainRequest(scope=CHAT)),
    Action.INSPECT: lambda it: it.runtime.inspect(MemoryInspectionRequest("Porto")),
    Action.REPLAY: lambda it: it.runtime.replay(MemoryReplayRequest("trip", channel="web")),
    Action.EXPORT: lambda it: it.runtime.export(MemoryExportRequest(scope=CHAT)),
    Action.IMPORT: lambda it: it.runtime.import_(MemoryImportRequest(it.snapshot, "other")),
    Action.RECOVER: lambda it: it.runtime.recover(),
    Action.COMMIT_TRANSCRIPT: lambda it: it.runtime.commit_transcript(turn("A second turn.", "t-3")),
    Action.FINALIZE_TURN: lambda it: it.runtime.finalize_turn_and_maintain(DELTA),
    Action.REPLAY_TRANSCRIPT: lambda it: it.runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", CHAT)),
    Action.TRANSCRIPT_LIFECYCLE: lambda it: it.runtime.request_transcript_lifecycle(
        MemoryTranscriptLifecycleRequest("mask", "asked for", CHAT)
    ),
    Action.REPAIR_TRANSCRIPT: lambda it: it.runtime.repair_transcript(MemoryTranscriptRepairRequest(CHAT)),
    Action.EXPORT_TRANSCRIPT: lambda it: it.runtime.export_transcript(MemoryTranscriptExportRequest(CHAT)),
    Action.EXPORT_SPACE: lambda it: it.runtime.export_space(),
    Action.IMPORT_SPACE: lambda it: it.runtime.import_space(MemorySpaceImportRequest(content=it.space)),
    Action.LIST_SKILLS: lambda it: it.runtime.list_runtime_skills(RuntimeSkillListRequest()),
    Action.GET_SKILL: lambda it: it.runtime.get_runtime_skill(RuntimeSkillDetailRequest(SKILL)),
    Action.EDIT_SKILL: lambda it: it.runtime.edit_runtime_skill(RuntimeSkillEditRequest(SKILL, summary="Book early.")),
    Action.SET_SKILL_ENABLED: lambda it: it.runtime.set_runtime_skill_enabled(
        RuntimeSkillSetEnabledRequest(SKILL, enabled=False)
    ),
    Action.DELETE_SKILL: lambda it: it.runtime.delete_runtime_skill(RuntimeSkillDeleteRequest("runtime_skill__pack")),
    Action.PROPOSE: lambda it: it.runtime.propose(proposal("p-3")),
    Action.VALIDATE_PROPOSAL: lambda it: it.runtime.validate_proposal(proposal("p-4")),
    Action.LIST_PROPOSALS: lambda it: it.runtime.list_proposals(ProposalListRequest()),
    Action.GET_PROPOSAL: lambda it: it.runtime.get_proposal(ProposalDetailRequest("p-1")),
    Action.APPROVE_PROPOSAL: lambda it: it.runtime.approve_proposal(ProposalApproveRequest("p-1")),
    Action.REJECT_PROPOSAL: lambda it: it.runtime.reject_proposal(ProposalRejectRequest("p-2")),
    Action.UPSERT_TOOL_REGISTRY: lambda it: it.runtime.upsert_agent_tool_registry(replace(TOOLS, namespace="other")),
    Action.LIST_TOOL_REGISTRIES: lambda it: it.runtime.list_agent_tool_registries(AgentToolRegistryListRequest()),
    Action.GET_TOOL_REGISTRY: lambda it: it.runtime.get_agent_tool_registry(
        AgentToolRegistryDetailRequest(TOOLS.registry_id)
    ),
    Action.DELETE_TOOL_REGISTRY: lambda it: it.runtime.delete_agent_tool_registry(
        AgentToolRegistryDeleteRequest("spare-tools")
    ),
    Action.CLOSE: lambda it: it.runtime.close(MemoryCloseRequest("done")),
}


def test_every_operation_is_tried() -> None:
    assert set(OPERATIONS) == OF_THE_RUNTIME | {Action.RECALL}


TAKES_A_REQUEST = sorted(
    name
    for name, _ in inspect.getmembers(AsyncMemoryRuntime, inspect.iscoroutinefunction)
    if not name.startswith("_") and name not in ("capabilities", "close")
)


@pytest.mark.parametrize("operation", TAKES_A_REQUEST)
@pytest.mark.parametrize("wrong", [{}, b"ana", 7], ids=repr)
def test_what_is_no_request_is_refused_by_name(known: Known, operation: str, wrong: object) -> None:
    refused, rows = rows_of(known.runtime, lambda: getattr(known.runtime, operation)(wrong))
    assert isinstance(refused, InvalidInput)
    assert f"got {type(wrong).__name__}" in str(refused)
    assert [row.outcome for row in rows] == [Outcome.REFUSED]


@pytest.mark.parametrize("action", sorted(set(OPERATIONS) - {Action.CLOSE}))
def test_every_operation_leaves_exactly_one_row(known: Known, action: Action) -> None:
    answer, rows = rows_of(known.runtime, lambda: OPERATIONS[action](known))
    assert not isinstance(answer, HoldfastError), answer
    assert [(row.action, row.outcome) for row in rows] == [(action, Outcome.SUCCEEDED)]


def test_closing_leaves_its_row_and_nothing_works_after_it(location: str) -> None:
    runtime = builder(location).open()
    known = Known(runtime)
    report = runtime.close(MemoryCloseRequest("done"))
    assert report is not None
    assert report.reason == "done"
    assert report.lifecycle_report.success
    assert runtime.close() is None
    with pytest.raises(StoreClosed):
        known.runtime.recall(MemoryRecallRequest("Porto"))
    with builder(location).open() as again:
        assert [row.action for row in trail(again)].count(Action.CLOSE) == 1


REFUSED: dict[str, tuple[Action, type[HoldfastError], str, Callable[[Known], Any]]] = {
    "an unknown view": (
        Action.REPLAY_TRANSCRIPT, InvalidInput, "view",
        lambda it: it.runtime.replay_transcript(MemoryTranscriptReplayRequest("everything", CHAT)),
    ),
    "a cursor of another conversation": (
        Action.REPLAY_TRANSCRIPT, InvalidCursor, "cursor",
        lambda it: it.runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", CHAT, cursor=elsewhere(it))),
    ),
    "an empty key part": (
        Action.COMMIT_TRANSCRIPT, InvalidScope, "channel",
        lambda it: it.runtime.commit_transcript(turn("Lost.", "t-9", MemoryScope("", conversation_id="trip"))),
    ),
    "an empty conversation": (
        Action.REPLAY_TRANSCRIPT, InvalidScope, "conversation",
        lambda it: it.runtime.replay_transcript(
            MemoryTranscriptReplayRequest("host_ui", MemoryScope("web", conversation_id=" "))
        ),
    ),
    "a snapshot with a wrong fingerprint": (
        Action.IMPORT, InvalidSnapshot, "fingerprint",
        lambda it: it.runtime.import_(MemoryImportRequest(forged(it.snapshot), "other")),
    ),
    "a damaged space": (
        Action.IMPORT_SPACE, InvalidSnapshot, "",
        lambda it: it.runtime.import_space(MemorySpaceImportRequest(content=it.space.replace(b"Porto", b"Paris"))),
    ),
    "a budget of zero": (
        Action.PROJECT, InvalidInput, "system_max_len",
        lambda it: it.runtime.project(MemoryProjectionRequest("Porto", system_max_len=0)),
    ),
    "a page of none": (
        Action.REPLAY_TRANSCRIPT, InvalidInput, "limit",
        lambda it: it.runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", CHAT, limit=0)),
    ),
    "a lifecycle request without a reason": (
        Action.TRANSCRIPT_LIFECYCLE, InvalidInput, "reason",
        lambda it: it.runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("mask", " ", CHAT)),
    ),
    "an unknown transition": (
        Action.TRANSCRIPT_LIFECYCLE, InvalidInput, "transition",
        lambda it: it.runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("burn", "why not", CHAT)),
    ),
    "an unknown authority": (
        Action.WRITE, InvalidInput, "authority",
        lambda it: it.runtime.write(
            MemoryWriteRequest.candidates(replace(it.candidate("c-9", "Ana is the king."), authority="royal"))
        ),
    ),
}  # fmt: skip


def elsewhere(it: Known) -> str:
    other = MemoryScope("web", conversation_id="elsewhere")
    for number in range(3):
        it.runtime.commit_transcript(turn(f"Turn {number}.", f"e-{number}", other))
    found = it.runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", other, limit=2)).next_cursor
    assert found is not None
    return found


def forged(snapshot: Any) -> Any:
    return replace(snapshot, manifest=replace(snapshot.manifest, content_fingerprint="0" * 64))


def counted(runtime: MemoryRuntime) -> Any:
    hygiene = runtime.inspect(MemoryInspectionRequest(scope=CHAT)).hygiene
    return hygiene.messages, hygiene.memories, hygiene.turns_by_state, hygiene.tombstones


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_by_its_field_leaves_its_row_and_changes_nothing(known: Known, case: str) -> None:
    action, kind, field, call = REFUSED[case]
    if case == "a cursor of another conversation":
        elsewhere(known)
    before = counted(known.runtime)
    answer, rows = rows_of(known.runtime, lambda: call(known))
    assert isinstance(answer, kind), answer
    if field:
        assert field in str(getattr(answer, "field", "")) or field in str(answer)
    assert [(row.action, row.outcome) for row in rows if row.action is action][-1] == (action, Outcome.REFUSED)
    assert counted(known.runtime) == before


def test_the_blocking_face_has_every_operation_with_the_same_signature() -> None:
    names = {name for name, _ in inspect.getmembers(AsyncMemoryRuntime, inspect.isfunction) if name[0] != "_"}
    for name in names - {"close"}:
        assert inspect.signature(getattr(MemoryRuntime, name)) == inspect.signature(getattr(AsyncMemoryRuntime, name))
    assert names == {name for name, _ in inspect.getmembers(MemoryRuntime, inspect.isfunction) if name[0] != "_"}


# --- capabilities and opening -----------------------------------------------------------------------------------------


def test_what_is_switched_off_forbidden_or_private_is_refused_by_name(tmp_path: Path) -> None:
    opened = builder(str(tmp_path / "a.db")).switch_off("recall").forbid("inspect").privacy(export_import=False).open()
    with opened as runtime:
        runtime.commit_transcript(turn("I fly to Porto."))
        for call, gate in (
            (lambda: runtime.recall(MemoryRecallRequest("Porto")), "configured"),
            (lambda: runtime.inspect(MemoryInspectionRequest("Porto")), "permitted"),
            (lambda: runtime.export(MemoryExportRequest(scope=CHAT)), "privacy"),
        ):
            answer, rows = rows_of(runtime, call)
            assert isinstance(answer, CapabilityUnavailable)
            assert gate in str(answer)
            assert [row.outcome for row in rows] == [Outcome.REFUSED]
        seen = runtime.capabilities()
        assert not seen.recall.visible
        assert seen.write.visible


def test_the_gateway_profile_hides_replay_and_devices_open_no_files(tmp_path: Path) -> None:
    gateway = builder(str(tmp_path / "a.db")).profile("profile-server-linux-memory-gateway").open()
    with gateway as runtime:
        runtime.commit_transcript(turn("Hello."))
        with pytest.raises(CapabilityUnavailable, match="profile"):
            runtime.replay(MemoryReplayRequest("trip", channel="web"))
    with pytest.raises(InvalidInput, match="sqlite"):
        builder(str(tmp_path / "b.db")).profile("esp-embedded-sdk").open()
    with builder(":memory:").profile("esp-embedded-sdk").open() as runtime:
        assert runtime.commit_transcript(turn("Hello.")).committed


@pytest.mark.parametrize("name", PROFILES)
def test_a_runtime_opens_under_every_profile(name: str) -> None:
    with builder(":memory:").profile(name).open() as runtime:
        runtime.commit_transcript(turn("Hello."))
        block = runtime.project(MemoryProjectionRequest("Hello?", system_max_len=100_000)).system_memory_block
        assert 0 < len(block) <= PROFILES[name].budget.render_chars


def test_a_store_is_opened_only_as_what_it_was_made_for(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    builder(path).open().close()
    builder(path).open().close()
    with pytest.raises(ManifestMismatch, match="profile"):
        builder(path).profile("linux-device-standalone-memory").open()
    with pytest.raises(ManifestMismatch, match="backend"):
        MemoryRuntime.builder().store(path, backend="embedded").embedder("fake").open()


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda b: b.profile("toaster"), "profile"),
        (lambda b: b.store("http://127.0.0.1:8010"), "store"),
        (lambda b: b.store("memory.db", backend="postgres"), "backend"),
        (lambda b: b.identity(space=""), "space"),
        (lambda b: b.switch_off("flying"), "switched_off"),
    ],
)
def test_what_cannot_be_opened_is_told_by_its_field(tmp_path: Path, spoil: Callable[[Any], Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        spoil(builder(str(tmp_path / "memory.db"))).open()
    assert caught.value.field == field
    assert not (tmp_path / "memory.db").exists()


def test_a_builder_can_be_kept_and_opened_again(tmp_path: Path) -> None:
    kept = builder(str(tmp_path / "memory.db"))
    kept.identity(subject_id="bob")
    for number in (1, 2):
        with kept.open() as runtime:
            assert runtime.commit_transcript(turn("Hello.", f"t-{number}")).sequence == number


# --- isolation of owners ----------------------------------------------------------------------------------------------

OTHERS = {
    "another subject": {"subject_id": "bob"},
    "another agent": {"subject_id": None, "agent_id": "bot"},
    "nobody's": {"subject_id": None},
    "another space": {"space": "south"},
}
CANARY = "zanzibar"


@pytest.mark.parametrize("who", OTHERS)
def test_no_operation_shows_what_belongs_to_somebody_else(location: str, who: str) -> None:
    """Call each operation as another owner who uses the same conversation, turn and candidate ids."""
    with builder(location).open() as owner:
        said = owner.commit_transcript(turn(f"I hid it in {CANARY}."))
        owner.write(
            MemoryWriteRequest.candidates(
                MemoryWriteCandidate("c-1", "user_asserted", f"It is in {CANARY}.", evidence_refs=said.message_ids[:1])
            )
        )
        owner.propose(proposal("p-1", CANARY))
        owner.write(MemoryWriteRequest.procedural(RuntimeSkillWrite(f"Take the boat to {CANARY}.", title="Fly")))
    acting = Actor(ActorKind.OPERATOR, "clerk", space=OTHERS[who].get("space", "default"))
    with builder(location, **OTHERS[who]).actor(acting).open() as runtime:
        other = Known(runtime)
        for action in sorted(set(OPERATIONS) - {Action.CLOSE, Action.EXPORT_SPACE}):
            answer = OPERATIONS[action](other)
            assert CANARY not in full_repr(dataclasses.asdict(answer)), action
        answer = runtime.export_space()
        # An operator exports the whole space of its own, and nothing of another space.
        assert (CANARY in full_repr(answer)) is (who != "another space")
    with builder(location).open() as owner:
        shown = owner.replay_transcript(MemoryTranscriptReplayRequest("raw_owner_only", CHAT))
        assert [len(turn.messages) for turn in shown.slice.turns] == [2]
        assert owner.recall(MemoryRecallRequest(CANARY)).working.hits


def test_a_user_acts_only_for_itself(location: str) -> None:
    ana = Actor(ActorKind.USER, "ana")
    with builder(location).actor(ana).open() as runtime:
        assert runtime.commit_transcript(turn("I am Ana.")).committed
        raw = runtime.replay_transcript(MemoryTranscriptReplayRequest("raw_owner_only", CHAT))
        assert raw.slice.turns[0].messages[0].text == "I am Ana."
        for call in (lambda: runtime.repair_transcript(MemoryTranscriptRepairRequest(CHAT)), runtime.export_space):
            with pytest.raises(AccessDenied):
                call()
    with pytest.raises(AccessDenied, match="its own scope"):
        builder(location, subject_id="bob").actor(ana).open()


def test_what_is_masked_is_gone_from_every_operation(known: Known) -> None:
    known.runtime.commit_transcript(turn(f"I hid it in {CANARY}.", "t-5"))
    known.runtime.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("mask", "asked for", CHAT))
    for action in sorted(set(OPERATIONS) - {Action.CLOSE}):
        assert CANARY not in full_repr(dataclasses.asdict(OPERATIONS[action](known))), action


def test_statuses_and_states_have_the_same_names() -> None:
    assert {"archived", "masked", "raw_deleted"} < set(Status)


# --- privacy by evidence ----------------------------------------------------------------------------------------------

DIARY = ("private_garden_internal", "soul_governance", "operator_diagnostic")
READERS = {
    "its user": (Actor(ActorKind.USER, "ana"), {"subject": "ana"}, True),
    "the operator of the machine": (LOCAL_OPERATOR, {"subject": "ana"}, True),
    "an operator within walls": (Actor(ActorKind.OPERATOR, "clerk", space="default"), {"subject": "ana"}, False),
    "an agent that she is mounted on": (
        Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"})), {"subject": "ana", "agent": "bot"}, False
    ),
    "a device of hers": (Actor(ActorKind.DEVICE, "ana"), {"subject": "ana"}, False),
}  # fmt: skip


@pytest.mark.parametrize("authority", DIARY)
@pytest.mark.parametrize("who", READERS)
def test_a_private_message_is_read_by_its_owner_alone_by_whatever_way(location: str, who: str, authority: str) -> None:
    with builder(location).open() as runtime:
        private = TurnMessage(f"I hid it in {CANARY}.", role="assistant", authority=authority)
        said = runtime.commit_transcript(
            MemoryTranscriptCommitRequest(TranscriptTurnInput("t-1", (TurnMessage("Hello."), private), CHAT))
        )
    actor, where, sees = READERS[who]
    with holdfast.open(location, embedder="fake", work=False, actor=actor) as memory:
        calls: list[Callable[[], Any]] = [
            lambda: memory.get(said.message_ids[1], **where),
            lambda: memory.search(CANARY, kind="message", planes=PRIVATE, **where),
        ]
        if actor.kind is not ActorKind.DEVICE:
            calls += [
                lambda: memory.history(said.message_ids[1], **where),
                lambda: memory.list(kind="message", planes=PRIVATE, **where),
                lambda: memory.browse(kind="message", planes=PRIVATE, **where).items,
            ]
        for call in calls:
            try:
                shown = full_repr(call())
            except NotFound as error:
                shown = str(error)
            assert (CANARY in shown) is sees
        assert CANARY not in full_repr(memory.search(CANARY, **where))


PRIVATE = ["private", "soul_candidate"]


def test_a_model_is_told_the_correction_and_people_what_was_said(location: str) -> None:
    with builder(location).open() as runtime:
        said = runtime.commit_transcript(turn(f"I fly to {CANARY}."))
    with holdfast.open(location, embedder="fake", work=False) as memory:
        memory.correct(said.message_ids[0], "I fly to Porto.", subject="ana")
    with builder(location).open() as runtime:
        asked = MemoryProjectionRequest("Where do I fly?", scope=CHAT)
        assert CANARY not in full_repr(runtime.project(asked))
        assert "I fly to Porto." in runtime.project(asked).system_memory_block
        shown = runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", CHAT)).slice
        assert shown.turns[0].messages[0].text == f"I fly to {CANARY}."
        model = runtime.replay_transcript(MemoryTranscriptReplayRequest("model_context", CHAT)).slice
        assert [item.reason for item in model.redactions] == ["model_context_policy"]
