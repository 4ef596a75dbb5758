"""A store with memories and turns, written through its ports; and runtimes over it, one per identity."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holdfast.app import Engine, open_engine
from holdfast.domain import ids
from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Actor, authorize
from holdfast.domain.capabilities import Circumstances, Privacy, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.ids import MemoryId, MessageId, TurnId
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust, Validity
from holdfast.domain.operations import Operation
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState
from holdfast.ports import NewMessage, NewRevision, NewTurn, Reader
from holdfast.runtime import indexing
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.settings import Settings
from probes import SteppingClock

HERE = Scope(subject="ana", conversation="here")


class World:
    def __init__(self, engine: Engine, runner: asyncio.Runner, clock: SteppingClock) -> None:
        self.engine = engine
        self.core = engine._core
        self.clock = clock
        self._runner = runner

    def run(self, coroutine: Any) -> Any:
        return self._runner.run(coroutine)

    def runtime(
        self,
        identity: MemoryIdentity | None = None,
        *,
        actor: Actor = LOCAL_OPERATOR,
        profile: str = DEFAULT_PROFILE,
        privacy: Privacy | None = None,
        **circumstances: Any,
    ) -> RetrievalOperations:
        chosen = profile_of(profile)
        shown = catalogue(chosen, Circumstances(privacy=privacy or Privacy(), **circumstances))
        return RetrievalOperations(
            self.engine, actor, Governance(identity or MemoryIdentity(subject_id="ana"), chosen, shown)
        )

    def remember(
        self,
        text: str,
        scope: Scope | None = None,
        *,
        plane: Plane = Plane.LONG_TERM,
        status: Status = Status.ACCEPTED,
        validity: Validity = ALWAYS,
        evidence: Sequence[str] = (),
        source: str | None = None,
    ) -> str:
        where = scope or Scope(subject="ana")
        (entry,) = self.run(indexing.make_entries(self.core, [text]))
        revision = NewRevision(
            MemoryId(self.core.ids.new(ids.MEMORY)), where, plane, text, Trust.STATED, status, validity,
            self.clock.now(), source, "test", None, tuple(map(MessageId, evidence)), {}, entry.analysis, entry.vectors,
        )  # fmt: skip
        grant = authorize(SYSTEM, Action.WORK, where)
        self._write(grant, lambda t: t.records.add_revision(revision, *self._indexed_by))
        return revision.id

    def say(
        self,
        *texts: str,
        thread: Scope = HERE,
        authority: Authority | None = None,
        role: Role = Role.USER,
        state: TranscriptState = TranscriptState.ACTIVE,
    ) -> tuple[str, ...]:
        """Write one turn; return the ids of its messages."""
        now = self.clock.now()
        entries = self.run(indexing.make_entries(self.core, texts))
        messages = [
            NewMessage(
                MessageId(self.core.ids.new(ids.MESSAGE)), text, "Ana", role, now, False, None, {}, entry.analysis,
                entry.vectors, authority,
            )
            for text, entry in zip(texts, entries, strict=True)
        ]  # fmt: skip
        turn = NewTurn(TurnId(self.core.ids.new(ids.TURN)), thread, None, now, messages)
        grant = authorize(SYSTEM, Action.COMMIT_TRANSCRIPT, thread)
        stored = self._write(grant, lambda t: t.transcripts.add_turn(turn, *self._indexed_by))
        if state is not TranscriptState.ACTIVE:
            self.become(state, stored.sequence, thread)
        return tuple(message.id for message in messages)

    def become(self, state: TranscriptState, sequence: int, thread: Scope = HERE) -> None:
        grant = authorize(SYSTEM, Action.TRANSCRIPT_LIFECYCLE, thread)
        self._write(grant, lambda t: t.transcripts.set_state(thread, [sequence], state, self.clock.now()))

    def alias(self, chat_id: str, thread: Scope = HERE) -> None:
        grant = authorize(SYSTEM, Action.COMMIT_TRANSCRIPT, thread)
        self._write(grant, lambda t: t.aliases.put(thread, chat_id, self.clock.now()))

    def operations(self, limit: int = 1) -> list[Operation]:
        """Return the last operations, oldest first."""

        def newest(reader: Reader) -> list[Operation]:
            return list(reader.operations.page(limit=limit))[::-1]

        # Rows of reads are written soon, and before any later write.
        self._write(self._everything, lambda t: t.maintenance.put_fact("seen", "yes"))
        return list(self.run(self.core.store.read(self._everything, newest)))

    def read(self, work: Any) -> Any:
        return self.run(self.core.store.read(self._everything, work))

    @property
    def _everything(self) -> Any:
        return authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))

    @property
    def _indexed_by(self) -> tuple[str, int]:
        return self.core.embedder.fingerprint, self.core.analyzer.version

    def _write(self, grant: Any, work: Any) -> Any:
        return self.run(self.core.store.write(grant, work))


@contextmanager
def opened(place: str, clock: SteppingClock) -> Iterator[World]:
    with asyncio.Runner() as runner:
        settings = Settings()
        engine = runner.run(open_engine(place, settings, embedder="fake", clock=clock, work=False))
        try:
            yield World(engine, runner, clock)
        finally:
            runner.run(engine.close())


def in_space(scope: Scope, space: str) -> Scope:
    return replace(scope, space=space)
