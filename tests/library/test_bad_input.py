"""Every parameter of every method, with invalid values.

An invalid value is refused with a typed error that names the field and contains nothing of the value. The call changes
nothing and leaves one audit row. A parameter without a case fails `test_every_parameter_of_every_method_has_a_case`.
"""

from __future__ import annotations

import base64
import inspect
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import holdfast
from holdfast import Actor, ActorKind, AsyncMemory, Draft, HoldfastError, Memory, Role, Weights
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import SCOPE_PARTS
from holdfast.errors import (
    ConfigurationError,
    DuplicateId,
    EmbedderMisconfigured,
    IdempotencyConflict,
    InvalidCursor,
    InvalidInput,
    InvalidScope,
    InvalidText,
    InvalidTimestamp,
    StoreError,
    StoreReadOnly,
    StoreUnusable,
)
from holdfast.runtime.add import MAX_SERVED_MESSAGES
from holdfast.testing.full_repr import full_repr
from probes import trail_of

SECRET = "hunter2"
# 100,000 in one call take about 15 s on two slow cores; `make soak` sets this.
MANY_MESSAGES = int(os.environ.get("HOLDFAST_TEST_MESSAGES", "5000"))

# --- invalid values and their errors --------------------------------------------------------------------------------

NOT_TEXT = (5, 1.5, True, b"hunter2", {"hunter2": 1}, ["hunter2"], object())
UNSTORABLE = ("", "   ", "\n\t", "hunter2\x00", "hunter2\ud800", "\udfffhunter2")
ENDLESS = SECRET * 1_500_000  # 10 MB

TEXT = (*NOT_TEXT, *UNSTORABLE, ENDLESS, None)
NAME = (*NOT_TEXT, *UNSTORABLE)
PART = (*NOT_TEXT, *UNSTORABLE, "hunter2\n", "hunter2\x1b", SECRET * 40)
ID = (*NOT_TEXT, *UNSTORABLE, SECRET * 40, None)
KEY = (*NOT_TEXT, *UNSTORABLE, SECRET * 40)
IDS = (5, True, b"hunter2", {"hunter2": 1}, [5], [None], [b"hunter2"], ["hunter2\ud800"], [""], [SECRET * 40])
CHOICE = ("nope", "", "LONG_TERM", 5, 1.5, b"x", {}, ["x"], object())
WHOLE = (0, -1, 1.5, True, "10", 10**30, b"1", {}, [], float("nan"), object())
REAL = (10**400, "0.5", b"1", {}, [], True, float("nan"), float("inf"), object())
FLAG = (None, 0, 1, "yes", b"", {}, [])
MOMENT = (
    0, -1, 1.5, 10**8 - 1, 10**14, 10**400, -1_700_000_000, float("nan"), float("inf"), True, "",
    "999999999999999999999", "hunter2", "yesterday", "2026-13-01", "2026-02-30T00:00:00", "99999-01-01",
    "2026-01-01T25:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "\ud800", b"2026-01-01", {}, [],
    timedelta(1), Decimal(1_700_000_000), datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
)  # fmt: skip
METADATA = (
    5, "hunter2", b"x", ["hunter2"], [("a", "b")], {"a": {"b": 1}}, {"a": ["hunter2"]}, {"a": b"hunter2"},
    {"a": float("nan")}, {"a": float("inf")}, {"a": 2**63}, {"a": 10**400}, {"a": datetime(2026, 1, 1)}, {1: "a"},
    {"": "x"}, {"a": "hunter2\x00"},
    {"\ud800": "x"}, {"a": SECRET * 1_000}, {SECRET * 1_000: "a"}, {str(number): "x" for number in range(65)},
)  # fmt: skip
CURSOR = (
    5, b"x", {}, [], "", "hunter2", "é", "\ud800", "====", "bnVsbA", "W10", "e30", "WzEsMl0", "W1tdLFtdXQ",
    base64.urlsafe_b64encode(b"[" * 100_000).decode(), ENDLESS,
)  # fmt: skip
MESSAGES = (
    None, 5, 1.5, True, b"hunter2", bytearray(b"x"), object(), [], (), iter(()), {}, "", "  ", [""], [None], [5],
    [b"hunter2"], [["hunter2"]], ["fine", "hunter2\x00"], ["fine", "hunter2\ud800"], ENDLESS, ["fine", ENDLESS],
    {"txt": SECRET}, {"text": "fine", SECRET: 1}, {"content": SECRET, "text": "fine"}, {"role": "user"},
    ("user", SECRET, 1), {"content": {"hunter2": 1}}, {"content": [SECRET, 5]}, {"content": [{"type": SECRET}]},
    [("user",)], [(5, "fine")],
    {"content": "fine", "tool_calls": SECRET}, {"choices": []}, {"output": [{"type": "x"}]}, {"content": [[SECRET]]},
    {"text": None}, {"text": 5}, {"text": b"x"}, {1: 2, "text": "fine"},
    [{"text": "fine"}, {"text": "fine", "role": "boss"}], [{"text": "fine", "role": None}],
    *({"text": "fine", "sender": wrong} for wrong in (*NOT_TEXT, *UNSTORABLE, SECRET * 40)),
    *({"text": "fine", "id": wrong} for wrong in (*NOT_TEXT, *UNSTORABLE, SECRET * 40)),
    *({"text": "fine", "timestamp": wrong} for wrong in MOMENT),
    *({"text": "fine", "metadata": wrong} for wrong in METADATA),
)  # fmt: skip

