"""`browse`: any page of the records in time order, with a count; and the records that no flush has sealed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from holdfast import AnyOf, Compare, Memory
from holdfast.errors import InvalidInput
from probes import SteppingClock

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def said(text: str, minutes: int, sender: str = "ana") -> dict[str, object]:
    return {"text": text, "sender": sender, "timestamp": START + timedelta(minutes=minutes)}


@pytest.fixture
def walk(memory: Memory) -> Memory:
    """Messages stored out of time order, together with shared messages and another subject's."""
    memory.add([said("third", 3), said("first", 1)], subject="ana", conversation="c1")
    memory.add([said("second", 2, "bob")], subject="ana", conversation="c2")
    memory.add([said("shared", 4)], conversation="c1")
    memory.add([said("another's", 5)], subject="bob", conversation="c1")
    return memory


def texts(memory: Memory, **asking: object) -> list[str]:
    found = memory.browse(subject="ana", **asking)  # type: ignore[arg-type]
    assert found.total >= len(found.items)
    return [record.text for record in found.items]


def test_records_come_in_the_order_asked_for(walk: Memory) -> None:
    assert texts(walk) == ["shared", "third", "second", "first"]
    assert texts(walk, ascending=True) == ["first", "second", "third", "shared"]
    assert texts(walk, order="recorded") == ["shared", "second", "first", "third"]
    assert texts(walk, order="recorded", ascending=True) == ["third", "first", "second", "shared"]


def test_pages_hold_everything_once_and_the_total_counts_it(walk: Memory) -> None:
    pages = [walk.browse(subject="ana", offset=offset, limit=3) for offset in (0, 3, 6)]
    assert [record.text for page in pages for record in page.items] == ["shared", "third", "second", "first"]
    assert [page.total for page in pages] == [4, 4, 4]
    assert texts(walk, offset=10**12) == []


def test_conditions_kinds_and_scopes_narrow_what_is_counted(walk: Memory) -> None:
    walk.remember("learned", subject="ana")
    walk.remember("kept to oneself", subject="ana", plane="private")
    bob = Compare("sender", "eq", "bob")
    assert texts(walk, condition=bob) == ["second"]
    assert walk.browse(subject="ana", condition=bob).total == 1
    either = AnyOf((bob, Compare("said_at", "lt", START + timedelta(minutes=2))))
    assert texts(walk, condition=either) == ["second", "first"]
    assert texts(walk, kind="memory") == ["learned"]
    assert texts(walk, planes=["private"]) == ["kept to oneself"]
    assert texts(walk, conversation="c1") == ["shared", "third", "first"]
    with pytest.raises(InvalidInput, match="order"):
        texts(walk, order="score")


def test_what_is_superseded_or_forgotten_is_not_counted(memory: Memory) -> None:
    known = memory.remember("old", subject="ana")
    memory.correct(known.id, "new", subject="ana")
    gone = memory.remember("gone", subject="ana")
    memory.forget(gone.id, subject="ana")
    assert texts(memory) == ["new"]
    assert memory.browse(subject="ana").total == 1


def test_what_was_said_at_one_moment_comes_in_the_order_it_was_stored(timed: Memory, clock: SteppingClock) -> None:
    timed.add([said(f"number {number}", 0) for number in range(50)], subject="ana")
    found = texts(timed, ascending=True)
    assert all(int(one.split()[1]) < int(two.split()[1]) for one, two in pairwise(found))
    assert texts(timed) == found[::-1]


def test_unsealed_messages_are_those_since_the_last_flush(memory: Memory) -> None:
    def unsealed(**where: str) -> list[str]:
        return [record.text for record in memory.list(unsealed=True, subject="ana", **where).items]

    memory.add(["one", "two"], subject="ana", conversation="c1")
    memory.add("elsewhere", subject="ana", conversation="c2")
    memory.remember("never said", subject="ana")
    assert unsealed() == ["elsewhere", "two", "one"]
    memory.flush(subject="ana", conversation="c1")
    assert unsealed() == ["elsewhere"]
    memory.add("three", subject="ana", conversation="c1")
    assert unsealed(conversation="c1") == ["three"]


def test_a_cursor_of_all_is_none_of_the_unsealed(memory: Memory) -> None:
    memory.add(["one", "two", "three"], subject="ana")
    cursor = memory.list(subject="ana", limit=1).next_cursor
    with pytest.raises(InvalidInput, match="another query"):
        memory.list(subject="ana", limit=1, unsealed=True, cursor=cursor)


@pytest.mark.parametrize("subjects", [2, 120])
def test_an_operator_lists_the_unsealed_of_all_conversations_of_a_name(memory: Memory, subjects: int) -> None:
    for number in range(subjects):
        memory.add(["sealed"], subject=f"s{number}", conversation="c")
    for number in range(subjects):
        memory.flush(subject=f"s{number}", conversation="c")
        memory.add([f"by {number}"], subject=f"s{number}", conversation="c")
    found = memory.list(unsealed=True, conversation="c", limit=1_000).items
    assert [record.text for record in found] == [f"by {number}" for number in reversed(range(subjects))]
    assert memory.list(unsealed=True, conversation="nobody's").items == ()
