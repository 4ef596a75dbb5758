"""Moving a whole space as a file: between engines, all or nothing, and private content only on request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from moving import SECRET, SPACE, Said, commit, facts, furnish, rows, running, runtime

from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.identity import MemoryScope
from holdfast.domain.lifecycle import Disposition, ModeInput
from holdfast.domain.runtime_api.exchange import (
    MemoryExportRequest,
    MemoryImportRequest,
    MemorySpaceExportRequest,
    MemorySpaceImportRequest,
)
from holdfast.domain.scope import Scope
from holdfast.domain.space_file import LeftOut
from holdfast.errors import AccessDenied, CapabilityUnavailable, InvalidInput, InvalidSnapshot
from holdfast.library import AsyncMemory


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, bytes]:
    """The same space, exported with and without private content."""

    async def make() -> dict[bool, bytes]:
        async with running(str(tmp_path_factory.mktemp("made") / "memory.db")) as engine:
            await furnish(engine)
            return {private: await exported(engine, private) for private in (False, True)}

    return asyncio.run(make())


async def exported(engine: object, private: bool = True, space: str = SPACE) -> bytes:
    report = await runtime(engine, space=space).export_space(MemorySpaceExportRequest(private))  # type: ignore[arg-type]
    assert report.accepted
    assert report.content is not None
    assert report.size_bytes == len(report.content)
    return report.content


def fingerprint(content: bytes) -> str:
    found = json.loads(content.splitlines()[-1])["content_fingerprint"]
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("private", [False, True])
def test_a_space_moves_to_another_engine_and_back_and_stays_the_same(
    furnished: dict[bool, bytes], tmp_path: Path, postgres_url: str, private: bool
) -> None:
    async def move() -> None:
        content = furnished[private]
        for location in (postgres_url, str(tmp_path / "back.db")):
            async with running(location) as engine:
                report = await runtime(engine).import_space(MemorySpaceImportRequest(content=content))
                assert report.accepted
                assert report.changed
                assert report.content_fingerprint == fingerprint(furnished[private])
                content = await exported(engine, private)
                assert content.splitlines()[1:-1] == furnished[private].splitlines()[1:-1]
                assert fingerprint(content) == fingerprint(furnished[private])

    asyncio.run(move())


def test_nothing_private_is_in_an_export_that_did_not_ask_for_it(furnished: dict[bool, bytes]) -> None:
    public, private = furnished[False].decode(), furnished[True].decode()
    assert SECRET in private
    for word in (SECRET, "masked:", "deleted:", '"type":"alias"', '"type":"turn"', '"evidence"', "asserted", "Lisbon"):
        assert word not in public, word
    for gone in ("masked:", "deleted:"):
        assert gone not in private
    for kept in ("open: Ana likes green tea.", "open: Noted, thanks.", "open-guide"):
        assert kept in public
        assert kept in private
    for said in ("open: asserted", "open: archived", "open: I moved to Lisbon."):
        assert said in private


def test_an_export_without_transcripts_is_not_taken_for_a_backup(location: str) -> None:
    """The report, the file and its import say how many turns are left out."""

    async def scene() -> None:
        async with running(location) as engine:
            await furnish(engine)
            whole = await runtime(engine).export_space(MemorySpaceExportRequest(include_private=True))
            report = await runtime(engine).export_space()
            said = LeftOut(whole.counts.turns, whole.counts.messages)
            assert (whole.left_out, report.left_out) == (LeftOut(), said)
            assert (report.counts.turns, report.counts.messages) == (0, 0)
            assert report.lifecycle_report.result_summary.endswith(f"; {said.turns} turns left out")
            assert report.content is not None
            assert json.loads(report.content.splitlines()[0])["left_out"] == asdict(said)
            came = await runtime(engine, space="copy").import_space(MemorySpaceImportRequest(content=report.content))
            assert (came.left_out, came.taken.turns) == (said, 0)
            assert f"leaves {said.turns} turns out" in came.lifecycle_report.result_summary

    asyncio.run(scene())


def test_the_summary_of_a_conversation_goes_only_with_its_transcript(location: str) -> None:
    """A bootstrap stores the last messages word for word, as an episode."""

    async def scene() -> None:
        async with running(location) as engine:
            await furnish(engine)
            ana = runtime(engine, subject="ana")
            chat = MemoryScope("chat", conversation_id="governed")
            snapshot = await ana.export(MemoryExportRequest(scope=chat, mode="bootstrap"))
            assert snapshot.document is not None
            there = runtime(engine, subject="ana", space="there")
            assert (await there.import_(MemoryImportRequest(snapshot.document, mode="bootstrap"))).taken.memories
            assert b"open: asserted" in await exported(engine, space="there")
            assert b"open: asserted" not in await exported(engine, private=False, space="there")

    asyncio.run(scene())


def test_what_arrives_is_found_and_rests_on_what_it_rested_on(furnished: dict[bool, bytes], location: str) -> None:
    async def look() -> None:
        async with running(location) as engine:
            await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            (tea, *_) = await memory.search("green tea", subject="ana", kind="memory")
            assert tea.text == "open: Ana likes green tea."
            assert [link.text for link in tea.evidence] == ["open: I moved to Lisbon."]
            history = await memory.history(tea.id, subject="ana")
            assert [revision.text for revision in history] == ["open: Ana likes tea.", "open: Ana likes green tea."]
            (lisbon, *_) = await memory.search("Lisbon", subject="ana", kind="message")
            assert (lisbon.sender, lisbon.external_id, lisbon.scope.channel) == ("Ana", "m-1", "web")
            assert not [hit for hit in await memory.search("masked deleted gone", subject="ana") if "gone" in hit.text]
            (page,) = (await memory.resources(subject="ana")).items
            assert page.name == "open-guide.txt"
            assert (await memory.verify()).ok

    asyncio.run(look())


def test_importing_again_changes_nothing(furnished: dict[bool, bytes], location: str) -> None:
    async def twice() -> None:
        async with running(location) as engine:
            await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            before = await facts(engine)
            again = await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            assert again.accepted
            assert not again.changed
            assert not again.lifecycle_report.changed
            assert again.taken.known
            assert await facts(engine) == before

    asyncio.run(twice())


def test_a_space_can_be_taken_into_another_beside_it(furnished: dict[bool, bytes], location: str) -> None:
    async def beside() -> None:
        async with running(location) as engine:
            await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            report = await runtime(engine, space="copy").import_space(MemorySpaceImportRequest(content=furnished[True]))
            assert (report.origin_space, report.space) == (SPACE, "copy")
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space="copy")
            (tea, *_) = await memory.search("green tea", subject="ana", kind="memory")
            assert [link.text for link in tea.evidence] == ["open: I moved to Lisbon."]
            (cat, *_) = await memory.search("feed the cat", subject="ana")
            (page,) = (await memory.resources(subject="ana")).items
            assert cat.source == page.uri
            assert (await memory.verify()).ok
            own = await runtime(engine, space="copy").import_space(MemorySpaceImportRequest(content=furnished[True]))
            assert not own.changed
            # The original space is unchanged, and the two are independent.
            assert fingerprint(await exported(engine)) == fingerprint(furnished[True])
            texts = [json.loads(line) for line in (await exported(engine, space="copy")).splitlines()[1:-1]]
            assert len(texts) == len(furnished[True].splitlines()) - 2

    asyncio.run(beside())


def test_what_was_forgotten_here_is_not_brought_back(furnished: dict[bool, bytes], location: str) -> None:
    async def forget() -> None:
        async with running(location) as engine:
            await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            await memory.forget(subject="ana")
            before = await facts(engine)
            report = await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            assert not report.changed
            assert report.taken.forgotten
            assert await facts(engine) == before
            assert not await memory.search("Lisbon tea cat", subject="ana", kind="message")

    asyncio.run(forget())


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda whole: whole[:-10], "line"),
        (lambda whole: b"".join(whole.splitlines(keepends=True)[:-1]), "file"),
        (lambda whole: whole.replace(b"green tea", b"black tea"), "content_fingerprint"),
        (lambda whole: whole.replace(b'"version":2', b'"version":9'), "version"),
        (lambda whole: whole.replace(b"holdfast_space", b"somebody_else_"), "format"),
        (lambda whole: b"", "file"),
        (lambda whole: b"\x00" * 1_000, "line"),
    ],
)
def test_a_damaged_or_foreign_file_changes_nothing(
    furnished: dict[bool, bytes], location: str, damage: Callable[[bytes], bytes], field: str
) -> None:
    async def refuse() -> None:
        async with running(location) as engine:
            await commit(engine, Scope(space=SPACE, conversation="own"), "t", [Said("open: mine")])
            before = await facts(engine)
            with pytest.raises(InvalidSnapshot) as caught:
                await runtime(engine).import_space(MemorySpaceImportRequest(content=damage(furnished[True])))
            assert caught.value.field.startswith(field)
            assert await facts(engine) == before
            assert await rows(engine, Action.IMPORT_SPACE) == [("refused", "invalid_snapshot")]

    asyncio.run(refuse())


def test_an_import_that_was_stopped_goes_on(furnished: dict[bool, bytes], location: str, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    async def stop() -> None:
        many = str(tmp_path / "many.db")
        async with running(many) as engine:
            for number in range(30):
                thread = Scope(space=SPACE, subject="ana", conversation=f"c{number % 3}")
                for part in range(10):
                    await commit(engine, thread, f"t{number}-{part}", [Said(f"open: {number} {part}")])
            content = await exported(engine)

        def stopping(done: int, total: int) -> None:
            assert 0 < done < total == 300
            raise Stopped

        async with running(location) as engine:
            with pytest.raises(Stopped):
                await runtime(engine).import_space(MemorySpaceImportRequest(content=content), tell=stopping)
            report = await runtime(engine).import_space(MemorySpaceImportRequest(content=content))
            assert 0 < report.taken.turns < 300
            assert report.taken.turns + report.taken.known == 300
            assert fingerprint(await exported(engine)) == fingerprint(content)

    asyncio.run(stop())


def test_a_file_is_there_whole_or_not_at_all(furnished: dict[bool, bytes], location: str, tmp_path: Path) -> None:
    async def write() -> None:
        async with running(location) as engine:
            await runtime(engine).import_space(MemorySpaceImportRequest(content=furnished[True]))
            target = tmp_path / "out" / "space.jsonl"
            target.parent.mkdir()
            target.write_bytes(furnished[False])

            def fails(done: int, total: int) -> None:
                raise RuntimeError("no more")

            with pytest.raises(RuntimeError, match="no more"):
                await runtime(engine).export_space(MemorySpaceExportRequest(True, target), tell=fails)
            assert [found.name for found in target.parent.iterdir()] == ["space.jsonl"]
            assert target.read_bytes() == furnished[False]
            report = await runtime(engine).export_space(MemorySpaceExportRequest(True, target))
            assert report.path == str(target)
            assert report.content is None
            assert fingerprint(target.read_bytes()) == report.content_fingerprint == fingerprint(furnished[True])
            assert target.stat().st_mode & 0o077 == 0
            assert [found.name for found in target.parent.iterdir()] == ["space.jsonl"]
            again = await runtime(engine).import_space(MemorySpaceImportRequest(target))
            assert again.accepted

    asyncio.run(write())


def test_a_report_holds_no_more_than_the_profile_lets_a_snapshot_be(location: str) -> None:
    async def small() -> None:
        async with running(location) as engine:
            thread = Scope(space=SPACE, conversation="long")
            for number in range(6):
                await commit(engine, thread, f"t{number}", [Said("open: " + "word " * 10_000)])
            little = runtime(engine, profile="esp-embedded-sdk")
            with pytest.raises(InvalidInput, match="path"):
                await little.export_space(MemorySpaceExportRequest(include_private=True))
            content = await exported(engine)
            with pytest.raises(InvalidSnapshot, match="content"):
                await little.import_space(MemorySpaceImportRequest(content=content))

    asyncio.run(small())


def test_every_call_leaves_one_row(location: str, tmp_path: Path) -> None:
    async def count() -> None:
        async with running(location) as engine:
            moving = runtime(engine)
            content = await exported(engine)
            await moving.import_space(MemorySpaceImportRequest(content=content))
            with pytest.raises(InvalidInput, match="include_private"):
                await moving.export_space(MemorySpaceExportRequest("no"))  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match="path"):
                await moving.export_space(MemorySpaceExportRequest(path=tmp_path / "no" / "where"))
            with pytest.raises(InvalidInput, match="path"):
                await moving.export_space(MemorySpaceExportRequest(path=tmp_path))
            for wrong in (
                MemorySpaceImportRequest(),
                MemorySpaceImportRequest(tmp_path / "missing"),
                MemorySpaceImportRequest(tmp_path / "missing", b""),
                MemorySpaceImportRequest(content="text"),  # type: ignore[arg-type]
            ):
                with pytest.raises(InvalidInput):
                    await moving.import_space(wrong)
            assert [outcome for outcome, _ in await rows(engine, Action.EXPORT_SPACE)] == [
                "succeeded",
                *["refused"] * 3,
            ]
            assert [outcome for outcome, _ in await rows(engine, Action.IMPORT_SPACE)] == [
                "succeeded",
                *["refused"] * 4,
            ]

    asyncio.run(count())


def test_only_operators_move_spaces_and_only_those_without_walls_what_is_private(location: str) -> None:
    async def ask() -> None:
        async with running(location) as engine:
            for actor in (Actor(ActorKind.USER, "ana", SPACE), Actor(ActorKind.AGENT, "helper", SPACE)):
                with pytest.raises(AccessDenied):
                    await runtime(engine, actor).export_space()
                with pytest.raises(AccessDenied):
                    await runtime(engine, actor).import_space(MemorySpaceImportRequest(content=b""))
            walled = Actor(ActorKind.OPERATOR, "tenant", SPACE)
            assert (await runtime(engine, walled).export_space()).accepted
            with pytest.raises(AccessDenied):
                await runtime(engine, walled).export_space(MemorySpaceExportRequest(include_private=True))
            with pytest.raises(AccessDenied):
                await runtime(engine, walled, space="other").export_space()
            with pytest.raises(CapabilityUnavailable):
                await runtime(engine, switched_off=frozenset({"export_space"})).export_space()

    asyncio.run(ask())


def test_nothing_moves_in_recovery_safe_mode(furnished: dict[bool, bytes], location: str) -> None:
    async def ask() -> None:
        async with running(location) as engine:
            safe = ModeInput(recovery_safe_mode_active=True)
            out = await runtime(engine).export_space(MemorySpaceExportRequest(mode_input=safe))
            assert (out.accepted, out.content, out.content_fingerprint) == (False, None, None)
            before = await facts(engine)
            came = await runtime(engine).import_space(
                MemorySpaceImportRequest(content=furnished[True], mode_input=safe)
            )
            assert not came.accepted
            for report in (out.lifecycle_report, came.lifecycle_report):
                assert report.admission.disposition is Disposition.REJECT
                assert (report.success, report.result_summary) == (False, "recovery_safe_mode")
            assert await facts(engine) == before

    asyncio.run(ask())
