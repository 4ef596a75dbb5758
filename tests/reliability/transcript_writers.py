"""Processes that commit, finalize and age turns until they are done or die. They import this module by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faults import points
from faults.zygote import Tell
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.redaction import RedactedTurn
from holdfast.domain.runtime_api.transcripts import (
    CanonicalTurnDelta,
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptReplayRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.transcript_turns import View
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.settings import Settings

CHAT = MemoryScope(conversation_id="c1")


@asynccontextmanager
async def opened(location: str, *, local: bool = True, work: bool = False) -> AsyncIterator[TranscriptOperations]:
    engine = await open_engine(location, Settings(), embedder=FakeEmbedder(local=local), work=work)
    try:
        yield runtime_on(engine)
    finally:
        await engine.close()


def runtime_on(engine: Engine) -> TranscriptOperations:
    profile = profile_of(DEFAULT_PROFILE)
    governance = Governance(MemoryIdentity(subject_id="ana"), profile, catalogue(profile))
    return TranscriptOperations(engine, LOCAL_OPERATOR, governance)


def texts_of(turn_id: str) -> tuple[str, str]:
    return f"Question {turn_id}?", f"Answer {turn_id}."


async def put(runtime: TranscriptOperations, turn_id: str) -> MemoryTranscriptCommitReport:
    """Put a turn; repeated puts are identical. Every third turn is put by finalizing it."""
    asked, answered = texts_of(turn_id)
    if int(turn_id.rpartition("-")[2]) % 3 == 0:
        delta = CanonicalTurnDelta(turn_id, "delivered", (TurnMessage(asked),), answered, CHAT)
        return (await runtime.finalize_turn_and_maintain(delta)).transcript_commit
    messages = (TurnMessage(asked), TurnMessage(answered, "assistant"))
    return await runtime.commit_transcript(MemoryTranscriptCommitRequest(TranscriptTurnInput(turn_id, messages, CHAT)))


def write(tell: Tell, location: str, name: str, tasks: int, turns: int, point: str = "", passage: int = 1) -> None:
    """Commit `turns` turns from each of `tasks` tasks, reporting before and after each; die at the point, if any."""

    async def some(runtime: TranscriptOperations, task: int) -> None:
        for number in range(turns):
            turn_id = f"{name}-{task}-{number}"
            tell(do=turn_id)
            report = await put(runtime, turn_id)
            tell(done=turn_id, sequence=report.sequence)

    async def whole() -> None:
        if point:
            points.die_at(point, passage)
        async with opened(location, local=not point, work=bool(point)) as runtime:
            await asyncio.gather(*(some(runtime, task) for task in range(tasks)))

    asyncio.run(whole())


def age(tell: Tell, location: str, transition: str, point: str) -> None:
    """Change the state of the whole conversation, and die at the point."""

    async def whole() -> None:
        async with opened(location) as runtime:
            points.die_at(point)
            request = MemoryTranscriptLifecycleRequest(transition, "asked to", CHAT)
            await runtime.request_transcript_lifecycle(request)
            tell(done=transition)

    asyncio.run(whole())


async def turns_of(runtime: TranscriptOperations) -> list[RedactedTurn]:
    found: list[RedactedTurn] = []
    cursor = None
    while True:
        page = await runtime.replay_transcript(
            MemoryTranscriptReplayRequest(View.RAW_OWNER_ONLY, CHAT, limit=64, cursor=cursor)
        )
        found.extend(page.slice.turns)
        cursor = page.next_cursor
        if cursor is None:
            return found
