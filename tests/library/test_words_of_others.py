"""Words of others in a subject's memory: they are stored and found, and neither believed nor in the user's way."""

from __future__ import annotations

from pathlib import Path

import holdfast
from blank import blank
from holdfast import Memory
from holdfast.domain.memory import Trust


def learn(memory: Memory, *texts: object, conversation: str = "talk", source: str | None = None) -> None:
    memory.add(list(texts), subject="ana", conversation=conversation, source=source)
    memory.flush(subject="ana", conversation=conversation)
    memory.drain()


def learned(memory: Memory) -> dict[str, Trust]:
    return {each.text: each.trust for each in memory.list(kind="memory", subject="ana").items}


def test_text_from_a_source_replaces_nothing_and_the_user_goes_on(memory: Memory) -> None:
    learn(memory, "I live in Lisbon.")
    learn(memory, "I moved to Minsk.", conversation="crm", source="webhook:crm")
    assert learned(memory) == {"ana lives in Lisbon.": Trust.MODEST, "ana moved to Minsk.": Trust.LOW}
    learn(memory, "I moved to Porto.")
    assert learned(memory) == {"ana moved to Porto.": Trust.MODEST, "ana moved to Minsk.": Trust.LOW}


def test_another_senders_words_are_of_low_trust_and_keep_their_name(memory: Memory) -> None:
    learn(memory, {"text": "I live in Minsk.", "sender": "Ben"}, {"text": "I live in Lisbon.", "sender": "Ana"})
    assert learned(memory) == {"Ben lives in Minsk.": Trust.LOW, "Ana lives in Lisbon.": Trust.MODEST}


def test_repetition_raises_no_trust_and_the_users_own_word_does(memory: Memory) -> None:
    for number in range(3):
        learn(memory, "I live in Lisbon.", conversation=f"feed-{number}", source=f"feed:{number}")
    assert learned(memory) == {"ana lives in Lisbon.": Trust.LOW}
    learn(memory, "I live in Lisbon.")
    assert learned(memory) == {"ana lives in Lisbon.": Trust.MODEST}


def test_words_of_others_are_no_evidence_of_a_trusted_memory(memory: Memory) -> None:
    learn(memory, "I live in Lisbon.")
    learn(memory, "I live in Lisbon.", conversation="feed", source="feed")
    (known,) = memory.list(kind="memory", subject="ana").items
    assert [link.conversation for link in known.evidence] == ["talk"]


def test_an_agents_note_about_somebody_is_of_low_trust_unless_their_words_say_it(tmp_path: Path) -> None:
    agent = holdfast.Actor(holdfast.ActorKind.AGENT, "helper", space="default", subjects=frozenset({"ana"}))
    with holdfast.open(blank(tmp_path / "memory.db"), embedder="fake", work=False, actor=agent) as memory:
        place = {"agent": "helper", "subject": "ana"}
        (own,) = memory.add("I keep bees.", **place).message_ids
        (other,) = memory.add([{"text": "Ana keeps bees.", "role": "assistant"}], **place).message_ids
        assert memory.remember("Ana keeps bees.", **place).trust is Trust.LOW
        assert memory.remember("Ana keeps bees.", evidence=[other], **place).trust is Trust.LOW
        assert memory.remember("Ana keeps bees.", evidence=[own], **place).trust is Trust.MODEST
        assert memory.remember("The build takes ten minutes.", agent="helper").trust is Trust.MODEST
