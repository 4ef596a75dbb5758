"""Opening a SQLite store: schemas and migrations, files that are not a store, and several processes at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path

import openers
import pytest
from openers import opened

from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import HoldfastError, SchemaTooNew, StoreCorrupt, StoreReadOnly, StoreUnusable
from holdfast.stores.sqlite import SqliteStore, schema
from holdfast.stores.sqlite.connection import open_store

NOBODY = 65534
EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
NEWEST = schema.migrations()[-1][0]


def tables(path: Path) -> list[tuple[str, ...]]:
    """All tables but `sqlite_sequence`, which stays where an old schema used it. Line breaks are ignored."""
    with closing(sqlite3.connect(path)) as database:
        found = database.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name <> 'sqlite_sequence' ORDER BY name"
        ).fetchall()
    return [(kind, name, of, "".join((sql or "").split())) for kind, name, of, sql in found]


# --- migrations -------------------------------------------------------------------------------------------------------


def test_the_schema_file_equals_all_migrations_applied(tmp_path: Path) -> None:
    migrated, written = tmp_path / "migrated.db", tmp_path / "written.db"
    opened(migrated)
    script = (resources.files("holdfast.stores.sqlite") / "schema.sql").read_text("utf-8")
    with closing(sqlite3.connect(written)) as database:
        database.executescript(script)
    assert tables(migrated) == tables(written)


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [version for version, _ in schema.migrations()] == list(range(1, NEWEST + 1))


def test_a_new_file_gets_the_newest_schema_and_our_mark(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    opened(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert database.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_is_migrated_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    opened(path)
    before = tables(path)
    opened(path)
    assert tables(path) == before


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    opened(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {NEWEST + 1}")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match=rf"schema {NEWEST + 1}.*up to {NEWEST}.*upgrade"):
        SqliteStore(str(path))
    assert path.read_bytes() == before


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the next opening one more migration with this SQL."""

    def set_second(script: str) -> None:
        steps = [*schema.migrations(), (NEWEST + 1, script)]
        monkeypatch.setattr(schema, "migrations", lambda: steps)

    return set_second


def test_a_migration_that_fails_leaves_the_old_schema_and_is_resumed(
    tmp_path: Path, two_steps: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    opened(path)
    before = tables(path)
    good = "CREATE TABLE extra (value TEXT);\nCREATE INDEX extra_value ON extra (value);\n"
    with monkeypatch.context():
        two_steps(good + "INSERT INTO no_such_table VALUES (1);\n")
        with pytest.raises(HoldfastError):
            opened(path)
        assert tables(path) == before
    monkeypatch.undo()
    two_steps(good)
    opened(path)
    assert {"extra", "extra_value"} <= {row[1] for row in tables(path)}


def test_a_migration_that_would_break_a_reference_is_not_made(tmp_path: Path, two_steps: Callable[[str], None]) -> None:
    path = tmp_path / "memory.db"
    opened(path)
    before = tables(path)
    two_steps("CREATE TABLE extra (number INTEGER REFERENCES records (number));\nINSERT INTO extra VALUES (1);\n")
    with pytest.raises(StoreCorrupt, match=r"a row of extra refers to one of records that is not there; restore"):
        opened(path)
    assert tables(path) == before


def test_references_are_kept_after_a_migration(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "memory.db"), 1.0)) as migrating:
        assert migrating.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert migrating.execute("PRAGMA legacy_alter_table").fetchone() == (0,)


def test_a_new_file_whose_migration_fails_stays_usable(tmp_path: Path, two_steps: Callable[[str], None]) -> None:
    path = tmp_path / "memory.db"
    two_steps("INSERT INTO no_such_table VALUES (1);\n")
    with pytest.raises(HoldfastError):
        opened(path)
    with closing(sqlite3.connect(path)) as database:
        # The first step was committed completely; the second left nothing.
        assert database.execute("PRAGMA user_version").fetchone() == (NEWEST,)


@pytest.mark.parametrize("existing", [False, True], ids=["new file", "existing store"])
def test_a_migration_killed_half_way_is_resumed(tmp_path: Path, existing: bool) -> None:
    path = tmp_path / "memory.db"
    if existing:
        opened(path)
    process = multiprocessing.get_context("spawn").Process(target=openers.killed_within_a_migration, args=(str(path),))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    opened(path)
    names = {row[1] for row in tables(path)}
    assert "records" in names
    assert "extra" not in names


# --- not a store ------------------------------------------------------------------------------------------------------


