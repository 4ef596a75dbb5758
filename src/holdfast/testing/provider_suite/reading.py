"""Queries are bounded and ordered, lists are complete, and missing records are not found."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from holdfast.domain.contract import MAX_TOP_K, ContextBundle, Intent, ListPage, RecordHandle, Snippet
from holdfast.errors import HoldfastError
from holdfast.testing.provider_suite.trial import Trial, holds, run_on_adapter

_TOPICS = (
    "The invoice for the printer paper is overdue.",
    "Penguins huddle together against the polar wind.",
    "The bakery opens at six in the morning.",
    "A violin has four strings tuned in fifths.",
    "The reactor's coolant pump was replaced in March.",
    "Saffron is picked by hand from crocus flowers.",
)


class ReadingContract:
    @run_on_adapter
    async def test_an_empty_memory_answers_with_nothing(self, trial: Trial) -> None:
        bundle, page = await trial.query("anything at all"), await trial.page()
        assert isinstance(bundle, ContextBundle)
        assert isinstance(page, ListPage)
        assert (tuple(bundle.snippets), tuple(page.items), page.next_cursor) == ((), (), None)

    @run_on_adapter
    async def test_a_query_finds_the_best_match_first(self, trial: Trial) -> None:
        await trial.write(*_TOPICS)
        await trial.eventually(lambda: trial.texts(), lambda seen: set(_TOPICS) <= set(seen))
        questions = (
            "How many strings does a violin have?",
            "When does the bakery open?",
            "coolant pump of the reactor",
        )

        async def first() -> list[str]:
            return [text for question in questions for text in (await trial.find_texts(question))[:1]]

        await trial.eventually(first, lambda seen: seen == [_TOPICS[3], _TOPICS[2], _TOPICS[4]])

    @pytest.mark.parametrize("top_k", [1, 3, MAX_TOP_K])
    @run_on_adapter
    async def test_a_query_gives_no_more_than_was_asked_for_and_best_first(self, trial: Trial, top_k: int) -> None:
        await trial.write(*(f"Barrel {number} is full of salted herring." for number in range(40)))
        await trial.eventually(
            lambda: trial.query("salted herring", top_k=top_k), lambda seen: len(seen.snippets) == top_k
        )
        snippets = (await trial.query("salted herring", top_k=top_k)).snippets
        assert len(snippets) <= top_k
        assert len({snippet.handle for snippet in snippets}) == len(snippets)
        scores = [snippet.score for snippet in snippets if snippet.score is not None]
        assert all(math.isfinite(score) for score in scores)
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("intent", list(Intent))
    @run_on_adapter
    async def test_every_intent_is_answered(self, trial: Trial, intent: Intent) -> None:
        await trial.note("The ferry to Skerry leaves from pier nine.")

        async def query_texts() -> list[str]:
            return [each.text for each in (await trial.query("Where does the ferry leave?", intent=intent)).snippets]

        await trial.eventually(query_texts, holds("pier nine"))

    @run_on_adapter
    async def test_pages_hold_everything_once_and_the_newest_first(self, trial: Trial) -> None:
        for number in range(5):
            await trial.write(*(f"Note {number}-{each}." for each in range(5)))
        expected = {f"Note {number}-{each}." for number in range(5) for each in range(5)}
        await trial.eventually(lambda: trial.texts(), lambda seen: set(seen) == expected)
        for limit in (1, 7, 200):
            listed = await trial.list_all(limit=limit)
            assert sorted(snippet.text for snippet in listed) == sorted(expected)
            assert len({snippet.handle for snippet in listed}) == len(expected)
            assert _is_newest_first(listed)
        order = [snippet.text for snippet in await trial.list_all(limit=4)]
        assert order.index("Note 4-0.") < order.index("Note 0-0."), "the newest must come first"

    @run_on_adapter
    async def test_a_list_misses_and_repeats_nothing_while_others_write(self, trial: Trial) -> None:
        first = {f"Early {number}." for number in range(12)}
        await trial.write(*sorted(first))
        await trial.eventually(lambda: trial.texts(), lambda seen: set(seen) == first)
        seen: list[str] = []
        cursor: str | None = None
        for turn in range(40):
            page = await trial.page(cursor=cursor, limit=3)
            seen += [snippet.text for snippet in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
            await trial.note(f"Late {turn}.")
        early = [text for text in seen if text in first]
        assert sorted(early) == sorted(first), "each record from before must be listed exactly once"
        assert len(seen) == len(set(seen))

    @pytest.mark.parametrize("cursor", ["no cursor at all", "🦜", "eyJhIjoxfQ", "%00", "x" * 5_000])
    @run_on_adapter
    async def test_a_cursor_of_nobodys_is_refused(self, trial: Trial, cursor: str) -> None:
        await trial.note("Something is here.")
        with pytest.raises(HoldfastError):
            await trial.page(cursor=cursor)

    @run_on_adapter
    async def test_a_cursor_of_another_scope_shows_nothing_of_it(self, trial: Trial) -> None:
        await trial.write(*(f"Ana's {number}." for number in range(6)))
        await trial.eventually(lambda: trial.texts(), lambda seen: len(seen) == 6)
        cursor = (await trial.page(limit=2)).next_cursor
        assert cursor is not None
        try:
            page = await trial.page(trial.scope(agent="bo"), cursor)
        except HoldfastError:
            return
        assert not [snippet for snippet in page.items if "Ana" in snippet.text]

    @run_on_adapter
    async def test_a_filter_on_metadata_lets_nothing_else_through(self, trial: Trial) -> None:
        """A provider that cannot filter by metadata refuses; one that can returns the matches."""
        for number in range(6):
            await trial.note(f"Buoy {number} needs paint.", colour=("red", "green")[number % 2], number=number)
        red = {f"Buoy {number} needs paint." for number in (0, 2, 4)}
        try:
            found = (await trial.query("Which buoy needs paint?", metadata_filter={"colour": "red"})).snippets
            listed = (await trial.page(metadata_filter={"colour": "red"})).items
            none = (await trial.page(metadata_filter={"colour": "blue"})).items
            third = (await trial.page(metadata_filter={"number": 3})).items
        except HoldfastError:
            return
        assert {snippet.text for snippet in found} == red
        assert {snippet.text for snippet in listed} == red
        assert not none
        assert [snippet.text for snippet in third] == ["Buoy 3 needs paint."]

    @pytest.mark.parametrize(
        "record_id", ["nothing", "../../etc/passwd", "a/b?c=d#e", "%2e%2e", "ü", "x" * 5_000, "' OR 1=1 --", " ", "\n"]
    )
    @run_on_adapter
    async def test_what_never_was_is_none(self, trial: Trial, record_id: str) -> None:
        handle = await trial.note("Something is here.")
        assert await trial.adapter.get(RecordHandle(trial.adapter.key, record_id), trial.scope()) is None
        assert await trial.adapter.get(RecordHandle("somebody-else", handle.record_id), trial.scope()) is None
        assert await trial.text_of(handle) == "Something is here."


def _is_newest_first(listed: Sequence[Snippet]) -> bool:
    moments = [snippet.recorded_at for snippet in listed if snippet.recorded_at is not None]
    return moments == sorted(moments, reverse=True)
