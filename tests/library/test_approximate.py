"""Approximate search finds what the exact search finds, including new records at once, and never deleted ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast import Compare, Hit, Memory, Not
from holdfast.domain.results import Explanation
from holdfast.search import approximate_search
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.settings import Settings
from postgres import ON_POSTGRES

FROM = 500
TOPICS = {
    "music": "violin concert rehearsal melody orchestra guitar singer chorus piano rhythm stage drums".split(),
    "garden": "tomato seeds greenhouse compost roses lavender shovel pruning orchard beans harvest soil".split(),
    "travel": "airport luggage hostel passport ferry museum beach train itinerary border sunset harbour".split(),
    "work": "meeting deadline manager report spreadsheet office client budget promotion interview salary team".split(),
    "cooking": "garlic oven recipe dough noodles saffron kitchen knife dinner basil pepper soup".split(),
    "health": "doctor allergy marathon yoga dentist vitamins recovery sleep clinic knee therapy running".split(),
}
PEOPLE = ("Ana", "Ben", "Clara", "Davi")
Opener = Callable[..., AbstractContextManager[Memory]]


def sentence(chance: random.Random) -> str:
    topic = chance.choice(list(TOPICS))
    words = [chance.choice(TOPICS[topic]) for _ in range(chance.randint(4, 8))]
    ending = chance.choice((".", ".", " yesterday.", "?", " last week."))
    return f"The {words[0]} and the {' '.join(words[1:])} in {chance.randint(1, 90)}{ending}".replace("  ", " ")


def talk(memory: Memory, count: int, *, seed: int = 1, subject: str = "ana", **where: Any) -> list[str]:
    """Add `count` messages in conversations of twenty; return their ids."""
    chance, made = random.Random(seed), []
    for start in range(0, count, 20):
        said = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=start)
        messages = [
            {"text": sentence(chance), "sender": chance.choice(PEOPLE), "timestamp": said + timedelta(minutes=minute)}
            for minute in range(min(20, count - start))
        ]
        made += memory.add(messages, subject=subject, conversation=f"{seed}-{start}", **where).message_ids
    return [str(message_id) for message_id in made]


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "memory.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def opener(location: str, static_embedder: StaticEmbedder) -> Opener:
    def opened(approximate_from: int = FROM) -> AbstractContextManager[Memory]:
        settings = Settings(approximate_from=approximate_from)
        return holdfast.open(location, embedder=static_embedder, work=False, settings=settings)

    return opened


@pytest.fixture
def memory(opener: Opener) -> Iterator[Memory]:
    with opener() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _also_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search partitions of hundreds of records like those of hundreds of thousands."""
    monkeypatch.setattr(approximate_search, "_FEW", 50)


def queries(count: int) -> list[str]:
    chance = random.Random(99)
    asked = []
    for number in range(count):
        words = chance.sample(TOPICS[chance.choice(list(TOPICS))], 2)
        asked.append(
            (
                f"What did {chance.choice(PEOPLE)} say about the {words[0]}?",
                f"When was the {words[0]} with the {words[1]}?",
                f"{words[0]} {words[1]}",
            )[number % 3]
        )
    return asked


def is_approximate(explained: Explanation) -> bool:
    return any(way.approximate for way in explained.ways)


def ids(memory: Memory, query: str, **asking: Any) -> list[str]:
    return [hit.id for hit in memory.search(query, subject="ana", **asking)]


# --- results ----------------------------------------------------------------------------------------------------------


def test_it_finds_nearly_all_that_the_exact_search_finds(opener: Opener) -> None:
    asked = queries(60)
    with opener() as memory:
        talk(memory, 5_000)
        exact = [ids(memory, query) for query in asked]
        assert not is_approximate(memory.explain(asked[0], subject="ana"))
        memory.drain()
        explained = memory.explain(asked[0], subject="ana")
        assert is_approximate(explained)
        found = [ids(memory, query) for query in asked]
    shares = [len(set(one) & set(other)) / len(one) for one, other in zip(exact, found, strict=True)]
    assert np.mean(shares) >= 0.97
    assert min(shares) >= 0.7