# Per parameter: invalid values and the expected error. For a parameter of one method, the key is "method.parameter".
PARAMETERS: dict[str, tuple[tuple[Any, ...], type[InvalidInput]]] = {
    **dict.fromkeys(SCOPE_PARTS, (PART, InvalidScope)),
    **dict.fromkeys(
        ("said_from", "said_to", "as_of", "valid_at", "valid_from", "valid_until"), (MOMENT, InvalidTimestamp)
    ),
    **dict.fromkeys(("kind", "role", "status", "plane", "planes"), (CHOICE, InvalidInput)),
    **dict.fromkeys(("sender", "source"), (NAME, InvalidText)),
    **dict.fromkeys(("top_k", "limit"), ((*WHOLE, None), InvalidInput)),
    **dict.fromkeys(("budget_chars", "budget_tokens"), ((*WHOLE, 10_000_001), InvalidInput)),
    "planes": ((*CHOICE, [], [None], ["long_term", "nope"]), InvalidInput),
    "plane": ((*CHOICE, None), InvalidInput),
    "min_score": ((*REAL, -0.01, 1.01, 10**30), InvalidInput),
    "method": ((*CHOICE, None, "agentic"), InvalidInput),
    "radius": ((*REAL, -0.01, 1.01), InvalidInput),
    "condition": (("hunter2", 5, True, b"x", {"hunter2": 1}, [], ["hunter2"], object()), InvalidInput),
    "query": ((*TEXT, "hunter2 " * 3_000), InvalidText),
    "text": (TEXT, InvalidText),
    "reason": ((*NAME, SECRET * 200), InvalidText),
    "messages": (MESSAGES, InvalidInput),
    "idempotency_key": (KEY, InvalidText),
    "metadata": (METADATA, InvalidInput),
    "quarantined": (FLAG, InvalidInput),
    "unsealed": (FLAG, InvalidInput),
    "ascending": (FLAG, InvalidInput),
    "offset": ((*WHOLE[1:], None), InvalidInput),
    "order": ((*CHOICE, None), InvalidInput),
    "evidence": ((*IDS, ["msg_1"] * 1_001), InvalidInput),
    "remember.evidence": ((*IDS, None), InvalidInput),
    "record_id": (ID, InvalidText),
    "explain.record_id": (ID[:-1], InvalidText),
    "forget.record_id": ((*IDS, [], "", SECRET * 40), InvalidInput),
    "forget_preview.record_id": ((*IDS, [], "", SECRET * 40), InvalidInput),
    "memory_id": (ID, InvalidText),
    "expected_revision": (WHOLE, InvalidInput),
    "revision": (WHOLE, InvalidInput),
    "token": (KEY, InvalidText),
    "cursor": (CURSOR, InvalidCursor),
    "content": (
        (5, 1.5, None, True, {}, [], object(), "", " ", "hunter2\x00", "hunter2\ud800", Path("nowhere")),
        InvalidInput,
    ),
    "name": (KEY, InvalidText),
    "media_type": (KEY, InvalidText),
    "external_uri": ((*NAME, SECRET * 400), InvalidText),
    "resource_id": (ID, InvalidText),
    "user_id": ((*PART, None), InvalidScope),
    "presented_key": (KEY, InvalidText),
    "subjects": ((5, True, "", " ", [""], [5], ["hunter2\x00"], [None], object()), InvalidInput),
}
# The action of a method, where the two names differ.
ACTIONS = {
    "drain": "work",
    "rotate_user": "create_user",
    "users": "list_users",
    "resource": "get_resource",
    "resources": "list_resources",
}
# Methods that act on the whole store take no scope of the caller's.
GOOD: dict[str, dict[str, Any]] = {
    "add": {"messages": "Fine."},
    "flush": {},
    "search": {"query": "fine"},
    "explain": {"query": "fine"},
    "recall": {"query": "fine"},
    "get": {"record_id": "msg_0"},
    "list": {},
    "browse": {},
    "history": {"record_id": "mem_0"},
    "remember": {"text": "Fine."},
    "correct": {"memory_id": "mem_0", "text": "Fine."},
    "revert": {"memory_id": "mem_0", "revision": 1},
    "forget_preview": {"record_id": "mem_0"},
    "forget": {"record_id": "mem_0"},
    "add_resource": {"content": "Fine."},
    "resources": {},
    "resource": {"resource_id": "r_0"},
    "delete_resource": {"resource_id": "r_0"},
    "create_user": {"user_id": "ana"},
    "rotate_user": {"user_id": "ana"},
    "revoke_user": {"user_id": "ana"},
    "users": {},
    "jobs": {},
    "events": {},
    "stats": {},
    "verify": {},
    "rebuild": {},
    "drain": {},
}


