"""Moving a conversation: with the memories of its owner, all or nothing, and once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from moving import EVERYTHING, PRIVATE, SECRET, SPACE, Said, commit, facts, furnish, rows, running, runtime

from holdfast.app import Engine
from holdfast.domain.access import LOCAL_OPERATOR, Action, Actor, ActorKind
from holdfast.domain.canonical import fingerprint
from holdfast.domain.continuity_snapshot import to_document
from holdfast.domain.events import EventKind
from holdfast.domain.identity import MemoryScope
from holdfast.domain.lifecycle import Disposition, ModeInput
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.runtime_api.exchange import (
    ContinuitySnapshot,
    MemoryExportRequest,
    MemoryImportRequest,
    SummaryLine,
    TransferMode,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import Authority
from holdfast.errors import AccessDenied, AliasNotTrusted, InvalidInput, InvalidScope, InvalidSnapshot, NotFound
from holdfast.library import AsyncMemory
from holdfast.testing.full_repr import full_repr

GOVERNED = MemoryScope(channel="chat", conversation_id="governed")
ANA = Actor(ActorKind.USER, "ana", SPACE)


async def exported(engine: Engine, subject: str = "ana", **given: Any) -> ContinuitySnapshot:
    given.setdefault("scope", GOVERNED)
    report = await runtime(engine, subject=subject).export(MemoryExportRequest(**given))
    assert report.accepted
    assert report.snapshot is not None
    return report.snapshot


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A filled store that these tests only read."""
    location = str(tmp_path_factory.mktemp("made") / "memory.db")

    async def make() -> None:
        async with running(location) as engine:
            await furnish(engine)

    asyncio.run(make())
    return location


def taken_from(source: str, **given: Any) -> ContinuitySnapshot:
    async def take() -> ContinuitySnapshot:
        async with running(source) as engine:
            return await exported(engine, **given)

    return asyncio.run(take())


@pytest.mark.parametrize("private", [False, True])
def test_it_goes_on_in_another_engine_and_is_exported_there_as_the_same(
    source: str, postgres_url: str, tmp_path: Path, private: bool
) -> None:
    snapshot = taken_from(source, include_private=private)

    async def move() -> None:
        for location in (postgres_url, str(tmp_path / "back.db")):
            async with running(location) as engine:
                report = await runtime(engine, subject="ana").import_(
                    MemoryImportRequest(snapshot, include_private=private)
                )
                assert (report.accepted, report.changed, report.conversation) == (True, True, "governed")
                assert report.taken.withheld == 0
                again = await exported(engine, include_private=private)
                assert again.manifest == snapshot.manifest
                assert replace(again, exported_at=snapshot.exported_at) == snapshot

    asyncio.run(move())


def test_the_document_is_the_same_each_time_and_is_what_is_imported(source: str, location: str) -> None:
    async def look() -> None:
        async with running(source) as engine:
            made = runtime(engine, subject="ana")
            one = await made.export(MemoryExportRequest(scope=GOVERNED))
            two = await made.export(MemoryExportRequest(scope=GOVERNED))
        assert one.document is not None
        assert two.document is not None
        left, right = json.loads(one.document), json.loads(two.document)
        left.pop("exported_at"), right.pop("exported_at")
        assert left == right
        async with running(location) as engine:
            for form in (one.document, one.document.encode(), json.loads(one.document), one.snapshot):
                assert form is not None
                report = await runtime(engine, subject="ana").import_(MemoryImportRequest(form))
                assert report.accepted
                assert report.changed is (form is one.document)

    asyncio.run(look())


