"""A store is copied completely, however often the copy is interrupted, and never into a store in use."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from faults.disk import of_size
from holdfast import failpoints
from holdfast.app import _open_archive, _open_store
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.memory import Plane, Status
from holdfast.domain.runtime_skills import SkillState
from holdfast.domain.scope import Scope
from holdfast.domain.stored_proposals import ProposalStatus, StoredProposal
from holdfast.domain.tool_experience import ExperienceKey, ToolExperience
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    DeliveryStatus,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptState,
)
from holdfast.errors import CopyRefused, HoldfastError, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnusable
from holdfast.ports import Transaction
from holdfast.settings import Settings, read_settings
from holdfast.stores import copying
from holdfast.stores.copying import TABLES
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import ANALYZER, EMBEDDER, Scribe, add, write_grant
from postgres import ON_POSTGRES, AnyServer, schema_of

FORGOTTEN = "The code of the safe is a canary."


def fill(location: str, subjects: int = 3) -> None:
    """Fill every table."""
    with holdfast.open(location, embedder="fake", work=False) as memory:
        for number in range(subjects):
            who = f"subject-{number}"
            said = memory.add(
                [{"text": f"I live in town {number} 🏙", "id": "a", "metadata": {"k": "ü"}}, "It rains."],
                subject=who,
                conversation="c",
                idempotency_key="once",
                source="diary",
            )
            fact = memory.remember(f"Lives in town {number}.", subject=who, evidence=[said.message_ids[0]])
            memory.correct(fact.id, f"Lives in village {number}.", subject=who, reason="moved")
            memory.flush(subject=who, conversation="c")
        gone = memory.add(FORGOTTEN, subject="subject-0", conversation="d")
        memory.forget(gone.message_ids[0], subject="subject-0")
        memory.drain()
        memory.create_user("subject-0")
        memory.add_resource("A page about rain.", name="rain 🌧.txt", subject="subject-0", external_uri="https://rain")
        spare = memory.add_resource(FORGOTTEN, name=FORGOTTEN, subject="subject-2").resource
        memory.delete_resource(spare.id)
        memory.revoke_user(memory.create_user("subject-1").user.id)
        memory.add("Not yet worked on.", subject="subject-1", conversation="c")
        memory.flush(subject="subject-1", conversation="c")
    asyncio.run(govern(location))


async def govern(location: str) -> None:
    """Add a turn with every host field, one with deleted content, an alias and an event."""
    scribe, thread = Scribe(), Scope(subject="subject-1", conversation="governed")
    store = _open_store(location, read_settings())
    try:
        told = replace(
            scribe.turn(thread, replace(scribe.message("It snows."), authority=Authority.USER_ASSERTED)),
            external_id="turn/1",
            delivery=DeliveryStatus.DELIVERED,
            attribution=ActorAttribution(speaker_id="ana"),
            host_refs=[
                HostOpaqueRef("desk", "ticket", "7", Relation.ORIGIN, HostRefVisibility.HOST_UI, "Ticket seven")
            ],
        )
        deleted = replace(
            scribe.turn(thread, FORGOTTEN),
            external_id="turn/2",
            host_refs=[replace(told.host_refs[0], label=FORGOTTEN)],
        )
        await add(store, told)
        await add(store, deleted)
        event = Event(EventId("evt_1"), EventKind.WRITE, thread, scribe.clock.now(), content_hash="abc")

        first = scribe.revision(thread, "It snows.", vectors=())
        second = replace(scribe.revision(thread, "It does not snow.", vectors=()), contradicts=(first.id,))
        skill = scribe.revision(thread, "Sweep the snow.", plane=Plane.PROCEDURAL, vectors=())
        registry = AgentToolRegistry(
            "host", (AgentTool("sweep", "schema-1"),), "default", registered_at=scribe.clock.now()
        )
        experience = ToolExperience(
            ExperienceKey("host", "sweep", "schema-1", "snow"), scribe.clock.now(), succeeded=3, summary="Swept."
        )
        state = SkillState("runtime_skill__sweep", use_count=2, last_outcome_note="The broom was short.")

        def note(transaction: Transaction) -> None:
            for revision in (replace(first, contradicts=(second.id,)), second, skill):
                transaction.records.add_revision(revision, EMBEDDER, ANALYZER)
            proposal = StoredProposal(
                thread, "p-1", ProposalStatus.PENDING, '{"why": "It snows 🌧."}', scribe.clock.now()
            )
            transaction.proposals.add(proposal, [skill.id])
            transaction.skills.put(skill.id, thread.partition, state, Status.ACCEPTED)
            transaction.tools.put_registry(thread, registry)
            transaction.tools.put_experience(thread, experience)
            transaction.transcripts.set_state(thread, [2], TranscriptState.RAW_DELETED, scribe.clock.step())
            transaction.aliases.put(thread, "chat", scribe.clock.step())
            transaction.events.append(event)

        await store.write(write_grant(thread), note)
        await store.write(management_grant(), ControlScribe().everything())
    finally:
        await store.close()


def contents(location: str) -> dict[str, list[tuple[object, ...]]]:
    with closing(_open_archive(location, read_settings(), create=False)) as archive:
        return {table.name: [tuple(row) for row in archive.rows(table, None, 1_000_000)] for table in TABLES}


def found(location: str) -> list[tuple[str, float]]:
    with holdfast.open(location, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        hits = [hit for who in range(3) for hit in memory.search("town village rain", subject=f"subject-{who}")]
        return [(hit.id, hit.score) for hit in hits]


@pytest.fixture(params=["file", ON_POSTGRES])
def source(request: pytest.FixtureRequest) -> Iterator[str]:
    with place(request, "source.db") as location:
        fill(location)
        yield location


@pytest.fixture(params=["file", ON_POSTGRES])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    with place(request, "target.db") as location:
        yield location


@contextmanager
def place(request: pytest.FixtureRequest, name: str) -> Iterator[str]:
    if request.param == "file":
        yield str(request.getfixturevalue("tmp_path") / name)
        return
    server = request.getfixturevalue("postgres")
    location = server.store_url()
    yield location
    server.drop(location)


files = pytest.mark.parametrize(("source", "target"), [("file", "file")], indirect=True)
from_a_file = pytest.mark.parametrize("source", ["file"], indirect=True)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "CHUNK", 3)


@pytest.fixture
def disarmed() -> Iterator[None]:
    yield
    failpoints.arm(None)


@from_a_file
def test_every_table_of_a_file_is_copied_or_said_to_be_derived(source: str) -> None:
    with closing(sqlite3.connect(source)) as connection:
        tables = {
            name: {column[1] for column in connection.execute(f"PRAGMA table_info({name})")}
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        }
    assert kept(tables) == {table.name: set(table.columns) for table in TABLES}


def test_every_table_on_a_server_is_copied_or_said_to_be_derived(postgres: AnyServer, postgres_url: str) -> None:
    holdfast.open(postgres_url, embedder="fake", work=False).close()
    tables: dict[str, set[str]] = {}
    for name, column in postgres.execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s",
        (schema_of(postgres_url),),
    ):
        tables.setdefault(name, set()).add(column)
    del tables["migrations"]
    assert kept(tables) == {table.name: set(table.columns) for table in TABLES}


def kept(tables: dict[str, set[str]]) -> dict[str, set[str]]:
    # A copy has checksums of its own.
    derived = {*copying.DERIVED, "text_checksums"}
    return {name: columns - {"checksum"} for name, columns in tables.items() if name not in derived}


def test_the_fixture_fills_every_table(source: str) -> None:
    assert not [name for name, rows in contents(source).items() if not rows]


def test_a_copy_holds_the_same_and_answers_the_same(source: str, target: str) -> None:
    before = contents(source)
    copied = holdfast.copy(source, target)
    assert copied.records == len(before["records"])
    assert copied.rows == sum(len(rows) for rows in before.values())
    assert not copied.resumed
    assert contents(target) == before
    assert found(target) == found(source)


@files
def test_what_was_forgotten_does_not_travel(source: str, target: str) -> None:
    holdfast.copy(source, target)
    left = b"".join(path.read_bytes() for path in Path(target).parent.glob("target.db*"))
    assert FORGOTTEN.encode() not in left


def test_new_records_get_numbers_that_none_has_had(source: str, target: str) -> None:
    with holdfast.open(source, embedder="fake", work=False) as memory:
        gone = memory.add("The last of all.", subject="subject-2")
        memory.forget(gone.message_ids[0], subject="subject-2")
    holdfast.copy(source, target)
    with holdfast.open(target, embedder="fake", work=False) as memory:
        memory.add("The first after the copy.", subject="subject-2")
        assert memory.verify().ok


def test_a_target_that_holds_something_is_refused_unless_told(source: str, target: str) -> None:
    fill(target, subjects=1)
    with pytest.raises(CopyRefused, match="--replace"):
        holdfast.copy(source, target)
    holdfast.copy(source, target, replace=True)
    assert contents(target) == contents(source)


@files
def test_replacing_leaves_no_byte_of_what_was_there(source: str, target: str) -> None:
    with holdfast.open(target, embedder="fake", work=False) as memory:
        memory.add(["Nobody must ever read this canary again."] * 50, subject="x")
    holdfast.copy(source, target, replace=True)
    left = b"".join(path.read_bytes() for path in Path(target).parent.glob("target.db*"))
    assert b"ever read this canary" not in left


def test_an_empty_store_is_no_obstacle(source: str, target: str) -> None:
    with holdfast.open(target, embedder="fake", work=False) as memory:
        memory.stats()
    holdfast.copy(source, target)
    assert contents(target) == contents(source)


class Stopped(Exception):
    """Stands for anything that stops a copy."""


def stop_at(point: str, passage: int) -> None:
    passed = 0

    def act(reached: str) -> None:
        nonlocal passed
        if reached == point:
            passed += 1
            if passed == passage:
                raise Stopped

    failpoints.arm(act)


@pytest.mark.usefixtures("small_chunks", "disarmed")
@pytest.mark.parametrize("point", ["copy.chunk.before", "copy.chunk.after"])
def test_a_copy_that_stops_at_every_chunk_still_arrives(source: str, target: str, point: str) -> None:
    stops, copied = 0, None
    while copied is None:
        stop_at(point, 2)
        try:
            copied = holdfast.copy(source, target)
        except Stopped:
            stops += 1
            with pytest.raises(StoreUnusable, match="incomplete copy"):
                holdfast.open(target, embedder="fake")
    assert stops > 10
    assert copied.resumed
    assert contents(target) == contents(source)
    assert found(target) == found(source)


@pytest.mark.usefixtures("small_chunks", "disarmed")
def test_a_source_that_changed_meanwhile_is_noticed(source: str, target: str) -> None:
    stop_at("copy.chunk.after", 5)
    with pytest.raises(Stopped):
        holdfast.copy(source, target)
    failpoints.arm(None)
    with holdfast.open(source, embedder="fake", work=False) as memory:
        memory.add("Something new.", subject="subject-0")
    with pytest.raises(CopyRefused, match="changed after the copy"):
        holdfast.copy(source, target)
    holdfast.copy(source, target, replace=True)
    assert contents(target) == contents(source)


@pytest.mark.usefixtures("small_chunks", "disarmed")
def test_what_is_written_during_a_copy_is_not_half_in_it(source: str, target: str) -> None:
    before = contents(source)

    def act(reached: str) -> None:
        if reached == "copy.chunk.after":
            failpoints.arm(None)
            with holdfast.open(source, embedder="fake", work=False) as memory:
                memory.add("In the middle of it.", subject="subject-0", conversation="c")

    failpoints.arm(act)
    holdfast.copy(source, target)
    assert contents(target) == before
    with holdfast.open(target, embedder="fake", work=False) as memory:
        assert memory.verify().ok


@pytest.mark.usefixtures("small_chunks", "disarmed")
def test_two_copies_into_one_target_do_not_mix(source: str, target: str) -> None:
    refused: list[BaseException] = []

    def act(reached: str) -> None:
        failpoints.arm(None)
        try:
            holdfast.copy(source, target, replace=True, settings=Settings(busy_seconds=0.2))
        except StoreBusy as error:
            refused.append(error)

    failpoints.arm(act)
    holdfast.copy(source, target)
    assert refused
    assert contents(target) == contents(source)


def test_a_target_that_somebody_has_open_is_left_alone(source: str, target: str) -> None:
    """Open clients cache row ids, which a copy changes: they would write into other users' rows."""
    with holdfast.open(target, embedder="fake", work=False) as memory:
        memory.add("Mine.", subject="somebody")
        with pytest.raises(StoreBusy, match="in use"):
            holdfast.copy(source, target, replace=True, settings=Settings(busy_seconds=0.2))
        memory.add("Mine, too.", subject="somebody")
        assert [record.text for record in memory.list(subject="somebody").items] == ["Mine, too.", "Mine."]
    holdfast.copy(source, target, replace=True)
    assert contents(target) == contents(source)


