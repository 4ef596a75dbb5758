"""What is learned is reconciled with what is known, every decision is in the history, and `revert` undoes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Actor, ActorKind, AsyncMemory, Memory, MemoryRecord
from holdfast.domain.access import ActorRole, storewide_grant
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.memory import Candidate, FactRelation, Trust, Validity
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, IdempotencyConflict, InvalidInput, NotFound, RevisionConflict
from holdfast.runtime.reconcile import prepare_proposals, reconcile_proposals
from probes import SteppingClock, engine_of

BOT = Actor(ActorKind.AGENT, "bot", "default", frozenset({"ana"}))
BEN = Actor(ActorKind.USER, "ben", "default")
NEW, DUPLICATE, UPDATE, CONTRADICTION = FactRelation


def say(memory: Memory, text: str, subject: str = "ana", **more: Any) -> str:
    return str(memory.add([{"text": text, **more}], subject=subject).message_ids[0])


def learn(memory: Memory, said: str, text: str, claim: FactRelation | None = None, **more: Any) -> MemoryRecord | None:
    """Let a model propose a fact that rests on a message. Return the newest memory with that text."""
    subject = more.pop("subject", "ana")
    fields = {"trust": Trust.MODEST, "validity": Validity(), "key": "", "relation": claim, **more}
    propose(memory, [Candidate(text, (MessageId(said),), **fields)], subject)
    found = (each for each in memories(memory, subject) if each.text == text)
    return next(found, None)


def propose(memory: Memory, candidates: Sequence[Candidate], subject: str = "ana") -> None:
    core, scope = engine_of(memory._behind)._core, Scope(space="default", subject=subject)

    async def reconcile() -> None:
        proposed, _ = await prepare_proposals(core, scope, candidates)
        await core.store.write(
            storewide_grant(), lambda transaction: reconcile_proposals(core, transaction, scope, proposed, "curator:x")
        )

    memory._portal.run(reconcile())


def acting(memory: Memory, actor: Actor, verb: str, *given: Any, **more: Any) -> Any:
    """Call a method as another actor."""
    return memory._portal.run(getattr(AsyncMemory(memory._behind._service, actor=actor), verb)(*given, **more))


def memories(memory: Memory, subject: str = "ana") -> list[MemoryRecord]:
    return cast(list[MemoryRecord], list(memory.list(kind="memory", subject=subject, limit=200).items))


def histories(memory: Memory, subject: str = "ana") -> list[tuple[MemoryRecord, ...]]:
    return [cast(tuple[MemoryRecord, ...], memory.history(each.id)) for each in memories(memory, subject)]


def known(record: MemoryRecord | None) -> MemoryRecord:
    assert record is not None
    return record


def state_of(record: MemoryRecord) -> MemoryRecord:
    """All of a revision but who made it, when and why."""
    return replace(
        record, revision=0, recorded_at=datetime.min, superseded_at=None, author="", reason=None, contradicts=()
    )


def flush(memory: Memory, conversation: str = "c") -> None:
    memory.flush(subject="ana", conversation=conversation)
    memory.drain()


# --- the four relations -----------------------------------------------------------------------------------------------


def test_an_update_ends_one_memory_and_begins_another(timed: Memory, clock: SteppingClock) -> None:
    first = say(timed, "I work at Spotify.")
    old = known(learn(timed, first, "Ana works at Spotify.", NEW))
    before = clock.advance(days=30)
    quit_at = clock.advance(days=30)
    said = say(timed, "I quit Spotify, I'm now at Zalando.")
    new = known(learn(timed, said, "Ana works at Zalando.", UPDATE, target=old.id, validity=Validity(since=quit_at)))
    ended = timed.get(old.id)
    assert isinstance(ended, MemoryRecord)
    assert (ended.text, ended.validity, new.validity) == (old.text, Validity(until=quit_at), Validity(since=quit_at))
    # Its text rests on what it rested on: forgetting the message that ended it does not keep or drop it.
    assert [[link.message_id for link in each.evidence] for each in (ended, new)] == [[first], [said]]
    assert [(each.author, each.reason) for each in cast(Any, timed.history(old.id))] == [
        ("curator:x", None),
        ("curator:x", f"ended by {new.id}"),
    ]

    def recalled(**when: Any) -> set[str]:
        shown = timed.search("Where does Ana work?", subject="ana", kind="memory", **when)
        return {hit.text for hit in shown}

    now = clock.now()
    assert recalled(valid_at=now) == {new.text}
    assert recalled(valid_at=before) == {old.text}
    assert recalled(as_of=before) == {old.text}
    assert all(hit.id != old.id for hit in timed.recall("Where does Ana work?", subject="ana", min_score=0).hits)
    restored = timed.revert(old.id, 1, subject="ana")
    assert state_of(restored) == state_of(old)
    assert restored.reason == "reverted to revision 1"
    assert recalled(valid_at=clock.now()) == {old.text, new.text}


def test_an_update_of_something_that_begins_later_replaces_its_text(timed: Memory, clock: SteppingClock) -> None:
    later = clock.advance(days=1).replace(year=2027)
    old = known(learn(timed, say(timed, "I move in May."), "Ana moves to Rome.", NEW, validity=Validity(since=later)))
    new = known(learn(timed, say(timed, "To Oslo."), "Ana moves to Oslo.", UPDATE, target=old.id))
    assert (new.id, new.revision, [each.text for each in memories(timed)]) == (old.id, 2, ["Ana moves to Oslo."])
    assert state_of(timed.revert(old.id, 1)) == state_of(old)


def test_a_duplicate_adds_its_evidence_and_stays_when_one_message_is_forgotten(timed: Memory) -> None:
    said = [say(timed, text) for text in ("I'm allergic to peanuts.", "I have a peanut allergy.")]
    old = known(learn(timed, said[0], "Ana is allergic to peanuts.", NEW))
    learn(timed, said[1], "Ana has a peanut allergy.", DUPLICATE, target=old.id)
    (merged,) = memories(timed)
    assert (merged.id, merged.text, merged.trust, merged.reason) == (old.id, old.text, old.trust, "stated again")
    assert [link.message_id for link in merged.evidence] == said
    assert state_of(timed.revert(old.id, 1)) == state_of(old)
    assert state_of(timed.revert(old.id, 2)) == state_of(merged)
    timed.forget(said[0])
    assert [link.message_id for link in memories(timed)[0].evidence] == said[1:]
    timed.forget(said[1])
    assert memories(timed) == []


def test_a_contradiction_is_kept_and_marked_and_explained_on_both_sides(timed: Memory) -> None:
    old = known(learn(timed, say(timed, "I'm vegetarian."), "Ana is vegetarian.", NEW))
    new = known(learn(timed, say(timed, "I love steak."), "Ana loves steak.", CONTRADICTION, target=old.id))

    def marks() -> dict[str, tuple[str, ...]]:
        found = {each.id: tuple(each.contradicts) for each in memories(timed)}
        explained = timed.explain("What does Ana eat?", subject="ana", kind="memory").hits
        assert {hit.id: tuple(hit.contradicts) for hit in explained} == found
        return found

    assert marks() == {old.id: (new.id,), new.id: (old.id,)}
    # Either side undoes it; and the undo can be undone.
    timed.revert(old.id, 1, subject="ana")
    assert marks() == {old.id: (), new.id: ()}
    timed.revert(old.id, 2, subject="ana")
    assert marks() == {old.id: (new.id,), new.id: (old.id,)}
    # Another text says something else.
    timed.correct(new.id, "Ana loved steak once.", subject="ana")
    assert marks() == {old.id: (), new.id: ()}


def test_a_forgotten_memory_leaves_no_mark(timed: Memory) -> None:
    old = known(learn(timed, say(timed, "I'm vegetarian."), "Ana is vegetarian.", NEW))
    new = known(learn(timed, say(timed, "I love steak."), "Ana loves steak.", CONTRADICTION, target=old.id))
    timed.forget(new.id, subject="ana")
    assert [each.contradicts for each in cast(Any, timed.history(old.id))] == [(), ()]
    assert timed.verify().ok


def test_a_memory_that_a_user_stated_is_not_ended(timed: Memory) -> None:
    stated = timed.remember("Ana lives in Porto.", subject="ana")
    new = known(learn(timed, say(timed, "I live in Faro."), "Ana lives in Faro.", UPDATE, target=stated.id))
    left = timed.get(stated.id)
    assert isinstance(left, MemoryRecord)
    assert (left.text, left.trust, left.validity) == (stated.text, stated.trust, stated.validity)
    assert (left.contradicts, new.contradicts) == ((new.id,), (stated.id,))


def test_a_stated_memory_that_is_learned_as_well_is_one_memory_as_it_was(timed: Memory) -> None:
    stated = timed.remember("Ana lives in Porto.", subject="ana")
    for said in ("I live in Porto.", "Porto is my home."):
        learn(timed, say(timed, said), "Ana lives in Porto.", DUPLICATE, target=stated.id)
    assert memories(timed) == [stated]


def test_a_target_that_changed_meanwhile_is_judged_as_it_is(timed: Memory) -> None:
    old = known(learn(timed, say(timed, "I live in Rome."), "Ana lives in Rome.", NEW))
    core, scope = engine_of(timed._behind)._core, Scope(space="default", subject="ana")
    said = (MessageId(say(timed, "I moved to Oslo.")),)
    moved = Candidate("Ana lives in Oslo.", said, Trust.MODEST, Validity(), "", relation=UPDATE, target=old.id)
    proposed, _ = timed._portal.run(prepare_proposals(core, scope, [moved]))
    timed.correct(old.id, "Ana lives in Milan.", subject="ana")

    async def write() -> None:
        await core.store.write(
            storewide_grant(), lambda transaction: reconcile_proposals(core, transaction, scope, proposed, "curator:x")
        )

    timed._portal.run(write())
    assert {(each.text, bool(each.contradicts), each.validity.until) for each in memories(timed)} == {
        ("Ana lives in Milan.", True, None),
        ("Ana lives in Oslo.", True, None),
    }


# --- again ------------------------------------------------------------------------------------------------------------


def test_the_same_conversation_flushed_twice_changes_nothing(memory: Memory) -> None:
    texts = ["I live in Lisbon.", "I love figs.", "I have a dog called Rex.", "I moved to Porto last week."]
    memory.add(texts, subject="ana", conversation="c")
    flush(memory)
    before = histories(memory)
    flush(memory)
    assert histories(memory) == before
    assert before


def test_what_ended_or_was_corrected_is_not_learned_again_from_the_same_messages(
    timed: Memory, clock: SteppingClock
) -> None:
    said = []
    for text in ("I live in Rome.", "I moved to Oslo.", "I like tea."):
        clock.advance(days=1)
        said.append(say(timed, text))
    old = known(learn(timed, said[0], "Ana lives in Rome.", NEW))
    learn(timed, said[1], "Ana lives in Oslo.", UPDATE, target=old.id)
    wrong = known(learn(timed, said[2], "Ana likes tea.", NEW))
    timed.correct(wrong.id, "Ana likes green tea.", subject="ana")
    before = histories(timed)
    learn(timed, said[0], "Ana lives in Rome.", NEW)
    learn(timed, said[1], "Ana lives in Oslo.", UPDATE, target=old.id)
    learn(timed, said[2], "Ana likes tea.", NEW)
    assert histories(timed) == before
    # Said anew, it is true again.
    clock.advance(days=1)
    back = known(learn(timed, say(timed, "I'm back in Rome."), "Ana lives in Rome.", NEW))
    assert back.id != old.id


FACTS = (
    "Ana lives in Rome.", "Ana lives in Oslo.", "Ana works at Spotify.", "Ana works at Zalando.", "Ana is single.",
    "Ana is not single.", "Ana has a son Max.", "Ana has a son Theo.", "ana lives in rome", "Ana likes tea.",
)  # fmt: skip


class Steps:
    """Subjects of one store, so that each example of a property begins with an empty memory."""

    def __init__(self, memory: Memory, clock: SteppingClock) -> None:
        self.memory, self.clock, self.count = memory, clock, 0

    def begin(self) -> str:
        self.count += 1
        return f"ana-{self.count}"

    def propose(self, subject: str, said: str, fact: str, claim: FactRelation | None, at: int, trust: Trust) -> None:
        there = memories(self.memory, subject)
        target = there[at % len(there)].id if there else MemoryId("mem_" + "0" * 32)
        learn(self.memory, said, fact, claim, subject=subject, trust=trust, target=target)


@pytest.fixture
def steps(timed: Memory, clock: SteppingClock) -> Steps:
    return Steps(timed, clock)


STEP = st.tuples(
    st.sampled_from(FACTS),
    st.sampled_from([*FactRelation, None]),
    st.integers(0, 5),
    st.sampled_from([Trust.LOW, Trust.MODEST]),
)
FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(taken=st.lists(STEP, min_size=1, max_size=7), stated=st.sets(st.sampled_from(FACTS), max_size=3))
def test_no_sequence_of_facts_ends_a_memory_of_higher_trust_and_each_can_be_undone(
    steps: Steps, taken: list[tuple[str, FactRelation | None, int, Trust]], stated: set[str]
) -> None:
    memory, subject = steps.memory, steps.begin()
    own = [memory.remember(text, subject=subject) for text in sorted(stated)]
    messages = []
    for fact, claim, at, trust in taken:
        steps.clock.advance(hours=1)
        messages.append(say(memory, fact, subject))
        steps.propose(subject, messages[-1], fact, claim, at, trust)
    for record in own:
        left = memory.get(record.id)
        assert isinstance(left, MemoryRecord)
        assert (left.text, left.trust, left.validity, left.evidence) == (
            record.text,
            record.trust,
            record.validity,
            record.evidence,
        )
    after = histories(memory, subject)
    for revisions in after:
        for earlier, later in pairwise(revisions):
            if (earlier.text, earlier.validity) != (later.text, later.validity):
                assert later.trust >= earlier.trust
    # The same again changes nothing: neither revisions nor evidence.
    for said, (fact, claim, at, trust) in zip(messages, taken, strict=True):
        steps.propose(subject, said, fact, claim, at, trust)
    assert histories(memory, subject) == after
    for revisions in after:
        if len(revisions) > 1:
            restored = memory.revert(revisions[0].id, 1, subject=subject)
            assert state_of(restored) == state_of(revisions[0])
            assert cast(Any, memory.history(restored.id))[: len(revisions)] == (
                *revisions[:-1],
                replace(revisions[-1], superseded_at=restored.recorded_at, contradicts=_written(memory, revisions[-1])),
            )
    assert memory.verify().ok


def _written(memory: Memory, revision: MemoryRecord) -> tuple[MemoryId, ...]:
    """The marks of a revision that is no longer current: all that were written."""
    found = memory.history(revision.id)[revision.revision - 1]
    assert isinstance(found, MemoryRecord)
    return found.contradicts


# --- remember ---------------------------------------------------------------------------------------------------------


def test_the_same_statement_twice_is_one_memory_with_both_pieces_of_evidence(memory: Memory) -> None:
    said = [say(memory, text) for text in ("No gluten for me.", "Gluten makes me ill.")]
    first, second = (memory.remember("Ana eats no gluten.", subject="ana", evidence=[each]) for each in said)
    assert (second.id, second.revision, second.reason) == (first.id, 2, "stated again")
    assert [link.message_id for link in second.evidence] == said
    assert memories(memory) == [second]
    # It stays while one of them is there.
    memory.forget(said[0])
    assert [link.message_id for link in memories(memory)[0].evidence] == said[1:]


def test_the_same_statement_without_evidence_leaves_a_trace_in_the_history(memory: Memory) -> None:
    first = memory.remember("Ana is vegan.", subject="ana")
    second = memory.remember("  ana is VEGAN!", subject="ana")
    assert (second.id, second.text, second.trust, second.validity) == (
        first.id,
        first.text,
        first.trust,
        first.validity,
    )
    assert [each.reason for each in cast(Any, memory.history(first.id))] == [None, "stated again"]
    assert [hit.text for hit in memory.search("vegan", subject="ana")] == ["Ana is vegan."]


@pytest.mark.parametrize(
    "other",
    [
        {"metadata": {"from": "form"}},
        {"valid_from": "2026-01-01"},
        {"plane": "procedural"},
        {"source": "crm"},
        {"quarantined": True},
        {"conversation": "c"},
        {"app": "mail"},
        {"text": "Ana has 3 cats."},
        {"text": "Ana has no 2 cats."},
        {"text": "Ana has -2 cats."},
        {"text": "Ana has 2 cats?"},
        {"text": "Ana has 2 bats."},
    ],
)
def test_a_statement_that_differs_in_anything_is_a_memory_of_its_own(memory: Memory, other: dict[str, Any]) -> None:
    statement: dict[str, Any] = {"text": "Ana has 2 cats.", "subject": "ana"}
    first, second = memory.remember(**statement), memory.remember(**statement | other)
    assert first.id != second.id
    assert memory.get(first.id) == first


def test_statements_with_and_without_evidence_stay_apart(memory: Memory) -> None:
    """Else the one would go when the other's evidence is forgotten, or its evidence would be lost."""
    said = say(memory, "No meat for me.")
    plain = memory.remember("Ana is vegan.", subject="ana")
    resting = memory.remember("Ana is vegan.", subject="ana", evidence=[said])
    memory.forget(said)
    assert memories(memory) == [plain]
    assert resting.id != plain.id


