"""A file and a server with the same content return the same ids in the same order, with matching scores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AllOf, AnyOf, Compare, Not
from holdfast.search.embedders.static import StaticEmbedder
from holdfast.testing import CountingIds
from probes import SteppingClock

NEAR = 1e-3
ANA, CATS = Compare("sender", "eq", "Ana"), Compare("conversation", "eq", "cats-1")
PEOPLE = ("ana", "bob", None)
TOPICS = {
    "cats": ["My grey cat sleeps on the warm roof.", "The cat chased a mouse through the barn.", "Cats purr at night."],
    "travel": ["We fly to Lisbon in June.", "The train to Porto leaves at nine.", "I lost my passport in Madrid."],
    "work": ["The release is planned for Friday.", "Our database migration failed last night.", "Ship it tomorrow."],
    "food": ["I am allergic to peanuts.", "Ana bakes bread with rye flour.", "The soup needs more salt, 中文 ☃."],
}
QUERIES = (
    "grey cat on the roof", "what did Ana bake", "when does the train leave", "who is allergic to nuts", "passport",
    "release Friday", "database", "什么汤 中文", "the", "something that nobody ever said xyzzy",
)  # fmt: skip


class Pair:
    """Two memories with the same content."""

    def __init__(self, file: holdfast.Memory, server: holdfast.Memory, clocks: tuple[SteppingClock, ...]) -> None:
        self.both = (file, server)
        self.clocks = clocks

    def do(self, verb: str, *given: Any, **more: Any) -> Any:
        """Call both; their answers must be equal."""
        first, second = (getattr(memory, verb)(*given, **more) for memory in self.both)
        assert _without_scores(first) == _without_scores(second), (verb, given, more)
        return first

    def advance(self, **by: float) -> datetime:
        first, second = (clock.advance(**by) for clock in self.clocks)
        assert first == second
        return first

    def compare(self, query: str, **asking: Any) -> int:
        """Search both; return the number of hits."""
        first, second = (memory.search(query, **asking) for memory in self.both)
        assert [hit.id for hit in first] == [hit.id for hit in second], (query, asking)
        for one, other in zip(first, second, strict=True):
            assert one.score == pytest.approx(other.score, abs=NEAR)
            assert (one.text, one.evidence, one.scope) == (other.text, other.evidence, other.scope)
        return len(first)


def _without_scores(answer: Any) -> Any:
    """Keep only the counts of a forget receipt: the time of erasure differs between stores."""
    return answer if not isinstance(answer, holdfast.ForgetReceipt) else (answer.messages, answer.memories)


@pytest.fixture
def pair(tmp_path: Path, migrated_url: str, static_embedder: StaticEmbedder) -> Iterator[Pair]:
    clocks = (SteppingClock(), SteppingClock())
    opened = [
        holdfast.open(place, embedder=static_embedder, work=False, clock=clock, new_ids=CountingIds())
        for place, clock in zip((tmp_path / "memory.db", migrated_url), clocks, strict=True)
    ]
    try:
        yield Pair(opened[0], opened[1], clocks)
    finally:
        for memory in opened:
            memory.close()


def _told(pair: Pair) -> list[datetime]:
    """Add a few weeks of three people; return moments in between."""
    chance = random.Random(7)
    moments, memories = [], []
    for day in range(8):
        for topic, lines in TOPICS.items():
            person = chance.choice(PEOPLE)
            where: dict[str, Any] = {"conversation": f"{topic}-{day % 3}", "app": chance.choice([None, "chat"])}
            where |= {"subject": person} if person else {}
            said = [
                {"text": line, "sender": chance.choice(["Ana", "Bob", None]), "id": f"{topic}{day}{number}"}
                for number, line in enumerate(chance.sample(lines, 2))
            ]
            added = pair.do("add", said, **where)
            where.pop("conversation")
            if chance.random() < 0.5:
                links = [message for message in added.message_ids if message]
                memories.append((pair.do("remember", f"{lines[0]} It is known.", evidence=links, **where), where))
        pair.do("flush", conversation="cats-0", subject="ana")
        pair.do("drain")
        moments.append(pair.advance(days=1))
    for memory, where in memories[::3]:
        pair.do("correct", memory.id, f"{memory.text} No: it was otherwise.", reason="mistaken", **where)
    return moments


def _asked(moments: list[datetime]) -> Iterator[dict[str, Any]]:
    for where in ({}, {"subject": "ana"}, {"subject": "bob"}, {"app": "chat"}, {"subject": "ana", "app": "chat"}):
        yield {**where}
        yield {**where, "top_k": 50}
        yield {**where, "kind": "memory"}
        yield {**where, "sender": "Ana", "kind": "message"}
        yield {**where, "as_of": moments[3]}
        yield {**where, "valid_at": moments[5], "as_of": moments[6] + timedelta(hours=1)}
        yield {**where, "said_from": moments[1], "said_to": moments[5]}
        yield {**where, "conversation": "cats-1"}
        yield {**where, "method": "keyword"}
        yield {**where, "method": "vector", "top_k": 5}
        yield {**where, "radius": 0.3}
        yield {**where, "condition": Compare("conversation", "in", ("cats-1", "work-0"))}
        yield {**where, "condition": AnyOf([CATS, AllOf([Not(ANA), Compare("said_at", "gte", moments[4])])])}
        yield {**where, "condition": Not(Compare("plane", "eq", "long_term")), "method": "vector"}


def test_both_stores_give_the_same_hits_in_the_same_order(pair: Pair) -> None:
    moments = _told(pair)
    found = sum(pair.compare(query, **asking) for query in QUERIES for asking in _asked(moments))
    assert found > 1_000
    assert pair.do("stats").memories > 5

    # Also after forgetting, including derived memories.
    pair.do("forget", subject="bob")
    doomed = next(hit for hit in pair.both[0].search("cat", subject="ana") if hit.scope.subject == "ana")
    pair.do("forget", doomed.id, subject="ana")
    pair.do("forget", conversation="work-1")
    assert sum(pair.compare(query, **asking) for query in QUERIES for asking in _asked(moments)) > 500


def test_both_stores_list_explain_recall_and_remember_the_same(pair: Pair) -> None:
    moments = _told(pair)
    cursor = None
    for _ in range(20):
        page = pair.do("list", limit=7, cursor=cursor, subject="ana")
        cursor = page.next_cursor
        for record in page.items:
            pair.do("get", record.id, subject="ana")
            pair.do("history", record.id, subject="ana")
        if cursor is None:
            break
    assert cursor is None
    for status in (None, "accepted"):
        pair.do("list", limit=100, status=status, as_of=moments[4])
    for query in QUERIES:
        first, second = (memory.explain(query, subject="ana") for memory in pair.both)
        assert [hit.id for hit in first.hits] == [hit.id for hit in second.hits]
        assert (first.candidates, first.query) == (second.candidates, second.query)
        assert pair.both[0].recall(query, subject="ana").message == pair.both[1].recall(query, subject="ana").message
    for target in ({"subject": "ana"}, {"conversation": "cats-1", "subject": "ana"}):
        pair.do("forget_preview", **target)


def test_long_names_in_many_letters_are_told_apart_on_both(pair: Pair) -> None:
    longest = "\N{SNOWMAN}\N{GRINNING FACE}" * 128
    places = [
        dict.fromkeys(("subject", "conversation", "app", "project", "channel", "namespace"), longest[:-1] + last)
        for last in ("a", "A", "ä", "\\", '"', "'", "%", "{", "?")
    ]
    for number, place in enumerate(places):
        pair.do("add", f"note number {number}", run=longest, issue=longest, **place)
    for number, place in enumerate(places):
        assert [hit.text for hit in pair.both[1].search("note", **place)] == [f"note number {number}"]
        assert pair.compare("note", **place) == 1
