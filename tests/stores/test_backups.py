"""A backup is the whole store at one moment, a restore brings it back, and neither touches anything else."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import holdfast
from blank import blank
from faults.disk import of_size
from holdfast import failpoints
from holdfast.app import _open_archive
from holdfast.domain.backups import BackupManifest, Retention
from holdfast.errors import (
    CopyRefused,
    HoldfastError,
    InvalidInput,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnusable,
)
from holdfast.settings import Settings, read_settings
from holdfast.stores.copying import TABLES
from holdfast.stores.sqlite import schema
from holdfast.stores.sqlite.backup_file import digest_tables, read_backup_manifest
from holdfast.testing.full_repr import full_repr
from postgres import ON_POSTGRES

HASTY = Settings(busy_seconds=0.2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "backups"
    made.mkdir()
    return made


@pytest.fixture(params=["file", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with something in it."""
    location = (
        str(blank(tmp_path / "memory.db")) if request.param == "file" else request.getfixturevalue("migrated_url")
    )
    remember(location, "I live in Lisbon.", "My code is 4711.")
    return location


@pytest.fixture(params=["file", ON_POSTGRES])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where there is no store yet."""
    return str(tmp_path / "restored.db") if request.param == "file" else request.getfixturevalue("postgres_url")


on_a_file = pytest.mark.parametrize("store", ["file"], indirect=True)
files = pytest.mark.parametrize(("store", "target"), [("file", "file")], indirect=True)


@pytest.fixture
def disarmed() -> Iterator[None]:
    yield
    failpoints.arm(None)


def remember(location: str, *texts: str) -> list[str]:
    with holdfast.open(location, embedder="fake", work=False) as memory:
        ids = [memory.add(text, subject="ana").message_ids[0] for text in texts]
        memory.drain()
    return [str(each) for each in ids]


def contents(location: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows, apart from what the store notes about backups."""
    with closing(_open_archive(location, read_settings(), create=False)) as archive:
        return {
            table.name: [
                tuple(row)
                for row in archive.rows(table, None, 1_000_000)
                if not (table.name == "meta" and str(row[0]).startswith("backup:"))
            ]
            for table in TABLES
        }