def test_another_programs_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "contacts.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE contacts (name TEXT)")
        database.execute("INSERT INTO contacts VALUES ('Ana')")
        database.commit()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="another program's database"):
        SqliteStore(str(path))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["contacts.db"]


def test_an_empty_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA application_id = 7")
    with pytest.raises(StoreUnusable, match="another program's database"):
        SqliteStore(str(path))


def test_a_directory_is_refused_with_a_better_path(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"is a directory; .*memory\.db"):
        SqliteStore(str(tmp_path))


def test_what_is_no_file_at_all_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("/dev/null", str(tmp_path / "pipe")):
        with pytest.raises(StoreUnusable, match=f"{place} is not a file, .*; give the path of a file"):
            SqliteStore(place)


def test_a_missing_folder_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="missing does not exist; create the folder"):
        SqliteStore(str(tmp_path / "missing" / "memory.db"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"just some notes\n", b"\0" * 5_000, os.urandom(10_000), b"SQLite format 3\0"])
def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match="is not a Holdfast store"):
        SqliteStore(str(path))
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    opened(path)
    assert len(tables(path)) > 10


@pytest.mark.parametrize("name", ["mémoire ☃ 中.db", "with space.db", "a?mode=ro&x#y%20.db", "file:memory.db"])
def test_a_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    opened(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


# --- permissions ------------------------------------------------------------------------------------------------------

_OPEN_AS_NOBODY = """
    import os, sys
    import holdfast
    # Once beforehand: whatever is imported late may lie where only root can read.
    holdfast.open(":memory:", embedder="fake").close()
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
    try:
        holdfast.open(sys.argv[1], embedder="fake").close()
    except holdfast.HoldfastError as error:
        print(type(error).__name__, error)
    else:
        print("opened")
"""


@pytest.fixture
def unprivileged() -> Callable[[Path], str]:
    """Opens a store as an unprivileged user: root may read and write everything."""
    script = textwrap.dedent(_OPEN_AS_NOBODY).format(nobody=NOBODY)

    def run(path: Path) -> str:
        command = [sys.executable, "-c", script, str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    return run


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o777)
        yield Path(path)


def test_a_file_that_may_not_be_read_is_refused(folder: Path, unprivileged: Callable[[Path], str]) -> None:
    path = folder / "memory.db"
    opened(path)
    path.chmod(0o200)
    assert unprivileged(path).startswith("StoreUnusable")
    assert "cannot be read; check the permissions" in unprivileged(path)


def test_a_file_that_may_not_be_written_is_refused(folder: Path, unprivileged: Callable[[Path], str]) -> None:
    path = folder / "memory.db"
    opened(path)
    path.chmod(0o444)
    answer = unprivileged(path)
    assert answer.startswith("StoreReadOnly")
    assert "cannot be written; check the permissions" in answer


def test_a_folder_that_may_not_be_written_is_refused(folder: Path, unprivileged: Callable[[Path], str]) -> None:
    path = folder / "memory.db"
    folder.chmod(0o555)
    assert unprivileged(path).split()[0] in {StoreUnusable.__name__, StoreReadOnly.__name__}
    folder.chmod(0o777)
    opened(path)
    path.chmod(0o666)
    folder.chmod(0o555)
    answer = unprivileged(path)
    assert answer.split()[0] in {StoreUnusable.__name__, StoreReadOnly.__name__}
    assert "folder" in answer


def test_a_writable_file_of_somebody_else_is_opened(folder: Path, unprivileged: Callable[[Path], str]) -> None:
    path = folder / "memory.db"
    opened(path)
    path.chmod(0o666)
    assert unprivileged(path) == "opened"


# --- concurrent opening -----------------------------------------------------------------------------------------------


def test_processes_that_create_the_same_file_at_once_all_succeed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    paths = [str(tmp_path / f"memory{number}.db") for number in range(20)]
    start, answers = context.Barrier(4), context.Queue()
    started = [context.Process(target=openers.open_all, args=(paths, start, answers)) for _ in range(4)]
    for process in started:
        process.start()
    assert [answers.get(timeout=120) for _ in started] == ["opened"] * 4
    for process in started:
        process.join(60)
    assert all(len(tables(Path(path))) > 10 for path in paths)


@pytest.mark.parametrize("size", [1, 15, 16, 99, 100, 511, 512, 4096, 10_000])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, size: int) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"n" * size)
    with pytest.raises(StoreUnusable, match="is not a Holdfast store"):
        SqliteStore(str(path))
    assert path.read_bytes() == b"n" * size
    assert list(tmp_path.iterdir()) == [path]
