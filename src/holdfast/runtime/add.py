"""`add`: messages into a conversation. Durable and searchable on return."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.ids import JobId, MessageId, OperationId, TurnId
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.results import Added, Skipped
from holdfast.domain.scope import Scope
from holdfast.domain.text import checked_text
from holdfast.domain.transcript import Draft, Role
from holdfast.errors import IdempotencyConflict, InvalidInput
from holdfast.ports import Answer, NewMessage, NewTurn, StoredMessages, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.perform import Core, Write

MAX_KEY_CHARS = 256
FORGOTTEN = "forgotten: a message of this id was forgotten, and is not brought back"
KNOWN = "known: this message is stored already"


@dataclass(frozen=True, slots=True)
class _Prepared:
    core: Core
    turn: NewTurn
    digest: str  # of a call with an idempotency key; of another nobody asks
    now: datetime


@dataclass(frozen=True, slots=True)
class Add(Write[_Prepared, Added]):
    """Retries are safe with an idempotency key, with message ids, or with given timestamps and equal content."""

    action: ClassVar[Action] = Action.ADD
    scope: Scope
    drafts: tuple[Draft, ...]
    idempotency_key: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "is needed to add messages")
        if not self.drafts:
            raise InvalidInput("messages", "there are none; give at least one")
        check_key(self.idempotency_key)
        check_source(self.source)

    async def prepare(self, core: Core, grant: Grant) -> _Prepared:
        now = core.clock.now()
        entries = await indexing.entries(core, [draft.text for draft in self.drafts])
        messages = [
            NewMessage(
                id=MessageId(core.ids.new(ids.MESSAGE)),
                text=draft.text,
                sender=self._sender(draft),
                role=draft.role,
                said_at=draft.said_at or now,
                said_at_given=draft.said_at is not None,
                external_id=draft.external_id,
                metadata=draft.metadata,
                analysis=entry.analysis,
                vectors=entry.vectors,
            )
            for draft, entry in zip(self.drafts, entries, strict=True)
        ]
        turn = NewTurn(TurnId(core.ids.new(ids.TURN)), self.scope, self.source, now, messages)
        return _Prepared(core, turn, "" if self.idempotency_key is None else self._digest(), now)

    def _sender(self, draft: Draft) -> str | None:
        """Who speaks as the user, unnamed, is the subject."""
        return draft.sender or (self.scope.subject if draft.role is Role.USER else None)

    def _digest(self) -> str:
        return digest_of(
            self.scope.given(),
            self.source,
            [
                (draft.text, draft.sender, draft.role, str(draft.said_at), draft.external_id, dict(draft.metadata))
                for draft in self.drafts
            ],
        )

    def apply(self, transaction: Transaction, prepared: _Prepared) -> Added:
        partition = self.scope.partition
        if self.idempotency_key is not None:
            known = transaction.answer(partition, answer_key(self.scope, self.idempotency_key))
            if known is not None:
                return self._replayed(known, prepared.digest)
        core, turn = prepared.core, prepared.turn
        stored = transaction.add_turn(turn, core.embedder.fingerprint, core.analyzer.version)
        if self.idempotency_key is not None:
            answer = Answer(prepared.digest, stored.ids, turn.id)
            transaction.keep_answer(partition, answer_key(self.scope, self.idempotency_key), answer, prepared.now)
        return Added(
            turn_id=turn.id if stored.new else None,
            conversation=self.scope.conversation or "",
            message_ids=stored.ids,
            stored=len(stored.new),
            skipped=_skipped(stored),
            jobs=self._index_later(transaction, core, stored),
        )

    def _index_later(self, transaction: Transaction, core: Core, stored: StoredMessages) -> tuple[JobId, ...]:
        if core.embedder.local or not stored.new:
            return ()
        new = [str(stored.ids[index]) for index in sorted(stored.new)]
        return tuple(
            self.enqueue(transaction, core, NewJob(JobKind.INDEX, self.scope, tuple(new[start : start + 500])))
            for start in range(0, len(new), 500)
        )

    def _replayed(self, known: Answer, digest: str) -> Added:
        if known.digest != digest:
            raise IdempotencyConflict("idempotency_key: was used for other messages; use a new key for each new call")
        message_ids = tuple(MessageId(found) if found else None for found in known.ids)
        return Added(
            turn_id=TurnId(known.turn_id) if known.turn_id else None,
            conversation=self.scope.conversation or "",
            message_ids=message_ids,
            stored=0,
            replayed=True,
        )

    async def finish(self, core: Core, result: Added, operation_id: OperationId) -> Added:
        if result.jobs:
            core.wake()
        return result

    def touched(self, result: Added) -> int:
        return result.stored


def _skipped(stored: StoredMessages) -> tuple[Skipped, ...]:
    return tuple(
        Skipped(index, FORGOTTEN if found is None else KNOWN, found)
        for index, found in enumerate(stored.ids)
        if index not in stored.new
    )


def check_key(key: str | None) -> None:
    if key is not None:
        checked_text(key, "idempotency_key", max_chars=MAX_KEY_CHARS)


def check_source(source: str | None) -> None:
    if source is not None:
        checked_text(source, "source", max_chars=MAX_KEY_CHARS)


def digest_of(*parts: object) -> str:
    """A digest that tells one request from another."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=str, sort_keys=True).encode()).hexdigest()


def answer_key(scope: Scope, idempotency_key: str) -> str:
    """What an answer is kept under: apps, projects and namespaces of one partition do not meet in each other's keys."""
    return digest_of(scope.app, scope.project, scope.namespace, idempotency_key)