def strength(hit: Hit) -> float:
    return sum(part.contribution for part in hit.components)


def test_scores_are_those_of_the_exact_search(opener: Opener) -> None:
    """A different record may come first only on a tie. Scores are relative to the first record."""
    asked, same = queries(20), 0
    with opener() as memory:
        talk(memory, 1_500)
        exact = [memory.explain(query, subject="ana").hits for query in asked]
        memory.drain()
        for query, expected in zip(asked, exact, strict=True):
            best, found = expected[0], memory.search(query, subject="ana")[0]
            if found.id == best.id:
                same += 1
                assert found.score == pytest.approx(best.score, abs=0.02)
            else:
                [as_exactly] = [hit for hit in expected if hit.id == found.id]
                assert strength(as_exactly) == pytest.approx(strength(best), abs=0.002)
    assert same >= 18


@pytest.mark.parametrize(
    "asking",
    [
        {"method": "vector"},
        {"method": "vector", "condition": Compare("sender", "in", ("Ana", "Ben"))},
        {"condition": Not(Compare("sender", "eq", "Ana"))},
        {"condition": Compare("said_at", "gte", "2025-01-20"), "radius": 0.2},
        {"method": "keyword"},
    ],
)
def test_methods_and_conditions_hold_as_in_an_exact_search(opener: Opener, asking: dict[str, Any]) -> None:
    asked = queries(30)
    with opener() as memory:
        talk(memory, 2_000)
        exact = [memory.explain(query, subject="ana", **asking).hits for query in asked]
        memory.drain()
        explained = [memory.explain(query, subject="ana", **asking) for query in asked]
        assert is_approximate(explained[0])
        found = [each.hits for each in explained]
    shares = []
    for one, other in zip(exact, found, strict=True):
        assert one
        shares.append(len({hit.id for hit in one} & {hit.id for hit in other}) / len(one))
        strengths = {hit.id: strength(hit) for hit in one}
        if asking.get("method"):
            # By meaning or by words alone, no strength is estimated.
            assert all(
                strength(hit) == pytest.approx(strengths[hit.id], abs=1e-5) for hit in other if hit.id in strengths
            )
    assert np.mean(shares) >= 0.97
    assert min(shares) >= 0.7


def test_a_small_partition_is_searched_exactly(memory: Memory) -> None:
    talk(memory, FROM - 1)
    assert memory.drain() == 0
    (way,) = memory.explain("violin", subject="ana").ways
    assert not way.approximate
    assert way.reason is None
    assert not [job for job in memory.jobs() if job.kind == "nearest"]


def test_a_setting_of_zero_is_always_exact(opener: Opener) -> None:
    with opener() as memory:
        talk(memory, FROM)
        memory.drain()
    with opener(approximate_from=0) as memory:
        assert not is_approximate(memory.explain("violin", subject="ana"))
    with opener(approximate_from=FROM * 2) as memory:
        assert not is_approximate(memory.explain("violin", subject="ana"))


def test_what_was_just_said_is_found_at_once(memory: Memory) -> None:
    talk(memory, 600)
    memory.drain()
    said = memory.add("The xylophone quartet plays in Coimbra.", subject="ana", conversation="new").message_ids[0]
    explained = memory.explain("Where does the quartet with the xylophone play?", subject="ana")
    assert is_approximate(explained)
    assert explained.hits[0].id == said
    (way,) = explained.ways
    assert way.unindexed in (0, 1)  # 0 if the store updates its index itself


def test_a_superseded_revision_is_not_found_and_its_successor_is(memory: Memory, location: str) -> None:
    talk(memory, 600)
    made = memory.remember("The xylophone is in the attic.", subject="ana")
    memory.drain()
    before = memory.search("xylophone", subject="ana")[0]
    assert before.id == made.id
    memory.correct(made.id, "The xylophone is in the cellar.", subject="ana")
    texts = [hit.text for hit in memory.search("where is the xylophone", subject="ana")]
    assert texts[0] == "The xylophone is in the cellar."
    assert "The xylophone is in the attic." not in texts
    past = memory.search("where is the xylophone", subject="ana", as_of=before.recorded_at)
    assert past[0].text == "The xylophone is in the attic."


