"""Background work, one row per attempt: what caused it, how it went, and another try."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from holdfast.control.forms import JobTold
from holdfast.domain.contract import HookKind
from holdfast.domain.jobs import JobKind, JobState
from holdfast.gateway.access import Door, Rule, ruled
from holdfast.gateway.companies.accounts import JobList
from holdfast.gateway.companies.calling import (
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
from holdfast.gateway.problems import refusals


def router(door: Door) -> APIRouter:
    routes = router_of("jobs")
    _jobs(routes, door)
    _acting(routes, door)
    return routes


def _jobs(routes: APIRouter, door: Door) -> None:
    @routes.get("/extraction-jobs", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
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
        """Background work, one row per attempt, newest first."""
        plane = await plane_of(door, request, company_id)
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

    @routes.get("/extraction-jobs/{job_id}", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def get_job(request: Request, company_id: CompanyId, job_id: Id, where: Where) -> JobTold:
        """One attempt, with what caused it."""
        plane = await plane_of(door, request, company_id)
        return JobTold.of(await plane.job(job_id, **where))


def _acting(routes: APIRouter, door: Door) -> None:
    answers: dict[int | str, dict[str, Any]] = refusals(401, 403, 404, 409, 422)

    @routes.post("/extraction-jobs/{job_id}/retry", status_code=201, **ruled(Rule.COMPANY), responses=answers)
    async def retry_job(request: Request, company_id: CompanyId, job_id: Id) -> JobTold:
        """A new attempt at what failed or was cancelled."""
        plane = await plane_of(door, request, company_id)
        return JobTold.of(await plane.retry_job(job_id))

    @routes.post("/extraction-jobs/{job_id}/cancel", **ruled(Rule.COMPANY), responses=answers)
    async def cancel_job(request: Request, company_id: CompanyId, job_id: Id) -> JobTold:
        """Have whoever is at work on it commit nothing from then on."""
        plane = await plane_of(door, request, company_id)
        return JobTold.of(await plane.cancel_job(job_id))
