"""Helpers for tests of writing: a runtime on either store, turns as evidence, and scripted models."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, Actor, storewide_grant
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.events import Event, EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.operations import Operation
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.runtime_api.writing import MemoryWriteCandidate
from holdfast.domain.transcript import Message
from holdfast.ports import CurationResult, Curator, ModelCallUsage, Proposal, Transaction
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.settings import Settings

ANA = MemoryIdentity(subject_id="ana")
CHAT = MemoryScope(conversation_id="chat")


class Host(TranscriptOperations, WritingOperations):
    """The operations that these tests need, with access to the store."""

    engine: Engine

    async def said(
        self, *texts: str, role: str = "user", authority: str | None = None, turn: str = "t1", where: MemoryScope = CHAT
    ) -> list[str]:
        """Commit the messages as one turn; return their ids."""
        messages = tuple(TurnMessage(text, role=role, authority=authority) for text in texts)
        report = await self.commit_transcript(
            MemoryTranscriptCommitRequest(TranscriptTurnInput(turn, messages, conversation=where))
        )
        assert report.committed
        return [str(message_id) for message_id in report.message_ids]

    async def memories(self) -> list[MemoryRecord]:
        """Return all revisions of all memories in the store, oldest first."""
        ids = {event.record_key for event in await self.events() if event.kind in (EventKind.WRITE, EventKind.MERGE)}

        def all_of(transaction: Transaction) -> list[MemoryRecord]:
            found = (each for key in sorted(ids - {None}) for each in transaction.records.revisions(str(key)))
            return [each for each in found if isinstance(each, MemoryRecord)]

        return await self.engine._core.store.write(storewide_grant(), all_of)

    async def memory(self, memory_id: str | None) -> MemoryRecord:
        found = await self.engine._core.store.read(
            storewide_grant(), lambda reader: reader.records.find(memory_id or "")
        )
        assert found is not None
        assert isinstance(found[1], MemoryRecord)
        return found[1]

    async def events(self, *kinds: EventKind) -> Sequence[Event]:
        """Return the events; those of turns are left out."""
        wanted = frozenset(kinds) or None
        found = await self.engine._core.store.read(storewide_grant(), lambda reader: reader.events.page(10_000, wanted))
        return [event for event in found if not (event.record_key or "").startswith("turn_")]

    async def rows(self) -> Sequence[Operation]:
        """Return every operation row, oldest first. Commits the pending rows of refusals first."""
        store = self.engine._core.store
        await store.wait_for_audits()
        return (await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=100_000)))[::-1]


@asynccontextmanager
async def hosting(
    location: str,
    *,
    identity: MemoryIdentity = ANA,
    actor: Actor = LOCAL_OPERATOR,
    curator: Curator | None = None,
    profile: str = DEFAULT_PROFILE,
    circumstances: Circumstances | None = None,
    **options: Any,
) -> AsyncIterator[Host]:
    """A runtime without a worker: background work runs when a call triggers it."""
    given = {"embedder": "fake", "work": False, **options}
    engine = await open_engine(location, Settings(), curator=curator, **given)
    chosen = profile_of(profile)
    held = circumstances or Circumstances(model=curator is not None)
    host = Host(engine, actor, Governance(identity, chosen, catalogue(chosen, held)))
    host.engine = engine
    try:
        yield host
    finally:
        await engine.close()


def candidate(content: str, *evidence: str, **more: Any) -> MemoryWriteCandidate:
    name = hashlib.sha256(repr(content).encode()).hexdigest()
    given = {"candidate_id": name, "authority": "user_asserted", "evidence_refs": evidence, **more}
    return MemoryWriteCandidate(content=content, **given)


class Proposing:
    """A curator that proposes what the test's function returns, and records the texts it gets."""

    max_chars = 16_384

    def __init__(self, propose: Callable[[Sequence[Message]], Sequence[tuple[str, Sequence[str]]]]) -> None:
        self._propose = propose
        self.shown: list[list[str]] = []
        self.closed = False

    @property
    def name(self) -> str:
        return "test-model"

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        self.shown.append([*(message.text for message in messages), *(memory.text for memory in known)])
        made = [
            Proposal(text, tuple(MessageId(message_id) for message_id in evidence))
            for text, evidence in self._propose(messages)
        ]
        return CurationResult(tuple(made), ModelCallUsage("test-model", 1, 100, 20))

    async def close(self) -> None:
        self.closed = True


def repeating(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """Propose every message, word for word."""
    return [(message.text, [message.id]) for message in messages]
