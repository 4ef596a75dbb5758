"""A killed backup or restore leaves the source untouched, the target old or new, and every other file as it was."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from backup_deaths import SUBJECT, Load, settle, texts_after, texts_of

import holdfast
from faults.places import ON_EACH, Place, PostgresPlace, SqlitePlace
from faults.zygote import Child, Zygote
from holdfast.errors import StoreUnusable

KILLS = int(os.environ.get("HOLDFAST_BACKUP_KILLS", "3"))  # of each, on each store
KEEP = 3
POINTS_OF_BACKUP = (
    ("backup.publish.before", 1), ("backup.publish.after", 1), ("copy.chunk.before", 1), ("copy.chunk.after", 4)
)  # fmt: skip
POINTS_OF_RESTORE = {
    "sqlite": (("restore.swap.before", 1), ("restore.swap.after", 1)),
    "postgres": (("copy.chunk.before", 2), ("copy.chunk.after", 5)),
}


@pytest.fixture(params=ON_EACH)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Another location, of each kind."""
    if request.param == "sqlite":
        folder = tmp_path / "target"
        folder.mkdir()
        yield SqlitePlace(folder)
        return
    found = PostgresPlace(request.getfixturevalue("postgres"))
    yield found
    found.drop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of backups, with files that `backup` did not make."""
    made = tmp_path / "backups"
    (made / "holdfast-20200101T000000Z-cccccccccccccccc.backup").mkdir(parents=True)
    (made / "holdfast-20200101T000000Z-aaaaaaaaaaaaaaaa.backup").write_text("not a backup")
    (made / "notes.txt").write_text("mine")
    (made / ".holdfast-eeeeeeeeeeeeeeee.partial").write_text("of another store")
    other = tmp_path / "other.db"
    with holdfast.open(other, embedder="fake", work=False) as memory:
        memory.add("Of another store.", subject=SUBJECT)
    holdfast.backup(other, made)
    return made


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.iterdir()
    }


def die(child: Child, chance: random.Random, seconds: float) -> bool:
    """Kill it within that time; return False if it had ended before."""
    time.sleep(chance.uniform(0, seconds))
    if child.status is None:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    child.wait()
    return child.killed


def test_killed_backups_touch_nothing(place: Place, zygote: Zygote, folder: Path, tmp_path: Path) -> None:
    chance, foreign = random.Random(place.kind), digests(folder)
    load = Load.begin(zygote, place.location)
    (line,) = run(zygote, place.location, folder)  # the first knows nothing of earlier ones
    started = time.monotonic()
    run(zygote, place.location, folder)
    usual = time.monotonic() - started
    kills = number = 0
    while kills < KILLS:
        number += 1
        point, passage = POINTS_OF_BACKUP[number // 2 % len(POINTS_OF_BACKUP)] if number % 2 else (None, 1)
        child = zygote.start(
            "backup_deaths:back_up",
            location=place.location,
            folder=str(folder),
            keep=KEEP,
            point=point,
            passage=passage,
        )
        if point is None:
            kills += die(child, chance, usual * 1.2)
        else:
            child.wait()
            assert child.killed, f"{point} was not reached"
            kills += 1
        check_folder(folder, foreign)
        load.wait_for(2)
    before = load.acknowledged
    (line,) = run(zygote, place.location, folder)
    after = load.announced
    load.kill()
    assert not [name for name in digests(folder).keys() - foreign.keys() if not name.startswith("holdfast-")]
    assert len(digests(folder)) == len(foreign) + KEEP
    for path in ours(folder, foreign):
        restored = tmp_path / f"restored-{path.name}.db"
        holdfast.restore(path, restored)
        moments = range(before, after + 1) if str(path) == line["path"] else range(after + 1)
        assert texts_of(str(restored)) in [texts_after(moment) for moment in moments]
    settle(place)
    assert texts_of(place.location) in [texts_after(load.acknowledged), texts_after(load.announced)]


def run(zygote: Zygote, location: str, folder: Path) -> list[dict[str, str]]:
    return zygote.run("backup_deaths:back_up", location=location, folder=str(folder), keep=KEEP, point=None, passage=1)


def ours(folder: Path, foreign: dict[str, str]) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name not in foreign)


def check_folder(folder: Path, foreign: dict[str, str]) -> None:
    """Nothing but what `backup` made is new, and nothing else is gone or changed."""
    found = digests(folder)
    assert {name: found.get(name) for name in foreign} == foreign
    partial = {name.partition("partial")[0] for name in found.keys() - foreign.keys() if name.startswith(".")}
    assert len(partial) <= 1, "each left its own"
    assert all(name.endswith(".backup") for name in found.keys() - foreign.keys() if not name.startswith("."))


def test_killed_restores_leave_the_old_or_the_new(target: Place, zygote: Zygote, folder: Path, tmp_path: Path) -> None:
    chance, source = random.Random(target.kind), SqlitePlace(tmp_path)
    load = Load.begin(zygote, source.location)
    made = [holdfast.backup(source.location, folder).path]
    load.wait_for(40)
    made.append(holdfast.backup(source.location, folder).path)
    states = []
    for path in made:
        started = time.monotonic()
        holdfast.restore(path, target.location, replace=True)
        usual = time.monotonic() - started
        states.append(texts_of(target.location))
    assert states[0] != states[1]
    backups, now = digests(folder), 1
    kills = number = 0
    while kills < KILLS:
        number += 1
        points = POINTS_OF_RESTORE[target.kind]
        point, passage = points[number // 2 % len(points)] if number % 2 else (None, 1)
        child = zygote.start(
            "backup_deaths:restore", backup=made[1 - now], location=target.location, point=point, passage=passage
        )
        if point is None:
            kills += die(child, chance, usual * 1.2)
        else:
            child.wait()
            assert child.killed, f"{point} was not reached"
            kills += 1
        now = settled(target, made, states, 1 - now)
        assert digests(folder) == backups
        load.wait_for(2)
    holdfast.restore(made[0], target.location, replace=True)
    assert texts_of(target.location) == states[0]
    assert digests(folder) == backups
    if target.kind == "sqlite":
        assert os.listdir(Path(target.location).parent) == ["memory.db"]
    load.kill()
    assert texts_of(source.location) in [texts_after(load.acknowledged), texts_after(load.announced)]


def settled(target: Place, made: list[str], states: list[frozenset[str]], wanted: int) -> int:
    """Return which backup the target holds. One on a server may be incomplete: then nobody can open it."""
    settle(target)
    with contextlib.suppress(StoreUnusable) if target.kind == "postgres" else contextlib.nullcontext():
        return states.index(texts_of(target.location))
    with pytest.raises(StoreUnusable, match="incomplete"):
        texts_of(target.location)
    holdfast.restore(made[wanted], target.location)
    assert texts_of(target.location) == states[wanted]
    return wanted
