"""Routes for the audit trail: operations with filters, and metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from holdfast.control.schemas import Part
from holdfast.domain.access import Action
from holdfast.domain.contract import SourceKind
from holdfast.domain.operations import OperationType, Outcome
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import (
    PAGE,
    ByKey,
    CompanyId,
    Cursor,
    Id,
    Limit,
    Since,
    Until,
    plane_of,
    router_of,
)
from holdfast.gateway.control.operation_schemas import MetricsTold, OperationList, OperationTold
from holdfast.gateway.problem_responses import refusals

ByPart = Annotated[Part | None, Query()]


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("operations")
    _add_operation_routes(routes, auth)
    return routes


def _add_operation_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/operations", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_operations(
        request: Request,
        company_id: CompanyId,
        agent_id: ByPart = None,
        project_id: ByPart = None,
        issue_id: ByPart = None,
        run_id: ByPart = None,
        binding_key: ByKey = None,
        source_kind: SourceKind | None = None,
        type: OperationType | None = None,  # noqa: A002 - the specification's name
        action: Action | None = None,
        outcome: Outcome | None = None,
        since: Since = None,
        until: Until = None,
        of_memory: bool = False,
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> OperationList:
        """List operations, newest first. All filters must match; `of_memory` excludes administrative operations."""
        plane = await plane_of(auth, request, company_id)
        page = await plane.operations(
            agent=agent_id,
            project=project_id,
            issue=issue_id,
            run=run_id,
            binding_key=binding_key,
            source_kind=source_kind,
            type=type,
            action=action,
            outcome=outcome,
            since=since,
            until=until,
            of_memory=of_memory,
            limit=limit,
            cursor=cursor,
        )
        return OperationList(operations=[OperationTold.of(each) for each in page.items], next_cursor=page.next_cursor)

    @routes.get("/operations/{operation_id}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_operation(request: Request, company_id: CompanyId, operation_id: Id) -> OperationTold:
        """Get one operation, with its source and usage."""
        plane = await plane_of(auth, request, company_id)
        return OperationTold.of(await plane.operation(operation_id))

    @routes.get("/metrics", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def get_memory_metrics(
        request: Request, company_id: CompanyId, since: Since = None, until: Until = None
    ) -> MetricsTold:
        """Metrics of the company's memory: recall hits, empty queries, corrections, failures, counts per binding."""
        plane = await plane_of(auth, request, company_id)
        return MetricsTold.of(await plane.metrics(since=since, until=until))
