"""Each kind of damage that a transcript can have is found by a check, named, and told without a word of content."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.domain.derived import RepairIssueKind, TranscriptCheck
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.results import Finding
from holdfast.domain.scope import Scope
from holdfast.errors import StoreCorrupt
from holdfast.ports import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.contract.scribe import ANA, EMBEDDER, EVERYTHING, Scribe, add, put, reading
from holdfast.testing.contract.transcripts import governed
from postgres import AnyServer, schema_of

_KIND = RepairIssueKind


@dataclass(frozen=True)
class Place:
    """A store with a transcript of three turns, and a hand that reaches past it into its tables."""

    location: str
    server: AnyServer | None
    message: MessageId
    memory: MemoryId

    def opened(self) -> Store:
        return SqliteStore(self.location) if self.server is None else PostgresStore(self.location)

    def damage(self, *statements: str) -> None:
        if self.server is None:
            with closing(sqlite3.connect(self.location, isolation_level=None)) as database:
                for statement in statements:
                    database.execute(statement)
            return
        script = "; ".join(statements)
        # As the database itself may be made to, by whoever restores half of it.
        self.server.execute(
            f"SET search_path = {schema_of(self.location)}, public; SET session_replication_role = replica; {script};"
            " SET session_replication_role = DEFAULT; SET search_path = public"
        )

    def checked(self, limit: int = 20) -> TranscriptCheck:
        async def look(store: Store) -> TranscriptCheck:
            try:
                return await store.read(reading(ANA), lambda r: r.check_transcript(ANA, limit))
            finally:
                await store.close()

        return asyncio.run(look(self.opened()))

    def findings(self) -> Sequence[Finding]:
        async def look(store: Store) -> Sequence[Finding]:
            try:
                return (await store.read(EVERYTHING, lambda r: r.integrity(EMBEDDER)))[1]
            finally:
                await store.close()

        return asyncio.run(look(self.opened()))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    server = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    location = str(tmp_path / "memory.db") if server is None else server.store_url()
    scribe = Scribe()
    message, memory = scribe.message("canary one"), scribe.revision(Scope(subject="ana"), "canary learned")
    made = Place(location, server, message.id, memory.id)

    async def fill(store: Store) -> None:
        try:
            await add(store, governed(scribe.turn(ANA, message, "canary two"), "t1"))
            await add(store, governed(scribe.turn(ANA, "canary three"), "t2"))
            await add(store, scribe.turn(ANA, "canary four"))
            await add(store, scribe.turn(replace(ANA, conversation="other"), "canary elsewhere"))
            await put(store, replace(memory, evidence=(message.id,)))
        finally:
            await store.close()

    asyncio.run(fill(made.opened()))
    assert made.checked().issues == ()
    yield made
    if server is not None:
        server.drop(location)


_OTHER = "(SELECT id FROM conversations WHERE name = 'other')"
_OWN = "(SELECT id FROM conversations WHERE name = 'chat')"
DAMAGE = {
    "a turn is gone": (
        _KIND.MISSING_SOURCE_TURN,
        [f"DELETE FROM turns WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "all turns are gone": (_KIND.MISSING_SOURCE_TURN, [f"DELETE FROM turns WHERE conversation_id = {_OWN}"]),
    "a message is gone": (
        _KIND.MISSING_SOURCE_MESSAGE,
        [f"DELETE FROM records WHERE conversation_id = {_OWN} AND position = 1"],
    ),
    "evidence is gone": (
        _KIND.MISSING_SOURCE_MESSAGE,
        ["UPDATE evidence SET message_number = 9999"],
    ),
    "a memory is gone": (_KIND.ORPHAN_DERIVED_REF, ["DELETE FROM records WHERE kind = 1"]),
    "a turn is of another conversation": (
        _KIND.MISMATCHED_SOURCE_KEY,
        [f"UPDATE turns SET conversation_id = {_OTHER}, sequence = 7 WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a message is of another scope": (
        _KIND.MISMATCHED_SOURCE_KEY,
        ["UPDATE records SET scope_id = (SELECT id FROM scopes WHERE conversation = 'other') WHERE position = 2"],
    ),
    "a memory is of another space": (
        _KIND.MISMATCHED_SOURCE_KEY,
        [
            "INSERT INTO partitions (id, space, kind, owner) VALUES (77, 'south', 'shared', '')",
            "UPDATE records SET partition_id = 77 WHERE kind = 1",
        ],
    ),
    "two turns have one id": (
        _KIND.DUPLICATE_TURN_CURSOR,
        ["UPDATE texts SET external_id = 't1' WHERE external_id = 't2'"],
    ),
    "two turns begin at one place": (
        _KIND.DUPLICATE_TURN_CURSOR,
        [f"UPDATE turns SET first_position = 0 WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a state is none": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET state = 'lost' WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "a masked turn has a message that is not": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET state = 'masked' WHERE conversation_id = {_OWN} AND sequence = 2"],
    ),
    "words are torn": (_KIND.CORRUPT_RECORD, ["UPDATE texts SET text = '{canary' WHERE external_id = 't2'"]),
    "words are gone": (_KIND.CORRUPT_RECORD, ["DELETE FROM texts WHERE external_id = 't2'"]),
    "a text is gone": (
        _KIND.CORRUPT_RECORD,
        ["DELETE FROM texts WHERE number = (SELECT number FROM records WHERE position = 2)"],
    ),
    "an authority is none": (_KIND.CORRUPT_RECORD, ["UPDATE records SET authority = 'canary' WHERE position = 2"]),
    "deleted content is there": (
        _KIND.CORRUPT_RECORD,
        [
            f"UPDATE turns SET state = 'raw_deleted' WHERE conversation_id = {_OWN} AND sequence = 2",
            "UPDATE records SET status = 'raw_deleted' WHERE position = 2",
        ],
    ),
    "messages are not counted": (
        _KIND.CORRUPT_RECORD,
        [f"UPDATE turns SET messages = 1 WHERE conversation_id = {_OWN} AND sequence = 1"],
    ),
}  # fmt: skip


def test_every_kind_of_issue_is_made() -> None:
    assert {kind for kind, _ in DAMAGE.values()} == set(_KIND)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_named(place: Place, damage: str) -> None:
    kind, statements = DAMAGE[damage]
    place.damage(*statements)
    found = place.checked()
    assert kind in {issue.kind for issue in found.issues}
    assert "canary" not in repr(found)
    assert len(place.checked(limit=1).issues) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "a turn is gone", "a message is gone", "evidence is gone", "a memory is gone", "a state is none",
        "words are gone", "a masked turn has a message that is not", "a text is gone", "deleted content is there",
        "messages are not counted",
    ],
)  # fmt: skip
def test_a_check_of_the_whole_store_finds_it_too(place: Place, damage: str) -> None:
    assert place.findings() == []
    place.damage(*DAMAGE[damage][1])
    assert place.findings()


@pytest.mark.parametrize("damage", ["a state is none", "words are torn", "words are gone", "a text is gone"])
def test_a_turn_that_cannot_be_read_is_named_and_not_guessed(place: Place, damage: str) -> None:
    place.damage(*DAMAGE[damage][1])

    async def read() -> None:
        store = place.opened()
        try:
            assert [turn.sequence for turn in await store.read(reading(ANA), lambda r: r.turns(ANA, 2, 10))] == [3]
            with pytest.raises(StoreCorrupt, match=r"turn 2 of this conversation") as refused:
                await store.read(reading(ANA), lambda r: r.turns(ANA, 0, 10))
            assert "canary" not in repr(refused.value)
        finally:
            await store.close()

    asyncio.run(read())
