"""The machine's raw durable commits: one small row, one commit, one sync. No durable store of its kind can beat it."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path

_ROW = "x" * 200


class SqliteProbe:
    """A separate file with the write-ahead log and full sync. It can run repeatedly between other work."""

    def __init__(self, directory: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=directory)
        self._database = sqlite3.connect(Path(self._folder.name) / "probe.db", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("CREATE TABLE probe (value TEXT)")
        self._commits = 0
        self._seconds = 0.0

    def __enter__(self) -> SqliteProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._folder.cleanup()

    def run(self, seconds: float) -> None:
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            self._database.execute("INSERT INTO probe VALUES (?)", (_ROW,))
            self._commits += 1
        self._seconds += passed

    @property
    def per_second(self) -> float:
        """Commits per second over all runs."""
        return self._commits / self._seconds


def sqlite_commits(directory: Path, seconds: float = 1.0) -> float:
    with SqliteProbe(directory) as probe:
        probe.run(seconds)
        return probe.per_second


def postgres_commits(url: str, seconds: float = 1.0) -> float:
    """Commits per second of one client with the server's defaults."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bench_probe (value text)")
        done = 0
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            connection.execute("INSERT INTO bench_probe VALUES (%s)", (_ROW,))
            done += 1
        connection.execute("DROP TABLE bench_probe")
    return done / passed
