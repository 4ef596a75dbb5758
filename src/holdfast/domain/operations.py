"""The audit trail: every call leaves one row, whatever its outcome. A row never holds text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.bindings import Key
from holdfast.domain.contract import (
    AttributionMode,
    HookContext,
    HookKind,
    Since,
    SourceKind,
    SourceRef,
    Until,
    Usage,
)
from holdfast.domain.ids import CostEventId, OperationId
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Part, Scope


class Outcome(StrEnum):
    """The outcome of a call. `unknown`: an external call is still running, or the process died before recording it."""

    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class OperationType(StrEnum):
    """The kind of a call on memory, independent of the verb that made it."""

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
    Action.REVERT: OperationType.CORRECT,
}


# Queries that may find something or nothing. A profile is no query, and an explanation is for diagnosis.
QUESTIONS = frozenset({Action.QUERY, Action.SEARCH, Action.RECALL, Action.PROJECT})
# Queries whose result always goes to a model. Others do if the caller is an agent or a pre-run hook.
FOR_MODELS = frozenset({Action.RECALL, Action.PROJECT})


@dataclass(frozen=True, slots=True)
class Attribution(Presentable):
    """The purpose and the usage of a call through the control plane. Ids and counts, never a payload.

    `dropped` counts records that the provider should not have returned; `handles` are the first records it named.
    `provider_called` is False for a replay, and for a hook that was skipped, queued or sent to a subscriber. Such a
    call is in the trail, but not in the metrics of its binding.
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
    provider_called: bool = True


@dataclass(frozen=True, slots=True)
class Operation(Presentable):
    """One audit row. `record_count` counts the records written, returned or removed."""

    id: OperationId
    actor: Actor
    action: Action
    scope: Scope
    outcome: Outcome
    error_code: str | None
    record_count: int
    started_at: datetime
    duration_micros: int
    attribution: Attribution | None = None


def counts_in_metrics(operation: Operation) -> bool:
    """True if the call counts in metrics: a call on memory that involved its provider."""
    served = operation.attribution is None or operation.attribution.provider_called
    return served and operation.action in TYPE_OF


def is_recall(operation: Operation) -> bool:
    """True if it was a query whose result goes to a model."""
    if operation.action not in QUESTIONS:
        return False
    hook = None if operation.attribution is None else operation.attribution.hook
    before_run = hook is not None and hook.kind is HookKind.PRE_RUN_HYDRATE
    return operation.action in FOR_MODELS or before_run or operation.actor.kind is ActorKind.AGENT


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Each field that is set must match. `since` is inclusive, `until` exclusive.
    `of_memory` excludes administration: only operations that have a type.
    """

    agent: Annotated[Part | None, "Of this agent."] = None
    project: Annotated[Part | None, "In this project."] = None
    issue: Annotated[Part | None, "In this issue."] = None
    run: Annotated[Part | None, "In this run."] = None
    binding: Annotated[Key | None, "Through this binding."] = None
    source_kind: Annotated[SourceKind | None, "Of this kind of source, such as run."] = None
    type: Annotated[OperationType | None, "Of this type, such as query."] = None
    action: Annotated[Action | None, "The exact action, such as recall."] = None
    outcome: Annotated[Outcome | None, "Which ended so."] = None
    since: Since | None = None
    until: Until | None = None
    of_memory: Annotated[bool, "Leave out administration: reads of the log, and changes of the configuration."] = False


ALL_OPERATIONS = OperationFilter()


@dataclass(frozen=True, slots=True)
class OperationPage(PresentableList[Operation]):
    """A page of operations, newest first. `next_cursor` is None on the last page."""

    items: tuple[Operation, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class BindingCounts(Presentable):
    """Provider requests through one binding (None: through none) in a period, by outcome.

    Each attempt of a worker counts; other work of a call does not. `refused` requests never reached a provider;
    `unknown` ones count as neither success nor failure.
    """

    binding: str | None
    succeeded: int
    failed: int
    refused: int
    unknown: int


@dataclass(frozen=True, slots=True)
class MemoryMetrics(Presentable):
    """Quality metrics of a space in a period.

    `recalls` are queries whose result goes to a model; `recall_hits` those with a result. `queries` are all queries,
    `empty_queries` those without a result. Only successful ones count. `extraction_failures` are extractions, by rules
    or by a model, that failed finally.
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
