"""Every write can be repeated under its key: it happens once, and returns the same answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Memory
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.scope import Scope
from holdfast.errors import IdempotencyConflict, InvalidText, NotFound
from holdfast.runtime.flush import Flush
from holdfast.runtime.forget import Forget
from holdfast.runtime.idempotency import digest_of_fields
from holdfast.runtime.remember import Correct
from probes import jobs_of, trail_of


class World:
    """A memory with records to work on."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.said = str(memory.add("The heron stood in the reeds.", subject="ana", conversation="c").message_ids[0])
        self.learned = memory.remember("Ana saw a heron.", subject="ana").id
        self.changed = memory.remember("Ana saw a swan.", subject="ana").id
        memory.correct(self.changed, "Ana saw a goose.", subject="ana")
        self.spare = memory.remember("To be forgotten.", subject="ana").id


@pytest.fixture
def world(memory: Memory) -> World:
    return World(memory)


# Each write, and a different call of the same method.
WRITES: dict[str, tuple[Callable[[World, str], Any], Callable[[World, str], Any]]] = {
    "add": (
        lambda it, key: it.memory.add("One.", subject="ana", idempotency_key=key),
        lambda it, key: it.memory.add("Two.", subject="ana", idempotency_key=key),
    ),
    "flush": (
        lambda it, key: it.memory.flush(subject="ana", conversation="c", idempotency_key=key),
        lambda it, key: it.memory.flush(subject="ana", conversation="d", idempotency_key=key),
    ),
    "remember": (
        lambda it, key: it.memory.remember("One.", subject="ana", idempotency_key=key),
        lambda it, key: it.memory.remember("One.", subject="ana", plane="episode", idempotency_key=key),
    ),
    "correct": (
        lambda it, key: it.memory.correct(it.learned, "It was a crane.", subject="ana", idempotency_key=key),
        lambda it, key: it.memory.correct(it.learned, "It was a stork.", subject="ana", idempotency_key=key),
    ),
    "revert": (
        lambda it, key: it.memory.revert(it.changed, 1, subject="ana", idempotency_key=key),
        lambda it, key: it.memory.revert(it.changed, 1, subject="ana", reason="no", idempotency_key=key),
    ),
    "forget": (
        lambda it, key: it.memory.forget(it.spare, subject="ana", idempotency_key=key),
        lambda it, key: it.memory.forget(it.learned, subject="ana", idempotency_key=key),
    ),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_made_again_happens_once(world: World, verb: str) -> None:
    call, _ = WRITES[verb]
    call(world, "k")
    before = world.memory.list(subject="ana").items, world.memory.stats(), jobs_of(world.memory)
    for _ in range(2):
        call(world, "k")
        assert (world.memory.list(subject="ana").items, world.memory.stats(), jobs_of(world.memory)) == before
    touched = [row.record_count for row in trail_of(world.memory) if row.action == verb][-3:]
    assert touched[0] > 0
    assert touched[1:] == [0, 0]


@pytest.mark.parametrize("verb", WRITES)
def test_another_call_with_that_key_is_refused_and_changes_nothing(world: World, verb: str) -> None:
    call, other = WRITES[verb]
    call(world, "k")
    before = world.memory.list(subject="ana").items
    with pytest.raises(IdempotencyConflict, match="new key"):
        other(world, "k")
    assert world.memory.list(subject="ana").items == before


@pytest.mark.parametrize("verb", WRITES)
def test_a_key_belongs_to_one_verb(world: World, verb: str) -> None:
    WRITES[verb][0](world, "k")
    for another in set(WRITES) - {verb}:
        with pytest.raises(IdempotencyConflict):
            WRITES[another][0](world, "k")


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("key", ["", " ", "k" * 257, "\x00", "\ud800", 5])
def test_a_key_is_a_short_text(world: World, verb: str, key: Any) -> None:
    with pytest.raises(InvalidText, match="idempotency_key"):
        WRITES[verb][0](world, key)


@pytest.mark.parametrize("verb", WRITES)
def test_what_was_refused_is_not_kept(world: World, verb: str) -> None:
    """A failed call stores nothing, so its key can be used again."""
    with pytest.raises(NotFound):
        world.memory.correct("mem_" + "0" * 32, "Nothing.", subject="ana", idempotency_key="k")
    WRITES[verb][0](world, "k")


def test_flush_again_answers_with_the_same_jobs(world: World) -> None:
    first = world.memory.flush(subject="ana", conversation="c", idempotency_key="k")
    world.memory.add("More.", subject="ana", conversation="c")
    again = world.memory.flush(subject="ana", conversation="c", idempotency_key="k")
    assert (again.messages, again.jobs, again.replayed) == (first.messages, first.jobs, True)
    assert world.memory.flush(subject="ana", conversation="c", idempotency_key="k2").messages == 1


def test_correct_again_answers_with_the_revision_that_it_made(world: World) -> None:
    first = world.memory.correct(world.learned, "It was a crane.", idempotency_key="k", expected_revision=1)
    world.memory.correct(world.learned, "It was a stork.")
    again = world.memory.correct(world.learned, "It was a crane.", idempotency_key="k", expected_revision=1)
    assert (again.text, again.revision) == (first.text, 2)
    assert world.memory.get(world.learned).text == "It was a stork."


def test_forget_again_shows_the_same_receipt(world: World) -> None:
    first = world.memory.forget(world.spare, idempotency_key="k")
    again = world.memory.forget(world.spare, idempotency_key="k")
    assert (again.operation_id, again.memories, again.tombstones, again.remaining, again.forgotten_at) == (
        first.operation_id, first.memories, first.tombstones, 0, first.forgotten_at,
    )  # fmt: skip
    assert again.scrubbed
    assert (first.replayed, again.replayed) == (False, True)


def test_a_memory_that_was_forgotten_since_is_not_answered_with(world: World) -> None:
    made = world.memory.remember("One.", subject="ana", idempotency_key="a")
    world.memory.correct(made.id, "Two.", subject="ana", idempotency_key="b")
    world.memory.forget(made.id, subject="ana")
    with pytest.raises(NotFound, match="has been forgotten"):
        world.memory.remember("One.", subject="ana", idempotency_key="a")
    with pytest.raises(NotFound, match="has been forgotten"):
        world.memory.correct(made.id, "Two.", subject="ana", idempotency_key="b")


def test_from_many_threads_a_correction_happens_once(world: World) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: WRITES["correct"][0](world, "k"), range(24)))
    assert {memory.revision for memory in made} == {2}
    assert len(world.memory.history(world.learned)) == 2