def parameters_of(method: str) -> list[str]:
    return [name for name in inspect.signature(getattr(AsyncMemory, method)).parameters if name != "self"]


def case_of(method: str, parameter: str) -> tuple[tuple[Any, ...], type[InvalidInput]]:
    return PARAMETERS.get(f"{method}.{parameter}") or PARAMETERS[parameter]


PAIRS = [(method, parameter) for method in GOOD for parameter in parameters_of(method)]


def test_every_parameter_of_every_method_has_a_case() -> None:
    methods = {name for name, _ in inspect.getmembers(AsyncMemory, inspect.isfunction) if not name.startswith("_")}
    assert methods - {"close"} == set(GOOD)
    assert all(case_of(method, parameter) for method, parameter in PAIRS)
    used = {parameter for _, parameter in PAIRS}
    assert used == {name.rpartition(".")[2] for name in PARAMETERS}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("bad") / "memory.db"
    with holdfast.open(path, embedder="fake", work=False) as memory:
        memory.add("Something was said before.", subject="ana")
        memory.remember("Something is known.", subject="ana")
        yield memory


def chain(error: BaseException | None) -> str:
    """Return everything that an error and its causes would print."""
    found = ""
    while error is not None:
        found += f"{error} {error!r} {error.args}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


@pytest.mark.parametrize(("method", "parameter"), PAIRS)
def test_what_is_wrong_is_refused_by_name_and_changes_nothing(filled: Memory, method: str, parameter: str) -> None:
    wrong, expected = case_of(method, parameter)
    before = filled.stats()
    (last,) = trail_of(filled, newest=1)
    # A forget names one target.
    good = {} if parameter == "source" and "record_id" in GOOD[method] else GOOD[method]
    for value in wrong:
        with pytest.raises(expected) as refused:
            getattr(filled, method)(**{**good, parameter: value})
        error = refused.value
        assert error.field.startswith(parameter), error
        assert len(str(error)) < 400
        # An error repeats an unknown name, shortened; it never repeats a text.
        assert SECRET * 10 not in chain(error)
        assert SECRET not in chain(error) or expected is InvalidInput
    known, *rows = trail_of(filled, newest=len(wrong) + 1)
    assert known == last, "one row for each call, and none besides"
    assert [row.outcome for row in rows] == [Outcome.REFUSED] * len(wrong)
    assert {str(row.action) for row in rows} == {ACTIONS.get(method, method)}
    assert all(row.error_code and row.error_code.startswith("invalid") for row in rows)
    assert SECRET not in full_repr(rows)
    assert filled.stats() == before


