"""Governed candidates on both stores: which are accepted, deferred or rejected, and their effect on memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from writers import ANA, CHAT, Host, candidate, hosting

from holdfast import AsyncMemory
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.candidates import Reason, Verdict
from holdfast.domain.capabilities import Circumstances
from holdfast.domain.events import EventKind
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.operations import Outcome
from holdfast.domain.runtime_api.skills import NO_EVOLUTION
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.runtime_api.writing import (
    CandidateVerdict,
    LongTermExtraction,
    LongTermFact,
    MemoryWriteRequest,
    TranscriptEvidenceRef,
)
from holdfast.errors import CapabilityUnavailable, InvalidInput

Scene = Callable[[Host], Awaitable[None]]


def play(location: str, scene: Scene, **options: Any) -> None:
    async def whole() -> None:
        async with hosting(location, **options) as host:
            await scene(host)

    asyncio.run(whole())


async def written(host: Host, *candidates: Any) -> list[CandidateVerdict]:
    report = await host.write(MemoryWriteRequest.candidates(*candidates, scope=CHAT))
    return list(report.semantic_governance.verdicts)


async def found(host: Host, query: str, subject: str | None = "ana", **more: Any) -> list[str]:
    memory = AsyncMemory(host.engine)
    hits = await memory.search(query, subject=subject, top_k=50, **more)
    return [hit.text for hit in hits if hit.kind == "memory"]


# --- acceptance ---


def test_what_a_user_said_is_accepted_with_its_evidence_and_found(location: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        report = await host.write(MemoryWriteRequest.candidates(candidate("Ana lives in Porto.", message)))
        assert (report.accepted, report.changed, report.operation) == (True, True, "candidates")
        assert report.reason == "sufficient_authority"
        assert report.lifecycle_report.success
        assert report.lifecycle_report.changed
        assert report.lifecycle_report.result_summary == "1 accepted, 0 deferred, 0 rejected"
        (verdict,) = report.semantic_governance.verdicts
        assert (verdict.verdict, verdict.trust, verdict.status) == (Verdict.ACCEPTED, Trust.STATED, Status.ACCEPTED)
        assert verdict.evidence == (message,)
        kept = await host.memory(verdict.memory_id)
        assert (kept.text, kept.plane, kept.trust) == ("Ana lives in Porto.", Plane.LONG_TERM, Trust.STATED)
        assert kept.scope == ANA.scope, "it outlives the conversation"
        assert [link.message_id for link in kept.evidence] == [message]
        assert await found(host, "Where does Ana live?") == ["Ana lives in Porto."]
        assert report.procedural_evolution == NO_EVOLUTION
        assert report.procedural_promotions == report.agent_tool_experience == ()
        assert report.procedural_evolution_reason == "no_procedural_writes"
        assert report.agent_tool_experience_reason == "no_governed_tool_experience"

    play(location, scene)


def test_each_candidate_gets_its_own_verdict_in_one_commit(location: str) -> None:
    async def scene(host: Host) -> None:
        (user,) = await host.said("I live in Porto.")
        (assistant,) = await host.said("You must love the sea.", role="assistant", turn="t2")
        verdicts = await written(
            host,
            candidate("Ana lives in Porto.", user),
            candidate("Ana loves the sea.", assistant, authority="assistant_utterance"),
            candidate("Ana is rich.", "msg_nowhere"),
            candidate("Ana is private.", user, privacy="private"),
            candidate("Ana said nothing."),
        )
        assert [(each.verdict, each.reason) for each in verdicts] == [
            (Verdict.ACCEPTED, Reason.SUFFICIENT_AUTHORITY),
            (Verdict.DEFERRED, Reason.AUTHORITY_TOO_WEAK),
            (Verdict.REJECTED, Reason.EVIDENCE_NOT_FOUND),
            (Verdict.REJECTED, Reason.PRIVACY_FORBIDS_TARGET),
            (Verdict.DEFERRED, Reason.NO_EVIDENCE),
        ]
        assert await found(host, "Ana") == ["Ana lives in Porto."]
        rows = [row for row in await host.rows() if row.action == "write"]
        assert [(row.outcome, row.record_count) for row in rows] == [(Outcome.SUCCEEDED, 3)]
        report = await host.write(MemoryWriteRequest.candidates(candidate("x", user), candidate("y")))
        assert report.reason == "mixed"

    play(location, scene)


def extraction(content: str, turn: str = "t1", name: str = "run-1", **more: Any) -> MemoryWriteRequest:
    """Cite a whole turn, as a validated pipeline does."""
    fact = LongTermFact(content, (TranscriptEvidenceRef(turn_id=turn, scope=CHAT),), **more)
    return MemoryWriteRequest.long_term_extraction(LongTermExtraction(name, "nightly", (fact,)))


async def exchanged(host: Host, *messages: TurnMessage, turn: str = "t1") -> list[str]:
    report = await host.commit_transcript(
        MemoryTranscriptCommitRequest(TranscriptTurnInput(turn, messages, conversation=CHAT))
    )
    return [str(message_id) for message_id in report.message_ids]


def test_an_extraction_that_cites_a_turn_rests_on_its_users_words(location: str) -> None:
    async def scene(host: Host) -> None:
        user, *_ = await exchanged(
            host,
            TurnMessage("I moved to Porto last week."),
            TurnMessage('{"status": 500}', "tool"),
            TurnMessage("<html>Porto</html>", "tool", authority="external_content"),
            TurnMessage("An inner thought.", "assistant", authority="private_garden_internal"),
            TurnMessage("How nice, Porto is lovely!", "assistant"),
        )
        report = await host.write(extraction("Ana lives in Porto."))
        (verdict,) = report.semantic_governance.verdicts
        assert (verdict.verdict, verdict.reason) == (Verdict.ACCEPTED, Reason.SUFFICIENT_AUTHORITY)
        assert (verdict.trust, verdict.evidence) == (Trust.STATED, (user,))
        # A candidate that is no extraction rests on the whole turn, as before.
        (whole,) = await written(
            host, candidate("Ana moved to Porto.", evidence_refs=(TranscriptEvidenceRef(turn_id="t1"),))
        )
        assert (whole.verdict, whole.reason) == (Verdict.REJECTED, Reason.PRIVATE_GROUND)

    play(location, scene)


def test_an_extraction_is_not_accepted_for_what_only_others_said(location: str) -> None:
    async def scene(host: Host) -> None:
        await exchanged(
            host, TurnMessage("Summarize the page."), TurnMessage("Ana owes Mallory 500 euros.", "assistant")
        )
        await exchanged(host, TurnMessage("Ana owes Mallory 500 euros.", sender="Mallory"), turn="t2")
        await exchanged(host, TurnMessage("Ana lives in Porto.", "assistant"), turn="t3")
        for place, (turn, claim) in enumerate(
            [
                ("t1", "Ana owes Mallory 500 euros."),
                ("t2", "Ana owes Mallory 500 euros."),
                ("t3", "Ana lives in Porto."),
            ]
        ):
            report = await host.write(extraction(claim, turn, f"run-{place}"))
            assert [each.verdict for each in report.semantic_governance.verdicts] == [Verdict.DEFERRED], turn
        assert await found(host, "Ana Mallory Porto") == []

    play(location, scene)


def test_an_extraction_from_a_withheld_turn_is_rejected(location: str) -> None:
    async def scene(host: Host) -> None:
        await exchanged(host, TurnMessage("I moved to Porto."), TurnMessage("How nice!", "assistant"))
        await host.request_transcript_lifecycle(MemoryTranscriptLifecycleRequest("mask", "asked to", CHAT, "t1"))
        report = await host.write(extraction("Ana lives in Porto."))
        assert [each.verdict for each in report.semantic_governance.verdicts] == [Verdict.REJECTED]

    play(location, scene)


def test_what_is_deferred_is_kept_apart_until_somebody_of_more_authority_says_the_same(location: str) -> None:
    async def scene(host: Host) -> None:
        (claim,) = await host.said("You live in Porto.", role="assistant", authority="assistant_self_claim")
        (first,) = await written(host, candidate("Ana lives in Porto.", claim, authority="assistant_self_claim"))
        assert (first.verdict, first.trust, first.status) == (Verdict.DEFERRED, Trust.LOW, Status.QUARANTINED)
        kept = await host.memory(first.memory_id)
        assert (kept.status, kept.trust, kept.reason) == (Status.QUARANTINED, Trust.LOW, "authority_too_weak")
        assert await found(host, "Porto") == []
        # Repeated by the same source, it is still not believed.
        (again,) = await written(
            host, candidate("ana lives  in porto.", claim, authority="assistant_self_claim", candidate_id="again")
        )
        assert (again.verdict, again.memory_id, again.changed) == (Verdict.DEFERRED, first.memory_id, False)
        (user,) = await host.said("I do live in Porto.", turn="t2")
        (second,) = await written(host, candidate("Ana lives in Porto.", user, candidate_id="confirmed"))
        assert (second.verdict, second.reason) == (Verdict.ACCEPTED, Reason.CONFIRMED)
        assert (second.memory_id, second.revision) == (first.memory_id, 2)
        confirmed = await host.memory(second.memory_id)
        assert (confirmed.status, confirmed.trust) == (Status.ACCEPTED, Trust.STATED)
        assert [link.message_id for link in confirmed.evidence] == [user], "not what it was not believed for"
        assert await found(host, "Porto") == ["Ana lives in Porto."]

    play(location, scene)


def test_the_same_again_adds_evidence_and_no_second_memory(location: str) -> None:
    async def scene(host: Host) -> None:
        (one,) = await host.said("I live in Porto.")
        (other,) = await host.said("As I said, I live in Porto.", turn="t2")
        (weak,) = await host.said("You live in Porto.", role="assistant", turn="t3")
        (first,) = await written(host, candidate("Ana lives in Porto.", one))
        (second,) = await written(host, candidate("Ana lives in  PORTO.", other, candidate_id="2"))
        assert (second.reason, second.memory_id, second.changed) == (Reason.MERGED, first.memory_id, True)
        (third,) = await written(host, candidate("Ana lives in Porto.", one, other, candidate_id="3"))
        assert (third.reason, third.changed) == (Reason.MERGED, False)
        (fourth,) = await written(
            host, candidate("Ana lives in Porto.", weak, authority="assistant_utterance", candidate_id="4")
        )
        assert (fourth.verdict, fourth.reason, fourth.changed) == (Verdict.DEFERRED, Reason.ALREADY_KNOWN, False)
        assert (fourth.memory_id, fourth.status) == (first.memory_id, Status.ACCEPTED)
        kept = await host.memory(first.memory_id)
        assert (kept.revision, kept.reason) == (2, "stated again")
        assert {link.message_id for link in kept.evidence} == {one, other}
        assert [event.kind for event in await host.events(EventKind.WRITE, EventKind.MERGE)] == [
            EventKind.MERGE,
            EventKind.WRITE,
        ]
        # A memory with two messages as evidence is forgotten with the second, not with the first.
        memory = AsyncMemory(host.engine)
        for message, left in ((one, 1), (other, 0)):
            await memory.forget(message, subject="ana")
            assert len(await found(host, "Porto")) == left

    play(location, scene)


def test_a_firmer_ground_makes_a_memory_firmer_and_a_weaker_one_does_not(location: str) -> None:
    async def scene(host: Host) -> None:
        (user,) = await host.said("I live in Porto.")
        (first,) = await written(host, candidate("Ana lives in Porto.", authority="runtime_observation"))
        assert first.trust is Trust.MODEST
        (second,) = await written(host, candidate("Ana lives in Porto.", user, candidate_id="2"))
        assert (second.reason, second.trust, second.revision) == (Reason.CONFIRMED, Trust.STATED, 2)
        (third,) = await written(
            host, candidate("Ana lives in Porto.", authority="runtime_observation", candidate_id="3")
        )
        assert (third.reason, third.trust, third.changed) == (Reason.MERGED, Trust.STATED, False)

    play(location, scene)


# --- evidence ---


def test_no_candidate_is_firmer_than_what_it_cites(location: str) -> None:
    async def scene(host: Host) -> None:
        (assistant,) = await host.said("You live in Porto.", role="assistant", authority="user_asserted")
        (web,) = await host.said("Ana lives in Faro.", role="tool", authority="external_content", turn="t2")
        (garden,) = await host.said("I feel close to Ana.", authority="private_garden_internal", turn="t3")
        (projected,) = await host.said("Ana lives in Lagos.", authority="subject_projection", turn="t4")
        verdicts = await written(
            host,
            candidate("Ana lives in Porto.", assistant),
            candidate("Ana lives in Faro.", web),
            candidate("The agent feels close to Ana.", garden),
            candidate("Ana lives in Lagos.", projected),
        )
        assert [each.reason for each in verdicts] == [
            Reason.AUTHORITY_TOO_WEAK,
            Reason.AUTHORITY_TOO_WEAK,
            Reason.PRIVATE_GROUND,
            Reason.OWN_PROJECTION,
        ]
        assert [each.trust for each in verdicts[:2]] == [Trust.LOW, Trust.UNTRUSTED]
        (kept,) = await written(
            host,
            candidate(
                "The agent feels close to Ana.", garden, authority="private_garden_internal",
                target="private", privacy="private", candidate_id="garden",
            ),
        )  # fmt: skip
        assert (kept.verdict, kept.target) == (Verdict.ACCEPTED, Plane.PRIVATE)
        assert await found(host, "close to Ana") == []
        assert await found(host, "close to Ana", planes=["private"]) == ["The agent feels close to Ana."]

    play(location, scene)


@pytest.mark.parametrize("transition", ["mask", "delete_raw", "archive"])
def test_evidence_that_no_longer_counts_holds_nothing(location: str, transition: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        await host.request_transcript_lifecycle(
            MemoryTranscriptLifecycleRequest(transition=transition, reason="a test", scope=CHAT)
        )
        by_turn = TranscriptEvidenceRef(turn_id="t1", scope=CHAT)
        verdicts = await written(
            host, candidate("Ana lives in Porto.", message), candidate("Ana lives there.", by_turn)
        )
        assert {each.verdict for each in verdicts} == {Verdict.REJECTED}
        assert {each.reason for each in verdicts} <= {Reason.EVIDENCE_NOT_FOUND, Reason.EVIDENCE_NOT_ACTIVE}
        assert await host.memories() == []

    play(location, scene)


def test_evidence_of_somebody_else_is_not_there(location: str) -> None:
    async def scene(host: Host) -> None:
        (own,) = await host.said("I live in Porto.")

        def of(identity: MemoryIdentity) -> Host:
            other = Host(host._service, host._actor, replace(host._governance, identity=identity))
            other.engine = host.engine
            return other

        # Nor for a writer to the shared part of the space, who could read it.
        for identity in (MemoryIdentity(subject_id="bob"), MemoryIdentity(), MemoryIdentity(agent_id="a")):
            refs = [own, TranscriptEvidenceRef(turn_id="t1", scope=CHAT), TranscriptEvidenceRef(message_id=own)]
            for place, ref in enumerate(refs):
                (verdict,) = await written(
                    of(identity),
                    replace(candidate("Ana lives in Porto.", candidate_id=str(place)), evidence_refs=[ref]),
                )
                assert verdict.reason is Reason.EVIDENCE_NOT_FOUND
        assert await host.memories() == []

    play(location, scene)


def test_a_turn_is_cited_by_its_hosts_id_in_the_conversation_given_or_committed_last(location: str) -> None:
    async def scene(host: Host) -> None:
        ids = await host.said("I live in Porto.", "And I have a dog.", turn="host-7")
        for place, scope in enumerate((None, CHAT)):
            ref = TranscriptEvidenceRef(turn_id="host-7", scope=scope)
            report = await host.write(
                MemoryWriteRequest.candidates(candidate(f"Ana has a dog. {place}", evidence_refs=[ref]))
            )
            assert report.semantic_governance.verdicts[0].evidence == tuple(ids)
        ref = TranscriptEvidenceRef(turn_id="host-7", scope=MemoryScope(conversation_id="another"))
        (verdict,) = await written(host, candidate("Ana has a cat.", evidence_refs=[ref]))
        assert verdict.reason is Reason.EVIDENCE_NOT_FOUND

    play(location, scene)


def test_memories_go_with_the_words_that_they_rest_on(location: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        (verdict,) = await written(host, candidate("Ana lives in Porto.", message))
        await AsyncMemory(host.engine).forget(message, subject="ana")
        assert await found(host, "Porto") == []
        # Submitted again, it does not come back, neither by its id nor by its evidence.
        same = await written(host, candidate("Ana lives in Porto.", message))
        other = await written(host, candidate("Ana lives in Porto.", message, candidate_id="2"))
        assert [each.reason for each in (*same, *other)] == [Reason.FORGOTTEN_SINCE, Reason.EVIDENCE_NOT_FOUND]
        assert verdict.memory_id is not None
        hashes = [event.content_hash for event in await host.events(EventKind.WRITE)]
        assert hashes == [None]

    play(location, scene)


# --- idempotency ---


def test_a_candidate_is_taken_up_once_and_answered_again_as_the_first_time(location: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        given = candidate("Ana lives in Porto.", message)
        first = await host.write(MemoryWriteRequest.candidates(given))
        again = await host.write(MemoryWriteRequest.candidates(given))
        one, other = first.semantic_governance.verdicts[0], again.semantic_governance.verdicts[0]
        assert other == replace(one, changed=False, replayed=True)
        assert (again.accepted, again.changed) == (True, False)
        assert len(await host.memories()) == 1
        (reused,) = await written(host, replace(given, content="Ana lives in Faro."))
        assert (reused.verdict, reused.reason) == (Verdict.REJECTED, Reason.CANDIDATE_ID_REUSED)
        # A rejected candidate may be tried again once its evidence exists.
        (late,) = await written(host, candidate("Ana has a dog.", evidence_refs=["msg_later"]))
        assert late.reason is Reason.EVIDENCE_NOT_FOUND
        (there,) = await host.said("I have a dog.", turn="t2")
        (then,) = await written(host, candidate("Ana has a dog.", there))
        assert then.verdict is Verdict.ACCEPTED

    play(location, scene)


def test_candidates_written_at_once_by_many_become_one_memory(location: str) -> None:
    async def scene(host: Host) -> None:
        messages = await host.said(*(f"I live in Porto, {number} times." for number in range(8)))
        reports = await asyncio.gather(
            *(
                host.write(
                    MemoryWriteRequest.candidates(
                        candidate("Ana lives in Porto.", message, candidate_id=str(place)),
                        candidate("Ana is happy.", message, candidate_id="the same for all"),
                    )
                )
                for place, message in enumerate(messages)
            )
        )
        made = [report.semantic_governance.verdicts[0] for report in reports]
        assert len({each.memory_id for each in made}) == 1
        assert sorted(each.reason for each in made) == [*["merged"] * 7, "sufficient_authority"]
        kept = await host.memory(made[0].memory_id)
        assert {link.message_id for link in kept.evidence} == set(messages)
        once = [report.semantic_governance.verdicts[1].reason for report in reports]
        assert sorted(once) == [*[Reason.CANDIDATE_ID_REUSED] * 7, Reason.SUFFICIENT_AUTHORITY]

    play(location, scene)


def test_a_correction_stands_until_it_is_said_anew(location: str) -> None:
    async def scene(host: Host) -> None:
        (message,) = await host.said("I live in Porto.")
        (first,) = await written(host, candidate("Ana lives in Porto.", message))
        await AsyncMemory(host.engine).correct(str(first.memory_id), "Ana lives in Lisbon.", subject="ana")
        (old,) = await written(host, candidate("Ana lives in Porto.", message, candidate_id="2"))
        assert (old.verdict, old.reason) == (Verdict.REJECTED, Reason.CORRECTED_SINCE)
        assert await found(host, "Ana lives") == ["Ana lives in Lisbon."]
        (later,) = await host.said("I live in Porto again.", turn="t2")
        (new,) = await written(host, candidate("Ana lives in Porto.", later, candidate_id="3"))
        assert (new.verdict, new.memory_id, new.revision) == (Verdict.ACCEPTED, first.memory_id, 3)
        assert await found(host, "Ana lives") == ["Ana lives in Porto."]

    play(location, scene)


# --- pipelines ---


def test_an_extraction_is_written_as_long_term_facts_once(location: str) -> None:
    async def scene(host: Host) -> None:
        one, other = await host.said("I live in Porto.", "My dog is called Rex.")
        extraction = LongTermExtraction(
            "run-1",
            "nightly",
            (
                LongTermFact("Ana lives in Porto.", (one,), valid_from=datetime(2026, 1, 1, tzinfo=UTC)),
                LongTermFact("Ana's dog is called Rex.", (other,)),
                LongTermFact("Ana might like fish.", (other,), authority="assistant_utterance"),
            ),
        )
        report = await host.write(MemoryWriteRequest.long_term_extraction(extraction))
        assert report.operation == "long_term_extraction"
        verdicts = report.semantic_governance.verdicts
        assert [each.candidate_id for each in verdicts] == ["nightly/run-1/0", "nightly/run-1/1", "nightly/run-1/2"]
        assert [each.verdict for each in verdicts] == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.DEFERRED]
        assert (await host.memory(verdicts[0].memory_id)).validity.since == datetime(2026, 1, 1, tzinfo=UTC)
        assert not (await host.write(MemoryWriteRequest.long_term_extraction(extraction))).changed
        assert len(await host.memories()) == 3

    play(location, scene)


# --- writers ---


@pytest.mark.parametrize(
    ("kind", "identity", "trust"),
    [
        (ActorKind.OPERATOR, ANA, Trust.VERIFIED),
        (ActorKind.USER, ANA, Trust.STATED),
        (ActorKind.AGENT, MemoryIdentity(subject_id="ana", agent_id="helper"), Trust.MODEST),
    ],
)
def test_nobody_makes_a_memory_firmer_than_their_own_word(
    location: str, kind: ActorKind, identity: MemoryIdentity, trust: Trust
) -> None:
    async def scene(host: Host) -> None:
        (verdict,) = await written(host, candidate("Ana pays in euros.", authority="program_memory_canonical"))
        assert verdict.trust is trust
        assert (await host.memory(verdict.memory_id)).author.startswith(f"{kind}:")

    subjects = frozenset({"ana"}) if kind is ActorKind.AGENT else frozenset()
    name = {ActorKind.USER: "ana", ActorKind.AGENT: "helper"}.get(kind, "op")
    play(location, scene, actor=Actor(kind, name, subjects=subjects), identity=identity)


def test_a_runtime_without_the_capability_writes_nothing(location: str) -> None:
    async def scene(host: Host) -> None:
        with pytest.raises(CapabilityUnavailable, match="write"):
            await host.write(MemoryWriteRequest.candidates(candidate("x")))
        assert [(row.action, row.outcome) for row in await host.rows()] == [("write", Outcome.REFUSED)]

    play(location, scene, circumstances=Circumstances(forbidden=frozenset({"write"})))


# --- bad input ---

BAD: list[tuple[str, Any]] = [
    ("candidates", MemoryWriteRequest()),
    ("candidates", MemoryWriteRequest.candidates()),
    ("candidates[0]", MemoryWriteRequest.candidates("text")),  # type: ignore[arg-type]
    ("candidates[0].candidate_id", MemoryWriteRequest.candidates(candidate("x", candidate_id=""))),
    ("candidates[0].candidate_id", MemoryWriteRequest.candidates(candidate("x", candidate_id="i" * 300))),
    ("candidates[0].authority", MemoryWriteRequest.candidates(candidate("x", authority="god"))),
    ("candidates[0].authority", MemoryWriteRequest.candidates(candidate("x", authority=None))),
    ("candidates[0].target", MemoryWriteRequest.candidates(candidate("x", target="resource"))),
    ("candidates[0].target", MemoryWriteRequest.candidates(candidate("x", target="soul"))),
    ("candidates[0].privacy", MemoryWriteRequest.candidates(candidate("x", privacy="open"))),
    ("candidates[0].content", MemoryWriteRequest.candidates(candidate(" "))),
    ("candidates[0].content", MemoryWriteRequest.candidates(candidate("a\x00"))),
    ("candidates[0].content", MemoryWriteRequest.candidates(candidate("a" * 20_000))),
    ("candidates[1].content", MemoryWriteRequest.candidates(candidate("x"), candidate(""))),
    ("candidates", MemoryWriteRequest.candidates(candidate("x"), candidate("x"))),
    ("candidates", MemoryWriteRequest.candidates(*(candidate(str(number)) for number in range(300)))),
    ("candidates[0].evidence_refs", MemoryWriteRequest.candidates(candidate("x", evidence_refs="msg_1"))),
    ("candidates[0].evidence_refs", MemoryWriteRequest.candidates(candidate("x", evidence_refs=[7]))),
    ("candidates[0].evidence_refs", MemoryWriteRequest.candidates(candidate("x", evidence_refs=[""]))),
    ("candidates[0].evidence_refs", MemoryWriteRequest.candidates(candidate("x", evidence_refs=["m"] * 300))),
    (
        "candidates[0].evidence_refs",
        MemoryWriteRequest.candidates(candidate("x", evidence_refs=[TranscriptEvidenceRef()])),
    ),
    (
        "candidates[0].evidence_refs",
        MemoryWriteRequest.candidates(candidate("x", evidence_refs=[TranscriptEvidenceRef("m", "t")])),
    ),
    (
        "conversation_id",
        MemoryWriteRequest.candidates(
            candidate("x", evidence_refs=[TranscriptEvidenceRef(turn_id="t", scope=MemoryScope(conversation_id=""))])
        ),
    ),
    ("candidates[0].valid_from", MemoryWriteRequest.candidates(candidate("x", valid_from="soon"))),
    (
        "valid_until",
        MemoryWriteRequest.candidates(
            candidate("x", valid_from=datetime(2026, 2, 1, tzinfo=UTC), valid_until=datetime(2026, 1, 1, tzinfo=UTC))
        ),
    ),
    ("extraction.facts", MemoryWriteRequest.long_term_extraction(LongTermExtraction("e", "p", ()))),
    ("extraction.facts[0]", MemoryWriteRequest.long_term_extraction(LongTermExtraction("e", "p", ("x",)))),  # type: ignore[arg-type]
    (
        "extraction.extraction_id",
        MemoryWriteRequest.long_term_extraction(LongTermExtraction("", "p", (LongTermFact("x"),))),
    ),
    ("extraction", MemoryWriteRequest(extraction="all of it")),  # type: ignore[arg-type]
    (
        "candidates",
        MemoryWriteRequest(given=(candidate("x"),), extraction=LongTermExtraction("e", "p", (LongTermFact("x"),))),
    ),
]


def test_bad_input_is_refused_by_its_field_with_a_row_and_changes_nothing(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        for field, request in BAD:
            with pytest.raises(InvalidInput) as caught:
                await host.write(request)
            assert caught.value.field == field, caught.value
        rows = [row for row in await host.rows() if row.action == "write"]
        assert [row.outcome for row in rows] == [Outcome.REFUSED] * len(BAD)
        assert await host.events() == []

    play(str(tmp_path / "memory.db"), scene)
