"""A fixture that was recorded from a conversation holds its structure, and none of its words."""

from __future__ import annotations

import asyncio
import re
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.domain.transcript_turns import Authority
from holdfast.errors import NotFound
from holdfast.sdk import (
    AsyncMemoryRuntime,
    HostOpaqueRef,
    MemoryScope,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.testing.replay import ReplayFixture, record_conversation, record_expectation, run_fixture
from holdfast.testing.replay.pseudonyms import Pseudonyms

WHERE = MemoryScope("web", conversation_id="secret-talk")
WORD = re.compile(r"\w+")


async def record(texts: list[str], name: str = "talk") -> ReplayFixture:
    """Commit texts with names of their own everywhere, and record them."""
    builder = AsyncMemoryRuntime.builder().store(":memory:").embedder("fake").identity(subject_id="secretperson")
    async with builder.without_worker().open() as runtime:
        for number, text in enumerate(texts):
            ref = HostOpaqueRef(text, text, text, "origin", "host_ui", text)  # type: ignore[arg-type]
            role, authority = ("user", None) if number % 2 else ("tool", str(Authority.WORLD_OBSERVATION))
            message = TurnMessage(text, role, sender="secretsender", authority=authority, metadata={"secretkey": text})
            turn = TranscriptTurnInput(f"secretturn{number}", (message,), WHERE)
            await runtime.commit_transcript(MemoryTranscriptCommitRequest(turn, (ref,)))
        await runtime.request_transcript_lifecycle(
            MemoryTranscriptLifecycleRequest("mask", "secretreason", WHERE, "secretturn0")
        )
        return await record_conversation(runtime, WHERE, name)


def test_no_word_of_the_conversation_is_in_the_file() -> None:
    texts = ["Zanzibar felt hot 🎉", "My IBAN reads DE02 1203, naïve Zoë", "東京 zanzibar, j.doe@example.org"]
    recorded = record_expectation(asyncio.run(record(texts)))
    found = {word.casefold() for word in WORD.findall(recorded.to_text())}
    said = {word.casefold() for text in texts for word in WORD.findall(text)}
    assert not found & said
    assert "secret" not in recorded.to_text()
    assert not set("🎉東京ëï") & set(recorded.to_text())
    assert run_fixture(recorded).passed


LETTERS = string.ascii_lowercase + "äß東日"


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_conversations_of_one_pattern_give_the_same_file(pattern: list[list[int]], data: st.DataObject) -> None:
    """If each word is replaced by another, the same by the same, the file does not change: it holds none of them."""
    names = st.lists(st.text(LETTERS, min_size=1, max_size=8), min_size=10, max_size=10, unique_by=str.casefold)
    files = {
        asyncio.run(record([" ".join(words[place] for place in line) for line in pattern])).to_text()
        for words in (data.draw(names), data.draw(names))
    }
    assert len(files) == 1


@given(st.lists(st.text()))
def test_invented_words_are_new_and_stand_for_the_same_word_each(texts: list[str]) -> None:
    words = Pseudonyms(texts)
    said = {word.casefold() for text in texts for word in WORD.findall(text)}
    for text in texts:
        shown = words.replace(text)
        assert shown == words.replace(text)
        assert shown.isascii()
        assert not said & {word.casefold() for word in WORD.findall(shown)}


def test_a_word_of_the_conversation_that_looks_invented_is_not_reused() -> None:
    first = Pseudonyms(["one"]).replace("one")
    assert Pseudonyms([f"one {first}"]).replace("one") != first


def test_the_states_of_turns_are_recorded_and_an_empty_conversation_is_refused() -> None:
    recorded = asyncio.run(record(["First words.", "Second words."]))
    transitions = [step for step in recorded.operations if step["operation"] == "transcript_lifecycle"]
    assert [(step["transition"], step["turn_id"]) for step in transitions] == [("mask", "turn-1")]
    with pytest.raises(NotFound):
        asyncio.run(record([]))
