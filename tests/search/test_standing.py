"""Archived, masked, deleted or private messages change no other score: as if they had never been said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast import AsyncMemory
from holdfast.app import _open_store
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.memory import Plane
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.ports import NewMessage, NewTurn
from holdfast.search.analyzer import TextAnalyzer
from holdfast.settings import read_settings
from holdfast.testing import FixedClock
from holdfast.testing.full_repr import full_repr

THREAD = Scope(subject="ana", conversation="home")
BEFORE = ["The cat sleeps on the red sofa.", "Rain is coming to Lisbon tonight."]
HIDDEN = ["The cat and the sofa in Lisbon: a canary.", "Zoë wants the red cat in the rain."]
AFTER = ["Zoë takes the tram to the sea.", "A red tram, a cat, and rain."]
QUERIES = ["red cat", "rain in Lisbon", "what does Zoë want", "canary", "sofa"]
PRIVATE = [Authority.PRIVATE_GARDEN_INTERNAL, Authority.OPERATOR_DIAGNOSTIC, Authority.SOUL_GOVERNANCE]
HIDING = [TranscriptState.ARCHIVED, TranscriptState.MASKED, TranscriptState.RAW_DELETED, *PRIVATE]


async def say(path: Path, memory: AsyncMemory, hiding: TranscriptState | Authority | None, clock: FixedClock) -> None:
    for texts, hidden in ((BEFORE, False), (HIDDEN, True), (AFTER, False)):
        for text in texts:
            said_at = clock.step()
            if not hidden:
                await memory.add({"text": text, "timestamp": said_at}, subject="ana", conversation="home")
            elif isinstance(hiding, Authority):
                await _say_privately(path, text, hiding, clock)
            elif hiding is not None:
                await memory.add(
                    {"text": text, "sender": "Zoë", "timestamp": said_at}, subject="ana", conversation="home"
                )


async def _say_privately(path: Path, text: str, authority: Authority, clock: FixedClock) -> None:
    now, store = clock.now(), _open_store(str(path), read_settings())
    analysis = TextAnalyzer().analyze(text)
    message = NewMessage(
        MessageId(f"msg_{abs(hash(text)):032x}"), text, "Zoë", Role.USER, now, True, None, {}, analysis, (), authority
    )
    turn = NewTurn(TurnId(f"turn_{abs(hash(text)):032x}"), THREAD, None, now, [message])
    try:
        grant = authorize(LOCAL_OPERATOR, Action.ADD, THREAD)
        await store.write(grant, lambda t: t.transcripts.add_turn(turn, "", TextAnalyzer().version))
    finally:
        await store.close()


async def hide(path: Path, state: TranscriptState) -> None:
    store = _open_store(str(path), read_settings())
    try:
        grant = authorize(LOCAL_OPERATOR, Action.TRANSCRIPT_LIFECYCLE, THREAD)
        assert (
            await store.write(grant, lambda t: t.transcripts.set_state(THREAD, [3, 4], state, FixedClock().now())) == 2
        )
    finally:
        await store.close()


async def answers(memory: AsyncMemory) -> list[tuple[str, float]]:
    return [
        (hit.text, hit.score)
        for query in QUERIES
        for hit in await memory.search(query, subject="ana", top_k=10)
    ]  # fmt: skip


async def outcome(path: Path, hiding: TranscriptState | Authority | None) -> list[tuple[str, float]]:
    async with holdfast.open_async(path, work=False) as memory:
        await say(path, memory, hiding, FixedClock())
        await memory.flush(subject="ana", conversation="home")
        if isinstance(hiding, TranscriptState):
            assert "canary" in full_repr(await answers(memory))  # there is a view, and it contains it
            await hide(path, hiding)
        found = await answers(memory)
    # A rebuilt view gives the same answers.
    async with holdfast.open_async(path, work=False) as memory:
        assert await answers(memory) == found
        browsed = await memory.browse(subject="ana")
        assert "canary" not in full_repr(browsed)
        assert "canary" not in full_repr(await memory.recall("the canary in Lisbon", subject="ana"))
    return found


@pytest.mark.parametrize("hiding", HIDING)
def test_what_nobody_may_see_moves_no_score(tmp_path: Path, hiding: TranscriptState | Authority) -> None:
    with_it = asyncio.run(outcome(tmp_path / "with.db", hiding))
    without = asyncio.run(outcome(tmp_path / "without.db", None))
    assert with_it == without
    assert with_it


@pytest.mark.parametrize("authority", PRIVATE)
def test_a_private_message_comes_to_those_who_ask_for_its_plane_by_name(tmp_path: Path, authority: Authority) -> None:
    path = tmp_path / "memory.db"
    plane = Plane.SOUL_CANDIDATE if authority is Authority.SOUL_GOVERNANCE else Plane.PRIVATE
    other = Plane.PRIVATE if plane is Plane.SOUL_CANDIDATE else Plane.SOUL_CANDIDATE

    async def whole() -> None:
        async with holdfast.open_async(path, work=False) as memory:
            await say(path, memory, authority, FixedClock())
            for planes, there in ((None, False), ([plane], True), ([other], False)):
                hits = await memory.search("canary", subject="ana", kind="message", planes=planes)
                listed = await memory.list(subject="ana", kind="message", planes=planes)
                assert ("canary" in full_repr(hits), "canary" in full_repr(listed)) == (there, there)

    asyncio.run(whole())


def test_restored_it_counts_again(tmp_path: Path) -> None:
    async def whole() -> None:
        path = tmp_path / "memory.db"
        async with holdfast.open_async(path, work=False) as memory:
            await say(path, memory, TranscriptState.MASKED, FixedClock())
            before = await answers(memory)
            await hide(path, TranscriptState.MASKED)
            assert await answers(memory) != before
            await hide(path, TranscriptState.ACTIVE)
            assert await answers(memory) == before

    asyncio.run(whole())