def found(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_restored_store_holds_the_same_and_verifies(store: str, target: str, folder: Path) -> None:
    made = holdfast.backup(store, folder)
    before = contents(store)
    remember(store, "After the backup.")
    restored = holdfast.restore(made.path, target)
    assert contents(target) == before
    assert (restored.records, restored.made_at) == (made.records, made.made_at)
    assert found(folder) == [Path(made.path).name]
    with holdfast.open(target, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        assert next(hit.text for hit in memory.search("Lisbon", subject="ana")) == "I live in Lisbon."
        memory.add("Life goes on.", subject="ana")
        assert memory.verify().ok


@pytest.mark.usefixtures("disarmed")
def test_what_is_written_during_a_backup_is_not_in_it(store: str, target: str, folder: Path) -> None:
    seen: list[dict[str, list[tuple[object, ...]]]] = []

    def act(reached: str) -> None:
        if reached == "copy.chunk.after":
            failpoints.arm(None)
            seen.append(contents(store))
            remember(store, "In the middle of it.")

    failpoints.arm(act)
    made = holdfast.backup(store, folder)
    holdfast.restore(made.path, target)
    assert [contents(target)] == seen


def test_a_target_that_holds_something_is_replaced_only_on_request(store: str, target: str, folder: Path) -> None:
    made, before = holdfast.backup(store, folder), contents(store)
    remember(target, "Something else entirely.")
    theirs = contents(target)
    with pytest.raises(CopyRefused, match="--replace"):
        holdfast.restore(made.path, target)
    assert contents(target) == theirs
    holdfast.restore(made.path, target, replace=True)
    assert contents(target) == before


def test_a_target_that_somebody_has_open_is_left_alone(store: str, target: str, folder: Path) -> None:
    made = holdfast.backup(store, folder)
    with holdfast.open(target, embedder="fake", work=False) as memory:
        memory.add("Mine.", subject="somebody")
        with pytest.raises(StoreBusy, match="in use"):
            holdfast.restore(made.path, target, replace=True, settings=HASTY)
        memory.add("Mine, too.", subject="somebody")
        assert len(memory.list(subject="somebody").items) == 2


@files
@pytest.mark.usefixtures("disarmed")
def test_nobody_gets_into_a_file_while_it_is_restored(store: str, target: str, folder: Path) -> None:
    made, refused = holdfast.backup(store, folder), []
    remember(target, "Replaced.")

    def act(reached: str) -> None:
        try:
            holdfast.open(target, embedder="fake", work=False, settings=HASTY).close()
        except StoreError as error:
            refused.append((reached, type(error)))

    failpoints.arm(act)
    holdfast.restore(made.path, target, replace=True)
    assert [each for each in refused if each[0].startswith("restore")] == [
        ("restore.swap.before", StoreBusy),
        ("restore.swap.after", StoreBusy),
    ]
    assert found(Path(target).parent) == ["backups", "memory.db", "restored.db"]


@files
def test_a_store_that_is_damaged_or_too_new_can_be_replaced(store: str, target: str, folder: Path) -> None:
    made, before = holdfast.backup(store, folder), contents(store)
    remember(target, *[f"Number {number}." for number in range(50)])
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(CopyRefused, match="--replace"):
        holdfast.restore(made.path, target)
    holdfast.restore(made.path, target, replace=True)
    assert contents(target) == before

    with open(target, "r+b") as file:
        file.seek(100)  # all but the header of the file
        file.write(os.urandom(os.path.getsize(target) - 100))
    with pytest.raises(StoreCorrupt):
        holdfast.restore(made.path, target)
    holdfast.restore(made.path, target, replace=True)
    assert contents(target) == before


@files
def test_restoring_where_the_store_was_keeps_its_backups_going(store: str, target: str, folder: Path) -> None:
    first, second = holdfast.backup(store, folder), holdfast.backup(store, folder)
    holdfast.restore(first.path, store, replace=True)
    holdfast.restore(first.path, target)
    assert holdfast.backup(target, folder, keep=1).removed == (), "a store elsewhere is another"
    assert holdfast.backup(store, folder, keep=1).removed == (second.path, first.path)


# --- rotation ---------------------------------------------------------------------------------------------------------


@on_a_file
def test_rotation_removes_only_what_backup_made_of_this_store(store: str, folder: Path, tmp_path: Path) -> None:
    other = str(blank(tmp_path / "other.db"))
    theirs = holdfast.backup(other, folder)
    old = [Path(holdfast.backup(store, folder).path) for _ in range(3)]
    renamed = old[0].rename(folder / "before-the-move.backup")
    shutil.copy(old[1], folder / "holdfast-20200101T000000Z-aaaaaaaaaaaaaaaa.backup")
    (folder / "holdfast-20200101T000000Z-bbbbbbbbbbbbbbbb.backup").write_text("my notes")
    (folder / "holdfast-20200101T000000Z-cccccccccccccccc.backup").mkdir()
    (folder / "holdfast-20200101T000000Z-dddddddddddddddd.backup").symlink_to(old[2])
    linked = folder / "elsewhere"
    linked.mkdir()
    moved = old[2].rename(linked / old[2].name)
    old[2].symlink_to(moved)
    foreign = [name for name in found(folder) if name != old[1].name]
    made = holdfast.backup(store, folder, keep=1)
    assert made.removed == (str(old[1]),)
    assert found(folder) == sorted([*foreign, Path(made.path).name])
    assert {renamed, moved, Path(theirs.path)} <= set(folder.rglob("*"))


def test_rotation_keeps_by_count_and_by_age_and_always_the_newest() -> None:
    now = datetime(2026, 11, 19, tzinfo=UTC)

    def at(days: float) -> BackupManifest:
        return BackupManifest(f"{days}", "s", "a", now - timedelta(days=days), "0", 1, 1, {}, "")

    others = [at(days) for days in (1, 2, 3, 40)]
    for keep, keep_days, expired in (
        (None, None, []), (9, None, []), (3, None, [3, 40]), (1, None, [1, 2, 3, 40]),
        (None, 30, [40]), (None, 1, [2, 3, 40]), (2, 30, [2, 3, 40]), (9, 2, [3, 40]),
    ):  # fmt: skip
        gone = Retention(keep, keep_days).find_expired(at(0), others)
        assert [each.id for each in gone] == [str(days) for days in expired]
    for wrong in (0, -1, True, 1.5, 10**9):
        with pytest.raises(InvalidInput, match="keep"):
            Retention(keep=wrong)  # type: ignore[arg-type]


@on_a_file
def test_a_failed_backup_removes_nothing(store: str, folder: Path) -> None:
    old = holdfast.backup(store, folder)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE texts SET text = text || '!'")
        connection.commit()
    with pytest.raises(StoreCorrupt, match="store verify"):
        holdfast.backup(store, folder, keep=1)
    assert found(folder) == [Path(old.path).name]


# --- receipts ---------------------------------------------------------------------------------------------------------


def test_a_receipt_names_the_backups_that_still_hold_the_text(store: str, folder: Path) -> None:
    before = holdfast.backup(store, folder)
    (secret,) = remember(store, "A secret.")
    first, second = holdfast.backup(store, folder), holdfast.backup(store, folder)
    with holdfast.open(store, embedder="fake", work=False) as memory:
        receipt = memory.forget(secret, subject="ana", idempotency_key="once")
        assert [each.name for each in receipt.backups] == [Path(each.path).name for each in (first, second)]
        assert Path(before.path).name not in full_repr(receipt)
        assert str(folder) not in full_repr(receipt)
    after = holdfast.backup(store, folder, keep=2)
    with holdfast.open(store, embedder="fake", work=False) as memory:
        again = memory.forget(secret, subject="ana", idempotency_key="once")
        assert [each.name for each in again.backups] == [Path(second.path).name], "one was rotated away"
        everything = memory.forget(subject="ana")
        assert [each.name for each in everything.backups] == [Path(each.path).name for each in (second, after)]
        assert memory.forget(subject="nobody").backups == ()


def test_a_backup_that_was_deleted_by_hand_is_named_no_more(store: str, folder: Path) -> None:
    made = Path(holdfast.backup(store, folder).path)
    aside = made.rename(folder.parent / "aside")
    with holdfast.open(store, embedder="fake", work=False) as memory:
        one, two = (record.id for record in memory.list(subject="ana").items if type(record).__name__ == "Message")
        assert memory.forget(one, subject="ana").backups == ()
        aside.rename(made)
        shutil.move(folder, folder.with_name("unmounted"))
        assert len(memory.forget(two, subject="ana").backups) == 1, "a folder that cannot be seen proves nothing"


@pytest.mark.usefixtures("disarmed")
def test_a_forget_during_a_backup_names_it(store: str, folder: Path) -> None:
    receipts = []
    with holdfast.open(store, embedder="fake", work=False) as memory:

        def act(reached: str) -> None:
            if reached == "copy.chunk.after":
                failpoints.arm(None)
                receipts.append(memory.forget(subject="ana"))

        failpoints.arm(act)
        made = holdfast.backup(store, folder)
    (receipt,) = receipts
    assert [each.id for each in receipt.backups] == [Path(made.path).stem.rpartition("-")[2]]


def test_a_restored_store_knows_which_backups_hold_its_texts(store: str, target: str, folder: Path) -> None:
    first = holdfast.backup(store, folder)
    remember(store, "Later.")
    second = holdfast.backup(store, folder)
    holdfast.restore(first.path, target)
    (new,) = remember(target, "Only here.")
    with holdfast.open(target, embedder="fake", work=False) as memory:
        assert memory.forget(new, subject="ana").backups == ()
        held = memory.forget(subject="ana").backups
    assert [each.name for each in held] == [Path(each.path).name for each in (first, second)]


# --- what cannot be backed up or restored -----------------------------------------------------------------------------


@on_a_file
def test_a_backup_is_never_opened_as_a_store(store: str, folder: Path, tmp_path: Path) -> None:
    made = Path(holdfast.backup(store, folder).path)
    before = made.read_bytes()
    assert made.stat().st_mode & 0o777 == 0o600
    for call in (
        lambda: holdfast.open(made, embedder="fake"),
        lambda: holdfast.copy(made, tmp_path / "copy.db"),
        lambda: holdfast.copy(store, made, replace=True),
        lambda: holdfast.backup(made, folder),
        lambda: holdfast.restore(made, folder / "x" / ".." / made.name, replace=True),
    ):
        with pytest.raises(HoldfastError):
            call()
    assert made.read_bytes() == before
    assert found(folder) == [made.name]


@files
def test_every_kind_of_damage_to_a_backup_is_noticed_and_the_target_untouched(
    store: str, target: str, folder: Path, tmp_path: Path
) -> None:
    good = Path(holdfast.backup(store, folder).path)
    remember(target, "Untouched.")
    theirs = contents(target)
    broken = tmp_path / "broken.backup"
    size = good.stat().st_size
    refused = 0
    for at in (0, 60, 2_000, *range(4_096 - 64, size, 4_096)):  # pages fill up from their end
        whole = bytearray(good.read_bytes())
        whole[at : at + 64] = bytes(byte ^ 0x5A for byte in whole[at : at + 64])
        broken.write_bytes(whole)
        try:
            holdfast.restore(broken, target, replace=True)
        except (StoreCorrupt, StoreUnusable, SchemaTooNew):
            refused += 1
            assert contents(target) == theirs
        else:  # it hit an unused part
            assert contents(target) == contents(store)
            shutil.copy(good, broken)
            remember(target, "Untouched.")
            theirs = contents(target)
    assert refused > 20
    for length in (0, 1, 99, 4_096, size // 2, size - 1):
        broken.write_bytes(good.read_bytes()[:length])
        with pytest.raises((StoreCorrupt, StoreUnusable)):
            holdfast.restore(broken, target, replace=True)
    assert contents(target) == theirs
    assert found(tmp_path) == ["backups", "broken.backup", "memory.db", "restored.db"]


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@on_a_file
def test_a_backup_of_a_newer_schema_is_refused(store: str, target: str, folder: Path) -> None:
    newer = Path(holdfast.backup(store, folder).path)
    changed(newer, f"PRAGMA user_version = {schema.migrations()[-1][0] + 1}")
    with pytest.raises(SchemaTooNew, match="upgrade Holdfast"):
        holdfast.restore(newer, target)
    assert newer.name not in holdfast.backup(store, folder, keep=1).removed


@files
def test_a_backup_of_an_older_schema_is_upgraded_in_the_target_alone(
    store: str, target: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Path(holdfast.backup(store, folder).path)
    before = older.read_bytes()
    steps = schema.migrations()
    newest = steps[-1][0] + 1
    script = "ALTER TABLE prices ADD COLUMN extra TEXT;\n"
    monkeypatch.setattr(schema, "migrations", lambda: [*steps, (newest, script)])
    holdfast.restore(older, target)
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (newest,)
    with holdfast.open(target, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        assert memory.stats().messages == 2
    assert older.read_bytes() == before


@on_a_file
def test_wrong_places_are_named(store: str, folder: Path, tmp_path: Path) -> None:
    made = holdfast.backup(store, folder).path
    text = tmp_path / "notes.txt"
    text.write_text("Buy milk. " * 1_000)
    for call, expected in (
        (lambda: holdfast.backup(store, tmp_path / "nowhere"), "does not exist; create the folder"),
        (lambda: holdfast.backup(store, store), "is not a folder"),
        (lambda: holdfast.backup(tmp_path / "no.db", folder), "no store at"),
        (lambda: holdfast.backup(":memory:", folder), "memory: is gone"),
        (lambda: holdfast.backup("http://127.0.0.1:1", folder), "on the machine of the store"),
        (lambda: holdfast.backup(text, folder), "not a Holdfast store"),
        (lambda: holdfast.restore(made, "http://127.0.0.1:1"), "on the machine of the store"),
        (lambda: holdfast.restore(made, ":memory:"), "memory: is gone"),
        (lambda: holdfast.restore(made, folder, replace=True), "is a directory"),
        (lambda: holdfast.restore(made, made, replace=True), "is the backup itself"),
        (lambda: holdfast.restore(made, text, replace=True), "not a Holdfast store"),
        (lambda: holdfast.restore(tmp_path / "no.backup", store), "there is no backup"),
        (lambda: holdfast.restore(folder, store), "is not a file"),
        (lambda: holdfast.restore(text, store), "is not a backup"),
        (lambda: holdfast.restore(store, tmp_path / "x.db"), "is a store, not a backup"),
    ):
        with pytest.raises(HoldfastError, match=expected):
            call()
    assert text.read_text() == "Buy milk. " * 1_000
    assert found(folder) == [Path(made).name]
    assert not [name for name in found(tmp_path) if not name.startswith(("backups", "memory.db", "notes.txt"))]


@on_a_file
def test_two_backups_of_a_store_to_one_folder_do_not_mix(store: str, folder: Path) -> None:
    refused: list[StoreError] = []

    def act(_: str) -> None:
        failpoints.arm(None)
        try:
            holdfast.backup(store, folder, settings=HASTY)
        except StoreBusy as error:
            refused.append(error)

    failpoints.arm(act)
    made = holdfast.backup(store, folder)
    assert "another backup" in str(refused[0])
    assert found(folder) == [Path(made.path).name]


def test_a_full_disk_leaves_the_store_and_the_older_backups(tmp_path: Path) -> None:
    store = str(blank(tmp_path / "memory.db"))
    remember(store, *[f"Number {number} of a long list. " * 200 for number in range(100)])
    before = contents(store)
    with of_size(1) as disk:
        with pytest.raises(StoreFull):
            holdfast.backup(store, disk)
        assert found(disk) == []
    made = holdfast.backup(store, tmp_path)
    with of_size(1) as disk:
        with pytest.raises(StoreFull):
            holdfast.restore(made.path, disk / "memory.db")
        assert found(disk) == []
    now = contents(store)
    assert {name: rows for name, rows in now.items() if name != "meta"} == {
        name: rows for name, rows in before.items() if name != "meta"
    }


@on_a_file
def test_the_manifest_is_true(store: str, folder: Path) -> None:
    made = holdfast.backup(store, folder)
    manifest = read_backup_manifest(Path(made.path), 1.0)
    assert manifest is not None
    assert (manifest.name, manifest.made_at) == (Path(made.path).name, made.made_at)
    assert (manifest.version, manifest.schema) == (holdfast.__version__, schema.migrations()[-1][0])
    assert manifest.address == os.path.realpath(store)
    with closing(sqlite3.connect(f"{Path(made.path).as_uri()}?mode=ro", uri=True)) as connection:
        assert digest_tables(connection) == (manifest.counts, manifest.digest)
