"""A tenant never affects another tenant's scores, records, conversations or texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind, AsyncMemory, Memory
from holdfast.errors import AccessDenied, DuplicateId, InvalidInput, NotFound
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.testing.full_repr import full_repr
from probes import trail_of

ANA = Actor(ActorKind.USER, "ana")
BOB = Actor(ActorKind.USER, "bob")


class Acting:
    """The same store, called by another actor."""

    def __init__(self, memory: Memory, actor: Actor, space: str = "default") -> None:
        self._portal = memory._portal
        self._memory = AsyncMemory(memory._behind._service, actor=actor, space=space)

    def __getattr__(self, verb: str) -> Any:
        return lambda *given, **named: self._portal.run(getattr(self._memory, verb)(*given, **named))


# --- scores ---------------------------------------------------------------------------------------------------------

SAID = (
    "I moved to Lisbon last spring.",
    "The dentist is on Tuesday at nine.",
    "My sister Clara keeps bees near Sintra.",
    "We had grilled sardines by the river.",
    "When does the ferry to Cacilhas leave?",
    "I prefer tea to coffee in the morning.",
)
QUESTIONS = (
    "Where do I live?",
    "What does Clara do?",
    "When is the dentist?",
    "sardines",
    "coffee or tea in March 2026",
)
HERE = {"space": "home", "subject": "ana", "app": "mail", "conversation": "c1"}
ELSEWHERE = {
    "another space": {**HERE, "space": "away"},
    "another subject": {**HERE, "subject": "bob"},
    "another app": {**HERE, "app": "chat"},
    "another conversation": {**HERE, "conversation": "c2"},
    "another project": {**HERE, "project": "p"},
    "an agent of the same name": {"space": "home", "agent": "ana", "app": "mail", "conversation": "c1"},
}


@pytest.fixture
def here(tmp_path: Path, static_embedder: StaticEmbedder) -> Iterator[Memory]:
    with holdfast.open(tmp_path / "scores.db", embedder=static_embedder, work=False) as memory:
        for number, text in enumerate(SAID):
            sender = ("Ana", "Clara")[number % 2]
            memory.add({"text": text, "sender": sender, "timestamp": f"2026-03-0{number + 1}T10:00:00Z"}, **HERE)
        memory.remember("Ana lives in Lisbon.", **HERE)
        yield memory


def measured(memory: Memory, where: dict[str, str]) -> list[Any]:
    """Every number of every response, bit for bit."""
    explained = [memory.explain(question, top_k=50, **where) for question in QUESTIONS]
    return [
        (
            [(hit.id, hit.score.hex(), [(part.name, part.raw.hex()) for part in hit.components]) for hit in found.hits],
            found.candidates,
            found.query,
        )
        for found in explained
    ]


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_thousand_records_elsewhere_do_not_move_a_bit_of_a_score(here: Memory, place: str) -> None:
    where = dict(HERE) if "project" not in ELSEWHERE[place] else {**HERE, "project": "own"}
    if where != HERE:
        here.add([{"text": text, "sender": "Ana"} for text in SAID], **where)
    before = measured(here, where)
    assert all(hits for hits, _, _ in before)
    noise = [
        {
            "text": f"Lisbon, Clara, the dentist, coffee and sardines, time {number}: {SAID[number % len(SAID)]}",
            "sender": ("Ana", "Zoe", "Clara")[number % 3],
            "role": ("user", "assistant")[number % 2],
        }
        for number in range(1_000)
    ]
    here.add(noise, **ELSEWHERE[place])
    assert measured(here, where) == before


def test_a_thousand_records_in_the_scope_itself_do_move_scores(here: Memory) -> None:
    """Otherwise the test above would prove nothing."""
    before = measured(here, HERE)
    here.add([f"Lisbon and the dentist, time {number}." for number in range(1_000)], **HERE)
    assert measured(here, HERE) != before


# --- writes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shared_house(memory: Memory) -> Memory:
    for subject in ("ana", "bob", None):
        where = {"subject": subject} if subject else {}
        memory.add(f"{subject} said this in the hall.", conversation="hall", **where)
        memory.add(f"{subject} said this by default.", **where)
        memory.remember(f"{subject} is noted.", **where)
    memory.add("Somebody else's hall.", conversation="hall", subject="ana", space="away")
    memory.add("Ana in another app.", conversation="hall", subject="ana", app="chat")
    return memory


def texts(memory: Memory, **where: str) -> set[str]:
    return {record.text for record in memory.list(limit=1_000, **where).items}


def test_forgetting_a_subject_leaves_everybody_else_and_what_is_shared(shared_house: Memory) -> None:
    shared_house.forget(subject="ana")
    assert texts(shared_house) == {
        "bob said this in the hall.", "bob said this by default.", "bob is noted.",
        "None said this in the hall.", "None said this by default.", "None is noted.",
    }  # fmt: skip
    assert texts(shared_house, space="away") == {"Somebody else's hall."}


def test_forgetting_a_conversation_of_nobody_leaves_the_conversations_of_that_name_of_everybody(
    shared_house: Memory,
) -> None:
    """The first conversation of each subject is called "default": a forget by that name must not reach all of them."""
    assert shared_house.forget_preview(conversation="default").messages == 1
    shared_house.forget(conversation="default")
    assert "None said this by default." not in texts(shared_house)
    assert {"ana said this by default.", "bob said this by default."} <= texts(shared_house)


@pytest.mark.parametrize("kind", [ActorKind.USER, ActorKind.AGENT])
def test_whoever_reaches_nobody_else_is_not_told_who_has_a_conversation_of_that_name(
    shared_house: Memory, kind: ActorKind
) -> None:
    eve = Acting(shared_house, Actor(kind, "eve"))
    own = {"subject" if kind is ActorKind.USER else "agent": "eve"}
    for name in ("hall", "nowhere"):
        assert eve.forget_preview(conversation=name, **own).empty
        assert not eve.forget(conversation=name, **own).found
    refusals = []
    for name in ("hall", "nowhere"):
        with pytest.raises(AccessDenied) as refused:
            eve.forget(conversation=name)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]


def test_forgetting_a_conversation_of_a_subject_leaves_the_others_of_that_name(shared_house: Memory) -> None:
    shared_house.forget(conversation="hall", subject="ana", app="chat")
    assert "Ana in another app." not in texts(shared_house)
    assert {"ana said this in the hall.", "bob said this in the hall."} <= texts(shared_house)


@pytest.mark.parametrize(
    "given",
    [
        {}, {"space": "default"}, {"app": "chat"}, {"agent": "bot"}, {"subject": None}, {"conversation": None},
        {"record_id": None}, {"record_id": []}, {"record_id": ""}, {"source": ""}, {"source": " "}, {"source": None},
        {"source": "", "subject": "ana"}, {"record_id": [], "subject": "ana"}, {"record_id": "", "subject": "ana"},
        {"subject": ""}, {"conversation": ""}, {"conversation": "", "subject": "ana"},
        {"record_id": "mem_1", "source": "s"},
    ],
)  # fmt: skip
def test_a_forget_that_names_nothing_is_refused_and_takes_nothing(shared_house: Memory, given: dict[str, Any]) -> None:
    before = texts(shared_house)
    for verb in (shared_house.forget_preview, shared_house.forget):
        with pytest.raises(InvalidInput):
            verb(**given)
    assert texts(shared_house) == before


@pytest.mark.parametrize("given", [{"subjct": "ana"}, {"record_id": ["mem_1"], "sorce": "s"}])
def test_a_forget_with_a_misspelt_keyword_is_refused_and_takes_nothing(
    shared_house: Memory, given: dict[str, Any]
) -> None:
    before = texts(shared_house)
    for verb in (shared_house.forget_preview, shared_house.forget):
        with pytest.raises(TypeError, match=r"subjct|sorce"):
            verb(**given)
    assert texts(shared_house) == before


def test_the_words_of_one_app_do_not_become_the_memory_of_another(memory: Memory) -> None:
    for app, city in (("mail", "Lisbon"), ("chat", "Oslo")):
        memory.add(f"I live in {city}.", subject="ana", app=app)
        memory.flush(subject="ana", app=app)
    memory.drain()
    assert [record.text for record in memory.list(kind="memory", subject="ana", app="mail").items] == [
        "ana lives in Lisbon."
    ]
    assert [record.text for record in memory.list(kind="memory", subject="ana", app="chat").items] == [
        "ana lives in Oslo."
    ]


def test_a_flush_of_one_subject_does_not_seal_the_conversation_of_another(memory: Memory) -> None:
    for subject in ("ana", "bob"):
        memory.add("I live in Lisbon.", subject=subject)
    memory.add("I live in Faro.")
    assert memory.flush().messages == 1
    assert memory.flush(subject="ana").messages == 1
    assert memory.flush(subject="bob").messages == 1
    assert memory.drain() == 3


def test_message_ids_and_idempotency_keys_of_two_subjects_do_not_meet(memory: Memory) -> None:
    for subject in ("ana", "bob"):
        added = memory.add({"text": f"I am {subject}.", "id": "1"}, idempotency_key="k", subject=subject)
        assert (added.stored, added.replayed) == (1, False)
    with pytest.raises(DuplicateId):
        memory.add({"text": "I am somebody else.", "id": "1"}, subject="ana")


def test_a_rebuild_changes_no_answer_of_anybody(shared_house: Memory) -> None:
    def answers() -> list[Any]:
        return [
            [(hit.id, hit.score) for hit in shared_house.search("said noted", top_k=50, **where)]
            for where in ({}, {"subject": "ana"}, {"subject": "bob"}, {"space": "away"})
        ]

    before = answers()
    assert shared_house.rebuild().pending_vectors == 0
    assert answers() == before


# --- the shared partition -------------------------------------------------------------------------------------------


def test_what_is_shared_is_read_by_users_and_written_by_none(memory: Memory) -> None:
    shared = memory.remember("The office is closed on Friday.")
    ana = Acting(memory, ANA)
    assert [hit.id for hit in ana.search("office closed", subject="ana")] == [shared.id]
    assert ana.get(shared.id, subject="ana").text == shared.text
    for attempt in (
        lambda: ana.correct(shared.id, "It is open.", subject="ana"),
        lambda: ana.forget(shared.id, subject="ana"),
        lambda: ana.forget_preview(shared.id, subject="ana"),
    ):
        with pytest.raises(NotFound):
            attempt()
    for attempt in (lambda: ana.remember("It is open."), lambda: ana.add("It is open."), lambda: ana.forget(shared.id)):
        with pytest.raises(AccessDenied):
            attempt()
    assert [record.text for record in memory.history(shared.id)] == ["The office is closed on Friday."]


def test_a_shared_memory_does_not_carry_along_what_a_subject_said(memory: Memory) -> None:
    said = memory.add("Ana whispered: quokka.", subject="ana").message_ids[0]
    shared = memory.remember("The password was changed.", evidence=[said])
    bob, ana = Acting(memory, BOB), Acting(memory, ANA)
    seen_by_bob = [
        bob.get(shared.id, subject="bob"),
        bob.search("password changed", subject="bob"),
        bob.recall("password changed", subject="bob"),
        bob.explain("password changed", subject="bob", record_id=shared.id),
        bob.history(shared.id, subject="bob"),
        bob.list(subject="bob"),
    ]
    assert shared.id in full_repr(seen_by_bob[1])
    assert "quokka" not in full_repr(seen_by_bob)
    assert said not in full_repr(seen_by_bob)
    assert ana.get(shared.id, subject="ana").evidence[0].text == "Ana whispered: quokka."


def test_an_agent_reaches_the_subjects_that_are_mounted_on_it_and_no_other(memory: Memory) -> None:
    for subject in ("ana", "an", "a", "bob"):
        memory.remember(f"{subject} likes figs.", subject=subject)
    agent = Acting(memory, Actor(ActorKind.AGENT, "bot", subjects=frozenset({"ana"})))
    assert [hit.text for hit in agent.search("figs", agent="bot", subject="ana")] == ["ana likes figs."]
    for subject in ("an", "a", "bob"):
        with pytest.raises(AccessDenied):
            agent.search("figs", agent="bot", subject=subject)
    with pytest.raises(AccessDenied):
        agent.search("figs", subject="ana")


# --- hostile names --------------------------------------------------------------------------------------------------

HOSTILE = (
    "ana' OR '1'='1", "ana'; DROP TABLE records; --", 'ana" OR ""="', "ana%", "%", "_na", "*", "ana*", "an?", "[a]na",
    "ana\\", "ANA", "aná", "ana\u0301", "ana\u200b", "ａｎａ", "ana ", " ana", "a/n/a", "../ana", "ana)", "NULL",
    "0", "ana--", "ana/*", "${ana}", "{ana}", ":ana", "?1",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_a_name_and_reaches_only_its_own(memory: Memory, name: str) -> None:
    memory.add("Ana's own words: heron.", subject="ana", app="mail", source="src", conversation="talk")
    own = memory.remember("A memory of this one: heron.", subject=name)
    assert texts(memory, subject=name) == {own.text}
    for field in ("app", "project", "channel", "conversation", "run", "issue", "namespace"):
        assert texts(memory, **{field: name}) == set()
        assert memory.search("heron", **{field: name}) == ()
    for field in ("sender", "source"):
        assert memory.search("heron", subject="ana", **{field: name}) == ()
        assert memory.list(subject="ana", **{field: name}).items == ()
    if name != "*":
        assert texts(memory, space=name) == set()
    with pytest.raises(NotFound):
        memory.get(name, subject="ana")
    assert memory.forget(source=name).messages == 0
    assert memory.forget(subject=name).memories == 1
    assert texts(memory) == {"Ana's own words: heron."}
    assert memory.verify().ok


def test_hostile_keys_values_and_cursors_are_data(memory: Memory) -> None:
    hostile = "x', '$.a') OR 1=1; DROP TABLE texts; --"
    added = memory.add(
        {"text": hostile, "sender": hostile, "id": hostile, "metadata": {hostile: hostile}},
        idempotency_key=hostile,
        source=hostile,
        subject=hostile,
    )
    found = memory.get(added.message_ids[0])
    assert (found.text, found.sender, found.external_id, found.source) == (hostile,) * 4
    assert found.metadata == {hostile: hostile}
    assert memory.search(hostile, sender=hostile, source=hostile, subject=hostile)[0].text == hostile
    with pytest.raises(InvalidInput):
        memory.list(cursor=hostile)
    assert memory.verify().ok


def test_refusals_are_kept_in_the_audit_of_the_scope_that_was_tried(memory: Memory) -> None:
    with pytest.raises(AccessDenied):
        Acting(memory, ANA).search("figs", subject="bob")
    row = trail_of(memory)[-1]
    assert (str(row.actor), row.action, row.outcome, row.error_code) == (
        "user:ana",
        "search",
        "refused",
        "access_denied",
    )
    assert row.scope.subject == "bob"
