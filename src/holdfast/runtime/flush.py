"""`flush`: wait for vectors, seal the messages added since the last flush, and queue their extraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey
from holdfast.domain.ids import JobId, OperationId
from holdfast.domain.jobs import Cause, JobKind, NewJob
from holdfast.domain.results import Flushed
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput
from holdfast.ports import Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write

_MESSAGES_PER_JOB = 200


def seal_conversation(
    verb: Write[Any, Any], transaction: Transaction, core: Core, thread: Scope, cause: Cause | None = None
) -> tuple[int, tuple[JobId, ...]]:
    """Seal a conversation in a verb's transaction. Return the number of messages and the queued extraction jobs."""
    unsealed = transaction.transcripts.unsealed_messages(thread)
    transaction.transcripts.seal(thread)
    return len(unsealed), tuple(
        verb.enqueue(
            transaction,
            core,
            NewJob(JobKind.EXTRACT, thread, tuple(unsealed[start : start + _MESSAGES_PER_JOB]), cause),
        )
        for start in range(0, len(unsealed), _MESSAGES_PER_JOB)
    )


@dataclass(frozen=True, slots=True)
class Flush(Write[Core, Flushed]):
    """Wait for the vectors of one conversation, as in `add`; seal its messages and queue the extraction."""

    action: ClassVar[Action] = Action.FLUSH
    scope: Scope
    idempotency_key: IdempotencyKey | None = None

    def __post_init__(self) -> None:
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "name the conversation to flush")
        # The whole conversation is sealed, also if the scope names a run.
        object.__setattr__(self, "scope", self.scope.thread)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        await indexing.index_waiting(core, grant)
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> Flushed:
        messages, jobs = seal_conversation(self, transaction, prepared, self.scope)
        return Flushed(self.scope.conversation or "", messages, jobs)

    def replay_state(self, result: Flushed) -> dict[str, Any]:
        return {"messages": result.messages, "jobs": result.jobs}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Flushed:
        return Flushed(self.scope.conversation or "", kept["messages"], tuple(kept["jobs"]), replayed=True)

    async def finish(self, core: Core, result: Flushed, operation_id: OperationId) -> Flushed:
        if result.jobs:
            core.wake()
        return result

    def record_count(self, result: Flushed) -> int:
        return result.messages
