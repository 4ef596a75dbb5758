"""Traces of a withheld turn: no copy in a correction, no call to an embedder, and every link to it kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from lives import Elsewhere

from holdfast import AsyncMemory
from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.errors import AliasNotTrusted
from holdfast.sdk import (
    AsyncMemoryRuntime,
    MemoryExportRequest,
    MemoryImportRequest,
    MemoryProjectionRequest,
    MemoryRecallRequest,
    MemorySpaceExportRequest,
    MemorySpaceImportRequest,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptReplayRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr

CHAT = MemoryScope("web", conversation_id="c1")
NAMES = {"subject": "ana"}


class Host:
    """A runtime and a library on one store, with a remote embedder."""

    def __init__(self, engine: Any, embedder: Elsewhere) -> None:
        profile = profile_of(DEFAULT_PROFILE)
        governance = Governance(
            MemoryIdentity(subject_id="ana"), profile, catalogue(profile, Circumstances(model=True))
        )
        self.runtime = AsyncMemoryRuntime(engine, LOCAL_OPERATOR, governance)
        self.memory = AsyncMemory(engine, subject="ana")
        self.embedder = embedder

    async def say(self, text: str, turn_id: str = "t1", where: MemoryScope = CHAT, **more: Any) -> str:
        turn = TranscriptTurnInput(turn_id, (TurnMessage(text, **more),), where)
        return (await self.runtime.commit_transcript(MemoryTranscriptCommitRequest(turn))).message_ids[0]

    async def age(self, transition: str, where: MemoryScope = CHAT) -> Any:
        request = MemoryTranscriptLifecycleRequest(transition, "asked to", where)
        return await self.runtime.request_transcript_lifecycle(request)


Play = Callable[[Host], Coroutine[Any, Any, None]]


def play(location: str, act: Play) -> None:
    async def whole() -> None:
        embedder = Elsewhere()
        engine = await open_engine(location, Settings(), embedder=embedder, work=False)
        try:
            await act(Host(engine, embedder))
        finally:
            await engine.close()

    asyncio.run(whole())


@pytest.mark.parametrize("work", ["recover", "rebuild"])
def test_no_embedder_is_sent_what_is_masked_until_it_is_restored(location: str, work: str) -> None:
    async def act(host: Host) -> None:
        async def do() -> None:
            await (host.runtime.recover() if work == "recover" else host.memory.rebuild())

        await host.say("The canary sings.")
        await host.age("mask")
        await do()
        assert not any("canary" in text for text in host.embedder.sent)
        assert (await host.memory.stats()).pending_vectors == 0
        await host.age("restore")
        await host.runtime.recover()
        assert any("canary" in text for text in host.embedder.sent)
        assert (await host.memory.stats()).pending_vectors == 0
        assert [hit.text for hit in await host.memory.search("canary")] == ["The canary sings."]

    play(location, act)


@pytest.mark.parametrize("authority", ["private_garden_internal", "soul_governance", "operator_diagnostic", None])
def test_a_correction_stays_on_the_ground_of_what_it_corrects_and_copies_nothing_of_it(
    location: str, authority: str | None
) -> None:
    async def act(host: Host) -> None:
        said = await host.say("The canary sings.", authority=authority, metadata={"note": "canary"})
        made = await host.memory.correct(said, "The bird is silent.")
        assert "canary" not in full_repr(made.metadata)
        found = [hit.id for hit in await host.memory.search("bird")]
        assert found == ([] if authority else [made.id])
        block = (
            await host.runtime.project(MemoryProjectionRequest("bird", recent_messages_limit=0))
        ).system_memory_block
        assert ("silent" in block) is (authority is None)
        await host.age("mask")
        assert "canary" not in full_repr(await host.memory.get(made.id)) + full_repr(await host.memory.history(made.id))

    play(location, act)


@pytest.mark.parametrize("transition", ["archive", "mask", "delete_raw"])
def test_a_corrected_memory_still_rests_on_what_was_withheld(location: str, transition: str) -> None:
    async def act(host: Host) -> None:
        said = await host.say("I keep a canary.")
        made = await host.memory.remember("Ana keeps a bird.", evidence=[said])
        await host.age(transition)
        corrected = await host.memory.correct(made.id, "Ana keeps two birds.")
        assert corrected.evidence == ()
        reviewed = await host.age("review")
        assert [ref.store_key for ref in reviewed.derived_memory_refs] == [made.id]
        # Forgetting the messages also forgets what was learned from them alone.
        await host.memory.forget(conversation="c1", channel="web")
        assert await host.memory.search("birds") == ()

    play(location, act)


@pytest.mark.parametrize("transition", ["review", "archive", "mask", "delete_raw"])
@pytest.mark.parametrize("authority", [None, "private_garden_internal"])
def test_a_space_keeps_its_links_when_it_moves(
    location: str, tmp_path: Any, transition: str, authority: str | None
) -> None:
    async def act(host: Host) -> None:
        said = await host.say("I keep a canary.", authority=authority)
        await host.memory.remember("Ana keeps a bird.", evidence=[said])
        await host.age(transition)
        space = (await host.runtime.export_space(MemorySpaceExportRequest(include_private=True))).content
        kept = transition not in ("mask", "delete_raw")
        snapshot = (await host.runtime.export(MemoryExportRequest(scope=CHAT, include_private=True))).document

        async def into(name: str, take: Callable[[Host], Coroutine[Any, Any, Any]], whole: bool) -> None:
            engine = await open_engine(str(tmp_path / name), Settings(), embedder="fake", work=False)
            try:
                there = Host(engine, host.embedder)
                await take(there)
                if whole:
                    reviewed = await there.age("review")
                    assert len(reviewed.derived_memory_refs) == 1
                    await there.memory.forget(conversation="c1", channel="web")
                assert len(await there.memory.search("bird")) == (0 if whole else 1)
            finally:
                await engine.close()

        await into("space.db", lambda h: h.runtime.import_space(MemorySpaceImportRequest(content=space)), True)
        taken = MemoryImportRequest(snapshot, include_private=True)
        await into("snapshot.db", lambda h: h.runtime.import_(taken), kept)

    play(location, act)


@pytest.mark.parametrize("named_first", [True, False])
def test_a_chat_id_that_is_also_a_conversations_own_name_leads_nowhere(location: str, named_first: bool) -> None:
    async def act(host: Host) -> None:
        own, other = MemoryScope("web", conversation_id="x"), MemoryScope("web", "x", "c1")
        order = [("The canary sings.", own), ("The parrot talks.", other)]
        for number, (text, where) in enumerate(order if named_first else order[::-1]):
            await host.say(text, f"t{number}", where)
        chat = MemoryScope("web", "x")
        for call in (
            host.runtime.recall(MemoryRecallRequest("canary parrot", scope=chat)),
            host.runtime.replay_transcript(MemoryTranscriptReplayRequest("host_ui", chat)),
            host.age("mask", chat),
        ):
            with pytest.raises(AliasNotTrusted):
                await call
        await host.age("mask", own)
        assert len(await host.memory.search("parrot canary")) == 1

    play(location, act)


def test_what_a_bootstrap_says_of_a_conversation_of_this_store_rests_on_it(location: str) -> None:
    async def act(host: Host) -> None:
        await host.say("I keep a canary.")
        snapshot = (await host.runtime.export(MemoryExportRequest(scope=CHAT, mode="bootstrap"))).document
        assert snapshot is not None
        await host.runtime.import_(MemoryImportRequest(snapshot, "elsewhere", mode="bootstrap"))
        assert len(await host.memory.search("canary", kind="memory")) == 1
        masked = await host.age("mask")
        assert len(masked.derived_memory_refs) == 1
        await host.memory.forget(conversation="c1", channel="web")
        assert await host.memory.search("canary") == ()

    play(location, act)
