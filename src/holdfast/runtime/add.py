"""`add`: append messages to a conversation. Durable and searchable on return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from holdfast.domain import ids
from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey, many, text_rule
from holdfast.domain.checks import check_count, checked_text
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.jobs import Cause
from holdfast.domain.results import Added, SkippedMessage
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Draft, Role
from holdfast.errors import InvalidInput
from holdfast.ports import NewMessage, NewTurn, StoredMessages, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_turn

MAX_SOURCE_CHARS = 256
# All or nothing: one transaction, for which other writers wait. A service's other callers would wait, too.
MAX_MESSAGES = 100_000
MAX_SERVED_MESSAGES = 500
NewSource = Annotated[str, text_rule(MAX_SOURCE_CHARS, "NAME"), "The origin of the content, to filter and forget by."]
FORGOTTEN = "forgotten: a message of this id was forgotten, and is not brought back"
KNOWN = "known: this message is stored already"


@dataclass(frozen=True, slots=True)
class _PreparedAdd:
    core: Core
    turn: NewTurn


@dataclass(frozen=True, slots=True)
class Add(Write[_PreparedAdd, Added]):
    """Add messages to a conversation. They are durable and searchable on return.

    Retries are safe with an idempotency key, with message ids, or with explicit timestamps and equal content.
    """

    action: ClassVar[Action] = Action.ADD
    scope: Scope
    drafts: Annotated[
        tuple[Draft, ...],
        many(MAX_MESSAGES, least=1, noun="MESSAGE", max_served=MAX_SERVED_MESSAGES),
        'Texts, `{"role", "content"}`, `("user", "hi")`, or messages of LangChain, OpenAI or Anthropic.',
    ]
    idempotency_key: IdempotencyKey | None = None
    source: NewSource | None = None

    def __post_init__(self) -> None:
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "is needed to add messages")
        if not self.drafts:
            raise InvalidInput("messages", "is empty; give at least one message")
        check_count(self.drafts, "messages", 1, MAX_MESSAGES)
        check_source(self.source)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedAdd:
        now = core.clock.now()
        entries = await indexing.make_entries(core, [draft.text for draft in self.drafts])
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
        return _PreparedAdd(core, turn)

    def _sender(self, draft: Draft) -> str | None:
        """A user message without a sender is from the subject."""
        return draft.sender or (self.scope.subject if draft.role is Role.USER else None)

    def digest(self) -> str:
        # Keep this form: older stores hold answers under it.
        return digest_of(
            self.scope.given(),
            self.source,
            [
                (draft.text, draft.sender, draft.role, str(draft.said_at), draft.external_id, dict(draft.metadata))
                for draft in self.drafts
            ],
        )

    def apply(self, transaction: Transaction, prepared: _PreparedAdd) -> Added:
        return self.store_messages(transaction, prepared)

    def store_messages(self, transaction: Transaction, prepared: _PreparedAdd, cause: Cause | None = None) -> Added:
        """Store the messages. `cause` is the origin of the jobs that are queued for them."""
        core, turn = prepared.core, prepared.turn
        stored = add_turn(transaction, core, turn)
        return Added(
            turn_id=turn.id if stored.new else None,
            conversation=self.scope.conversation or "",
            message_ids=stored.ids,
            stored=len(stored.new),
            skipped=_skipped_messages(stored),
            jobs=() if core.embedder.local else enqueue_indexing(transaction, core, self.scope, stored.new_ids, cause),
        )

    def replay_state(self, result: Added) -> dict[str, Any]:
        return {"turn_id": result.turn_id, "message_ids": result.message_ids}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Added:
        return Added(
            turn_id=kept["turn_id"],
            conversation=self.scope.conversation or "",
            message_ids=tuple(kept["message_ids"]),
            stored=0,
            replayed=True,
        )

    def has_work(self, core: Core, result: Added) -> bool:
        return bool(result.jobs)

    def record_count(self, result: Added) -> int:
        return result.stored


def _skipped_messages(stored: StoredMessages) -> tuple[SkippedMessage, ...]:
    return tuple(
        SkippedMessage(index, FORGOTTEN if found is None else KNOWN, found)
        for index, found in enumerate(stored.ids)
        if index not in stored.new
    )


def check_source(source: str | None) -> None:
    if source is not None:
        checked_text(source, "source", max_chars=MAX_SOURCE_CHARS)
