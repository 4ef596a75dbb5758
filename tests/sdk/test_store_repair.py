"""Repair reports all damage, fixes what it can without loss if asked to, and names the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from moving import EVERYTHING, SPACE, Said, commit, furnish, rows, running

import holdfast
from holdfast.app import Engine, repair_store
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.events import EventKind
from holdfast.domain.manifest import MANIFEST, Manifest, RepairAction, StoreRepair
from holdfast.domain.profiles import Backend, profile_of
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, ManifestMismatch
from holdfast.library import AsyncMemory
from holdfast.runtime.event_log import append_event
from holdfast.runtime.transcripts.manifest_and_events import check_manifest, load_manifest
from holdfast.settings import Settings

REPAIRS = frozenset({EventKind.OPERATOR})

DAMAGE = {
    RepairAction.REINDEX: "DELETE FROM vectors WHERE number = (SELECT min(number) FROM vectors)",
    RepairAction.DROP_ORPHAN_VECTORS: (
        "INSERT INTO vectors (partition_id, number, piece, embedder_id, vector)"
        " SELECT partition_id, 987654, piece, embedder_id, vector FROM vectors LIMIT 1"
    ),
    RepairAction.DROP_ORPHAN_LINKS: (
        "INSERT INTO evidence (memory_number, message_number)"
        " SELECT number, number FROM records WHERE kind = 1 ORDER BY number LIMIT 1"
    ),
}
BEYOND = "DELETE FROM texts WHERE number = (SELECT min(number) FROM records WHERE kind = 0)"


async def damaged(location: str, *statements: str) -> None:
    async with running(location) as engine:
        await furnish(engine)
        for statement in statements:
            await engine._core.store.write(EVERYTHING, lambda t, made=statement: t.scope.database.execute(made))  # type: ignore[attr-defined,misc]


async def repaired(location: str, *, apply: bool = False) -> StoreRepair:
    return await repair_store(location, Settings(), embedder="fake", apply=apply)


async def is_sound(engine: Engine) -> bool:
    return (await AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE).verify()).ok


def test_a_sound_store_is_told_so(location: str) -> None:
    async def look() -> None:
        await damaged(location)
        found = await repaired(location)
        assert found.is_sound
        assert not found.applied
        assert (found.findings, found.threads, found.beyond_repair) == ((), (), ())
        assert found.mends == dict.fromkeys(RepairAction, 0)
        assert found.checked_turns == 10

    asyncio.run(look())


@pytest.mark.parametrize("mend", DAMAGE)
def test_it_says_what_it_would_do_and_does_it_only_if_asked(location: str, mend: RepairAction) -> None:
    async def mended() -> None:
        await damaged(location, DAMAGE[mend])
        for _ in range(2):
            found = await repaired(location)
            assert not found.is_sound
            assert (found.mends[mend], found.beyond_repair) == (1, ())
            assert found.findings or found.threads
        async with running(location) as engine:
            assert not await is_sound(engine)
            assert await engine._core.store.read(EVERYTHING, lambda r: r.events.page(9, REPAIRS)) == []
        done = await repaired(location, apply=True)
        assert (done.is_sound, done.applied, done.mends[mend]) == (True, True, 1)
        async with running(location) as engine:
            assert await is_sound(engine)
            (event,) = await engine._core.store.read(EVERYTHING, lambda r: r.events.page(9, REPAIRS))
            assert (event.kind, event.details["operation"], event.details[mend]) == (EventKind.OPERATOR, "repair", 1)
            assert ("succeeded", None) in await rows(engine, Action.REBUILD)
            assert len(await rows(engine, Action.VERIFY)) == 4
        assert (await repaired(location)).is_sound

    asyncio.run(mended())


def test_what_it_cannot_mend_it_names_and_leaves(location: str) -> None:
    async def left() -> None:
        await damaged(location, DAMAGE[RepairAction.DROP_ORPHAN_VECTORS], BEYOND)
        done = await repaired(location, apply=True)
        assert not done.is_sound
        assert done.mends[RepairAction.DROP_ORPHAN_VECTORS] == 1
        assert any("records have their text" in problem for problem in done.beyond_repair)
        again = await repaired(location)
        assert again.mends[RepairAction.DROP_ORPHAN_VECTORS] == 0
        assert not again.is_sound

    asyncio.run(left())


def test_records_get_their_vectors_again(location: str) -> None:
    async def again() -> None:
        await damaged(location, "DELETE FROM vectors")
        await repaired(location, apply=True)
        async with running(location) as engine:
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            assert (await memory.stats()).pending_vectors == 0
            assert await memory.search("tea", subject="ana", method="vector")
            assert await is_sound(engine)

    asyncio.run(again())


# --- the manifest -----------------------------------------------------------------------------------------------------

SERVER = profile_of("server-linux-dev-full")


def test_the_first_runtime_makes_the_manifest_and_every_other_must_agree_with_it(location: str) -> None:
    async def present() -> None:
        async with running(location) as engine:
            made = await check_manifest(engine._core, SERVER, Backend.SQLITE, 7, SPACE)
        async with running(location) as engine:
            core = engine._core
            again = await check_manifest(core, SERVER, Backend.SQLITE, 7, SPACE)
            assert again.created_at == made.created_at
            assert again.last_opened_at > made.last_opened_at
            for profile, backend in ((SERVER, "file"), (profile_of("linux-device-standalone-memory"), "sqlite")):
                with pytest.raises(ManifestMismatch):
                    await check_manifest(core, profile, backend, 7, SPACE)
            assert await core.store.read(EVERYTHING, load_manifest) == again
        assert (await repaired(location)).manifest == again

    asyncio.run(present())


def test_a_store_that_was_copied_to_another_engine_says_where_it_is_now(tmp_path: Path, postgres_url: str) -> None:
    async def present(location: str, backend: str) -> Manifest:
        async with running(location) as engine:
            return await check_manifest(engine._core, SERVER, backend, 7, SPACE)

    here, back = str(tmp_path / "here.db"), str(tmp_path / "back.db")
    made = asyncio.run(present(here, "file"))
    holdfast.copy(here, postgres_url)
    there = asyncio.run(present(postgres_url, "postgres"))
    assert (there.backend, there.created_at) == ("postgres", made.created_at)
    holdfast.copy(here, str(tmp_path / "same.db"))
    assert asyncio.run(present(str(tmp_path / "same.db"), "file")).backend == "file"
    holdfast.copy(postgres_url, back)
    assert asyncio.run(present(back, "sqlite")).backend == "sqlite"


def test_a_manifest_that_cannot_be_read_is_beyond_repair(location: str) -> None:
    async def spoil() -> None:
        async with running(location) as engine:
            await engine._core.store.write(EVERYTHING, lambda t: t.maintenance.put_fact(MANIFEST, "{"))
            with pytest.raises(ManifestMismatch):
                await check_manifest(engine._core, SERVER, "sqlite", 7, SPACE)
        found = await repaired(location)
        assert found.manifest is None
        assert ["manifest" in problem for problem in found.beyond_repair] == [True]

    asyncio.run(spoil())


def test_a_store_opened_without_a_profile_has_no_manifest(location: str) -> None:
    async def plain() -> None:
        async with running(location) as engine:
            await commit(engine, Scope(space=SPACE, conversation="c"), "t", [Said("open: hello")])
            assert await engine._core.store.read(EVERYTHING, load_manifest) is None

    asyncio.run(plain())


def test_events_beyond_the_profile_go_when_a_runtime_opens_and_with_a_repair(location: str) -> None:
    async def cut() -> None:
        small = profile_of("esp-embedded-sdk")  # 256 events
        async with running(location) as engine:
            core = engine._core

            def fill(transaction: object) -> None:
                for _ in range(300):
                    append_event(transaction, core, EventKind.WRITE, Scope(space=SPACE), keep=10_000)  # type: ignore[arg-type]

            await core.store.write(EVERYTHING, fill)
            await check_manifest(core, small, "in_memory", 7, SPACE)
            assert len(await core.store.read(EVERYTHING, lambda r: r.events.page(1_000))) == 256
            await core.store.write(EVERYTHING, fill)
        assert (await repaired(location)).mends[RepairAction.PRUNE_EVENTS] == 300
        assert (await repaired(location, apply=True)).mends[RepairAction.PRUNE_EVENTS] == 300
        async with running(location) as engine:
            in_space = authorize(LOCAL_OPERATOR, Action.STATS, Scope(space=SPACE))
            assert len(await engine._core.store.read(in_space, lambda r: r.events.page(1_000))) == 256

    asyncio.run(cut())


def test_only_an_operator_without_walls_repairs(location: str) -> None:
    async def ask() -> None:
        async with running(location) as engine:
            narrow = authorize(LOCAL_OPERATOR, Action.STATS, Scope(space=SPACE))
            with pytest.raises(AccessDenied):
                await engine._core.store.read(
                    narrow, lambda r: r.maintenance.count_repairs(engine._core.clock.now(), 1)
                )

    asyncio.run(ask())
