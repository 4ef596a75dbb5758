"""The mask of a condition agrees, for each row, with the condition in plain Python on the record."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from memory_reader import Entry, MemoryReader
from test_ranker import FAKE, HERE, found, reader_of, search

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, ModelContextCondition, Not, Op
from holdfast.domain.filters import condition_from
from holdfast.domain.memory import Plane
from holdfast.domain.ranking import BoolArray
from holdfast.domain.scope import Scope
from holdfast.domain.times import EPOCH, from_micros
from holdfast.errors import InvalidInput
from holdfast.ports import SearchOptions
from holdfast.search.condition_masks import condition_mask
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache

COMPARED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
    Op.LT: operator.lt,
    Op.LTE: operator.le,
    Op.IN: lambda value, several: value in several,
}
START = datetime(2026, 3, 1, tzinfo=UTC)
MICROS, MILLIS = (START - EPOCH) // timedelta(microseconds=1), (START - EPOCH) // timedelta(milliseconds=1)


def holds(condition: Condition, entry: Entry) -> bool:
    match condition:
        case AllOf(parts):
            return all(holds(part, entry) for part in parts)
        case AnyOf(parts):
            return any(holds(part, entry) for part in parts)
        case Not(part):
            return not holds(part, entry)
        case ModelContextCondition(partitions, thread):
            where = entry.scope
            at_hand = thread is not None and replace(where, run=None, agent=thread.agent) == thread
            if entry.kind == 0:
                return at_hand and entry.plane not in (Plane.PRIVATE, Plane.SOUL_CANDIDATE)
            return at_hand or (where.conversation is None and where.partition in partitions)
        case Compare(field, op, value):
            own = {
                Field.CONVERSATION: entry.scope.conversation,
                Field.CHANNEL: entry.scope.channel,
                Field.SENDER: entry.sender,
                Field.SOURCE: entry.source,
                Field.PLANE: entry.plane,
                Field.SAID_AT: from_micros(entry.said_at),
            }[field]
            return COMPARED[op](own, value)


NAMES = ["a", "b", "resource:anna:r_1", "resource:anna:r_2"]
names = st.sampled_from(NAMES)
moments = st.integers(0, 4_000).map(lambda micros: START + timedelta(microseconds=micros))
entries = st.builds(
    Entry,
    text=st.sampled_from(["cat", "dog", "cat dog tea"]),
    sender=st.none() | names,
    source=st.none() | names,
    said_at=st.integers(MICROS, MICROS + 4_000),
    plane=st.none() | st.sampled_from([Plane.LONG_TERM.value, Plane.RESOURCE.value]),
    scope=st.builds(Scope, subject=st.just("anna"), conversation=st.none() | names, channel=st.none() | names),
).map(lambda entry: replace(entry, kind=0 if entry.plane is None else 1))


def compares(fields: list[Field], values: st.SearchStrategy[Any], ops: list[Op]) -> st.SearchStrategy[Compare]:
    one = st.builds(Compare, st.sampled_from(fields), st.sampled_from(ops), values)
    return one | st.builds(Compare, st.sampled_from(fields), st.just(Op.IN), st.lists(values, min_size=1, max_size=3))


ORDERED = [op for op in Op if op is not Op.IN]
leaves = (
    compares([Field.CONVERSATION, Field.CHANNEL, Field.SENDER, Field.SOURCE], names, [Op.EQ, Op.NE])
    | compares([Field.PLANE], st.sampled_from(Plane), [Op.EQ, Op.NE])
    | compares([Field.SAID_AT], moments, ORDERED)
)
conditions: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda within: (
        st.builds(AllOf, st.lists(within, min_size=1, max_size=3))
        | st.builds(AnyOf, st.lists(within, min_size=1, max_size=3))
        | st.builds(Not, within)
    ),
    max_leaves=8,
)


def mask(reader: MemoryReader, condition: Condition) -> BoolArray:
    view = ViewCache(10_000_000).view(reader, HERE.partition, FAKE.fingerprint)
    return condition_mask(view, condition)


def read(entries: list[Entry]) -> MemoryReader:
    reader = MemoryReader(None)
    reader.add(*entries)
    return reader


@settings(deadline=None, max_examples=300)
@given(st.lists(entries, min_size=1, max_size=10), conditions)
def test_the_mask_is_what_plain_python_says_of_each_record(records: list[Entry], condition: Condition) -> None:
    assert mask(read(records), condition).tolist() == [holds(condition, entry) for entry in records]


some = st.none() | st.sampled_from(["a", "b"])
places = st.builds(Scope, subject=st.just("anna"), conversation=some, channel=some, app=some, run=some, agent=some)
anything = st.builds(
    Entry,
    text=st.just("cat"),
    kind=st.sampled_from([0, 1]),
    plane=st.none() | st.sampled_from([plane.value for plane in Plane]),
    scope=places,
)
models = st.builds(
    ModelContextCondition,
    st.sampled_from([(HERE.partition,), (Scope().partition,), (HERE.partition, Scope().partition)]),
    st.none() | places.map(lambda scope: replace(scope, run=None, conversation=scope.conversation or "a")),
)


@settings(deadline=None, max_examples=500)
@given(st.lists(anything, min_size=1, max_size=12), models)
def test_a_model_sees_what_lasts_and_its_own_conversation(
    records: list[Entry], condition: ModelContextCondition
) -> None:
    assert mask(read(records), condition).tolist() == [holds(condition, entry) for entry in records]


def test_a_conversation_of_the_same_name_in_another_partition_is_another() -> None:
    entry = Entry("cat", scope=Scope(subject="anna", conversation="a"))
    assert not mask(read([entry]), ModelContextCondition((HERE.partition,), Scope(conversation="a"))).any()
    assert mask(read([entry]), ModelContextCondition((HERE.partition,), Scope(subject="anna", conversation="a"))).all()


# --- filters as JSON --------------------------------------------------------------------------------------------------


def passes(filters: dict[str, Any], entry: Entry) -> bool:
    """Evaluate the filters directly, as they are written."""
    chat = f"chat:{entry.scope.conversation}" if entry.scope.conversation else None
    own = {
        "session_id": {chat, entry.source} - {None},
        "sender_id": {entry.sender} - {None},
        "timestamp": {entry.said_at // 1_000},
    }

    def compared(values: set[Any], op: str, wanted: Any) -> bool:
        if op == "ne":
            return wanted not in values
        return any(COMPARED[Op(op)](value, wanted) for value in values)

    for name, given_value in filters.items():
        if name in ("AND", "OR"):
            joined = all if name == "AND" else any
            if not joined(passes(node, entry) for node in given_value):
                return False
        else:
            ops = given_value if isinstance(given_value, dict) else {"eq": given_value}
            if not all(compared(own[name], op, value) for op, value in ops.items()):
                return False
    return True


def operators(values: st.SearchStrategy[Any], names: list[str]) -> st.SearchStrategy[Any]:
    each = dict.fromkeys(names, values) | {"in": st.lists(values, min_size=1, max_size=3)}
    return values | st.fixed_dictionaries({}, optional=each).filter(bool)


sessions = st.sampled_from(["chat:a", "chat:b", "chat:resource:anna:r_1", *NAMES[2:]])
times = st.integers(MILLIS - 1, MILLIS + 5)
fields = {
    "session_id": operators(sessions, ["eq", "ne"]),
    "sender_id": operators(names, ["eq", "ne"]),
    "timestamp": operators(times, [op.value for op in ORDERED]),
}
filter_nodes: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({}, optional=fields).filter(bool),
    lambda within: st.fixed_dictionaries(
        {},
        optional={
            **fields,
            "AND": st.lists(within, min_size=1, max_size=2),
            "OR": st.lists(within, min_size=1, max_size=2),
        },
    ).filter(bool),
    max_leaves=4,
)


@settings(deadline=None, max_examples=300)
@given(st.lists(entries, min_size=1, max_size=8), filter_nodes)
def test_filters_let_pass_what_plain_python_lets_pass(records: list[Entry], filters: dict[str, Any]) -> None:
    try:
        condition = condition_from(filters, "anna")
    except InvalidInput as refused:
        assume("nests deeper" not in str(refused) and "compares more" not in str(refused))
        raise
    assert condition is not None
    assert mask(read(records), condition).tolist() == [passes(filters, entry) for entry in records]


# --- in a search ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(st.lists(entries, min_size=1, max_size=12), conditions, st.sampled_from(["cat", "who saw a dog and tea"]))
def test_a_search_under_a_condition_is_one_of_what_meets_it_alone(
    records: list[Entry], condition: Condition, query: str
) -> None:
    meeting = [entry for entry in records if holds(condition, entry)]
    alone = MemoryReader(FAKE.vectors)
    if meeting:
        alone.add(*meeting)
    numbers = [number for number, entry in enumerate(records, 1) if holds(condition, entry)]
    among = search(reader_of(*records), query, SearchOptions(condition=condition))
    expected = search(alone, query)
    assert found(among) == [numbers[number - 1] for number in found(expected)]
    assert [(one.score, one.parts) for one in among.best] == [(one.score, one.parts) for one in expected.best]
    assert among.candidates == expected.candidates


def test_a_condition_does_not_open_guarded_planes() -> None:
    reader = reader_of(Entry("cat", kind=1, plane="private"), Entry("cat"))
    wanted = SearchOptions(condition=Compare(Field.PLANE, Op.EQ, Plane.PRIVATE))
    assert found(search(reader, "cat", wanted)) == []
    assert found(search(reader, "cat", replace(wanted, planes=frozenset({Plane.PRIVATE})))) == [1]


def test_what_one_condition_let_see_is_not_taken_for_what_another_does() -> None:
    reader = reader_of(Entry("cat", "Ann"), Entry("cat", "Bob"), Entry("cat"))
    searcher = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)

    def numbers(condition: Condition | None) -> list[int]:
        wanted = SearchOptions(condition=condition)
        return sorted(found(searcher.rank(reader, HERE, "cat", None, wanted)))

    ann = Compare(Field.SENDER, Op.EQ, "Ann")
    for _ in range(2):
        assert numbers(None) == [1, 2, 3]
        assert numbers(ann) == [1]
        assert numbers(Not(ann)) == [2, 3]
        assert numbers(Compare(Field.SENDER, Op.IN, ("Ann", "Bob"))) == [1, 2]
        assert numbers(AllOf((ann, Not(ann)))) == []


def test_conversations_with_long_names_that_begin_alike_stay_apart() -> None:
    threads = [replace(HERE, conversation=f"{'c' * 200}{number}") for number in range(3)]
    reader = reader_of(*(Entry("cat", scope=thread) for thread in threads))
    searcher = PartitionSearcher(ViewCache(10_000_000), FAKE.fingerprint)
    for _ in range(2):
        for number, thread in enumerate(threads, start=1):
            wanted = SearchOptions(condition=ModelContextCondition((HERE.partition,), thread))
            assert found(searcher.rank(reader, HERE, "cat", None, wanted)) == [number]


def test_what_is_kept_of_conditions_is_bounded() -> None:
    reader = reader_of(*(Entry("cat", f"{name}") for name in range(40)))
    cache = ViewCache(10_000_000)
    searcher = PartitionSearcher(cache, FAKE.fingerprint)
    for name in range(40):
        long = Compare(Field.SENDER, Op.IN, (f"{name}", "x" * 4_000))
        assert found(searcher.rank(reader, HERE, "cat", None, SearchOptions(condition=long))) == [name + 1]
    kept = cache.view(reader, HERE.partition, FAKE.fingerprint).sights._kept
    assert len(kept) == 2
    assert all(len(repr(key)) < 1_000 for key in kept)


def test_an_explanation_names_the_condition() -> None:
    reader = reader_of(Entry("cat", "Ann"), Entry("cat", "Bob"))
    ranked = search(reader, "cat", SearchOptions(condition=Compare(Field.SENDER, Op.EQ, "Ann")), target=2)
    assert ranked.why_absent == "it does not meet the condition"


@pytest.mark.parametrize("intruder", ["the cat drinks tea", "tea tea tea", "Ann cat"])
def test_nothing_outside_the_condition_moves_a_score(intruder: str) -> None:
    wanted = SearchOptions(condition=Compare(Field.SENDER, Op.NE, "Mal"))
    seen = (Entry("the cat drinks tea", "Ann", said_at=1), Entry("a dog barks", "Bob", said_at=3))
    alone = search(reader_of(*seen), "tea", wanted)
    among = search(reader_of(*seen, *(Entry(intruder, "Mal", said_at=2) for _ in range(9))), "tea", wanted)
    assert [(one.number, one.score, one.parts) for one in among.best] == [
        (one.number, one.score, one.parts) for one in alone.best
    ]
