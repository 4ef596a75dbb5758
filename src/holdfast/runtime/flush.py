"""`flush`: wait for the vectors, seal what was said since the last time, and queue its extraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.ids import OperationId
from holdfast.domain.jobs import JobKind, NewJob
from holdfast.domain.results import Flushed
from holdfast.domain.scope import Scope
from holdfast.errors import InvalidInput
from holdfast.ports import Transaction
from holdfast.runtime import indexing
from holdfast.runtime.perform import Core, Write

_MESSAGES_PER_JOB = 200


@dataclass(frozen=True, slots=True)
class Flush(Write[Core, Flushed]):
    action: ClassVar[Action] = Action.FLUSH
    scope: Scope
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        if self.scope.conversation is None:
            raise InvalidInput("conversation", "say which conversation to flush")
        # It is sealed whole, whatever run asks for it.
        object.__setattr__(self, "scope", self.scope.thread)

    async def prepare(self, core: Core, grant: Grant) -> Core:
        await indexing.index_waiting(core, grant)
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> Flushed:
        unsealed = transaction.unsealed(self.scope)
        transaction.seal(self.scope)
        jobs = tuple(
            self.enqueue(
                transaction,
                prepared,
                NewJob(JobKind.EXTRACT, self.scope, tuple(unsealed[start : start + _MESSAGES_PER_JOB])),
            )
            for start in range(0, len(unsealed), _MESSAGES_PER_JOB)
        )
        return Flushed(self.scope.conversation or "", len(unsealed), jobs)

    def kept(self, result: Flushed) -> dict[str, Any]:
        return {"messages": result.messages, "jobs": result.jobs}

    def replayed(self, transaction: Transaction, kept: dict[str, Any]) -> Flushed:
        return Flushed(self.scope.conversation or "", kept["messages"], tuple(kept["jobs"]), replayed=True)

    async def finish(self, core: Core, result: Flushed, operation_id: OperationId) -> Flushed:
        if result.jobs:
            core.wake()
        return result

    def touched(self, result: Flushed) -> int:
        return result.messages
