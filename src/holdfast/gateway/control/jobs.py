"""Routes for background jobs, one row per attempt: list, get, retry and cancel."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from holdfast.control.schemas import JobTold
from holdfast.domain.contract import HookKind
from holdfast.domain.jobs import JobKind, JobState
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
    Where,
    plane_of,
    router_of,
)
from holdfast.gateway.control.operation_schemas import JobList
from holdfast.gateway.problem_responses import refusals


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("jobs")
    _add_job_routes(routes, auth)
    _add_action_routes(routes, auth)
    return routes


def _add_job_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/extraction-jobs", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_jobs(
        request: Request,
        company_id: CompanyId,
        where: Where,
        state: JobState | None = None,
        kind: Annotated[list[JobKind] | None, Query(max_length=len(JobKind))] = None,
        binding_key: ByKey = None,
        hook: HookKind | None = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> JobList:
        """List background jobs, one row per attempt, newest first."""
        plane = await plane_of(auth, request, company_id)
        page = await plane.jobs(
            state=state,
            kinds=kind,
            binding_key=binding_key,
            hook=hook,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
            **where,
        )
        return JobList(jobs=[JobTold.of(each) for each in page.items], next_cursor=page.next_cursor)

    @routes.get("/extraction-jobs/{job_id}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_job(request: Request, company_id: CompanyId, job_id: Id, where: Where) -> JobTold:
        """Get one attempt, with its cause."""
        plane = await plane_of(auth, request, company_id)
        return JobTold.of(await plane.job(job_id, **where))


def _add_action_routes(routes: APIRouter, auth: Authenticator) -> None:
    responses: dict[int | str, dict[str, Any]] = refusals(401, 403, 404, 409, 422)

    @routes.post("/extraction-jobs/{job_id}/retry", status_code=201, **allow(AccessRule.COMPANY), responses=responses)
    async def retry_job(request: Request, company_id: CompanyId, job_id: Id) -> JobTold:
        """Start a new attempt of a failed or cancelled job."""
        plane = await plane_of(auth, request, company_id)
        return JobTold.of(await plane.retry_job(job_id))

    @routes.post("/extraction-jobs/{job_id}/cancel", **allow(AccessRule.COMPANY), responses=responses)
    async def cancel_job(request: Request, company_id: CompanyId, job_id: Id) -> JobTold:
        """Cancel a job. A running worker can no longer commit."""
        plane = await plane_of(auth, request, company_id)
        return JobTold.of(await plane.cancel_job(job_id))
