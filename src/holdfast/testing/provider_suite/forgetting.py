"""Forgotten records cannot be read in any way, others are untouched, and forgetting is idempotent."""

from __future__ import annotations

import pytest

from holdfast.domain.contract import MAX_HANDLES, ForgetResult, RecordHandle
from holdfast.testing.provider_suite.trial import Trial, run_on_adapter


class ForgettingProviderContract:
    @run_on_adapter
    async def test_what_was_forgotten_is_gone_by_every_way(self, trial: Trial) -> None:
        gone = await trial.note("The password of the old router is Bluebottle.")
        stays = await trial.note("The new router hangs in the hallway.")
        done = await trial.adapter.forget([gone], trial.scope())
        assert isinstance(done, ForgetResult)
        assert (tuple(done.forgotten), tuple(done.missing)) == ((gone,), ())
        await trial.eventually(lambda: trial.text_of(gone), lambda seen: seen is None)
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == ["The new router hangs in the hallway."])
        await trial.eventually(
            lambda: trial.find_texts("What is the password of the old router?"),
            lambda seen: not any("Bluebottle" in text for text in seen),
        )
        assert await trial.text_of(stays) == "The new router hangs in the hallway."
        another = await trial.open_another()
        try:
            assert await another.get(gone, trial.scope()) is None
        finally:
            await another.close()

    @run_on_adapter
    async def test_forgetting_again_says_that_it_is_missing(self, trial: Trial) -> None:
        handle = await trial.note("Something to forget.")
        await trial.adapter.forget([handle], trial.scope())
        for _ in range(2):
            done = await trial.adapter.forget([handle], trial.scope())
            assert (tuple(done.forgotten), tuple(done.missing)) == ((), (handle,))

    @run_on_adapter
    async def test_what_is_missing_keeps_nothing_else_from_being_forgotten(self, trial: Trial) -> None:
        handles = [await trial.note(f"Receipt {number}.") for number in range(3)]
        unknown = RecordHandle(trial.adapter.key, "never-was")
        foreign = RecordHandle("somebody-else", handles[0].record_id)
        done = await trial.adapter.forget([handles[0], unknown, handles[1], foreign], trial.scope())
        assert set(done.forgotten) == set(handles[:2])
        assert set(done.missing) == {unknown, foreign}
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == ["Receipt 2."])

    @run_on_adapter
    async def test_as_many_as_a_call_may_name_are_forgotten_at_once(self, trial: Trial) -> None:
        done = await trial.write(*(f"Ticket {number}." for number in range(MAX_HANDLES)))
        await trial.eventually(lambda: trial.texts(), lambda seen: len(seen) == MAX_HANDLES)
        gone = await trial.adapter.forget(done.records, trial.scope())
        assert set(gone.forgotten) == set(done.records)
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == [])

    @run_on_adapter
    async def test_forgetting_nothing_forgets_nothing(self, trial: Trial) -> None:
        await trial.note("Still here.")
        done = await trial.adapter.forget([], trial.scope())
        assert (tuple(done.forgotten), tuple(done.missing)) == ((), ())
        assert await trial.texts() == ["Still here."]

    @run_on_adapter
    async def test_a_key_can_be_written_anew_after_it_was_forgotten(self, trial: Trial) -> None:
        first = await trial.note("The alarm is set to six.", key="alarm")
        await trial.adapter.forget([first], trial.scope())
        second = await trial.note("The alarm is set to seven.", key="alarm")
        assert await trial.text_of(second) == "The alarm is set to seven."
        assert await trial.texts() == ["The alarm is set to seven."]

    @run_on_adapter
    async def test_what_was_captured_can_be_forgotten(self, trial: Trial) -> None:
        await trial.capture("My locker key is under the anchor.")
        seen = await trial.eventually(lambda: trial.list_all(), lambda seen: bool(seen))
        handles = [snippet.handle for snippet in seen]
        done = await trial.adapter.forget(handles, trial.scope())
        # A memory learned from the message may be forgotten with it, before its own handle is reached.
        assert {*done.forgotten, *done.missing} == set(handles)
        assert done.forgotten
        await trial.eventually(lambda: trial.texts(), lambda seen: not any("anchor" in text for text in seen))

    @pytest.mark.parametrize("record_id", ["", "../..", "x" * 5_000, "%00", "\ud800"])
    @run_on_adapter
    async def test_ids_that_could_be_nobodys_are_missing(self, trial: Trial, record_id: str) -> None:
        handle = RecordHandle(trial.adapter.key, record_id)
        done = await trial.adapter.forget([handle], trial.scope())
        assert (tuple(done.forgotten), tuple(done.missing)) == ((), (handle,))
