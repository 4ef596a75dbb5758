"""The machine's raw durable commits: one small row, one commit, one sync. No durable store of its kind can beat it."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path

_ROW = "x" * 200


def sqlite_commits(directory: Path, seconds: float = 1.0) -> float:
    """Commits per second into a fresh file, with the write-ahead log and full sync."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        database = sqlite3.connect(Path(folder) / "probe.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE probe (value TEXT)")
        done = 0
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            database.execute("INSERT INTO probe VALUES (?)", (_ROW,))
            done += 1
        database.close()
    return done / passed


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