@pytest.mark.embedded
def test_what_an_agent_repeats_neither_raises_nor_weakens_what_a_user_stated(memory: Memory) -> None:
    statement = {"text": "Ana is vegan.", "subject": "ana", "agent": "bot"}
    stated = memory.remember(**statement)
    heard = acting(memory, BOT, "remember", **statement)
    assert memory.get(stated.id) == stated
    assert (heard.id == stated.id, heard.trust) == (False, Trust.LOW)
    assert acting(memory, BOT, "remember", **statement).id == heard.id


def test_a_statement_after_its_correction_is_a_memory_of_its_own(memory: Memory) -> None:
    first = memory.remember("Ana lives in Rome.", subject="ana")
    memory.correct(first.id, "Ana lives in Oslo.", subject="ana")
    again = memory.remember("Ana lives in Rome.", subject="ana")
    assert again.id != first.id
    assert memory.remember("Ana lives in Rome.", subject="ana").id == again.id


def test_a_replayed_statement_is_not_stated_again(memory: Memory) -> None:
    first = memory.remember("Ana is vegan.", subject="ana", idempotency_key="k")
    assert memory.remember("Ana is vegan.", subject="ana", idempotency_key="k") == first
    with pytest.raises(IdempotencyConflict):
        memory.remember("Ana is vegan.", subject="ana", idempotency_key="k", source="crm")
    assert len(memory.history(first.id)) == 1