@pytest.mark.usefixtures("small_chunks", "disarmed")
def test_nobody_gets_into_a_target_while_it_is_filled(source: str, target: str) -> None:
    refused: list[BaseException] = []

    def act(reached: str) -> None:
        failpoints.arm(None)
        try:
            holdfast.open(target, embedder="fake", work=False, settings=Settings(busy_seconds=0.2)).close()
        except StoreError as error:
            refused.append(error)

    failpoints.arm(act)
    holdfast.copy(source, target)
    assert refused


@files
def test_indexes_of_what_was_replaced_go_with_it(source: str, target: str) -> None:
    holdfast.open(target, embedder="fake", work=False).close()
    left = Path(f"{target}-nearest") / "vectors"
    left.parent.mkdir()
    left.write_bytes(b"of somebody else's memories")
    holdfast.copy(source, target, replace=True)
    assert not left.exists()


@files
@pytest.mark.usefixtures("small_chunks", "disarmed")
def test_what_arrives_changed_is_not_called_a_copy(source: str, target: str) -> None:
    stop_at("copy.chunk.after", 25)
    with pytest.raises(Stopped):
        holdfast.copy(source, target)
    failpoints.arm(None)
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        assert connection.execute("UPDATE texts SET text = text || '!'").rowcount
    with pytest.raises(StoreCorrupt, match="of texts"):
        holdfast.copy(source, target)
    with pytest.raises(StoreUnusable, match="incomplete copy"):
        holdfast.open(target, embedder="fake")