def test_after_all_of_it_the_store_is_sound(filled: Memory) -> None:
    with pytest.raises(InvalidInput):
        filled.add(["fine", ""])
    assert filled.verify().ok
    assert {record.text for record in filled.list().items} == {"Something was said before.", "Something is known."}


@pytest.mark.parametrize("method", GOOD)
def test_a_misspelt_keyword_is_refused(filled: Memory, method: str) -> None:
    with pytest.raises(TypeError, match="subjct"):
        getattr(filled, method)(**{**GOOD[method], "subjct": "ana"})


class Shout(str):
    """A subclass of `str`."""


class Letter(Enum):
    A = "a"


ODD = (
    None, 0, -1, 2, 1.5, True, "", "a", "cat", "private", "memory", "user", "2026-01-01T00:00:00+23:59", "*", b"", [],
    ["a"], [None], [[]], {}, {"text": "x"}, {"a": "b"}, (), set(), {"a"}, frozenset(), range(3), object(), Shout("cat"),
    Letter.A, Decimal(1), Fraction(1, 2), UUID(int=1), datetime.min, datetime.max, datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC), date.min, np.int64(5), np.float32(0.5), np.array([1]), np.str_("cat"), 1j, ...,
    10**400, -(10**400), float("inf"), "\x00", "\ud800", "🦆", "%s", "{}", print, type, NotImplemented, Draft("x"),
    Role.USER, memoryview(b"a"), "١٢", "9999-12-31", "0001-01-01", SECRET * 100,
)  # fmt: skip


def test_values_of_every_odd_kind_are_taken_or_refused_and_never_break_anything(memory: Memory) -> None:
    chance = random.Random(20260301)
    methods = [method for method in GOOD if method not in ("verify", "rebuild", "drain")]
    refused = 0
    for _ in range(3_000):
        method = chance.choice(methods)
        names = chance.sample(parameters_of(method), 2)
        odd = {name: chance.choice(ODD) for name in names}
        try:
            getattr(memory, method)(**{**GOOD[method], **odd})
        except StoreError as error:
            pytest.fail(f"{method}({odd}) reached the store: {error}")
        except HoldfastError:
            refused += 1
    assert refused > 2_000
    assert memory.verify().ok


@pytest.mark.parametrize("secret", [f"{SECRET}\x00", f"{SECRET}\ud800", ENDLESS, f"{SECRET} " * 200_000])
def test_no_error_repeats_the_text_that_it_refuses(filled: Memory, secret: str) -> None:
    attempts = (
        lambda: filled.add(secret),
        lambda: filled.add({"text": "fine", "sender": secret}),
        lambda: filled.add({"text": "fine", "id": secret}),
        lambda: filled.add({"text": "fine", "metadata": {"key": secret}}),
        lambda: filled.remember(secret),
        lambda: filled.correct("mem_0", secret),
        lambda: filled.search(secret),
        lambda: filled.recall(secret),
        lambda: filled.explain(secret),
        lambda: filled.search("fine", subject=secret),
        lambda: filled.add("fine", idempotency_key=secret),
        lambda: filled.list(cursor=secret),
        lambda: filled.get(secret),
        lambda: filled.forget(secret),
        lambda: filled.forget(subject="ana", token=secret),
    )
    for attempt in attempts:
        with pytest.raises(InvalidInput) as refused:
            attempt()
        assert SECRET not in chain(refused.value)


# --- messages -------------------------------------------------------------------------------------------------------


