"""Calls on the operation log and its metrics."""

from __future__ import annotations

from holdfast.control.operations import GetMetrics, GetOperation, ListOperations
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action
from holdfast.domain.contract import DEFAULT_PAGE, SourceKind
from holdfast.domain.operations import (
    MemoryMetrics,
    Operation,
    OperationFilter,
    OperationPage,
    OperationType,
    Outcome,
)
from holdfast.inputs import Moment, moment_from, parse_enum


class TrailCalls(ControlCalls):
    async def operations(
        self,
        *,
        agent: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        binding_key: str | None = None,
        source_kind: str | None = None,
        type: str | None = None,  # noqa: A002 - what the seed calls it
        action: str | None = None,
        outcome: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        of_memory: bool = False,
        cursor: str | None = None,
        limit: int = DEFAULT_PAGE,
    ) -> OperationPage:
        """List operations, newest first. Each given filter must match; `until` is exclusive.

        `of_memory` leaves out administrative reads and changes.
        """

        def make() -> ListOperations:
            criteria = OperationFilter(
                agent=agent,
                project=project,
                issue=issue,
                run=run,
                binding=binding_key,
                source_kind=None if source_kind is None else parse_enum(SourceKind, source_kind, "source_kind"),
                type=None if type is None else parse_enum(OperationType, type, "type"),
                action=None if action is None else parse_enum(Action, action, "action"),
                outcome=None if outcome is None else parse_enum(Outcome, outcome, "outcome"),
                since=moment_from(since, "since"),
                until=moment_from(until, "until"),
                of_memory=of_memory,
            )
            return ListOperations(self._company(), criteria, cursor, limit)

        return await self._perform(Action.READ_OPERATIONS, make)

    async def operation(self, operation_id: str) -> Operation:
        """Get one operation by its id."""
        return await self._perform(Action.READ_OPERATIONS, lambda: GetOperation(self._company(), operation_id))

    async def metrics(self, *, since: Moment | None = None, until: Moment | None = None) -> MemoryMetrics:
        """Summarize how well memory served the company in a period."""
        return await self._perform(
            Action.READ_OPERATIONS,
            lambda: GetMetrics(self._company(), moment_from(since, "since"), moment_from(until, "until")),
        )
