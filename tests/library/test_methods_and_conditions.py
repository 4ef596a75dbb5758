"""Search methods and conditions in the library's interface, on both stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import holdfast
from holdfast import AllOf, AnyOf, Compare, Memory, Not
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderUnavailable, InvalidInput
from holdfast.ports import Purpose
from holdfast.search.embedders.fake import FakeEmbedder


class Watched:
    """An embedder that records the queries it gets, and can be made unavailable."""

    def __init__(self) -> None:
        self._made = FakeEmbedder(48)
        self.fingerprint, self.dimensions, self.local = "watched:48", 48, True
        self.queries: list[str] = []
        self.up = True

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        if purpose is Purpose.QUERY:
            self.queries += texts
            if not self.up:
                raise EmbedderUnavailable("the model did not answer; try again")
        return self._made.vectors([text.replace("puppy", "dog") for text in texts])

    async def close(self) -> None: ...


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def memory(store_place: str, watched: Watched) -> Iterator[Memory]:
    with holdfast.open(store_place, embedder=watched, work=False) as opened:
        opened.add(
            [
                {"text": "A puppy came.", "sender": "Ana", "timestamp": "2026-03-01T10:00"},
                {"text": "It rained.", "sender": "Bob", "timestamp": "2026-03-02T10:00"},
            ],
            subject="ana",
            conversation="home",
            channel="mail",
        )
        opened.add("The dog of the office barks.", subject="ana", conversation="work", source="import")
        opened.remember("Ana has a puppy.", subject="ana")
        yield opened


def texts(memory: Memory, query: str, **asking: object) -> set[str]:
    return {hit.text for hit in memory.search(query, subject="ana", **asking)}


def test_by_words_the_query_is_never_embedded(memory: Memory, watched: Watched) -> None:
    watched.up = False
    assert texts(memory, "dog", method="keyword") == {"The dog of the office barks."}
    explained = memory.explain("dog", subject="ana", method="keyword")
    assert watched.queries == []
    assert explained.query["method"] == "keyword"
    assert "embedder" not in explained.query


def test_by_meaning_what_means_the_same_is_found_and_strengths_are_similarities(
    memory: Memory, watched: Watched
) -> None:
    hits = memory.search("puppy of Ana", subject="ana", method="vector")
    assert watched.queries == ["puppy of Ana"]
    assert hits[0].text == "Ana has a puppy."
    assert len(hits) == 4
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    explained = memory.explain("puppy of Ana", subject="ana", method="vector")
    for hit in explained.hits:
        (part,) = hit.components
        assert (part.name, part.contribution) == ("vector", pytest.approx(max(part.raw, 0)))


@pytest.mark.parametrize("asking", [{"method": "vector"}, {"radius": 0.1}])
def test_without_the_model_nothing_stands_for_meaning(
    memory: Memory, watched: Watched, asking: dict[str, object]
) -> None:
    watched.up = False
    with pytest.raises(EmbedderUnavailable):
        texts(memory, "dog", **asking)
    assert texts(memory, "dog") >= {"The dog of the office barks."}


def test_a_radius_leaves_out_what_means_something_else(memory: Memory) -> None:
    everything = memory.explain("dog", subject="ana").hits
    cosines = {hit.text: next(part.raw for part in hit.components if part.name == "vector") for hit in everything}
    least = (max(cosines.values()) + min(cosines.values())) / 2
    assert texts(memory, "dog", radius=least) == {text for text, cosine in cosines.items() if cosine >= least}
    away = next(hit for hit in everything if cosines[hit.text] < least)
    absence = memory.explain("dog", subject="ana", radius=least, record_id=away.id).absence
    assert absence is not None
    assert "radius" in absence.reason


def test_a_radius_needs_a_method_that_looks_at_meaning(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match=r"^radius: .*keyword"):
        memory.search("dog", method="keyword", radius=0.5)


@pytest.mark.parametrize("method", ["hybrid", "keyword", "vector"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Compare("conversation", "eq", "home"), {"A puppy came.", "It rained."}),
        (Compare("channel", "ne", "mail"), {"The dog of the office barks.", "Ana has a puppy."}),
        (Compare("sender", "in", ["Ana", "Zoe"]), {"A puppy came."}),
        (Compare("source", "eq", "import"), {"The dog of the office barks."}),
        (Compare("plane", "eq", "long_term"), {"Ana has a puppy."}),
        (Compare("said_at", "lt", "2026-03-02"), {"A puppy came."}),
        (
            AnyOf([Compare("conversation", "eq", "work"), AllOf([Compare("sender", "eq", "Bob")])]),
            {"The dog of the office barks.", "It rained."},
        ),
        (
            Not(AnyOf([Compare("sender", "eq", "Ana"), Compare("sender", "eq", "Bob")])),
            {"The dog of the office barks.", "Ana has a puppy."},
        ),
        (Compare("conversation", "eq", "nowhere"), set()),
    ],
)
def test_only_what_meets_the_condition_is_seen(
    memory: Memory, method: str, condition: object, expected: set[str]
) -> None:
    query = "A puppy came. It rained. The dog of the office barks. Ana has a puppy."
    assert texts(memory, query, method=method, condition=condition) == expected


def test_an_explanation_says_what_the_condition_leaves_out(memory: Memory) -> None:
    rain = next(hit for hit in memory.search("rained", subject="ana") if hit.sender == "Bob")
    condition = Compare("sender", "eq", "Ana")
    absence = memory.explain("rained", subject="ana", condition=condition, record_id=rain.id).absence
    assert absence is not None
    assert absence.reason == "it does not meet the condition"