def test_the_error_says_which_of_many_messages_is_wrong(memory: Memory) -> None:
    with pytest.raises(InvalidText) as refused:
        memory.add(["one", "two", {"text": " "}])
    assert refused.value.field == "messages[2].text"
    assert memory.stats().messages == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user"}, {"said_at": 5}, {"said_at": "soon"}, {"metadata": None}, {"metadata": {"a": [1]}},
        {"text": ""}, {"text": None}, {"sender": ""}, {"external_id": 5},
    ],
)  # fmt: skip
def test_a_draft_that_could_not_be_stored_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Draft(**{"text": "fine", **wrong})


def test_a_draft_without_a_zone_is_read_as_utc(memory: Memory) -> None:
    added = memory.add(Draft("At noon.", role=Role.USER, said_at=datetime(2026, 3, 1, 12)))
    assert memory.get(added.message_ids[0]).said_at == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_times_at_the_ends_of_the_calendar_are_kept_and_searched(memory: Memory) -> None:
    ends = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"]
    added = memory.add([{"text": f"The end number {number}.", "timestamp": end} for number, end in enumerate(ends)])
    kept = [memory.get(str(message_id)).said_at for message_id in added.message_ids]
    assert kept == [datetime.fromisoformat(end) for end in ends]
    assert len(memory.search("the end number")) == 4
    assert [hit.text for hit in memory.search("the end", said_from="9999-01-01")] == ["The end number 1."]
    assert [hit.text for hit in memory.search("the end", said_to="0002-01-01")] == ["The end number 0."]


@pytest.mark.parametrize(
    "query", ["what ended on 31 December?", "in December", "on 1 January", "in 1970", "9999-12-31"]
)
def test_a_query_with_a_date_survives_times_at_the_ends_of_the_calendar(memory: Memory, query: str) -> None:
    memory.add([{"text": "An end.", "timestamp": when} for when in ("0001-01-01", "9999-12-31T00:00Z")])
    assert memory.explain(query).candidates == 2


def test_messages_keep_the_order_in_which_they_were_given_whatever_their_times(memory: Memory) -> None:
    times = ["2026-03-03", "2026-03-01", "2026-03-02"]
    added = memory.add([{"text": f"On {when}.", "timestamp": when} for when in times])
    assert [memory.get(str(found)).position for found in added.message_ids] == [0, 1, 2]


def test_the_same_id_twice_in_one_call_with_equal_content_is_one_message(memory: Memory) -> None:
    added = memory.add([{"text": "Once.", "id": "a"}, {"text": "Once.", "id": "a"}])
    assert added.stored == 1
    assert added.message_ids[0] == added.message_ids[1]
    assert [skipped.index for skipped in added.skipped] == [1]


@pytest.mark.parametrize("first", [{"text": "Other.", "id": "a"}, {"text": "Once.", "id": "a", "sender": "Zoe"}])
def test_the_same_id_for_another_message_stores_nothing_of_the_call(memory: Memory, first: dict[str, str]) -> None:
    with pytest.raises(DuplicateId) as refused:
        memory.add([{"text": "Before."}, first, {"text": "Once.", "id": "a"}, {"text": "After."}])
    assert "Once" not in str(refused.value)
    assert memory.stats().messages == 0
    memory.add({"text": "Once.", "id": "a"})
    with pytest.raises(DuplicateId):
        memory.add([{"text": "Before."}, first])
    assert memory.stats().messages == 1
    assert [row.outcome for row in trail_of(memory) if row.action == "add"] == ["refused", "succeeded", "refused"]


def test_the_same_key_for_another_call_stores_nothing(memory: Memory) -> None:
    memory.add("Once.", idempotency_key="k")
    memory.remember("Once.", idempotency_key="m")
    for attempt in (
        lambda: memory.add("Other.", idempotency_key="k"),
        lambda: memory.add("Once.", idempotency_key="k", source="elsewhere"),
        lambda: memory.add("Once.", idempotency_key="k", conversation="other"),
        lambda: memory.remember("Other.", idempotency_key="m"),
        lambda: memory.remember("Once.", idempotency_key="m", plane="private"),
        lambda: memory.remember("Once.", idempotency_key="m", quarantined=True),
        lambda: memory.remember("Once.", idempotency_key="m", metadata={"a": "b"}),
        lambda: memory.remember("Once.", idempotency_key="k"),
    ):
        with pytest.raises(IdempotencyConflict):
            attempt()
    assert (memory.stats().messages, memory.stats().memories) == (1, 1)


