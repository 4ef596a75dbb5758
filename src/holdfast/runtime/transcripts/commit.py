"""`commit_transcript`: append one turn verbatim, in order and durably. Repeats of the same turn change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_instances, checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.ids import MessageId
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    TurnMessage,
)
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import MAX_TURN_MESSAGES, SkippedReason, TranscriptState, TranscriptTurn
from holdfast.errors import Conflict, DuplicateId
from holdfast.ports import Reader, StoredMessages, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.indexing import IndexedText
from holdfast.runtime.job_queue import enqueue_indexing
from holdfast.runtime.record_writes import add_turn
from holdfast.runtime.transcripts.budgets import require_budget
from holdfast.runtime.transcripts.conversation_address import ConversationAddress, StartedOperation
from holdfast.runtime.transcripts.turn_input import (
    TurnContext,
    ValidatedMessage,
    new_turn,
    validate_message,
    validate_turn_id,
)


@dataclass(frozen=True, slots=True)
class _PreparedCommit:
    started: StartedOperation
    entries: Sequence[IndexedText]


@dataclass(frozen=True, slots=True)
class CommitTranscript(Write[_PreparedCommit, MemoryTranscriptCommitReport]):
    """Commit one turn. Idempotent by the host's turn id."""

    action: ClassVar[Action] = Action.COMMIT_TRANSCRIPT
    governance: Governance
    address: ConversationAddress
    scope: Scope
    turn_id: str
    messages: tuple[ValidatedMessage, ...]
    circumstances: TurnContext

    @classmethod
    def of(cls, governance: Governance, where: MemoryScope, request: MemoryTranscriptCommitRequest) -> CommitTranscript:
        turn = request.turn
        address = ConversationAddress.of(governance, where)
        turn_id = validate_turn_id(turn.turn_id)
        circumstances = TurnContext(turn.attribution, turn.delivery_status, request.host_refs)  # type: ignore[arg-type]
        messages = checked_instances(turn.messages, TurnMessage, "messages")
        checked_whole(len(messages), "messages", 1, MAX_TURN_MESSAGES)
        given = tuple(validate_message(message, governance, turn.attribution) for message in messages)
        return cls(governance, address, address.scope, turn_id, given, circumstances)

    async def prepare(self, core: Core, grant: Grant) -> _PreparedCommit:
        started = StartedOperation(core, self.action, core.clock.now())
        entries = await indexing.make_entries(core, [given.draft.text for given in self.messages])
        return _PreparedCommit(started, entries)

    def apply(self, transaction: Transaction, prepared: _PreparedCommit) -> MemoryTranscriptCommitReport:
        core, now = prepared.started.core, prepared.started.started_at
        thread = self.address.resolve(transaction)
        messages = zip(self.messages, prepared.entries, strict=True)
        turn = new_turn(core, thread, self.turn_id, messages, self.circumstances, now)
        try:
            stored = add_turn(transaction, core, turn)
        except DuplicateId:
            # Most turns are new, so existing turns are looked up only here. Nothing was written yet.
            existing = transaction.transcripts.turn(thread, self.turn_id)
            if existing is None:
                raise
            self._require_same(existing)
            self.address.store_alias(transaction, thread, now)
            return skipped_report(
                prepared.started, transaction, thread, SkippedReason.ALREADY_COMMITTED, existing, self.turn_id
            )
        require_own_messages(stored)
        if stored.new:
            require_budget(transaction, self.governance)
        self.address.store_alias(transaction, thread, now)
        if not core.embedder.local:
            enqueue_indexing(transaction, core, thread, stored.new_ids)
        return commit_report(prepared.started, transaction, thread, self.turn_id, stored)

    def _require_same(self, existing: TranscriptTurn) -> None:
        """Raise `Conflict` if the stored turn differs. For deleted content only roles and authorities are compared."""
        same = len(existing.messages) == len(self.messages) and all(
            message.role is given.draft.role
            and given.may_have(message.authority)
            and message.text in (None, given.draft.text)
            for message, given in zip(existing.messages, self.messages, strict=True)
        )
        if existing.state is not TranscriptState.RAW_DELETED:
            same &= existing.host_refs == self.circumstances.host_refs
        if not same:
            raise Conflict(
                f"turn_id: {self.turn_id!r:.80} was committed with other content; give each turn an id of its own"
            )

    def has_work(self, core: Core, result: MemoryTranscriptCommitReport) -> bool:
        return result.committed and not core.embedder.local

    def record_count(self, result: MemoryTranscriptCommitReport) -> int:
        return len(result.message_ids) if result.committed else 0


def require_own_messages(stored: StoredMessages) -> None:
    """Raise `DuplicateId` if a message of the new turn already belongs to another turn. Nothing is committed then."""
    if any(found is not None and place not in stored.new for place, found in enumerate(stored.ids)):
        raise DuplicateId("message_id: belongs to a message of another turn; give each message an id of its own")


def commit_report(
    started: StartedOperation, reader: Reader, thread: Scope, turn_id: str, stored: StoredMessages
) -> MemoryTranscriptCommitReport:
    """Report an added turn, or a skipped one if all its messages existed already or had been forgotten."""
    if stored.sequence is None:
        known = any(found is not None for found in stored.ids)
        reason = SkippedReason.ALREADY_COMMITTED if known else SkippedReason.FORGOTTEN
        return skipped_report(started, reader, thread, reason, None, turn_id)
    return MemoryTranscriptCommitReport(
        key=key_of(thread),
        turn_id=turn_id,
        sequence=stored.sequence,
        committed=True,
        before_count=stored.sequence - 1,
        after_count=stored.sequence,
        skipped_reason=None,
        message_ids=stored.new_ids,
        lifecycle_report=started.report(f"committed turn {stored.sequence}", changed=True),
    )


def skipped_report(
    started: StartedOperation,
    reader: Reader,
    thread: Scope,
    reason: SkippedReason,
    there: TranscriptTurn | None,
    turn_id: str,
) -> MemoryTranscriptCommitReport:
    """Report a turn of which nothing was committed."""
    last = reader.transcripts.last_turns(thread, 1)
    count = last[-1].sequence if last else 0
    message_ids: tuple[MessageId, ...] = () if there is None else tuple(message.id for message in there.messages)
    return MemoryTranscriptCommitReport(
        key=key_of(thread),
        turn_id=turn_id if there is None else there.id,
        sequence=None if there is None else there.sequence,
        committed=False,
        before_count=count,
        after_count=count,
        skipped_reason=reason,
        message_ids=message_ids,
        lifecycle_report=started.report(f"nothing committed: {reason}"),
    )
