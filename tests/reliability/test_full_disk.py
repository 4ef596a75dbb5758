"""On a full disk, writes fail with a clear error and reads work; freeing space is enough to recover."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
from pathlib import Path

import pytest

import holdfast
from faults import disk
from faults.ledger import check_whole
from faults.places import Place, PostgresPlace, SqlitePlace
from holdfast.domain.results import Record
from holdfast.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from holdfast.library import AsyncMemory
from holdfast.settings import Settings
from postgres import NOBODY, Server

MEBIBYTE = 1 << 20
IMPATIENT = Settings(busy_seconds=3)
TEXT = "The quick brown fox jumps over the lazy dog. " * 20


class Filled:
    """Adds until the disk is full and records what was acknowledged."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory
        self.acknowledged: list[str] = []
        self.uncertain: list[str] = []
        self._chance = random.Random(1)

    async def until_refused(self) -> Exception:
        # Small texts too: space too small for a large text may hold many small ones.
        for number in range(20_000):
            text = f"{number} " + (TEXT if self._chance.random() < 0.7 else "short")
            try:
                await self._memory.add(text, subject="ana", conversation="c")
            except (StoreFull, StoreUnavailable) as error:
                return error
            except OutcomeUnknown as error:
                self.uncertain.append(text)
                return error
            self.acknowledged.append(text)
        raise AssertionError("the disk is not full")


async def reads_go_on(memory: AsyncMemory, some: str) -> None:
    for _ in range(5):
        assert await memory.search(some, subject="ana", top_k=5)
        assert (await memory.list(subject="ana", limit=5)).items
        assert (await memory.stats(subject="ana")).messages


async def everything_is_there(place: Place, filled: Filled) -> None:
    async with place.store() as store:
        await check_whole(store)
    async with holdfast.open_async(place.location, embedder="fake", work=False) as memory:
        found: list[str] = []
        cursor = None
        while True:
            page = await memory.list(subject="ana", kind="message", limit=1_000, cursor=cursor)
            found += [record.text for record in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(found) in (sorted(filled.acknowledged), sorted(filled.acknowledged + filled.uncertain))


# --- a file -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [False, True])
def test_a_file_on_a_full_disk(work: bool) -> None:
    async def whole(folder: Path) -> None:
        place, ballast = SqlitePlace(folder), folder / "ballast"
        ballast.write_bytes(bytes(MEBIBYTE))
        async with holdfast.open_async(place.location, embedder="fake", work=work) as memory:
            filled = Filled(memory)
            error = await filled.until_refused()
            assert isinstance(error, StoreFull)
            assert "no space is left" in str(error)
            assert "free some and try again" in str(error)
            # Repeated refusals do no harm, and the audit rows of reads and refusals do not make reads fail.
            for _ in range(20):
                with pytest.raises(StoreFull):
                    await memory.add(TEXT * 30, subject="ana", conversation="c")
            await reads_go_on(memory, filled.acknowledged[0])
            # Freeing space is enough; no reopening is needed.
            ballast.unlink()
            await memory.add("there is room again", subject="ana", conversation="c")
            filled.acknowledged.append("there is room again")
            assert (await filled.until_refused()).code == "store_full"
            await reads_go_on(memory, filled.acknowledged[-1])
        assert len(filled.acknowledged) > 500
        await everything_is_there(place, filled)

    with disk.of_size(6) as folder:
        asyncio.run(whole(folder))


def test_forgetting_on_a_full_disk_is_done_or_refused_and_makes_room() -> None:
    async def whole(folder: Path) -> None:
        place, ballast = SqlitePlace(folder), folder / "ballast"
        ballast.write_bytes(bytes(MEBIBYTE))
        async with holdfast.open_async(place.location, embedder="fake", work=False) as memory:
            filled = Filled(memory)
            await filled.until_refused()
            newest = (await memory.list(subject="ana", limit=50)).items

            async def forget(record: Record) -> None:
                receipt = await memory.forget(record.id, subject="ana")
                assert receipt.remaining == 0
                filled.acknowledged.remove(record.text)

            for record in newest:
                with contextlib.suppress(StoreFull):
                    await forget(record)
            ballast.unlink()
            for record in newest:
                if record.text in filled.acknowledged:
                    await forget(record)
            await memory.drain()
        await everything_is_there(place, filled)

    with disk.of_size(6) as folder:
        asyncio.run(whole(folder))


def test_a_store_that_cannot_be_made_for_lack_of_room_says_so_and_is_made_later() -> None:
    with disk.of_size(1) as folder:
        ballast, place = folder / "ballast", SqlitePlace(folder)
        ballast.write_bytes(bytes(MEBIBYTE - 3 * 4096))
        with pytest.raises(StoreFull, match="no space is left"):
            holdfast.open(place.location, embedder="fake", work=False)
        ballast.unlink()
        with holdfast.open(place.location, embedder="fake", work=False) as memory:
            memory.add("here", subject="ana")
            assert memory.verify().ok


# --- a server ---------------------------------------------------------------------------------------------------------


class SmallServer(Server):
    """A server with its data directory on the given disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__({"max_wal_size": "32MB", "min_wal_size": "32MB", "autovacuum": "off"})
        self._disk = folder

    @property
    def data(self) -> Path:
        return self._disk / "data"

    def recover(self) -> None:
        """Restart the server if it did not survive, as an administrator does after freeing space."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.start()

    def keep_its_log_elsewhere(self) -> None:
        """Move the WAL to another disk. Then only the tables run out of space, which the server survives."""
        self.stop()
        log = Path(shutil.copytree(self.data / "pg_wal", self.folder / "pg_wal"))
        if os.geteuid() == 0:
            for path in (log, *log.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        log.chmod(0o700)
        shutil.rmtree(self.data / "pg_wal")
        (self.data / "pg_wal").symlink_to(log)
        self.start()


@pytest.mark.postgres
@pytest.mark.parametrize("what", ["everything", "the tables"])
def test_a_server_on_a_full_disk(what: str) -> None:
    async def whole(server: SmallServer, folder: Path) -> None:
        place, ballast = PostgresPlace(server), folder / "ballast"
        async with holdfast.open_async(place.location, embedder="fake", work=False, settings=IMPATIENT) as memory:
            filled = Filled(memory)
            await memory.add("the first", subject="ana", conversation="c")
            filled.acknowledged.append("the first")
            free = shutil.disk_usage(folder).free
            ballast.write_bytes(bytes(free - MEBIBYTE))
            error = await filled.until_refused()
            # The server refuses the statement or shuts down; each has its own error.
            assert isinstance(error, StoreFull) or what == "everything"
            if isinstance(error, StoreFull):
                assert "make room on the server's disk and try again" in str(error)
                await reads_go_on(memory, filled.acknowledged[0])
            ballast.unlink()
            server.recover()
            await memory.add("there is room again", subject="ana", conversation="c")
            filled.acknowledged.append("there is room again")
            await reads_go_on(memory, filled.acknowledged[-1])
        assert len(filled.acknowledged) > 20
        await everything_is_there(place, filled)

    with disk.of_size(200) as folder:
        with SmallServer(folder) as server:
            if what == "the tables":
                server.keep_its_log_elsewhere()
            asyncio.run(whole(server, folder))
