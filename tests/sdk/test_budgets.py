"""Budgets of a profile bind a runtime's writes, count nothing of other faces, and remove nothing that is stored."""

from __future__ import annotations

import pytest
from writers import candidate

import holdfast
from holdfast.domain.identity import MemoryScope
from holdfast.domain.runtime_api.retrieval import MemoryInspectionRequest, MemoryRecallRequest
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptCommitRequest, TranscriptTurnInput, TurnMessage
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.errors import BudgetExceeded, InvalidInput
from holdfast.sdk import MemoryRuntime

CHAT = MemoryScope(conversation_id="chat")


def opened(location: str, **budgets: int) -> MemoryRuntime:
    builder = MemoryRuntime.builder().store(location).identity(subject_id="ana").embedder("fake").without_worker()
    return builder.budget(**budgets).open()


def commit(runtime: MemoryRuntime, turn: str, text: str = "I like tea.") -> list[str]:
    messages = (TurnMessage(text, "user"), TurnMessage("Noted.", "assistant"))
    report = runtime.commit_transcript(MemoryTranscriptCommitRequest(TranscriptTurnInput(turn, messages, CHAT)))
    return [str(each) for each in report.message_ids]


def excess(runtime: MemoryRuntime) -> tuple[str, ...]:
    return runtime.inspect(MemoryInspectionRequest(scope=CHAT)).hygiene.usage.excess


def test_records_beyond_the_budget_are_refused_and_none_is_removed(location: str) -> None:
    with holdfast.open(location, embedder="fake", work=False) as library:
        library.add([f"Message {number}." for number in range(30)], subject="ana")
        library.remember("Ana has a dog.", subject="ana")
        with opened(location, records=5) as runtime:
            first = commit(runtime, "t1")
            commit(runtime, "t2")
            before, events = library.stats(space="default"), library.events().items
            with pytest.raises(BudgetExceeded, match=r"records: .* hold 6, and server-linux-dev-full allows 5"):
                commit(runtime, "t3")
            assert (library.stats(space="default"), library.events().items) == (before, events)
            assert commit(runtime, "t2")  # a repeat writes nothing
            written = runtime.write(MemoryWriteRequest.candidates(candidate("Ana likes tea.", first[0])))
            assert written.changed
            with pytest.raises(BudgetExceeded):
                runtime.write(MemoryWriteRequest.candidates(candidate("I like tea.", first[0], candidate_id="c2")))
            library.add("The library is not limited.", subject="ana")
            library.forget(first[1], subject="ana")
            library.forget(first[0], subject="ana")
            commit(runtime, "t3")
            assert excess(runtime) == ()


def test_a_store_over_its_budget_opens_reads_and_says_so_until_the_budget_is_raised(location: str) -> None:
    with opened(location) as runtime:
        commit(runtime, "t1", "The giraffe is called Gina.")
        assert excess(runtime) == ()
    with opened(location, records=1, blob_bytes=10) as runtime:
        assert excess(runtime) == ("records", "blob_bytes")
        found = runtime.recall(MemoryRecallRequest("giraffe", scope=CHAT)).working.hits
        assert [hit.text for hit in found] == ["The giraffe is called Gina."]
        with pytest.raises(BudgetExceeded):
            commit(runtime, "t2")
    with opened(location, records=100) as runtime:
        assert commit(runtime, "t2")


def test_bytes_of_texts_beyond_the_budget_are_refused(location: str) -> None:
    with opened(location, blob_bytes=1_000) as runtime:
        commit(runtime, "t1", "é" * 400)
        with pytest.raises(BudgetExceeded, match="blob_bytes"):
            commit(runtime, "t2", "é" * 400)
        commit(runtime, "t3", "e" * 100)


def test_budgets_are_named_and_positive(location: str) -> None:
    for budgets in ({"recrods": 5}, {"records": 0}, {"records": True}):
        with pytest.raises(InvalidInput, match="budget"):
            opened(location, **budgets)