def test_what_it_holds_and_what_it_does_not(source: str) -> None:
    public = taken_from(source)
    private = taken_from(source, include_private=True)
    bootstrap = taken_from(source, mode="bootstrap")
    for snapshot in (public, bootstrap):
        assert SECRET not in full_repr(snapshot)
        assert not snapshot.manifest.includes_private
    for snapshot in (public, private, bootstrap):
        assert "masked:" not in full_repr(snapshot)
        assert "deleted:" not in full_repr(snapshot)
        assert {memory.revisions[0].scope.subject for memory in snapshot.long_term_memory} == {"ana"}
        assert (snapshot.self_model, snapshot.self_reason) == ((), "not_built")
    assert "secret: a private thought" in full_repr(private)
    assert "secret: not decided yet" not in full_repr(private)
    assert all(f"secret: {authority}" in full_repr(private) for authority in PRIVATE)
    assert bootstrap.execution_state is None
    assert bootstrap.summary[-1].text == "open: the last"
    assert public.execution_state is not None
    assert [turn.id for turn in public.execution_state.turns] == ["host-1", "host-2", "host-6"]


def test_no_more_memories_come_than_the_mode_takes(location: str) -> None:
    async def look() -> None:
        async with running(location) as engine:
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            await commit(engine, Scope(space=SPACE, subject="ana", conversation="c"), "t", [Said("open: hello")])
            for number in range(60):
                await memory.remember(f"open: fact {number}", subject="ana")
                await memory.remember(f"open: of everybody {number}")
            for mode, most in ((TransferMode.BOOTSTRAP, 16), (TransferMode.FULL_RESTORE, 48)):
                snapshot = await exported(engine, scope=MemoryScope(conversation_id="c"), mode=mode)
                texts = [found.revisions[0].text for found in snapshot.long_term_memory]
                assert texts == [f"open: fact {number}" for number in range(59, 59 - most, -1)]

    asyncio.run(look())


def test_a_bootstrap_brings_what_is_known_and_a_summary_but_no_turns(source: str, location: str) -> None:
    full = taken_from(source)

    async def boot() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            report = await made.import_(MemoryImportRequest(full, "fresh", mode="bootstrap"))
            assert (report.taken.turns, report.conversation) == (0, "fresh")
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            (episode,) = (await memory.list(subject="ana", planes=[Plane.EPISODE], kind="memory")).items
            assert "user: open: the last" in episode.text
            assert not (await made.import_(MemoryImportRequest(full, "fresh", mode="bootstrap"))).changed
            assert (await memory.stats(subject="ana")).messages == 0

    asyncio.run(boot())


def with_summary(snapshot: ContinuitySnapshot, *lines: SummaryLine) -> dict[str, Any]:
    """The document of the snapshot with another summary, as its exporter would have written it."""
    document: dict[str, Any] = json.loads(to_document(replace(snapshot, summary=lines)))
    content = {name: value for name, value in document.items() if name != "exported_at"}
    content["manifest"] = {**document["manifest"]}
    del content["manifest"]["content_fingerprint"]
    document["manifest"]["content_fingerprint"] = fingerprint(content)
    return document


@pytest.mark.parametrize("mode", TransferMode)
def test_a_bootstrap_makes_no_private_message_recallable(source: str, location: str, mode: TransferMode) -> None:
    snapshot = taken_from(source, mode=mode, include_private=True)
    (line,) = (each for each in snapshot.summary if each.text == "open: the last")
    secret = replace(line, text="secret: a diary")
    files = [
        (snapshot, True),
        (with_summary(snapshot, line, replace(secret, authority=Authority.PRIVATE_GARDEN_INTERNAL)), True),
        # As an earlier version wrote it: each line may be private.
        (with_summary(snapshot, *(replace(each, authority=None) for each in (line, secret))), False),
    ]

    async def boot() -> None:
        async with running(location) as engine:
            for number, (file, has_episode) in enumerate(files):
                subject = f"ana-{number}"
                made = runtime(engine, subject=subject)
                request = MemoryImportRequest(file, "fresh", mode="bootstrap", include_private=True)
                assert (await made.import_(request)).changed
                memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
                episodes = (await memory.list(subject=subject, planes=[Plane.EPISODE], kind="memory")).items
                assert [line.text in each.text for each in episodes] == [True] * has_episode
                assert SECRET not in full_repr(await memory.list(subject=subject, kind="memory"))
                assert SECRET not in full_repr(await memory.recall("a secret diary?", subject=subject, min_score=0))

    asyncio.run(boot())


