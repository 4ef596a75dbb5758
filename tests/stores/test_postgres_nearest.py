"""Approximate indexes on PostgreSQL: built in the background, and used only where they should be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

import holdfast
from holdfast import Memory
from holdfast.domain.scope import Scope
from holdfast.search import approximate_search
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.settings import Settings
from holdfast.stores.postgres import nearest
from holdfast.stores.postgres.connection import Connector
from holdfast.stores.postgres.location import parse_location
from holdfast.stores.postgres.nearest import PartitionIndex
from holdfast.stores.postgres.session import PostgresSession

SIZE = 300
FAKE = FakeEmbedder(16)
PARTITION = Scope(subject="ana").partition


def opened(url: str) -> Memory:
    return holdfast.open(url, embedder=FAKE, work=False, settings=Settings(approximate_from=200))


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    with opened(postgres_url) as memory:
        chance = random.Random(3)
        words = "violin garden harbour lantern meadow pepper quarry saddle".split()
        memory.add([f"{' '.join(chance.choices(words, k=4))} {at}" for at in range(SIZE)], subject="ana")
        memory.add("a violin", subject="ben")
        yield memory


@pytest.fixture
def session(postgres_url: str, memory: Memory) -> Iterator[PostgresSession]:
    connector = Connector(parse_location(postgres_url, 10), 10)
    connector.prepare()
    session = connector.session()
    yield session
    session.close()


@pytest.fixture(autouse=True)
def _also_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate_search, "_FEW", 20)


def is_approximate(memory: Memory, subject: str = "ana") -> bool:
    return any(way.approximate for way in memory.explain("a violin", subject=subject).ways)


def indexes(session: PostgresSession) -> list[str]:
    found = session.execute(
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%hnsw%'"
    )
    return [row[0] for row in found]


def plan_of(session: PostgresSession, statement: str, values: tuple[Any, ...]) -> str:
    return "\n".join(row[0] for row in session.execute(f"EXPLAIN {statement}", values))


def place_in(session: PostgresSession) -> PartitionIndex:
    row = session.execute("SELECT partition_id, embedder_id, dimensions FROM nearest").fetchone()
    return PartitionIndex(*row)


def test_the_search_of_a_large_partition_goes_through_its_index(memory: Memory, session: PostgresSession) -> None:
    memory.drain()
    place = place_in(session)
    assert indexes(session) == [place.name]
    asked = nearest.POSTGRES.vector(np.ones(16, "<f2").tobytes())
    with session.transaction("BEGIN READ ONLY"):
        session.execute(nearest._PINNED, ("100", "off"))
        pinned = plan_of(session, place.search_statement, (asked, 50))
    assert f"Index Scan using {place.name}" in pinned
    assert "Sort" not in pinned


def test_nothing_else_goes_through_it(memory: Memory, session: PostgresSession) -> None:
    """Small partitions, and reads of all vectors of a large one, do not use the index."""
    memory.drain()
    assert is_approximate(memory)
    assert not is_approximate(memory, "ben")
    name = place_in(session).name
    every = (
        "SELECT number, piece, vector FROM vectors WHERE partition_id = ? AND embedder_id = ? ORDER BY number, piece"
    )
    for partition in session.execute("SELECT id FROM partitions").fetchall():
        assert name not in plan_of(session, every, (partition[0], 1))


def test_the_settings_of_the_search_hold_for_it_alone(memory: Memory, session: PostgresSession) -> None:
    memory.drain()
    with session.transaction("BEGIN READ ONLY"):
        nearest.start_search(session, place_in(session), np.ones(16, np.float32), 10, 50)()
        left = session.execute("SELECT current_setting('enable_seqscan'), current_setting('enable_sort')").fetchone()
    assert left == ("on", "on")


def test_what_was_asked_can_be_heard_in_any_order(memory: Memory, session: PostgresSession) -> None:
    memory.drain()
    place, vector = place_in(session), np.ones(16, np.float32)
    with session.transaction("BEGIN READ ONLY"):
        near, far = (nearest.start_search(session, place, some, 20, 100)().tolist() for some in (vector, -vector))
        first, second = (nearest.start_search(session, place, some, 20, 100) for some in (vector, -vector))
        assert session.execute("SELECT 7").fetchone() == (7,)
        assert second().tolist() == far
        assert first().tolist() == near
    assert len(set(near) | set(far)) == 40


def test_as_many_are_found_if_the_nearest_were_just_deleted(memory: Memory, session: PostgresSession) -> None:
    """The index still returns deleted rows until the server vacuums it."""
    memory.drain()
    place, vector = place_in(session), np.ones(16, np.float32)
    with session.transaction("BEGIN"):
        near = nearest.start_search(session, place, vector, 100, 100)().tolist()
        session.execute("DELETE FROM vectors WHERE number = ANY (?::bigint[])", (near,))
        others = nearest.start_search(session, place, vector, 100, 100)().tolist()
    assert len(near) == len(others) == 100
    assert not set(near) & set(others)


def test_more_can_be_asked_for_than_one_pass_of_the_index_finds(
    memory: Memory, session: PostgresSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.drain()
    monkeypatch.setattr(nearest, "_WIDEST", 10)
    with session.transaction("BEGIN READ ONLY"):
        assert len(nearest.start_search(session, place_in(session), np.ones(16, np.float32), 200, 50)()) == 200


def test_the_vectors_of_every_piece_come_in_order(
    memory: Memory, session: PostgresSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.drain()
    # Forces several statements, one of which finds nothing.
    monkeypatch.setattr(nearest.POSTGRES, "chunk", 40)
    place = place_in(session)
    with session.transaction("BEGIN"):
        session.execute(
            "INSERT INTO vectors SELECT partition_id, number, 1, embedder_id, vector + vector FROM vectors"
            " WHERE partition_id = ? ORDER BY number DESC LIMIT 50",
            (place.partition,),
        )
        stored = session.execute(
            f"SELECT number, piece, vector FROM vectors WHERE {place.condition} ORDER BY number, piece"
        ).fetchall()
        index = nearest.find_index(session, place.partition, FAKE.fingerprint)
        assert index is not None
        numbers = np.array([*sorted({row[0] for row in stored}), *range(10**9, 10**9 + 60)], np.int64)
        block = index.vectors(numbers)
        nothing = index.vectors(numbers[-1:])
    assert block.numbers.tolist() == [row[0] for row in stored]
    assert block.rows.tobytes() == b"".join([vector for _, _, vector in nearest.POSTGRES.vectors(stored)])
    assert len(stored) == SIZE + 50
    assert nothing.rows.shape == (0, 16)


def test_an_index_that_is_gone_or_not_valid_is_not_used_and_made_anew(memory: Memory, session: PostgresSession) -> None:
    memory.drain()
    name = place_in(session).name
    session.execute(f"DROP INDEX {name}")
    assert not is_approximate(memory)
    memory.drain()
    assert is_approximate(memory)
    try:
        session.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = ?::regclass", (name,))
    except psycopg.errors.InsufficientPrivilege:
        pytest.skip("the server's user may not damage its catalogue")
    assert not is_approximate(memory)
    memory.drain()
    assert is_approximate(memory)
    assert indexes(session) == [name]


def test_building_stops_when_nobody_wants_it(memory: Memory, session: PostgresSession, postgres_url: str) -> None:
    connector = Connector(parse_location(postgres_url, 10), 10)
    connector.prepare()
    assert nearest.build(session, connector.session, PARTITION, FAKE.fingerprint, lambda done, total: False) is None
    assert indexes(session) == []


def test_an_index_of_an_unknown_partition_is_not_built(
    memory: Memory, session: PostgresSession, postgres_url: str
) -> None:
    connector = Connector(parse_location(postgres_url, 10), 10)
    connector.prepare()
    nobody = Scope(subject="nobody").partition
    assert nearest.build(session, connector.session, nobody, FAKE.fingerprint, lambda done, total: True) is None


def test_what_is_forgotten_leaves_the_index_with_the_next_scrub(memory: Memory) -> None:
    memory.drain()
    gone = memory.search("a violin", subject="ana")[0]
    receipt = memory.forget(gone.id, subject="ana")
    assert receipt.scrubbed
    assert is_approximate(memory)
    assert gone.id not in [hit.id for hit in memory.search("a violin", subject="ana", top_k=100)]
