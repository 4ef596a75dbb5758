"""The audit row that every call leaves, whoever made it and however it ended. It never holds text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.contract import AttributionMode, HookContext, HookKind, SourceKind, SourceRef, Usage
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.scope import Scope


class Outcome(StrEnum):
    """`unknown`: something outside was asked, and nobody lived to write down what came of it; or it is under way."""

    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class OperationType(StrEnum):
    """What a call was to memory, whichever of our verbs it was."""

    CAPTURE = "capture"
    RECORD_UPSERT = "record_upsert"
    QUERY = "query"
    LIST = "list"
    GET = "get"
    FORGET = "forget"
    CORRECT = "correct"


TYPE_OF: Mapping[Action, OperationType] = {
    Action.CAPTURE: OperationType.CAPTURE,
    Action.DELIVER_HOOK: OperationType.CAPTURE,
    Action.ADD: OperationType.CAPTURE,
    Action.ADD_RESOURCE: OperationType.CAPTURE,
    Action.COMMIT_TRANSCRIPT: OperationType.CAPTURE,
    Action.FINALIZE_TURN: OperationType.CAPTURE,
    Action.RECORD_UPSERT: OperationType.RECORD_UPSERT,
    Action.REMEMBER: OperationType.RECORD_UPSERT,
    Action.WRITE: OperationType.RECORD_UPSERT,
    Action.QUERY: OperationType.QUERY,
    Action.SEARCH: OperationType.QUERY,
    Action.RECALL: OperationType.QUERY,
    Action.EXPLAIN: OperationType.QUERY,
    Action.PROJECT: OperationType.QUERY,
    Action.PROFILE: OperationType.QUERY,
    Action.LIST: OperationType.LIST,
    Action.BROWSE: OperationType.LIST,
    Action.LIST_RESOURCES: OperationType.LIST,
    Action.GET: OperationType.GET,
    Action.HISTORY: OperationType.GET,
    Action.GET_RESOURCE: OperationType.GET,
    Action.FORGET: OperationType.FORGET,
    Action.DELETE_RESOURCE: OperationType.FORGET,
    Action.CORRECT: OperationType.CORRECT,
}


# Questions: what may find something, or nothing. A profile answers none, and who explains is not in want of an answer.
QUESTIONS = frozenset({Action.QUERY, Action.SEARCH, Action.RECALL, Action.PROJECT})
# Those whose answer goes to a model by itself; that of another does if an agent asks, or a hook before its run.
FOR_MODELS = frozenset({Action.RECALL, Action.PROJECT})


@dataclass(frozen=True, slots=True)
class Attribution:
    """What a call through the control plane was for, and what it took. Ids and counts, never a payload.

    `dropped` counts what a provider gave and was not its to give; `handles` are the first records that it named. It is
    not `asked` if the call was never to ask a provider: a hook that is skipped, left to a worker or told to a
    subscriber, or what had been done before. Such a call is in the trail, and says nothing of how a binding serves.
    """

    binding: str | None = None
    provider: str | None = None
    source: SourceRef | None = None
    hook: HookContext | None = None
    usage: tuple[Usage, ...] = ()
    mode: AttributionMode | None = None
    cost_events: tuple[CostEventId, ...] = ()
    handles: tuple[str, ...] = ()
    dropped: int = 0
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """`touched` counts the records that were written, returned or removed."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    outcome: Outcome
    error_code: str | None
    touched: int
    started_at: datetime
    duration_micros: int
    attribution: Attribution | None = None


def counts(operation: Operation) -> bool:
    """Whether it tells how memory serves: a call on memory, unless it was to ask nobody."""
    asked = operation.attribution is None or operation.attribution.asked
    return asked and operation.action in TYPE_OF


def is_recall(operation: Operation) -> bool:
    """Whether it was a question whose answer goes to a model."""
    if operation.action not in QUESTIONS:
        return False
    hook = None if operation.attribution is None else operation.attribution.hook
    before_run = hook is not None and hook.kind is HookKind.PRE_RUN_HYDRATE
    return operation.action in FOR_MODELS or before_run or operation.actor.kind is ActorKind.AGENT


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Each that is given must match. `since` is the first moment that counts, `until` the first that does not.
    `of_memory` leaves out administration: only what has a type.
    """

    agent: str | None = None
    project: str | None = None
    issue: str | None = None
    run: str | None = None
    binding: str | None = None
    source_kind: SourceKind | None = None
    type: OperationType | None = None
    action: Action | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None
    of_memory: bool = False


@dataclass(frozen=True, slots=True)
class OperationPage:
    """Newest first. `next_cursor` is None on the last page."""

    items: tuple[Operation, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class BindingCounts:
    """What was asked through one binding (None: through no binding) in a time, once for each asking.

    An attempt of a worker is an asking; what a call did besides asking is none. `refused` is what was not let through
    to anybody; `unknown` counts as neither.
    """

    binding: str | None
    succeeded: int
    failed: int
    refused: int
    unknown: int


@dataclass(frozen=True, slots=True)
class MemoryMetrics:
    """How well memory serves a space in a time.

    `recalls` are questions whose answer goes to a model; `recall_hits` those that gave something. `queries` are all,
    `empty_queries` those that gave nothing. Both count what succeeded. `extraction_failures` are extractions, by rules
    or by a model, that failed and were not tried again.
    """

    recalls: int
    recall_hits: int
    queries: int
    empty_queries: int
    corrections: int
    extraction_failures: int
    bindings: tuple[BindingCounts, ...]

    @property
    def recall_hit_rate(self) -> float | None:
        return self.recall_hits / self.recalls if self.recalls else None

    @property
    def empty_query_rate(self) -> float | None:
        return self.empty_queries / self.queries if self.queries else None
