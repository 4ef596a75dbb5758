"""Maintenance by a model, recovery and closing, on both stores. The model decides neither trust nor evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from writers import ANA, CHAT, Host, Proposing, candidate, hosting, repeating
from writing_deaths import finalized

from completions import chat_curator, completion, memories
from faults.zygote import Zygote
from holdfast import AsyncMemory
from holdfast.domain.access import Action, Actor, ActorKind, storewide_grant
from holdfast.domain.candidates import Reason, Verdict
from holdfast.domain.capabilities import Circumstances
from holdfast.domain.events import EventKind
from holdfast.domain.identity import MemoryScope
from holdfast.domain.jobs import JobKind, JobStatus
from holdfast.domain.lifecycle import Disposition, ModeInput, Trigger
from holdfast.domain.memory import MemoryRecord, Status, Trust
from holdfast.domain.operations import Outcome
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.runtime_api.writing import (
    MemoryCloseRequest,
    MemoryMaintainRequest,
    MemoryRecoverRequest,
    MemoryWriteRequest,
    ModelUsage,
)
from holdfast.domain.secret import Secret
from holdfast.domain.transcript import Message
from holdfast.errors import AccessDenied, InvalidInput, StoreClosed
from holdfast.ports import CurationResult
from holdfast.sdk import MemoryRuntime
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr
from probes import SteppingClock
from serving import answering, http

Scene = Callable[[Host], Awaitable[None]]
KEY = "sk-canary-of-maintenance"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


def play(location: str, scene: Scene, **options: Any) -> None:
    async def whole() -> None:
        async with hosting(location, **options) as host:
            await scene(host)

    asyncio.run(whole())


async def spoken(host: Host, user: str, assistant: str, turn: str = "t1", **more: Any) -> None:
    messages = (TurnMessage(user), TurnMessage(assistant, role="assistant"))
    report = await host.commit_transcript(
        MemoryTranscriptCommitRequest(TranscriptTurnInput(turn, messages, conversation=CHAT, **more))
    )
    assert report.committed


async def statuses(host: Host) -> list[tuple[str, str]]:
    return [(each.text, each.status) for each in await host.memories()]


# --- with a model ---


def test_a_turn_is_learned_from_by_a_job_whose_usage_is_kept(location: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Porto is lovely.")
        report = await host.maintain()
        assert (report.accepted, report.changed, report.operation, report.reason) == (
            True, True, "maintain", "maintained",
        )  # fmt: skip
        assert report.usage == ModelUsage("test-model", 1, 100, 20)
        assert report.job_id is not None
        assert report.lifecycle_report.trigger is Trigger.POST_REPLY
        assert report.lifecycle_report.admission.disposition is Disposition.EXECUTE_NOW
        first, second = report.semantic_governance.verdicts
        assert (first.verdict, first.trust) == (Verdict.ACCEPTED, Trust.MODEST), "a model may misread what was stated"
        assert (second.verdict, second.reason) == (Verdict.DEFERRED, Reason.AUTHORITY_TOO_WEAK)
        kept = await host.memory(first.memory_id)
        assert (kept.author, kept.scope) == ("curator:test-model", ANA.scope)
        assert [link.text for link in kept.evidence] == ["I live in Porto."]
        hits = await AsyncMemory(host.engine).search("Porto", subject="ana", kind="memory")
        assert [hit.text for hit in hits] == ["I live in Porto."]
        (event,) = await host.events(EventKind.MAINTENANCE)
        assert event.record_key == report.job_id
        assert dict(event.details) == {
            "model": "test-model", "requests": 1, "input_tokens": 100, "output_tokens": 20, "dropped": 0,
            "failure": None, "accepted": 1, "deferred": 1, "rejected": 0,
        }  # fmt: skip
        rows = [row for row in await host.rows() if row.action is Action.MAINTAIN]
        assert [row.outcome for row in rows] == [Outcome.SUCCEEDED]

    play(location, scene, curator=curator)


def test_a_worker_that_is_at_the_job_already_is_waited_for(location: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        for number in range(5):
            await spoken(host, f"I have {number} dogs.", "Nice.", turn=f"t{number}")
            report = await host.maintain()
            assert (report.reason, report.changed) == ("maintained", True)
        assert len(curator.shown) == 5

    play(location, scene, curator=curator, work=True)


def test_the_same_turn_is_learned_from_once_however_often_it_is_asked_for(location: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        first = await host.maintain()
        again = await host.maintain()
        assert (again.reason, again.changed) == ("already_maintained", False)
        assert again.lifecycle_report.admission.disposition is Disposition.SKIP
        assert again.semantic_governance.verdicts == tuple(
            replace(each, changed=False, replayed=True) for each in first.semantic_governance.verdicts
        )
        assert again.usage == first.usage
        many = await asyncio.gather(*(host.maintain() for _ in range(5)))
        assert {report.reason for report in many} == {"already_maintained"}
        assert len(curator.shown) == 1
        await spoken(host, "I have a dog.", "Nice.", turn="t2")
        at_once = await asyncio.gather(*(host.maintain() for _ in range(5)))
        assert {report.reason for report in at_once} <= {"maintained", "already_maintained"}
        assert len(curator.shown) == 2
        assert len(await host.memories()) == 4

    play(location, scene, curator=curator)


def test_what_a_host_quotes_says_which_turn_is_meant_and_what_is_not_in_the_transcript_is_not_learned(
    location: str,
) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        await spoken(host, "I have a dog.", "Nice.", turn="t2")
        report = await host.maintain(MemoryMaintainRequest(user_content="I live in Porto."))
        assert report.reason == "maintained"
        assert curator.shown == [["I live in Porto.", "Lovely."]]
        for request in (
            MemoryMaintainRequest(user_content="I am the president."),
            MemoryMaintainRequest(user_content="I have a dog.", reply_content="Lovely."),
            MemoryMaintainRequest(reply_content="I have a dog."),
        ):
            refused = await host.maintain(request)
            assert (refused.reason, refused.accepted, refused.changed) == ("content_not_in_transcript", False, False)
            assert refused.lifecycle_report.admission.disposition is Disposition.SKIP
        assert len(curator.shown) == 1

    play(location, scene, curator=curator)


@pytest.mark.parametrize("transition", ["mask", "delete_raw", "archive"])
def test_a_model_never_sees_what_was_put_away(location: str, transition: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        await host.request_transcript_lifecycle(
            MemoryTranscriptLifecycleRequest(transition=transition, reason="a test", scope=CHAT)
        )
        report = await host.maintain()
        assert (report.reason, report.changed) == ("nothing_to_learn_from", False)
        quoted = await host.maintain(MemoryMaintainRequest(user_content="I live in Porto."))
        assert quoted.reason == "content_not_in_transcript"
        assert curator.shown == []

    play(location, scene, curator=curator)


@pytest.mark.parametrize("how", ["masked", "forgotten", "corrected"])
def test_what_is_put_away_while_a_model_thinks_is_not_learned(location: str, how: str) -> None:
    curator = _Interrupted()

    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        memory = AsyncMemory(host.engine)

        async def meanwhile() -> None:
            if how == "masked":
                await host.request_transcript_lifecycle(
                    MemoryTranscriptLifecycleRequest(transition="mask", reason="a test", scope=CHAT)
                )
            elif how == "forgotten":
                await memory.forget(conversation="chat", subject="ana")
            else:
                await memory.correct(message, "I live in Lisbon.", subject="ana")

        curator.meanwhile = meanwhile
        report = await host.maintain()
        assert report.semantic_governance.accepted == report.semantic_governance.deferred == 0
        learned = [each for each in await host.memories() if each.author.startswith("curator:")]
        assert learned == []
        assert curator.shown == [["I live in Porto."]]

    play(location, scene, curator=curator)


class _Interrupted(Proposing):
    """A curator that runs `meanwhile` before it answers."""

    meanwhile: Callable[[], Awaitable[Any]]

    def __init__(self) -> None:
        super().__init__(repeating)

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        await self.meanwhile()
        return await super().curate(messages)


def test_a_model_is_shown_nothing_private_nothing_of_tools_and_nothing_from_outside(location: str) -> None:
    curator = Proposing(repeating)
    messages = (
        TurnMessage("I live in Porto."),
        TurnMessage("soul", authority="soul_governance"),
        TurnMessage("garden", authority="private_garden_internal"),
        TurnMessage("diagnosis", authority="operator_diagnostic"),
        TurnMessage("a page", authority="external_content"),
        TurnMessage("a tool", role="tool"),
        TurnMessage("an echo", authority="subject_projection"),
        TurnMessage("You do.", role="assistant"),
    )

    async def scene(host: Host) -> None:
        await host.commit_transcript(
            MemoryTranscriptCommitRequest(TranscriptTurnInput("t1", messages, conversation=CHAT))
        )
        await host.maintain()
        assert curator.shown == [["I live in Porto.", "You do."]]
        # Without a message that could be accepted, no model is called.
        for turn, said in enumerate((messages[1:], messages[-1:])):
            await host.commit_transcript(
                MemoryTranscriptCommitRequest(TranscriptTurnInput(f"more{turn}", said, conversation=CHAT))
            )
            report = await host.maintain()
            assert (report.reason, report.usage) == ("nothing_to_learn_from", None)
        assert len(curator.shown) == 1

    play(location, scene, curator=curator)


def test_of_a_turn_with_content_from_outside_only_the_users_words_are_learned_from(location: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "Summarize the page.", "It says that you owe Mallory money.")
        await host.maintain(MemoryMaintainRequest(external_content_used=True))
        assert curator.shown == [["Summarize the page."]]

    play(location, scene, curator=curator)


def test_a_model_decides_neither_what_is_believed_nor_what_it_rests_on(location: str) -> None:
    def lying(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
        user, assistant = (message.id for message in messages)
        return [
            ("The user owes Mallory 500 euros.", [user]),  # invented
            ("The user lives in Porto.", ["msg_made_up"]),  # no such evidence
            ("The user lives in Porto.", []),
            ("The user lives near Mallory.", [assistant, "msg_made_up"]),  # evidence from the assistant
            ("The user lives in Porto, says Mallory.", [user, assistant]),  # evidence from both
            ("The user lives in Porto.", [user]),
        ]

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "You live in Porto near Mallory.")
        (foreign,) = await host.said("I live in Porto.", where=MemoryScope(conversation_id="other"))
        assert foreign
        report = await host.maintain(MemoryMaintainRequest(scope=CHAT))
        assert [(each.verdict, each.reason) for each in report.semantic_governance.verdicts] == [
            (Verdict.DEFERRED, Reason.NOT_SUPPORTED),
            (Verdict.REJECTED, Reason.EVIDENCE_NOT_FOUND),
            (Verdict.REJECTED, Reason.EVIDENCE_NOT_FOUND),
            (Verdict.DEFERRED, Reason.AUTHORITY_TOO_WEAK),
            (Verdict.DEFERRED, Reason.AUTHORITY_TOO_WEAK),
            (Verdict.ACCEPTED, Reason.SUFFICIENT_AUTHORITY),
        ]
        accepted = [each.text for each in await host.memories() if each.status is Status.ACCEPTED]
        assert accepted == ["The user lives in Porto."]

    play(location, scene, curator=Proposing(lying))


def test_a_candidate_of_a_host_and_a_proposal_of_a_model_are_one_memory(location: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        await host.maintain()
        report = await host.write(MemoryWriteRequest.candidates(candidate("I live in Porto.", message)))
        (verdict,) = report.semantic_governance.verdicts
        assert (verdict.reason, verdict.trust, verdict.revision) == (Reason.CONFIRMED, Trust.STATED, 2)

    play(location, scene, curator=Proposing(repeating))


# --- over the wire ---


def test_a_model_behind_http_maintains_memory_and_its_bad_answers_cost_nothing_but_their_tokens(location: str) -> None:
    good = completion(memories({"text": "The user lives in Porto.", "messages": [1]}, {"text": "x", "messages": [9]}))
    with answering(http(500), completion("not JSON"), good) as (url, asked):
        curator = chat_curator("small", base_url=url, api_key=Secret(KEY), first_wait_seconds=0.001)

        async def scene(host: Host) -> None:
            await spoken(host, "I live in Porto.", "Lovely.")
            report = await host.maintain()
            assert report.usage == ModelUsage("small", 2, 240, 60)
            assert report.dropped == 1
            assert [each.verdict for each in report.semantic_governance.verdicts] == [Verdict.ACCEPTED]

        play(location, scene, curator=curator)
        assert len(asked) == 3
        shown = json.loads(json.loads(asked[-1].partition(b"\r\n\r\n")[2])["messages"][1]["content"])["messages"]
        assert [each["text"] for each in shown] == ["I live in Porto.", "Lovely."]


def test_a_model_is_shown_no_more_of_a_turn_than_the_profile_allows() -> None:
    good = completion(memories())
    with answering(good) as (url, asked):
        building = MemoryRuntime.builder().profile("esp-embedded-sdk").store(":memory:").identity(subject_id="ana")
        with building.model("small", url=url).embedder("fake").without_worker().open() as runtime:
            turn = TranscriptTurnInput("t1", (TurnMessage("early " * 200), TurnMessage("late " * 100)), CHAT)
            runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))
            assert runtime.maintain().reason == "maintained"
        shown = json.loads(json.loads(asked[0].partition(b"\r\n\r\n")[2])["messages"][1]["content"])["messages"]
        assert [each["text"] for each in shown] == ["late " * 100]


def test_a_model_that_fails_is_reported_and_asked_again_later(location: str) -> None:
    good = completion(memories({"text": "The user lives in Porto.", "messages": [1]}))
    with answering(completion("canary"), good) as (url, _):
        curator = chat_curator("small", base_url=url, api_key=Secret(KEY), attempts=1)

        async def scene(host: Host) -> None:
            await spoken(host, "I live in Porto.", "Lovely.")
            failed = await host.maintain()
            assert (failed.accepted, failed.changed, failed.reason) == (False, False, "model_failed")
            assert failed.lifecycle_report.admission.disposition is Disposition.FAILED
            assert (failed.lifecycle_report.success, failed.lifecycle_report.error_stage) == (False, "model")
            jobs = await host.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest())
            kinds = [(job.status, job.error) for job in jobs if job.kind is JobKind.MAINTAIN]
            assert [status for status, _ in kinds] == [JobStatus.QUEUED, JobStatus.FAILED]
            assert "model_unavailable" in full_repr(kinds)
            assert KEY not in full_repr(kinds)
            assert "canary" not in full_repr(kinds)
            (event,) = await host.events(EventKind.MAINTENANCE)
            assert (event.details["failure"], event.details["output_tokens"]) == ("model_unavailable", 30)
            clock.advance(minutes=1)
            recovered = await host.recover()
            assert recovered.finished == {"maintain": 1}
            assert [each.text for each in await host.memories()] == ["The user lives in Porto."]
            assert (await host.maintain()).reason == "already_maintained"

        clock = SteppingClock()
        play(location, scene, curator=curator, clock=clock)


# --- without a model, or while the host is busy ---


def test_maintenance_without_a_model_is_a_structured_rejection(location: str) -> None:
    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        report = await host.maintain()
        assert (report.accepted, report.changed, report.reason) == (False, False, "no_model_configured")
        assert report.lifecycle_report.admission.disposition is Disposition.REJECT
        assert (report.lifecycle_report.success, report.lifecycle_report.error_stage) == (False, "admission")
        assert (report.job_id, report.usage) == (None, None)
        rows = [row for row in await host.rows() if row.action is Action.MAINTAIN]
        assert [(row.outcome, row.record_count) for row in rows] == [(Outcome.SUCCEEDED, 0)]

    play(location, scene)


def test_maintenance_that_is_switched_off_or_forbidden_asks_no_model(location: str) -> None:
    curator = Proposing(repeating)

    async def off(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        assert (await host.maintain()).reason == "switched_off"

    async def forbidden(host: Host) -> None:
        with pytest.raises(AccessDenied, match="maintain"):
            await host.maintain(MemoryMaintainRequest(scope=CHAT))

    one = frozenset({"maintain"})
    play(location, off, curator=curator, circumstances=Circumstances(model=True, switched_off=one))
    play(location, forbidden, curator=curator, circumstances=Circumstances(model=True, forbidden=one))
    assert curator.shown == []


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (MemoryMaintainRequest(pressure="cautious"), "pressure_cautious"),
        (MemoryMaintainRequest(pressure="critical"), "pressure_critical"),
        (MemoryMaintainRequest(mode_input=ModeInput(booting=True)), "booting"),
        (MemoryMaintainRequest(mode_input=ModeInput(voice_exclusive_active=True)), "voice_exclusive"),
        (MemoryMaintainRequest(mode_input=ModeInput(recovery_safe_mode_active=True)), "recovery_safe_mode"),
    ],
)
def test_a_host_that_is_busy_has_maintenance_deferred(
    tmp_path: Path, request_: MemoryMaintainRequest, reason: str
) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        report = await host.maintain(request_)
        admission = report.lifecycle_report.admission
        assert (admission.disposition, admission.retry_after_ms) == (Disposition.DEFER, 1_000)
        assert (report.reason, report.accepted, report.changed) == (reason, False, False)
        assert curator.shown == []
        assert (await host.maintain()).reason == "maintained"

    play(str(tmp_path / "memory.db"), scene, curator=curator)


def test_what_is_wrong_in_a_request_is_refused_by_its_field(tmp_path: Path) -> None:
    bad: list[tuple[str, Any]] = [
        ("ingress", {"ingress": ""}),
        ("user_content", {"user_content": " "}),
        ("reply_content", {"reply_content": 5}),
        ("tool_calls", {"tool_calls": "clock"}),
        ("tool_calls", {"tool_calls": ("",)}),
        ("runtime_skill_selected_ids", {"runtime_skill_selected_ids": ("s",) * 300}),
        ("task_learning_selected_ids", {"task_learning_selected_ids": 7}),
        ("external_content_used", {"external_content_used": "no"}),
        ("reuse_outcome", {"reuse_outcome": "fine"}),
        ("pressure", {"pressure": "high"}),
        ("mode_input", {"mode_input": {"booting": True}}),
        ("mode_input.booting", {"mode_input": ModeInput(booting="yes")}),  # type: ignore[arg-type]
        ("scope", {"scope": "chat"}),
        ("conversation_id", {"scope": MemoryScope()}),
        ("conversation_id", {"scope": MemoryScope(conversation_id="")}),
    ]

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        for field, given in bad:
            with pytest.raises(InvalidInput) as caught:
                await host.maintain(MemoryMaintainRequest(**given))
            assert caught.value.field == field
        rows = [row for row in await host.rows() if row.action is Action.MAINTAIN]
        assert [row.outcome for row in rows] == [Outcome.REFUSED] * len(bad)

    async def fresh(host: Host) -> None:
        with pytest.raises(InvalidInput, match="nothing was committed yet"):
            await host.maintain()
        with pytest.raises(InvalidInput) as caught:
            await host.recover(MemoryRecoverRequest(trigger="boredom"))
        assert caught.value.field == "trigger"
        with pytest.raises(InvalidInput) as caught:
            await host.close(MemoryCloseRequest(reason=""))
        assert caught.value.field == "reason"
        assert {row.outcome for row in await host.rows()} == {Outcome.REFUSED}

    play(str(tmp_path / "memory.db"), scene, curator=Proposing(repeating))
    play(str(tmp_path / "fresh.db"), fresh)


# --- recovery ---


def test_recovery_finishes_what_was_left_behind_and_nothing_twice(location: str) -> None:
    curator = Proposing(repeating)
    play(location, finalized, curator=curator)

    async def without_a_model(host: Host) -> None:
        report = await host.recover()
        assert (report.changed, report.reason) == (False, "nothing_to_recover")
        assert (report.waiting, report.waiting_for_model) == ({"maintain": 1}, 1)

    async def scene(host: Host) -> None:
        report = await host.recover(MemoryRecoverRequest(trigger="boot_recovery"))
        assert (report.changed, report.reason) == (True, "recovered")
        assert (report.finished, report.failed, report.waiting) == ({"maintain": 1}, {}, {})
        assert report.lifecycle_report.trigger is Trigger.BOOT_RECOVERY
        (event,) = (each for each in await host.events(EventKind.LIFECYCLE) if each.details["finished"])
        assert event.id == report.lifecycle_report.event_id
        again = await host.recover()
        assert (again.changed, again.finished) == (False, {})
        assert (await host.maintain(MemoryMaintainRequest(scope=CHAT))).reason == "already_maintained"
        assert sorted(await statuses(host)) == [("I live in Porto.", "accepted"), ("Lovely.", "quarantined")]

    play(location, without_a_model)
    assert curator.shown == []
    play(location, scene, curator=curator)
    assert len(curator.shown) == 1


def test_only_operators_recover(location: str) -> None:
    async def scene(host: Host) -> None:
        with pytest.raises(AccessDenied):
            await host.recover()

    play(location, scene, actor=Actor(ActorKind.USER, "ana"))


@pytest.mark.parametrize(
    "point", ["job.claim.before", "job.claim.after", "job.finish.before", "job.finish.after", "commit.after"]
)
def test_whoever_is_killed_between_the_commit_and_its_maintenance_loses_nothing_and_nothing_is_done_twice(
    location: str, zygote: Zygote, point: str
) -> None:
    child = zygote.start("writing_deaths:die_while_maintaining", location=location, point=point)
    told = child.wait()
    assert child.killed, told

    async def scene(host: Host) -> None:
        for _ in range(2):
            await host.recover()
        assert sorted(await statuses(host)) == [("I live in Porto.", "accepted"), ("Lovely.", "quarantined")]
        assert len(await host.events(EventKind.MAINTENANCE)) == 1
        jobs = await host.engine._core.store.read(storewide_grant(), lambda reader: reader.jobs.newest())
        assert {job.status for job in jobs} == {JobStatus.SUCCEEDED}

    play(location, scene, curator=Proposing(repeating), clock=_Later())


class _Later:
    """A clock past the lease of the killed process."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(minutes=5)


