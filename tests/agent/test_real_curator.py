"""The real small model maintains memory. Tests the protocol, the schema and the governance, not its judgement."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from small_model import MAX_TOKENS, NAME

from completions import chat_curator
from holdfast import AsyncMemory, MemoryRecord
from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR, storewide_grant
from holdfast.domain.candidates import Verdict
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.memory import Trust
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptCommitRequest, TranscriptTurnInput, TurnMessage
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.settings import Settings

# It talks without end, and slowly on a busy machine.
LIMITS: Any = {"max_tokens": MAX_TOKENS, "timeout_seconds": 600.0}
SAID = ("My name is Ana and I live in Porto.", "My dog is called Rex.")


class _Host(TranscriptOperations, WritingOperations):
    pass


def test_a_real_model_answers_within_the_schema_and_tells_what_it_took(small_model_url: str) -> None:
    messages = [
        Message(
            MessageId(f"msg_{place}"), TurnId("turn_1"), Scope(conversation="c"), place, text, None, Role.USER,
            datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC), None, None, {},
        )
        for place, text in enumerate(SAID)
    ]  # fmt: skip

    async def ask() -> None:
        curator = chat_curator(NAME, base_url=small_model_url, attempts=1, **LIMITS)
        made = await curator.curate(messages)
        await curator.close()
        assert made.usage.requests == 1
        assert made.usage.input_tokens > 100
        assert 0 < made.usage.output_tokens <= MAX_TOKENS
        assert all(set(each.evidence) <= {message.id for message in messages} for each in made.proposals)

    asyncio.run(ask())


def test_whatever_a_real_model_proposes_is_governed(small_model_url: str, tmp_path: Path) -> None:
    profile = profile_of(DEFAULT_PROFILE)
    governance = Governance(MemoryIdentity(subject_id="ana"), profile, catalogue(profile, Circumstances(model=True)))

    async def whole() -> None:
        curator = chat_curator(NAME, base_url=small_model_url, attempts=2, first_wait_seconds=0.01, **LIMITS)
        engine = await open_engine(
            str(tmp_path / "memory.db"), Settings(), embedder="fake", curator=curator, work=False
        )
        host = _Host(engine, LOCAL_OPERATOR, governance)
        turn = TranscriptTurnInput("t1", tuple(map(TurnMessage, SAID)), MemoryScope(conversation_id="c"))
        await host.commit_transcript(MemoryTranscriptCommitRequest(turn))
        report = await host.maintain()
        assert report.reason in ("maintained", "model_failed"), report
        for verdict in report.semantic_governance.verdicts:
            assert verdict.trust <= Trust.MODEST
            assert verdict.verdict is Verdict.REJECTED or verdict.evidence
        if report.reason == "maintained":
            assert report.usage is not None
            assert report.usage.output_tokens > 0
        await host.close()

    asyncio.run(whole())


def test_what_a_real_model_reads_of_a_flushed_conversation_is_learned_or_told(
    small_model_url: str, tmp_path: Path
) -> None:
    """It judges badly. Whatever it answers, memories rest on messages, or the job says what failed."""

    async def whole() -> None:
        curator = chat_curator(NAME, base_url=small_model_url, attempts=1, **LIMITS)
        engine = await open_engine(
            str(tmp_path / "memory.db"), Settings(), embedder="fake", curator=curator, work=False
        )
        memory = AsyncMemory(engine)
        await memory.add(list(SAID), subject="ana", conversation="c")
        await memory.flush(subject="ana", conversation="c")
        await memory.drain()
        first = min((job for job in await memory.jobs() if job.kind == "extract"), key=lambda job: job.attempt)
        assert first.status == "succeeded" or "did not answer as asked" in str(first.error)
        for learned in (await memory.list(kind="memory", subject="ana")).items:
            assert isinstance(learned, MemoryRecord)
            assert (learned.author, bool(learned.evidence)) == (f"curator:{NAME}", True)
            assert learned.trust <= Trust.MODEST
        (event,) = await engine._core.store.read(
            storewide_grant(), lambda reader: reader.events.page(10, frozenset({EventKind.MAINTENANCE}))
        )
        assert (event.details["requests"], event.details["messages_read"]) in {(1, 2), (1, 0)}
        await memory.close()

    asyncio.run(whole())