def test_a_snapshot_of_an_earlier_version_has_a_summary_unless_it_may_be_private(source: str, location: str) -> None:
    snapshot = taken_from(source, mode="bootstrap")
    earlier = with_summary(snapshot, *(replace(line, authority=None) for line in snapshot.summary))
    assert "authority" not in earlier["summary"][0]
    hidden = replace(snapshot.summary[0], authority=Authority.OPERATOR_DIAGNOSTIC)

    async def boot() -> None:
        async with running(location) as engine:
            made, memory = runtime(engine, subject="ana"), AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            with pytest.raises(InvalidSnapshot, match="includes_private"):
                await made.import_(MemoryImportRequest(with_summary(snapshot, hidden), "fresh", mode="bootstrap"))
            assert (await made.import_(MemoryImportRequest(earlier, "fresh", mode="bootstrap"))).changed
            (episode,) = (await memory.list(subject="ana", planes=[Plane.EPISODE], kind="memory")).items
            assert "user: open: the last" in episode.text

    asyncio.run(boot())


def test_a_bootstrap_snapshot_restores_nothing_in_full(source: str, location: str) -> None:
    snapshot = taken_from(source, mode="bootstrap")

    async def refuse() -> None:
        async with running(location) as engine:
            before = await facts(engine)
            with pytest.raises(InvalidSnapshot, match="mode"):
                await runtime(engine, subject="ana").import_(MemoryImportRequest(snapshot))
            assert await facts(engine) == before

    asyncio.run(refuse())


def test_it_is_taken_into_another_conversation_and_another_owner_without_touching_the_first(
    source: str, location: str
) -> None:
    snapshot = taken_from(source)

    async def move() -> None:
        async with running(location) as engine:
            ana, bob = runtime(engine, subject="ana"), runtime(engine, subject="bob")
            await ana.import_(MemoryImportRequest(snapshot))
            first = await exported(engine)
            other = await ana.import_(MemoryImportRequest(snapshot, "elsewhere"))
            # Ana's memories are known already; only the conversation is new.
            assert (other.taken.turns, other.taken.memories) == (3, 0)
            foreign = await bob.import_(MemoryImportRequest(snapshot))
            assert foreign.taken.memories == len(snapshot.long_term_memory)
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            found = await memory.search("tea", subject="bob", kind="memory")
            assert {hit.scope.subject for hit in found} == {"bob"}
            for made in (ana, bob):
                assert not (await made.import_(MemoryImportRequest(snapshot))).changed
            assert replace(await exported(engine), exported_at=first.exported_at) == first
            assert (await memory.verify()).ok

    asyncio.run(move())


def test_what_is_private_is_left_out_unless_it_is_asked_for_again(source: str, location: str) -> None:
    snapshot = taken_from(source, include_private=True)

    async def leave() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            report = await made.import_(MemoryImportRequest(snapshot))
            assert report.taken.withheld
            assert SECRET not in full_repr(await exported(engine, include_private=True))
            rest = await made.import_(MemoryImportRequest(snapshot, include_private=True))
            assert rest.changed
            assert SECRET in full_repr(await exported(engine, include_private=True))

    asyncio.run(leave())


def test_what_was_forgotten_is_not_brought_back(source: str, location: str) -> None:
    snapshot = taken_from(source)

    async def forget() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            await made.import_(MemoryImportRequest(snapshot))
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            await memory.forget(subject="ana")
            before = await facts(engine)
            report = await made.import_(MemoryImportRequest(snapshot))
            assert not report.changed
            assert report.taken.forgotten
            assert await facts(engine) == before

    asyncio.run(forget())


DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "snapshot": lambda whole: "{",
    "kind": lambda whole: {**whole, "kind": "beetle_memory"},
    "version": lambda whole: {**whole, "version": 2},
    "manifest.content_fingerprint": lambda whole: {
        **whole,
        "manifest": {**whole["manifest"], "content_fingerprint": "0" * 64},
    },
    "long_term_memory": lambda whole: {**whole, "long_term_memory": whole["long_term_memory"] * 40},
    "chat_id": lambda whole: {**whole, "chat_id": ""},
}


@pytest.mark.parametrize("field", DAMAGE)
def test_a_damaged_or_foreign_snapshot_changes_nothing(source: str, location: str, field: str) -> None:
    snapshot = taken_from(source)

    async def refuse() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            await commit(engine, Scope(space=SPACE, subject="ana", conversation="own"), "t", [Said("open: mine")])
            report = await made.export(MemoryExportRequest(chat_id="own"))
            assert report.document
            async with running(source) as given:
                whole = await runtime(given, subject="ana").export(MemoryExportRequest(scope=GOVERNED))
            before = await facts(engine)
            damaged: Any = DAMAGE[field](json.loads(whole.document or ""))
            with pytest.raises(InvalidSnapshot) as caught:
                await made.import_(MemoryImportRequest(damaged))
            assert caught.value.field == field
            assert await facts(engine) == before
            assert await rows(engine, Action.IMPORT) == [("refused", "invalid_snapshot")]

    assert snapshot
    asyncio.run(refuse())


def test_one_that_is_too_large_for_the_profile_changes_nothing(location: str) -> None:
    async def refuse() -> None:
        async with running(location) as engine:
            thread = Scope(space=SPACE, subject="ana", conversation="long")
            for number in range(8):
                await commit(engine, thread, f"t{number}", [Said("open: " + "word " * 20_000)])
            large = await exported(engine, scope=MemoryScope(conversation_id="long"))
            small = runtime(engine, subject="bob", profile="esp-embedded-sdk")
            before = await facts(engine)
            with pytest.raises(InvalidSnapshot, match="bytes"):
                await small.import_(MemoryImportRequest(large))
            assert await facts(engine) == before
            report = await runtime(engine, subject="ana", profile="esp-embedded-sdk").export(
                MemoryExportRequest(chat_id="long")
            )
            assert report.snapshot is not None
            assert report.snapshot.manifest.truncated
            assert (await small.import_(MemoryImportRequest(report.snapshot))).changed

    asyncio.run(refuse())


def test_bad_requests_are_refused_by_the_field_and_leave_their_row(location: str) -> None:
    async def ask() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            wrong: list[tuple[MemoryExportRequest, type[Exception], str]] = [
                (MemoryExportRequest(), InvalidInput, "scope"),
                (MemoryExportRequest(chat_id="nowhere"), NotFound, "nowhere"),
                (MemoryExportRequest(chat_id=""), InvalidScope, "chat_id"),
                (MemoryExportRequest(chat_id="c", mode="everything"), InvalidInput, "mode"),
                (MemoryExportRequest(chat_id="c", include_private="no"), InvalidInput, "include_private"),  # type: ignore[arg-type]
                (MemoryExportRequest(chat_id="c", mode_input=None), InvalidInput, "mode_input"),  # type: ignore[arg-type]
            ]
            for request, kind, field in wrong:
                with pytest.raises(kind, match=field):
                    await made.export(request)
            assert [outcome for outcome, _ in await rows(engine, Action.EXPORT)] == ["refused"] * len(wrong)
            with pytest.raises(InvalidInput, match="mode"):
                await made.import_(MemoryImportRequest("{}", mode="everything"))
            with pytest.raises(InvalidScope, match="chat_id"):
                await made.import_(MemoryImportRequest("{}", ""))
            assert [outcome for outcome, _ in await rows(engine, Action.IMPORT)] == ["refused"] * 2

    asyncio.run(ask())