# --- revert -----------------------------------------------------------------------------------------------------------


def test_a_reverted_memory_has_the_earlier_text_evidence_and_validity_and_is_found_by_it(memory: Memory) -> None:
    said = say(memory, "I was in Rome in May.")
    first = memory.remember("Ana was in Rome.", subject="ana", evidence=[said], valid_from="2026-05-01")
    memory.correct(first.id, "Ana was in Oslo.", subject="ana", evidence=(), valid_from="2026-06-01")
    back = memory.revert(first.id, 1, subject="ana", reason="it was Rome", expected_revision=2)
    assert state_of(back) == state_of(first)
    assert (back.revision, back.reason) == (3, "it was Rome")
    (hit,) = memory.search("Rome", subject="ana", kind="memory", method="keyword")
    assert (hit.id, hit.revision) == (first.id, 3)
    assert [each.revision for each in memory.history(first.id)] == [1, 2, 3]


def test_a_revision_that_cannot_be_reverted_to_is_refused(memory: Memory) -> None:
    made = memory.remember("One.", subject="ana")
    for revision, problem in ((1, InvalidInput), (2, NotFound), (0, InvalidInput), ("1", InvalidInput)):
        with pytest.raises(problem):
            memory.revert(made.id, revision, subject="ana")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        memory.revert(say(memory, "A message."), 1, subject="ana")
    memory.correct(made.id, "Two.", subject="ana")
    with pytest.raises(RevisionConflict):
        memory.revert(made.id, 1, subject="ana", expected_revision=1)
    assert len(memory.history(made.id)) == 2


def test_a_revision_whose_evidence_was_forgotten_cannot_come_back(memory: Memory) -> None:
    said = [say(memory, text) for text in ("I live in Rome.", "I live in Oslo.")]
    made = memory.remember("Ana lives in Rome.", subject="ana", evidence=said[:1])
    memory.correct(made.id, "Ana lives in Oslo.", subject="ana", evidence=said[1:])
    memory.forget(said[0])
    with pytest.raises(NotFound, match="no revision 1"):
        memory.revert(made.id, 1, subject="ana")


@pytest.mark.embedded
def test_an_agent_that_reverts_to_another_text_gives_it_no_more_trust_than_its_own(memory: Memory) -> None:
    made = memory.remember("Ana lives in Rome.", subject="ana", agent="bot")
    memory.correct(made.id, "Ana lives in Oslo.", subject="ana", agent="bot")
    with pytest.raises(NotFound):
        acting(memory, BEN, "revert", made.id, 1, subject="ben")
    with pytest.raises(AccessDenied):
        acting(memory, replace(BOT, role=ActorRole.MEMBER), "revert", made.id, 1, subject="ana", agent="bot")
    assert acting(memory, BOT, "revert", made.id, 1, subject="ana", agent="bot").trust is Trust.MODEST