@pytest.mark.embedded
def test_very_many_messages_in_one_call_are_all_kept_or_none(memory: Memory) -> None:
    """In process: a service takes fewer in one call."""
    texts = [f"Message number {number} about topic {number % 97}." for number in range(MANY_MESSAGES)]
    with pytest.raises(InvalidText):
        memory.add([*texts, "\x00"])
    assert memory.stats().messages == 0
    started = time.monotonic()
    added = memory.add(texts)
    assert (added.stored, len(set(added.message_ids))) == (MANY_MESSAGES, MANY_MESSAGES)
    assert time.monotonic() - started < 120
    assert memory.search(f"number {MANY_MESSAGES - 1}", top_k=1)[0].text == texts[-1]
    assert memory.verify().ok


def test_a_service_takes_fewer_messages_in_one_call(memory: Memory, reached_by: str) -> None:
    texts = [f"Message {number}." for number in range(MAX_SERVED_MESSAGES + 1)]
    if reached_by == "http":
        with pytest.raises(InvalidInput, match="drafts: has too many items; at most 500 are allowed in one call"):
            memory.add(texts)
        assert memory.stats().messages == 0
    assert memory.add(texts[1:]).stored == MAX_SERVED_MESSAGES


def test_the_longest_text_that_is_taken_comes_back_whole(memory: Memory) -> None:
    text = ("Every word of it. " * 60_000)[:999_999] + "§"
    added = memory.add(text)
    assert memory.get(str(added.message_ids[0])).text == text
    with pytest.raises(InvalidText, match="1,000,001"):
        memory.add(text + "!")


# --- cursors --------------------------------------------------------------------------------------------------------


def test_a_cursor_serves_its_own_query_alone(memory: Memory) -> None:
    memory.add([f"Message {number}." for number in range(5)], subject="ana", app="mail")
    cursor = memory.list(subject="ana", limit=2).next_cursor
    assert cursor is not None
    assert len(memory.list(subject="ana", limit=3, cursor=cursor).items) == 3
    for other in (
        {}, {"subject": "bob"}, {"subject": "ana", "app": "mail"}, {"subject": "ana", "kind": "message"},
        {"subject": "ana", "planes": "private"}, {"subject": "ana", "sender": "ana"}, {"subject": "ana", "space": "x"},
        {"subject": "ana", "as_of": "2026-01-01"}, {"subject": "ana", "status": "accepted"},
    ):  # fmt: skip
        with pytest.raises(InvalidCursor, match="another query"):
            memory.list(cursor=cursor, **other)


@pytest.mark.parametrize("last", ['"\\ud800"', "5", "null", '["a"]', '""', '"\\u0000"'])
def test_a_cursor_that_was_tampered_with_is_refused(memory: Memory, last: str) -> None:
    memory.add(["One.", "Two."])
    cursor = memory.list(limit=1).next_cursor
    assert cursor is not None
    query = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(",")[0]
    forged = base64.urlsafe_b64encode(f"{query},{last}]".encode()).decode().rstrip("=")
    with pytest.raises(InvalidCursor):
        memory.list(limit=1, cursor=forged)


@pytest.mark.parametrize("min_score", [0, 0.5, 1])
def test_any_least_score_is_understood(memory: Memory, min_score: float) -> None:
    memory.add(["The cat sat on the mat.", "A dog barked.", "Rain fell."])
    hits = memory.search("cat on a mat", min_score=min_score)
    assert all(hit.score >= min_score for hit in hits)
    assert len(hits) == len([hit for hit in memory.search("cat on a mat") if hit.score >= min_score])


@pytest.mark.parametrize("verb", ["search", "explain", "recall"])
def test_a_least_score_that_no_score_reaches_is_an_error_with_the_range(memory: Memory, verb: str) -> None:
    with pytest.raises(InvalidInput, match=r"min_score.*from 0 to 1, not 2"):
        getattr(memory, verb)("cat on a mat", min_score=2)