@from_a_file
def test_a_store_is_not_copied_onto_itself(source: str, tmp_path: Path) -> None:
    before = contents(source)
    (tmp_path / "alias.db").symlink_to(source)
    for same in (source, str(tmp_path / "alias.db")):
        with pytest.raises(CopyRefused, match="itself"):
            holdfast.copy(source, same, replace=True)
    assert contents(source) == before


@files
def test_places_that_cannot_be_copied_are_refused_and_nothing_is_made(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Mine, and long enough to be something.")
    for wrong in (str(tmp_path / "nowhere.db"), ":memory:", str(tmp_path), str(tmp_path / "notes.txt")):
        with pytest.raises(HoldfastError):
            holdfast.copy(wrong, target)
        assert not Path(target).exists()
    for wrong in (":memory:", str(tmp_path), str(tmp_path / "notes.txt"), str(tmp_path / "no" / "folder.db")):
        with pytest.raises(HoldfastError):
            holdfast.copy(source, wrong)


@from_a_file
def test_a_copy_that_fills_the_disk_goes_on_when_there_is_room(source: str, tmp_path: Path) -> None:
    with holdfast.open(source, embedder="fake", work=False) as memory:
        for number in range(20):
            memory.add([f"A long message {number} {line} " + "x" * 400 for line in range(100)], subject="many")
    with of_size(mebibytes=6) as disk:
        filler = disk / "filler"
        filler.write_bytes(b"x" * 4_000_000)
        target = str(disk / "target.db")
        with pytest.raises(StoreFull, match="free some"):
            holdfast.copy(source, target)
        filler.unlink()
        assert holdfast.copy(source, target).resumed
        assert contents(target) == contents(source)


def test_a_copy_that_is_killed_again_and_again_arrives(source: str, target: str) -> None:
    script = (
        "import os, signal, sys, holdfast\n"
        "from holdfast import failpoints\n"
        "from holdfast.stores import copying\n"
        "copying.CHUNK = 3\n"
        "passed = [0]\n"
        "def act(point):\n"
        "    if point == sys.argv[3]:\n"
        "        passed[0] += 1\n"
        "        if passed[0] == 5: os.kill(os.getpid(), signal.SIGKILL)\n"
        "failpoints.arm(act)\n"
        "holdfast.copy(sys.argv[1], sys.argv[2])\n"
    )
    kills = 0
    for attempt in range(100):
        point = ("copy.chunk.before", "copy.chunk.after")[attempt % 2]
        ended = subprocess.run([sys.executable, "-c", script, source, target, point], timeout=60, env=os.environ)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 5
    assert contents(target) == contents(source)
    assert found(target) == found(source)


def test_a_store_on_a_server_is_not_copied_onto_itself(postgres_url: str) -> None:
    fill(postgres_url)
    before = contents(postgres_url)
    with pytest.raises(CopyRefused, match="itself"):
        holdfast.copy(postgres_url, postgres_url + "&connect_timeout=9", replace=True)
    assert contents(postgres_url) == before


def test_a_source_on_a_server_must_be_there(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        holdfast.copy(postgres_url, tmp_path / "target.db")
    assert not (tmp_path / "target.db").exists()