def test_a_chat_id_leads_to_its_conversation_unless_it_stood_for_two(location: str) -> None:
    async def follow() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            one, two = (Scope(space=SPACE, subject="ana", conversation=name) for name in ("one", "two"))
            await commit(engine, one, "t", [Said("open: in one")], chat_id="chat-9")
            report = await made.export(MemoryExportRequest(chat_id="chat-9"))
            assert report.snapshot is not None
            assert report.snapshot.chat_id == "one"
            await commit(engine, two, "t", [Said("open: in two")], chat_id="chat-9")
            with pytest.raises(AliasNotTrusted):
                await made.export(MemoryExportRequest(chat_id="chat-9"))
            with pytest.raises(AliasNotTrusted):
                await made.import_(MemoryImportRequest(report.snapshot, "chat-9"))

    asyncio.run(follow())


def test_owners_move_what_is_theirs_and_vouch_only_as_far_as_they_may(location: str) -> None:
    async def own() -> None:
        async with running(location) as engine:
            await commit(engine, Scope(space=SPACE, subject="ana", conversation="c"), "t", [Said("open: hello")])
            memory = AsyncMemory(engine, actor=LOCAL_OPERATOR, space=SPACE)
            await memory.remember("open: Ana likes tea.", subject="ana")
            mine = runtime(engine, ANA, subject="ana")
            report = await mine.export(MemoryExportRequest(chat_id="c", include_private=True))
            assert report.snapshot is not None
            with pytest.raises(AccessDenied):
                await runtime(engine, ANA, subject="bob").export(MemoryExportRequest(chat_id="c"))
            walled = Actor(ActorKind.OPERATOR, "tenant", SPACE)
            with pytest.raises(AccessDenied, match="raw"):
                await runtime(engine, walled, subject="ana").export(MemoryExportRequest("c", include_private=True))
            helper = Actor(ActorKind.AGENT, "helper", SPACE)
            came = await runtime(engine, helper, agent="helper").import_(MemoryImportRequest(report.snapshot))
            assert came.taken.memories == 1
            (found,) = (await memory.list(agent="helper", kind="memory")).items
            assert (found.trust, found.author) == (Trust.MODEST, "agent:helper")  # type: ignore[union-attr]
            with pytest.raises(AccessDenied):
                await runtime(engine, helper, subject="ana").import_(MemoryImportRequest(report.snapshot))

    asyncio.run(own())


def test_nothing_moves_in_recovery_safe_mode(source: str, location: str) -> None:
    snapshot = taken_from(source)
    safe = ModeInput(recovery_safe_mode_active=True)

    async def ask() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            out = await made.export(MemoryExportRequest(chat_id="c", mode_input=safe))
            assert (out.accepted, out.snapshot, out.document) == (False, None, None)
            before = await facts(engine)
            came = await made.import_(MemoryImportRequest(snapshot, mode_input=safe))
            assert (came.accepted, came.changed) == (False, False)
            for report in (out.lifecycle_report, came.lifecycle_report):
                assert report.admission.disposition is Disposition.REJECT
                assert not report.success
            assert await facts(engine) == before

    asyncio.run(ask())


def test_an_import_leaves_an_event_and_an_export_none(source: str, location: str) -> None:
    snapshot = taken_from(source)

    async def look() -> None:
        async with running(location) as engine:
            made = runtime(engine, subject="ana")
            report = await made.import_(MemoryImportRequest(snapshot))
            await made.import_(MemoryImportRequest(snapshot))
            await made.export(MemoryExportRequest(scope=GOVERNED))
            imported = frozenset({EventKind.LIFECYCLE})
            (event,) = await engine._core.store.read(EVERYTHING, lambda reader: reader.events.page(10, imported))
            assert event.id == report.lifecycle_report.event_id
            assert (event.kind, event.content_hash) == (EventKind.LIFECYCLE, snapshot.manifest.content_fingerprint)
            assert "open" not in full_repr(event)

    asyncio.run(look())