# --- closing ---


def test_closing_reports_then_closes_and_every_later_call_says_so(location: str) -> None:
    curator = Proposing(repeating)

    async def scene(host: Host) -> None:
        await spoken(host, "I live in Porto.", "Lovely.")
        report = await host.close(MemoryCloseRequest(reason="the host shuts down"))
        assert report.reason == "the host shuts down"
        assert (report.lifecycle_report.success, report.lifecycle_report.operation) == (True, Action.CLOSE)
        assert curator.closed
        for call in (
            host.maintain(),
            host.recover(),
            host.close(),
            host.write(MemoryWriteRequest.candidates(candidate("x"))),
        ):
            with pytest.raises(StoreClosed):
                await call

    async def after(host: Host) -> None:
        (event,) = await host.events(EventKind.LIFECYCLE)
        assert event.details == {"operation": "close"}
        assert [row.outcome for row in await host.rows() if row.action is Action.CLOSE] == [Outcome.SUCCEEDED]

    play(location, scene, curator=curator)
    play(location, after)


def test_the_log_of_events_is_kept_within_the_budget_of_the_profile(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        for number in range(130):
            await host.write(
                MemoryWriteRequest.candidates(
                    *(candidate(f"Fact {number} {part}", authority="runtime_observation") for part in "abc")
                )
            )
        assert len(await host.events()) == 390
        await host.recover()
        assert len(await host.events()) == 256

    play(str(tmp_path / "memory.db"), scene, profile="esp-embedded-sdk")


@pytest.mark.parametrize(
    ("verbs", "reason"), [("flush", "no_model_configured"), ("none", "no_model_configured"), ("maintain", "maintained")]
)
def test_a_model_maintains_only_if_the_setting_names_it(verbs: str, reason: str) -> None:
    with answering(completion(memories())) as (url, asked):
        building = (
            MemoryRuntime.builder().store(":memory:").identity(subject_id="ana").settings(Settings(model_verbs=verbs))
        )
        with building.model("small", url=url).embedder("fake").without_worker().open() as runtime:
            turn = TranscriptTurnInput("t1", (TurnMessage("I live in Porto."),), CHAT)
            runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))
            assert runtime.maintain().reason == reason
        assert bool(asked) is (reason == "maintained")