# --- opening --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", [5, None, b"memory.db", 1.5, {}, "a\x00b", "a\ud900b"])
def test_a_location_that_is_no_path_is_refused(location: Any) -> None:
    with pytest.raises(InvalidInput, match="location"):
        holdfast.open(location, embedder="fake")


@pytest.mark.parametrize(
    "option",
    [
        {"embedder": 5}, {"embedder": object()}, {"weights": 5}, {"weights": {"vector": 1}}, {"space": 5},
        {"space": ""}, {"space": "a\x00"}, {"actor": "operator"}, {"actor": None}, {"clock": 5}, {"new_ids": 5},
        {"settings": {}}, {"work": 1}, {"work": None}, {"embeder": "fake"},
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_used_is_refused_by_name(tmp_path: Path, option: dict[str, Any]) -> None:
    path = tmp_path / "memory.db"
    with pytest.raises(InvalidInput) as refused:
        holdfast.open(path, **option)
    assert refused.value.field == next(iter(option))
    assert not path.exists()


@pytest.mark.parametrize("embedder", ["nope", "onnx", "onnx:", "static:x", "openai", "fake:64", "onnx:/nowhere"])
def test_an_embedder_that_does_not_exist_is_refused(tmp_path: Path, embedder: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        holdfast.open(tmp_path / "memory.db", embedder=embedder)
    assert isinstance(refused.value, EmbedderMisconfigured | ConfigurationError)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "agent"}, {"id": ""}, {"id": 5}, {"space": ""}, {"space": 5}, {"subjects": "ana"},
        {"subjects": {"ana"}}, {"subjects": frozenset({5})}, {"subjects": frozenset({""})},
    ],
)  # fmt: skip
def test_an_actor_who_could_be_mistaken_for_another_cannot_be_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="actor"):
        Actor(**{"kind": ActorKind.AGENT, "id": "bot", **wrong})


def test_a_setting_that_cannot_be_read_is_named_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_BUSY_SECONDS", SECRET)
    with pytest.raises(ConfigurationError, match="HOLDFAST_BUSY_SECONDS") as refused:
        holdfast.open(tmp_path / "memory.db", embedder="fake")
    assert SECRET not in chain(refused.value)


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="directory"):
        holdfast.open(tmp_path, embedder="fake")


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"):
        holdfast.open(tmp_path / "nowhere" / "memory.db", embedder="fake")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Not a database at all, but long enough to look at. " * 20)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="not a Holdfast store"):
        holdfast.open(path, embedder="fake")
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (a)")
    with pytest.raises(StoreUnusable, match="another program"):
        holdfast.open(path, embedder="fake")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_another_kind_of_store_is_refused_clearly() -> None:
    with pytest.raises(StoreUnusable, match="mysql:// is not a store; give a file path, or a postgresql:// URL"):
        holdfast.open("mysql://localhost/memory", embedder="fake")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    holdfast.open(path, embedder="fake").close()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(StoreReadOnly | StoreUnusable):
            holdfast.open(path, embedder="fake").add("No.")
    finally:
        tmp_path.chmod(0o755)


def test_weights_are_numbers_from_zero_up() -> None:
    for wrong in (-1, -0.001):
        with pytest.raises(InvalidInput):
            Weights(vector=wrong)


@pytest.mark.parametrize(
    "wrong", ["postgresql:/u:s3cret@h/db", "postgresql:u:s3cret@h", "postgres:x", "host=h password=s3cret dbname=x"]
)
def test_a_server_s_address_that_is_no_url_is_not_taken_for_a_path(wrong: str, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="postgresql://") as refused:
        holdfast.open(wrong, embedder="fake")
    assert "s3cret" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "refused",
    [
        lambda memory: memory.get("mem_0"),
        lambda memory: memory.remember("One.", idempotency_key="twice", subject="bob"),
    ],
)
def test_an_error_names_the_row_that_the_call_left_in_the_trail(
    memory: Memory, refused: Callable[[Memory], object]
) -> None:
    memory.remember("Two.", idempotency_key="twice", subject="bob")
    with pytest.raises(HoldfastError) as told:
        refused(memory)
    row = trail_of(memory)[-1]
    assert (told.value.operation_id, row.outcome, row.error_code) == (row.id, "refused", told.value.code)
