"""What rests on broken evidence is neither recalled nor projected until it is repaired."""

from __future__ import annotations

import asyncio

import pytest
from conversing import CHAT, Talk, talking

from holdfast.domain.access import storewide_grant
from holdfast.domain.runtime_api.retrieval import MemoryProjectionRequest, MemoryRecallRequest
from holdfast.domain.runtime_api.skills import RuntimeSkillEditRequest, RuntimeSkillWrite
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptRepairRequest
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.skills import SkillOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.testing.full_repr import full_repr

GIRAFFE, ZEBRA = "The giraffe is called Gina.", "The zebra is called Zoe."
LEARNED, OTHER = "Ana feeds Gina in the morning.", "Ana paints Zoe in the evening."
SKILL = "To feed Gina, open the gate and call her."
QUERY = "giraffe Gina feeds morning zebra Zoe paints evening"
# Damage of the first turn or of what rests on it, and what undoes it.
DAMAGE = {
    "a state that nobody knows": (
        "UPDATE turns SET state = 'lost' WHERE sequence = 1",
        "UPDATE turns SET state = 'active' WHERE sequence = 1",
    ),
    "masked, but its message is not": (
        "UPDATE turns SET state = 'masked' WHERE sequence = 1",
        "UPDATE turns SET state = 'active' WHERE sequence = 1",
    ),
    "a message is missing": (
        "UPDATE turns SET messages = messages + 1 WHERE sequence = 1",
        "UPDATE turns SET messages = messages - 1 WHERE sequence = 1",
    ),
    "its turn is missing": (
        "UPDATE turns SET id = 'gone' || id WHERE sequence = 1",
        "UPDATE turns SET id = substr(id, 5) WHERE sequence = 1",
    ),
    "two turns in one place": (
        "UPDATE turns SET first_position = first_position + 1 WHERE sequence = 1",
        "UPDATE turns SET first_position = first_position - 1 WHERE sequence = 1",
    ),
}
LINK = (
    "INSERT INTO evidence (memory_number, message_number) SELECT min(number), min(number) FROM records WHERE kind = 1",
    "DELETE FROM evidence WHERE memory_number = message_number",
)


def execute(talk: Talk, statement: str) -> None:
    store = talk.engine._core.store
    talk.run(store.write(storewide_grant(), lambda t: t.scope.database.execute(statement)))  # type: ignore[attr-defined]


def shown(talk: Talk, query: str) -> tuple[set[str], str, int]:
    """Return what `recall` shows, the block of `project`, and how much was left out as broken."""
    retrieval = RetrievalOperations(talk.engine, talk.operations._actor, talk.operations._governance)
    report = talk.run(retrieval.recall(MemoryRecallRequest(query, limit=50, min_score=0, scope=CHAT)))
    recalled = report.working
    projected = talk.run(retrieval.project(MemoryProjectionRequest(query, min_score=0, scope=CHAT)))
    texts = {hit.text for hit in (*recalled.hits, *report.procedural_hits)}
    omitted = recalled.omitted.get("broken_evidence", 0)
    assert bool(omitted) == ("broken_evidence" in {str(reason) for reason in projected.audit.omitted})
    return texts, projected.system_memory_block, omitted


def is_closed(talk: Talk) -> bool:
    return talk.run(talk.operations.repair_transcript(MemoryTranscriptRepairRequest(CHAT))).fail_closed


@pytest.fixture
def talk(location: str) -> object:
    with asyncio.Runner() as runner, talking(location, runner) as found:
        first = found.commit("t1", GIRAFFE)
        second = found.commit("t2", ZEBRA)
        found.commit("t3", "The weather is fine.")
        found.run(found.memory.remember(LEARNED, evidence=first.message_ids))
        found.run(found.memory.remember(OTHER, evidence=second.message_ids))
        yield found


def test_a_skill_rests_on_its_evidence_after_an_edit(talk: Talk) -> None:
    (message_id,) = talk.commit("t4", "To feed Gina, call her.").message_ids
    operations = (talk.engine, talk.operations._actor, talk.operations._governance)
    write = RuntimeSkillWrite(SKILL, title="Feeding", citations=(message_id,))
    talk.run(WritingOperations(*operations).write(MemoryWriteRequest.procedural(write)))
    edit = RuntimeSkillEditRequest("runtime_skill__feeding", summary="Gate, then call.")
    assert talk.run(SkillOperations(*operations).edit_runtime_skill(edit)).changed
    assert "Feeding: Gate, then call." in shown(talk, QUERY)[0]
    execute(talk, "UPDATE turns SET messages = messages + 1 WHERE sequence = 4")
    texts, block, _ = shown(talk, QUERY)
    assert "Feeding" not in full_repr(texts) + block


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_rests_on_a_broken_turn_is_not_shown_until_it_is_repaired(talk: Talk, kind: str) -> None:
    damage, repair = DAMAGE[kind]
    before = shown(talk, QUERY)
    assert [name for name in ("Gina", "Zoe") if name in full_repr(before[0]) and name in before[1]] == ["Gina", "Zoe"]
    assert before[2] == 0
    execute(talk, damage)
    assert is_closed(talk)
    texts, block, omitted = shown(talk, QUERY)
    assert "Gina" not in full_repr(texts) + block
    both = kind == "two turns in one place"
    assert (omitted, "Zoe" in full_repr(texts)) == (4 if both else 2, not both)
    execute(talk, repair)
    assert not is_closed(talk)
    assert shown(talk, QUERY) == before


def test_a_memory_with_a_link_to_no_message_is_not_shown_until_it_is_repaired(talk: Talk) -> None:
    before = shown(talk, QUERY)
    execute(talk, LINK[0])
    assert is_closed(talk)
    texts, block, omitted = shown(talk, QUERY)
    assert (LEARNED in texts or LEARNED in block, omitted) == (False, 1)
    assert GIRAFFE in texts
    execute(talk, LINK[1])
    assert shown(talk, QUERY) == before


def test_masked_archived_and_forgotten_evidence_is_not_broken(talk: Talk) -> None:
    for transition in ("archive", "mask", "delete_raw"):
        talk.age(transition, "t1")
        texts, _, omitted = shown(talk, QUERY)
        assert (LEARNED in texts or GIRAFFE in texts, omitted) == (True, 0)
    talk.run(talk.memory.forget(conversation="c1"))
    assert shown(talk, "giraffe")[2] == 0
