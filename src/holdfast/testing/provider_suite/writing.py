"""Writes are visible at once or within the provider's declared delay, and repeated writes are stored once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.domain.contract import (
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
    WriteResult,
)
from holdfast.testing.provider_suite.trial import BINDING, Trial, holds, run_on_adapter

_MOST_ID_CHARS = 512


class WritingContract:
    @run_on_adapter
    async def test_what_was_written_is_found_listed_and_read(self, trial: Trial) -> None:
        handle = await trial.note("The harbour master is called Quillon.")
        await trial.eventually(lambda: trial.find_texts("Who is the harbour master?"), holds("Quillon"))
        await trial.eventually(lambda: trial.texts(), holds("Quillon"))
        assert await trial.text_of(handle) == "The harbour master is called Quillon."

    @run_on_adapter
    async def test_records_of_one_call_have_a_handle_each_in_their_order(self, trial: Trial) -> None:
        texts = [f"Crate {number} holds lamp {number}." for number in range(20)]
        done = await trial.write(*texts)
        assert isinstance(done, WriteResult)
        assert len(set(done.records)) == len(texts)
        await trial.eventually(lambda: _texts_of(trial, done.records), lambda seen: seen == texts)

    @run_on_adapter
    async def test_handles_carry_the_providers_own_name(self, trial: Trial) -> None:
        done = await trial.write("One.", "Two.")
        captured = await trial.capture("Three.")
        assert isinstance(captured, CaptureResult)
        handle = await trial.note("Four.")
        listed = [snippet.handle for snippet in await trial.list_all()]
        assert handle in listed
        for each in (*done.records, *captured.records, *listed):
            assert isinstance(each, RecordHandle)
            assert each.provider_key == trial.adapter.key
            assert isinstance(each.record_id, str)
            assert 0 < len(each.record_id) <= _MOST_ID_CHARS

    @run_on_adapter
    async def test_what_was_captured_can_be_found(self, trial: Trial) -> None:
        await trial.capture("We decided to call the new ferry Zephyrine.")
        await trial.eventually(lambda: trial.find_texts("What is the new ferry called?"), holds("Zephyrine"))

    @run_on_adapter
    async def test_a_captured_record_is_kept_as_it_is(self, trial: Trial) -> None:
        text = "Deploys happen on Thursdays, never on Fridays."
        done = await trial.capture(text, mode=CaptureMode.RECORD)
        assert len(done.records) == 1
        await trial.eventually(lambda: trial.text_of(done.records[0]), lambda seen: seen == text)

    @run_on_adapter
    async def test_a_structured_object_can_be_captured(self, trial: Trial) -> None:
        payload = SourcePayload(object={"outcome": "shipped the Obsidian release", "steps": 3})
        await trial.adapter.capture(CaptureRequest(BINDING, trial.scope(), trial.source(), payload))
        await trial.eventually(lambda: trial.find_texts("Obsidian release"), holds("Obsidian"))

    @pytest.mark.parametrize("mode", list(CaptureMode))
    @run_on_adapter
    async def test_capturing_the_same_id_again_adds_nothing(self, trial: Trial, mode: CaptureMode) -> None:
        text = "The lighthouse keeper is Thessaly."
        first = await trial.capture(text, mode=mode, idempotency_id="hook-1")
        before = await trial.eventually(lambda: trial.texts(), holds("Thessaly"))
        for _ in range(2):
            again = await trial.capture(text, mode=mode, idempotency_id="hook-1")
            assert again.records == first.records
        await trial.capture("Somebody else keeps the pier.", mode=mode, idempotency_id="hook-2")
        after = await trial.eventually(lambda: trial.texts(), holds("keeps the pier"))
        assert after.count(text) == before.count(text)

    @run_on_adapter
    async def test_a_record_of_a_key_takes_the_place_of_the_one_before(self, trial: Trial) -> None:
        old = await trial.note("The standup is at nine.", key="standup")
        new = await trial.note("The standup is at ten.", key="standup")
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == ["The standup is at ten."])
        await trial.eventually(
            lambda: trial.find_texts("When is the standup?"), lambda seen: seen == ["The standup is at ten."]
        )
        assert await trial.text_of(new) == "The standup is at ten."
        assert await trial.text_of(old) in (None, "The standup is at ten.")

    @run_on_adapter
    async def test_writing_the_same_of_a_key_again_changes_nothing(self, trial: Trial) -> None:
        for _ in range(3):
            await trial.note("The wifi is called Marlinspike.", key="wifi")
        assert await trial.texts() == ["The wifi is called Marlinspike."]

    @run_on_adapter
    async def test_keys_of_other_names_or_scopes_stand_beside_each_other(self, trial: Trial) -> None:
        await trial.note("Ana likes tea.", key="drink")
        await trial.note("Ana likes rye.", key="bread")
        bo = trial.scope(agent="bo")
        await trial.note("Bo likes mate.", bo, key="drink")
        assert sorted(await trial.texts()) == ["Ana likes rye.", "Ana likes tea."]
        assert await trial.texts(bo) == ["Bo likes mate."]

    @run_on_adapter
    async def test_what_comes_back_of_a_record_is_what_was_given(self, trial: Trial) -> None:
        """A provider may drop source, metadata and summary, but must not invent any."""
        source = SourceRef(SourceKind.ISSUE_COMMENT, trial.space, issue_id="ISS-7", comment_id="c1")
        metadata = {"team": "harbour", "weight": 3, "tags": ["a", "b"], "exact": None}
        scope = trial.scope(project="pier", issue="ISS-7", run="run-1")
        done = await trial.write(
            NewRecord("Crane two is out of order.", "crane two broken", metadata), scope=scope, source=source
        )
        await trial.eventually(lambda: trial.adapter.get(done.records[0], scope), lambda seen: seen is not None)
        snippets = [*await trial.list_all(scope), *(await trial.query("Which crane is out of order?", scope)).snippets]
        assert snippets
        for snippet in snippets:
            assert snippet.source in (None, source)
            assert snippet.summary in (None, "crane two broken")
            assert {name: value for name, value in metadata.items() if name in snippet.metadata} == dict(
                snippet.metadata
            )
            assert snippet.scope is None or snippet.scope.space == trial.space
            assert snippet.recorded_at is None or snippet.recorded_at.utcoffset() is not None


async def _texts_of(trial: Trial, handles: Sequence[RecordHandle]) -> list[str | None]:
    return [await trial.text_of(handle) for handle in handles]
