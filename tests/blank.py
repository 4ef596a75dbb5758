"""Copies of an empty SQLite store: creating one takes a synced commit per migration, longer than most tests."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from functools import cache
from pathlib import Path

from holdfast.private_files import create_private_file
from holdfast.stores.sqlite import SqliteStore, schema


@cache
def _made(newest: int) -> bytes:
    """The file of a store of that schema, created, closed and never used."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-blank-"))
    try:
        asyncio.run(_opened_once(folder / "memory.db"))
        assert [each.name for each in folder.iterdir()] == ["memory.db"], "nothing of it is elsewhere"
        return (folder / "memory.db").read_bytes()
    finally:
        shutil.rmtree(folder)


async def _opened_once(path: Path) -> None:
    await SqliteStore(str(path), busy_seconds=15.0).close()


def blank(path: Path) -> Path:
    """Create an empty store at that path, for tests that are not about creating stores."""
    create_private_file(path)
    path.write_bytes(_made(schema.migrations()[-1][0]))
    return path
