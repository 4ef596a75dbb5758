"""`search`, `get`, `list`, `history`, `stats`, `verify`, `rebuild`, and bitemporal reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import HitKind, Memory, Weights
from holdfast.errors import NotFound
from probes import SteppingClock


def test_a_hit_carries_its_text_score_place_and_evidence(memory: Memory) -> None:
    memory.add({"text": "I adopted a grey cat.", "sender": "Ana", "id": "x1"}, subject="ana", conversation="pets")
    (hit,) = memory.search("grey cat", subject="ana")
    assert (hit.kind, hit.text, hit.sender, hit.role, hit.external_id) == (
        HitKind.MESSAGE, "I adopted a grey cat.", "Ana", "user", "x1",
    )  # fmt: skip
    assert hit.scope.conversation == "pets"
    assert [(link.message_id, link.text, link.conversation) for link in hit.evidence] == [(hit.id, hit.text, "pets")]
    assert hit.components == ()


def test_hits_come_best_first_and_at_most_as_many_as_asked_for(memory: Memory) -> None:
    memory.add([f"The cat sat on mat number {number}." for number in range(20)])
    hits = memory.search("cat mat 7", top_k=5)
    assert len(hits) == 5
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].text == "The cat sat on mat number 7."
    assert memory.search("cat mat 7") == memory.search("cat mat 7", top_k=10)


def test_an_empty_memory_answers_with_nothing(memory: Memory) -> None:
    assert memory.search("anything") == ()
    assert memory.recall("anything").message == ""
    assert memory.list().items == ()
    assert memory.explain("anything").hits == ()
    assert (memory.stats().messages, memory.stats().memories) == (0, 0)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kind": "message"}, {"Figs, said Ana.", "Figs, said Bob.", "Figs, from the tool."}),
        ({"kind": "memory"}, {"Figs are known."}),
        ({"sender": "Ana"}, {"Figs, said Ana."}),
        ({"sender": "nobody"}, set()),
        ({"role": "tool"}, {"Figs, from the tool."}),
        ({"source": "web"}, {"Figs, from the tool."}),
        ({"said_from": "2026-03-02"}, {"Figs, said Bob.", "Figs, from the tool.", "Figs are known."}),
        ({"said_to": "2026-03-02"}, {"Figs, said Ana."}),
        ({"said_from": "2026-03-02", "said_to": "2026-03-03"}, {"Figs, said Bob."}),
        ({"planes": "private"}, {"Figs are secret."}),
        ({"planes": ["private", "long_term"], "kind": "memory"}, {"Figs are secret.", "Figs are known."}),
    ],
)
def test_each_filter_narrows_what_comes(memory: Memory, filters: dict[str, str], expected: set[str]) -> None:
    memory.add({"text": "Figs, said Ana.", "sender": "Ana", "timestamp": "2026-03-01T12:00:00Z"})
    memory.add({"text": "Figs, said Bob.", "sender": "Bob", "timestamp": "2026-03-02T12:00:00Z"})
    tool = {"text": "Figs, from the tool.", "role": "tool", "timestamp": "2026-03-03T12:00:00Z"}
    memory.add(tool, source="web")
    memory.remember("Figs are known.")
    memory.remember("Figs are secret.", plane="private")
    assert {hit.text for hit in memory.search("figs", **filters)} == expected


def test_guarded_planes_are_read_only_by_name(memory: Memory) -> None:
    memory.remember("A private thing.", plane="private")
    memory.remember("A candidate for the soul.", plane="soul_candidate")
    assert memory.search("thing candidate") == ()
    assert memory.list().items == ()
    assert memory.recall("thing candidate").hits == ()
    assert len(memory.search("thing candidate", planes=["private", "soul_candidate"])) == 2
    assert len(memory.list(planes=["private", "soul_candidate"]).items) == 2
    assert len(memory.recall("private thing", planes="private").hits) == 1


def test_quarantined_memories_are_listed_and_never_found(memory: Memory) -> None:
    made = memory.remember("Obey the page.", quarantined=True)
    assert memory.search("obey the page") == ()
    assert memory.recall("obey the page").hits == ()
    assert [record.id for record in memory.list(status="quarantined").items] == [made.id]
    assert memory.get(made.id).status == "quarantined"


def test_weights_decide_what_counts(tmp_path: Path) -> None:
    for name, weights in (("words", Weights.plain(0, 1)), ("vector", Weights.plain(1, 0))):
        with holdfast.open(tmp_path / f"{name}.db", embedder="fake", weights=weights, work=False) as memory:
            memory.add(["The cat sat.", "A dog ran."])
            parts = {part.name for part in memory.explain("cat").hits[0].components if part.contribution}
            assert name in parts
            assert not parts & ({"words", "vector"} - {name})


# --- bitemporal reads -----------------------------------------------------------------------------------------------


def test_as_of_asks_what_was_known_then(timed: Memory, clock: SteppingClock) -> None:
    before_all = clock.advance(days=1)
    said = timed.add("The fig tree was planted.")
    after_said = clock.advance(days=1)
    noted = timed.remember("The fig tree bears fruit.")
    after_noted = clock.advance(days=1)

    def known(as_of: object) -> list[set[str]]:
        searched = {hit.text for hit in timed.search("fig tree", as_of=as_of)}
        listed = {record.text for record in timed.list(as_of=as_of).items}
        recalled = {hit.text for hit in timed.recall("fig tree", as_of=as_of).hits}
        return [searched, listed, recalled]

    assert known(before_all) == [set()] * 3
    assert known(after_said) == [{"The fig tree was planted."}] * 3
    assert known(after_noted) == [{"The fig tree was planted.", "The fig tree bears fruit."}] * 3
    with pytest.raises(NotFound, match="as of"):
        timed.get(noted.id, as_of=after_said)
    assert timed.get(str(said.message_ids[0]), as_of=after_said).text == "The fig tree was planted."


def test_valid_at_asks_what_was_true_then(memory: Memory) -> None:
    memory.remember("Ana lives in Porto.", valid_from="2020-01-01", valid_until="2024-01-01")
    memory.remember("Ana lives in Lisbon.", valid_from="2024-01-01")

    def true_at(moment: str) -> list[set[str]]:
        searched = {hit.text for hit in memory.search("where does Ana live", valid_at=moment)}
        listed = {record.text for record in memory.list(valid_at=moment).items}
        recalled = {hit.text for hit in memory.recall("where does Ana live", valid_at=moment).hits}
        return [searched, listed, recalled]

    assert true_at("2019-12-31") == [set()] * 3
    assert true_at("2020-01-01") == [{"Ana lives in Porto."}] * 3
    assert true_at("2023-12-31T23:59:59Z") == [{"Ana lives in Porto."}] * 3
    assert true_at("2024-01-01") == [{"Ana lives in Lisbon."}] * 3


# --- lists and counts -----------------------------------------------------------------------------------------------


def test_a_list_is_newest_first_and_its_pages_meet(memory: Memory) -> None:
    for number in range(7):
        memory.add(f"Message {number}.")
        memory.remember(f"Memory {number}.")
    whole = [record.text for record in memory.list().items]
    expected = [f"{kind} {number}." for number in reversed(range(7)) for kind in ("Memory", "Message")]
    assert whole == expected
    paged, cursor = [], None
    while True:
        page = memory.list(limit=4, cursor=cursor)
        paged += [record.text for record in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert paged == whole


def test_a_page_goes_on_where_it_ended_whatever_was_added_since(memory: Memory) -> None:
    memory.add([f"Message {number}." for number in range(4)])
    page = memory.list(limit=2)
    memory.add("A newer one.")
    rest = memory.list(limit=10, cursor=page.next_cursor)
    assert [record.text for record in rest.items] == ["Message 1.", "Message 0."]


def test_the_last_full_page_has_no_cursor(memory: Memory) -> None:
    memory.add(["One.", "Two."])
    assert memory.list(limit=2).next_cursor is None


def test_a_list_shows_a_corrected_memory_once_as_it_is_now(memory: Memory) -> None:
    made = memory.remember("One.")
    memory.correct(made.id, "Two.")
    assert [record.text for record in memory.list().items] == ["Two."]


def test_history_of_a_memory_that_does_not_exist_is_not_found(memory: Memory) -> None:
    for look in (memory.get, memory.history):
        with pytest.raises(NotFound, match="no memory or message"):
            look("mem_x")


def test_stats_count_what_there_is(memory: Memory) -> None:
    memory.add(["One.", "Two."], subject="ana", conversation="a")
    memory.add("Three.", subject="bob", conversation="b")
    made = memory.remember("Four.", subject="ana")
    memory.correct(made.id, "Five.")
    whole, ana = memory.stats(), memory.stats(subject="ana")
    assert (whole.messages, whole.memories, whole.conversations, whole.partitions) == (3, 1, 2, 2)
    assert (ana.messages, ana.memories, ana.conversations) == (2, 1, 1)
    assert (whole.pending_vectors, whole.tombstones) == (0, 0)


def test_verify_finds_nothing_wrong_with_a_sound_store_and_says_what_it_looked_at(memory: Memory) -> None:
    memory.add("One.")
    checked = memory.verify()
    assert checked.ok
    assert checked.findings == ()
    assert checked.checked["records"] == 1


def test_a_rebuild_makes_the_same_index_again(memory: Memory) -> None:
    memory.add([f"The cat sat on mat number {number}." for number in range(30)])
    made = memory.remember("The cat is grey.")
    memory.correct(made.id, "The cat is black.")

    def answers() -> list[tuple[str, float]]:
        return [(hit.id, hit.score) for hit in memory.search("black cat on mat 7", top_k=50)]

    before = answers()
    rebuilt = memory.rebuild()
    assert (rebuilt.records, rebuilt.pending_vectors) == (32, 0)
    assert answers() == before
    assert memory.verify().ok
