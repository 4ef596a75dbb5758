"""Stores from before there were checksums: their rows are unchecked until a job has added theirs, and then checked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import old_stores
import pytest

import holdfast
from faults.places import ON_EACH, Place, PostgresPlace, SqlitePlace
from holdfast.domain.jobs import JobKind
from holdfast.domain.results import UNCHECKED
from holdfast.runtime import worker

LAST_WITHOUT = 8


@pytest.fixture(params=ON_EACH)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    server = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    place: Place = SqlitePlace(tmp_path) if server is None else PostgresPlace(server)
    old_stores.restore(request.param, LAST_WITHOUT, place, server)
    return place


def test_rows_are_unchecked_until_a_job_has_added_their_checksums(old: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CHECKSUM_ROWS", 2)
    with holdfast.open(old.location, embedder="fake", work=False) as memory:
        before = memory.verify()
        assert before.ok
        assert before.checked[UNCHECKED] > 30
        memory.drain()
        after = memory.verify()
        assert after.ok
        assert UNCHECKED not in after.checked
        jobs = [job.kind for job in memory.jobs(space="*")]
        assert jobs.count(JobKind.CHECKSUM) == 1
    with holdfast.open(old.location, embedder="fake", work=False) as memory:
        assert [job.kind for job in memory.jobs(space="*")] == jobs


def test_old_texts_are_checked_and_forgotten_with_their_checksums(tmp_path: Path) -> None:
    old_stores.restore("sqlite", LAST_WITHOUT, SqlitePlace(tmp_path))
    (path,) = [each for each in tmp_path.iterdir() if each.suffix == ".db"]
    with holdfast.open(path, embedder="fake", work=False) as memory:
        # Forgotten before and after the job ran.
        ids = {record.text: record.id for record in memory.list(subject="ana", kind="message").items}
        early, late = ids["I live in Lisbon."], ids["I work as a nurse."]
        memory.forget(str(early), subject="ana")
        memory.drain()
        with closing(sqlite3.connect(path)) as database:
            of = "SELECT c.checksum FROM text_checksums c JOIN records r ON r.number = c.number WHERE r.id = ?"
            (stored,) = database.execute(of, (late,)).fetchone()
        memory.forget(str(late), subject="ana")
        left = b"\n\n".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
        assert stored.to_bytes(6, "big") not in left
        assert memory.verify().findings == ()
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE texts SET text = 'x' || text WHERE text LIKE 'still%'")
        database.commit()
    with holdfast.open(path, embedder="fake", work=False) as memory:
        (finding,) = memory.verify().findings
        assert finding.problem.startswith("texts number=")
