"""A runtime's transcript operations on a real store, with helpers to write and read turns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from holdfast import AsyncMemory
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, Actor, storewide_grant
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.events import Event, EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.operations import Operation
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.transcripts import (
    CanonicalTurnDelta,
    FinalizeReport,
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.domain.transcript_turns import HostOpaqueRef, HostRefVisibility, Relation, View
from holdfast.ports import Curator
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.settings import Settings
from probes import audit_trail

T = TypeVar("T")
ANA = MemoryIdentity(subject_id="ana")
CHAT = MemoryScope(conversation_id="c1")
REF = HostOpaqueRef("crm", "ticket", "T-1", Relation.ORIGIN, HostRefVisibility.HOST_UI, "Ana's complaint")


class Talk:
    """Blocking transcript operations, so that tests read linearly."""

    def __init__(self, engine: Engine, runner: asyncio.Runner, operations: TranscriptOperations) -> None:
        self.engine, self.runner, self.operations = engine, runner, operations

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @property
    def memory(self) -> AsyncMemory:
        identity = self.operations._governance.identity
        return AsyncMemory(self.engine, space=identity.space, subject=identity.subject_id)

    def of(self, identity: MemoryIdentity, actor: Actor = LOCAL_OPERATOR, profile: str = DEFAULT_PROFILE) -> Talk:
        """Return another identity's runtime on the same store."""
        return Talk(self.engine, self.runner, operations(self.engine, identity, actor, profile))

    # --- writing ---

    def commit(
        self, turn_id: str, *texts: str, where: MemoryScope | None = CHAT, **more: Any
    ) -> MemoryTranscriptCommitReport:
        """Commit texts of user and assistant in turn, or messages."""
        refs = more.pop("host_refs", ())
        turn = TranscriptTurnInput(turn_id, messages_of(texts), where, **more)
        return self.run(self.operations.commit_transcript(MemoryTranscriptCommitRequest(turn, refs)))

    def finalize(
        self, turn_id: str, asked: Sequence[str | TurnMessage], answer: str | None = None, **more: Any
    ) -> FinalizeReport:
        options = {name: more.pop(name) for name in ("mode_input", "pressure") if name in more}
        status = more.pop("status", "delivered")
        delta = CanonicalTurnDelta(turn_id, status, messages_of(asked), answer, **{"conversation": CHAT, **more})
        return self.run(self.operations.finalize_turn_and_maintain(delta, **options))

    def age(
        self, transition: str, turn_id: str | None = None, where: MemoryScope | None = CHAT, reason: str = "asked to"
    ) -> MemoryTranscriptLifecycleReport:
        request = MemoryTranscriptLifecycleRequest(transition, reason, where, turn_id)
        return self.run(self.operations.request_transcript_lifecycle(request))

    # --- reading ---

    def replay(
        self,
        view: str = View.RAW_OWNER_ONLY,
        where: MemoryScope | None = CHAT,
        limit: int = 64,
        cursor: str | None = None,
    ) -> MemoryTranscriptReplayReport:
        request = MemoryTranscriptReplayRequest(view, where, limit, cursor)
        return self.run(self.operations.replay_transcript(request))

    def texts(self, view: str = View.RAW_OWNER_ONLY, where: MemoryScope | None = CHAT) -> list[str | None]:
        """Return all texts, over all pages."""
        found: list[str | None] = []
        cursor = None
        while True:
            page = self.replay(view, where, cursor=cursor)
            found.extend(message.text for turn in page.slice.turns for message in turn.messages)
            cursor = page.next_cursor
            if cursor is None:
                return found

    def sequences(self, where: MemoryScope | None = CHAT) -> list[int]:
        found: list[int] = []
        cursor = None
        while True:
            page = self.replay(View.MODEL_CONTEXT, where, cursor=cursor)
            found.extend(turn.sequence for turn in page.slice.turns)
            cursor = page.next_cursor
            if cursor is None:
                return found

    def search(self, query: str) -> list[str]:
        return [hit.text for hit in self.run(self.memory.search(query))]

    def trail(self) -> Sequence[Operation]:
        return self.run(audit_trail(self.memory))

    def events(self) -> Sequence[Event]:
        """Return the events of requests; those of the turns themselves are left out."""
        store, kinds = self.engine._core.store, frozenset(EventKind) - {EventKind.WRITE}
        return self.run(store.read(storewide_grant(), lambda reader: reader.events.page(1_000, kinds)))


def messages_of(given: Sequence[str | TurnMessage]) -> tuple[TurnMessage, ...]:
    roles = ("user", "assistant")
    return tuple(
        TurnMessage(each, roles[place % 2]) if isinstance(each, str) else each for place, each in enumerate(given)
    )


def operations(
    engine: Engine, identity: MemoryIdentity, actor: Actor = LOCAL_OPERATOR, profile: str = DEFAULT_PROFILE
) -> TranscriptOperations:
    chosen = profile_of(profile)
    circumstances = Circumstances(model=engine._core.curator is not None)
    return TranscriptOperations(engine, actor, Governance(identity, chosen, catalogue(chosen, circumstances)))


@contextmanager
def talking(
    location: str,
    runner: asyncio.Runner,
    *,
    identity: MemoryIdentity = ANA,
    embedder: Any = "fake",
    curator: Curator | None = None,
    work: bool = False,
) -> Iterator[Talk]:
    engine = runner.run(open_engine(location, Settings(), embedder=embedder, work=work))
    engine._core = replace(engine._core, curator=curator)
    try:
        yield Talk(engine, runner, operations(engine, identity))
    finally:
        runner.run(engine.close())
