"""Every released schema upgrades; an interrupted upgrade resumes; a newer schema is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import old_stores
import pytest

import holdfast
from faults.ledger import LaterClock, check_rebuild, check_whole
from faults.places import KINDS, ON_EACH, Place, PostgresPlace, SqlitePlace
from faults.snapshot import Snapshot, snapshot
from faults.zygote import Zygote
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.memory import Trust
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.errors import SchemaTooNew
from holdfast.testing.store_suite.scribe import EVERYTHING, Scribe, add

DUMPS = [
    pytest.param(kind, version, marks=[pytest.mark.postgres] if kind == "postgres" else [])
    for kind in KINDS
    for version in old_stores.versions(kind)
]
TEXTS = [
    "Ana likes coffee.", "I live in Lisbon.", "I work as a nurse.", "Zoë said: 你好", "ana lives in Lisbon.",
    "ana works as a nurse.", "still to be flushed",
]  # fmt: skip


def restored(kind: str, version: int, folder: Path, request: pytest.FixtureRequest) -> Place:
    server = None if kind == "sqlite" else request.getfixturevalue("postgres")
    place: Place = SqlitePlace(folder) if server is None else PostgresPlace(server)
    old_stores.restore(kind, version, place, server)
    return place


async def looked_at(place: Place) -> Snapshot:
    async with holdfast.open_async(place.location, embedder="fake", work=False, clock=LaterClock()) as memory:
        await memory.drain()
        async with place.store() as store:
            found = await snapshot(store)
            await check_whole(store)
            await check_rebuild(memory, store, ["Lisbon", "coffee"])
    return frozenset(map(without_learned_trust, found))


def without_learned_trust(held: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out the trust of a learned memory: rules trust a source less today, and an upgrade changes no memory."""
    is_learned = held[0] == "memory" and any(str(part).startswith("extractor:") for part in held)
    return tuple(part for part in held if not (is_learned and isinstance(part, Trust)))


@pytest.mark.parametrize("kind", ON_EACH)
def test_every_schema_but_the_newest_has_a_dump(kind: str) -> None:
    """`old_stores` explains how to write a dump."""
    assert old_stores.versions(kind) in (
        list(range(1, old_stores.newest(kind))),
        list(range(1, old_stores.newest(kind) + 1)),
    )


@pytest.mark.parametrize(("kind", "version"), DUMPS)
def test_a_released_schema_is_upgraded_with_all_that_it_holds(
    kind: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    old = restored(kind, version, tmp_path, request)
    fresh: Place = SqlitePlace(tmp_path / "fresh") if kind == "sqlite" else PostgresPlace(old._server)  # type: ignore[attr-defined]
    (tmp_path / "fresh").mkdir()
    asyncio.run(old_stores.fill(fresh.location))
    assert asyncio.run(looked_at(old)) == asyncio.run(looked_at(fresh))
    with holdfast.open(old.location, embedder="fake", work=False) as memory:
        # Promises made under the old schema still hold.
        assert memory.add({"text": "to be forgotten", "id": "m2"}, subject="bob").stored == 0
        again = memory.remember(
            "Ana likes tea.",
            subject="ana",
            evidence=[link.message_id for link in memory.list(subject="ana", kind="memory").items[0].evidence],
            idempotency_key="key2",
        )
        assert again.text == "Ana likes coffee."
        assert memory.flush(subject="bob").messages == 1


@pytest.mark.parametrize(("kind", "version"), DUMPS)
def test_what_was_said_under_an_older_schema_is_a_transcript_in_order(
    kind: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = restored(kind, version, tmp_path, request)
    home = Scope(subject="ana", conversation="home")

    async def whole() -> None:
        async with place.store() as store:
            grant = authorize(LOCAL_OPERATOR, Action.REPLAY_TRANSCRIPT, home)
            (turn,) = await store.read(grant, lambda r: r.transcripts.turns(home, 0, 10))
            assert (turn.sequence, turn.state) == (1, TranscriptState.ACTIVE)
            assert [message.text for message in turn.messages] == ["I live in Lisbon.", "I work as a nurse."]
            assert {message.authority for message in turn.messages} == {Authority.LEGACY_TRANSCRIPT}
            threads = await store.read(EVERYTHING, lambda r: r.transcripts.threads(None, 10))
            assert [each.turns for each in threads] == [1, 1, 1]
            for each in threads:
                thread = authorize(LOCAL_OPERATOR, Action.REPLAY_TRANSCRIPT, each.thread)
                checked = await store.read(thread, lambda r, each=each: r.transcripts.check(each.thread, 10))
                assert (checked.checked_turns, checked.issues) == (1, ())
            if kind == "sqlite":  # a server's dump does not contain the sequence counters
                assert (await add(store, Scribe().turn(home, "said after the upgrade"))).sequence == 2

    asyncio.run(whole())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_number_and_a_position_never_come_again_after_numbers_were_kept_apart(version: int, tmp_path: Path) -> None:
    """Schemas 1 to 3 kept the highest number in `sqlite_sequence`; in a copy, no text may have that number."""
    place = SqlitePlace(tmp_path)
    old_stores.restore("sqlite", version, place)
    with closing(sqlite3.connect(place.location, isolation_level=None)) as database:
        database.execute("UPDATE sqlite_sequence SET seq = 12")
        database.execute("UPDATE conversations SET next_position = 7 WHERE partition_id = 3")

    def added() -> tuple[int, int]:
        with holdfast.open(place.location, embedder="fake", work=False) as memory:
            (added,) = memory.add("said after the upgrade", subject="bob").message_ids
        with closing(sqlite3.connect(place.location)) as database:
            found: tuple[int, int] = database.execute(
                "SELECT number, position FROM records WHERE id = ?", (added,)
            ).fetchone()
        return found

    assert added() == (13, 7)
    with holdfast.open(place.location, embedder="fake", work=False) as memory:
        memory.forget(subject="bob")
        assert memory.verify().ok
    assert added() == (14, 8)


@pytest.mark.parametrize(("kind", "version"), DUMPS)
def test_an_upgrade_killed_half_way_is_resumed(
    kind: str, version: int, tmp_path: Path, request: pytest.FixtureRequest, zygote: Zygote
) -> None:
    place = restored(kind, version, tmp_path, request)
    steps = old_stores.newest(kind) + len(old_stores.EXTRA) - version
    # Kill each step before it starts and at its end; reaching the second step proves that the first was committed.
    for _ in range(steps - 1):
        for point, passage in (("migration.before", 1), ("migration.after", 1), ("migration.before", 2)):
            child = zygote.start("old_stores:upgrade", kind=kind, location=place.location, point=point, passage=passage)
            assert child.wait() == []
            assert child.killed
            place.settle()
    child = zygote.start("old_stores:upgrade", kind=kind, location=place.location, point="migration.after", passage=1)
    assert child.wait() == []
    assert child.killed
    (line,) = zygote.run("old_stores:upgrade", kind=kind, location=place.location, point=None, passage=0)
    assert line == {"ok": True, "texts": TEXTS}
    # The store is now newer than this version.
    with pytest.raises(SchemaTooNew, match="upgrade Holdfast"):
        holdfast.open(place.location, embedder="fake")
