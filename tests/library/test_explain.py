"""`explain`: every score adds up, and every absent record has a reason."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.errors import NotFound
from probes import SteppingClock

SAID = (
    "I moved to Lisbon last spring.",
    "The dentist is on Tuesday at nine.",
    "My sister Clara keeps bees near Sintra.",
    "When does the ferry to Cacilhas leave?",
    "I prefer tea to coffee in the morning.",
)
QUERIES = ("Where do I live?", "When is the dentist?", "What does Clara keep?", "tea or coffee in 2026", "ferry")


@pytest.fixture
def talk(meaningful: Memory) -> Memory:
    for number, text in enumerate(SAID):
        sender = ("Ana", "Clara")[number % 2]
        meaningful.add({"text": text, "sender": sender, "timestamp": f"2026-03-0{number + 1}"}, subject="ana")
    meaningful.remember("Ana lives in Lisbon.", subject="ana")
    return meaningful


@pytest.mark.parametrize("query", QUERIES)
def test_the_contributions_of_a_hit_add_up_to_the_strength_that_ranks_it(talk: Memory, query: str) -> None:
    explained = talk.explain(query, subject="ana", top_k=50)
    assert explained.hits
    strengths = [sum(part.contribution for part in hit.components) for hit in explained.hits]
    assert strengths == pytest.approx(sorted(strengths, reverse=True), abs=1e-5)
    scores = [hit.score for hit in explained.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in explained.hits:
        for part in hit.components:
            assert part.contribution == pytest.approx(part.normalized * part.weight)
            assert 0 <= part.normalized <= 1


@pytest.mark.parametrize("query", QUERIES)
def test_an_explanation_explains_the_search_itself(talk: Memory, query: str) -> None:
    found = talk.search(query, subject="ana", top_k=3)
    explained = talk.explain(query, subject="ana", top_k=3)
    assert [(hit.id, hit.score) for hit in explained.hits] == [(hit.id, hit.score) for hit in found]
    assert explained.candidates == len(SAID) + 1
    assert explained.embedder.startswith("static:")
    assert explained.absence is None


def test_an_explanation_says_how_the_query_was_understood(talk: Memory) -> None:
    understood = talk.explain("When did Clara visit in March 2026?", subject="ana").query
    assert "Clara" in understood["names"]
    assert "2026-03" in understood["dates"]
    assert understood["asks_for"] == "a time"


def test_what_came_has_no_absence(talk: Memory) -> None:
    best = talk.search("ferry", subject="ana")[0]
    assert talk.explain("ferry", subject="ana", record_id=best.id).absence is None


def test_what_ranked_below_the_last_place_has_its_rank_score_and_cutoff(talk: Memory) -> None:
    ranked = talk.explain("dentist on Tuesday", subject="ana", top_k=50).hits
    last = ranked[-1]
    absence = talk.explain("dentist on Tuesday", subject="ana", top_k=1, record_id=last.id).absence
    assert absence is not None
    assert (absence.id, absence.rank) == (last.id, len(ranked))
    assert absence.score == pytest.approx(last.score)
    assert absence.cutoff == pytest.approx(ranked[0].score)
    assert "only the best 1" in absence.reason
    strength = sum(part.contribution for part in last.components)
    assert sum(part.contribution for part in absence.components) == pytest.approx(strength, abs=1e-5)


def test_what_scored_too_low_is_told_so(talk: Memory) -> None:
    ranked = talk.search("dentist on Tuesday", subject="ana", top_k=50)
    least = (ranked[0].score + ranked[1].score) / 2
    explained = talk.explain("dentist on Tuesday", subject="ana", min_score=least, record_id=ranked[-1].id)
    assert explained.absence is not None
    assert "below the requested minimum" in explained.absence.reason


def test_what_does_not_match_at_all_is_told_so(memory: Memory) -> None:
    memory.add("The cat sat on the mat.", conversation="a")
    other = str(memory.add("Quarterly revenue grew.", conversation="b").message_ids[0])
    explained = memory.explain("cat", record_id=other)
    assert other not in {hit.id for hit in explained.hits}
    assert explained.absence is not None
    assert "matches" in explained.absence.reason


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"planes": "procedural"}, "planes"),
        ({"kind": "message"}, "kind"),
        ({"valid_at": "2020-01-01"}, "not valid at that time"),
        ({"source": "web"}, "source"),
        ({"said_to": "2020-01-01"}, "said_to"),
    ],
)
def test_a_memory_that_a_filter_took_out_names_the_filter(memory: Memory, filters: dict[str, str], reason: str) -> None:
    made = memory.remember("The cat is grey.", valid_from="2025-01-01")
    absence = memory.explain("grey cat", record_id=made.id, **filters).absence
    assert absence is not None
    assert reason in absence.reason


@pytest.mark.parametrize(
    ("filters", "reason"),
    [({"sender": "Bob"}, "sender"), ({"role": "tool"}, "role"), ({"said_from": "2027-01-01"}, "said_from")],
)
def test_a_message_that_a_filter_took_out_names_the_filter(
    memory: Memory, filters: dict[str, str], reason: str
) -> None:
    said = memory.add({"text": "The cat is grey.", "sender": "Ana", "timestamp": "2026-03-01"}).message_ids[0]
    absence = memory.explain("grey cat", record_id=str(said), **filters).absence
    assert absence is not None
    assert reason in absence.reason


def test_a_quarantined_memory_is_told_so(memory: Memory) -> None:
    made = memory.remember("The cat is grey.", quarantined=True)
    absence = memory.explain("grey cat", record_id=made.id).absence
    assert absence is not None
    assert "quarantined" in absence.reason


def test_a_memory_of_a_guarded_plane_is_told_so(memory: Memory) -> None:
    made = memory.remember("The cat is grey.", plane="private")
    absence = memory.explain("grey cat", record_id=made.id).absence
    assert absence is not None
    assert "planes" in absence.reason


def test_a_memory_that_was_not_known_yet_is_told_so(timed: Memory, clock: SteppingClock) -> None:
    before = clock.advance(days=1)
    made = timed.remember("The cat is grey.")
    absence = timed.explain("grey cat", as_of=before, record_id=made.id).absence
    assert absence is not None
    assert "later than as_of" in absence.reason


def test_what_is_not_there_cannot_be_explained(memory: Memory) -> None:
    made = memory.remember("The cat is grey.")
    memory.forget(made.id)
    for unknown in ("mem_x", made.id):
        with pytest.raises(NotFound):
            memory.explain("grey cat", record_id=unknown)