def test_filters_leave_out_nothing_that_passes_them(opener: Opener) -> None:
    """Few of many records pass; the nearest neighbours overall would include none of them."""
    with opener() as memory:
        talk(memory, 1_000)
        kept = talk(memory, 30, seed=2, app="rare")
        memory.drain()
        assert is_approximate(memory.explain("violin", subject="ana"))
        found = memory.search("ferry to the harbour", subject="ana", app="rare", top_k=30)
        assert {hit.id for hit in found} == set(kept)
        for asking in ({"sender": "Davi"}, {"said_from": "2025-01-20"}, {"conversation": "1-20"}):
            approximate_ids = ids(memory, "violin and guitar", **asking)
            with opener(approximate_from=0) as exactly:
                exact_ids = ids(exactly, "violin and guitar", **asking)
            assert len(set(approximate_ids) & set(exact_ids)) >= 0.9 * len(exact_ids)


def test_partitions_are_merged_whichever_way_each_is_searched(memory: Memory) -> None:
    talk(memory, 600)
    memory.remember("The xylophone belongs to everybody.")
    memory.drain()
    explained = memory.explain("whose is the xylophone", subject="ana")
    assert [way.approximate for way in sorted(explained.ways, key=lambda way: way.records)] == [False, True]
    assert explained.hits[0].text == "The xylophone belongs to everybody."


def test_many_results_can_be_asked_for(opener: Opener) -> None:
    with opener() as memory:
        talk(memory, 3_000)
        exact = ids(memory, "violin in the orchestra", top_k=200)
        memory.drain()
        found = ids(memory, "violin in the orchestra", top_k=200)
        assert is_approximate(memory.explain("violin", subject="ana"))
    assert len(found) == 200
    assert len(set(found) & set(exact)) >= 180


# --- explanations -----------------------------------------------------------------------------------------------------


def test_an_explanation_says_how_it_searched_and_how_well(memory: Memory) -> None:
    talk(memory, 1_000)
    memory.drain()
    explained = memory.explain("violin in the orchestra", subject="ana")
    (way,) = explained.ways
    assert (way.partition, way.records, way.indexed) == ("subject ana", 1_000, 1_000)
    assert way.index_recall is not None
    assert way.index_recall > 0.9
    assert way.built_at is not None
    assert explained.recall is not None
    assert explained.recall >= 0.8
    assert explained.candidates == 1_000


def test_an_explanation_knows_the_place_of_what_did_not_come(opener: Opener) -> None:
    with opener() as memory:
        made = talk(memory, 1_000)
        exact = memory.explain("violin in the orchestra", record_id=made[17], subject="ana", top_k=1).absence
        memory.drain()
        found = memory.explain("violin in the orchestra", record_id=made[17], subject="ana", top_k=1).absence
    assert exact is not None
    assert found is not None
    assert found.rank == exact.rank


def test_building_is_a_job_with_progress_and_is_done_once(memory: Memory) -> None:
    talk(memory, 600)
    memory.drain()
    (job,) = [job for job in memory.jobs() if job.kind == "nearest"]
    assert (job.status, job.done, job.total) == ("succeeded", 600, 600)
    memory.drain()
    assert len([job for job in memory.jobs() if job.kind == "nearest"]) == 1
    assert memory.stats(subject="ana").approximate == 1
    assert memory.verify().ok


def test_an_index_is_made_anew_after_a_rebuild(memory: Memory) -> None:
    talk(memory, 600)
    memory.drain()
    before = memory.explain("violin", subject="ana").ways[0].built_at
    memory.rebuild()
    (way,) = memory.explain("violin", subject="ana").ways
    assert way.approximate
    assert way.unindexed == 0
    assert before is not None


def test_forgetting_all_of_a_partition_leaves_nothing_to_be_found(memory: Memory) -> None:
    talk(memory, 600)
    memory.drain()
    memory.forget(subject="ana")
    assert memory.search("violin", subject="ana") == ()
    talk(memory, 20, seed=5)
    assert len(memory.search("violin", subject="ana")) == 10