def test_what_is_kept_of_an_answer_holds_no_text(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "m.db", embedder="fake", work=False) as memory:
        world = World(memory)
        for call, _ in WRITES.values():
            call(world, f"key of {call}")
        memory.create_user("ana", idempotency_key="user")
    with closing(sqlite3.connect(tmp_path / "m.db")) as database:
        held = repr(database.execute("SELECT * FROM answers").fetchall())
    assert held.count("operation_id") == len(WRITES) + 1
    assert not [word for word in ("One", "heron", "crane", "forgotten.", "uk_", "key of", "user") if word in held]


@pytest.mark.parametrize("verb", sorted(set(WRITES) - {"forget"}))
def test_who_has_not_the_key_cannot_try_guesses_at_what_was_written(tmp_path: Path, verb: str) -> None:
    """An unkeyed digest would confirm guesses at a forgotten text, so each key gives the call another digest."""
    with holdfast.open(tmp_path / "m.db", embedder="fake", work=False) as memory:
        world = World(memory)
        for key in ("one", "another"):
            WRITES[verb][0](world, key)
    with closing(sqlite3.connect(tmp_path / "m.db")) as database:
        assert database.execute("SELECT count(DISTINCT digest) FROM answers").fetchone() == (2,)


def test_a_call_that_an_older_version_answered_is_told_from_others(tmp_path: Path) -> None:
    """Older versions stored the plain digest of the request."""
    file = tmp_path / "m.db"
    call, other = WRITES["flush"]
    with holdfast.open(file, embedder="fake", work=False) as memory:
        world = World(memory)
        first = call(world, "k")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "UPDATE answers SET digest = ?", (digest_of_fields(Flush(Scope(subject="ana", conversation="c"))),)
        )
    with holdfast.open(file, embedder="fake", work=False) as memory:
        world.memory = memory
        assert (call(world, "k").jobs, call(world, "k").replayed) == (first.jobs, True)
        with pytest.raises(IdempotencyConflict):
            other(world, "k")


def test_requests_that_differ_in_anything_but_the_key_have_digests_of_their_own() -> None:
    scope = Scope(subject="ana", conversation="c")
    target = ForgetTarget(ids=("mem_1",))
    requests = [
        Flush(scope), Flush(Scope(subject="bob", conversation="c")), Forget(scope, target), Forget(scope, target, "t"),
        Correct(scope, "mem_1", "a"), Correct(scope, "mem_1", "b"), Correct(scope, "mem_1", "a", reason="b"),
        Correct(scope, "mem_1", "a", evidence=()),
    ]  # fmt: skip
    digests = [digest_of_fields(request) for request in requests]
    assert len(set(digests)) == len(digests)
    assert digest_of_fields(Flush(scope, "one key")) == digest_of_fields(Flush(scope, "another")) == digests[0]
