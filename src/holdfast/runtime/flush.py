"""`flush`: wait for vectors, seal the messages added since the last flush, and queue their extraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.arguments import IdempotencyKey
from holdfast.domain.ids import JobId
from holdfast.domain.jobs import Cause, JobKind
from holdfast.domain.results import Flushed
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput
from holdfast.ports import Transaction
from holdfast.runtime import indexing
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.job_queue import enqueue_batches

_MESSAGES_PER_JOB = 200
# Usually one request to the model: if it fails, little is asked again.
_MESSAGES_PER_MODEL_JOB = 50


def seal_conversation(
    transaction: Transaction, core: Core, thread: Scope, cause: Cause | None = None
) -> tuple[int, tuple[JobId, ...]]:
    """Seal a conversation in a verb's transaction. Return the number of messages and the queued extraction jobs."""
    unsealed = transaction.transcripts.unsealed_messages(thread)
    transaction.transcripts.seal(thread)
    batch = _MESSAGES_PER_JOB if core.flush_model is None else _MESSAGES_PER_MODEL_JOB
    jobs = enqueue_batches(transaction, core, JobKind.EXTRACT, thread, unsealed, batch, cause)
    return len(unsealed), jobs


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
        messages, jobs = seal_conversation(transaction, prepared, self.scope)
        return Flushed(self.scope.conversation or "", messages, jobs)

    def replay_state(self, result: Flushed) -> dict[str, Any]:
        return {"messages": result.messages, "jobs": result.jobs}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Flushed:
        return Flushed(self.scope.conversation or "", kept["messages"], tuple(kept["jobs"]), replayed=True)

    def has_work(self, core: Core, result: Flushed) -> bool:
        return bool(result.jobs)

    def record_count(self, result: Flushed) -> int:
        return result.messages
