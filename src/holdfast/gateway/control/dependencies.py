"""Parameters and FastAPI dependencies shared by the routes of a space's memory."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field

from holdfast.control.json_views import SCOPE_NAMES
from holdfast.control.schemas import Part
from holdfast.control_api import AsyncControlPlane
from holdfast.domain.contract import CURSOR_PATTERN, DEFAULT_PAGE, MAX_CURSOR_CHARS, MAX_PAGE
from holdfast.domain.users import MAX_SUBJECTS
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.strict_route import StrictRoute

PREFIX = "/companies/{company_id}/memory"

CompanyId = Annotated[Part, Path(description="The space. This contract calls it a company.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_CURSOR_CHARS,
        pattern=CURSOR_PATTERN,
        description="The `next_cursor` of the previous page.",
    ),
]
PAGE = DEFAULT_PAGE
Subjects = Annotated[list[Part], Field(max_length=MAX_SUBJECTS)]


def _where(
    agent_id: Annotated[Part | None, Query(description="The agent that owns the memory.")] = None,
    subject_id: Annotated[Part | None, Query(description="The subject that the memory is about.")] = None,
    project_id: Annotated[Part | None, Query()] = None,
    issue_id: Annotated[Part | None, Query()] = None,
    run_id: Annotated[Part | None, Query()] = None,
    session_key: Annotated[Part | None, Query(description="The conversation.")] = None,
    namespace: Annotated[Part | None, Query()] = None,
) -> dict[str, Any]:
    given = locals()
    return {part: given[name] for part, name in SCOPE_NAMES.items() if given[name] is not None}


Where = Annotated[dict[str, Any], Depends(_where)]


async def plane_of(auth: Authenticator, request: Request, company_id: str) -> AsyncControlPlane:
    """The space's control plane, acting as the caller. The gate authorizes each call."""
    caller = await auth.company(request, company_id)
    return AsyncControlPlane(caller.service, actor=caller.actor, space=company_id)


def route_options(model: Any, *errors: int) -> dict[str, Any]:
    """Return the keyword arguments of a route: its response, its access rule, and its errors besides 401, 403, 422."""
    return {"response_model": model, "responses": refusals(401, 403, *errors, 422), **allow(AccessRule.COMPANY)}


def router_of(tag: str) -> APIRouter:
    return APIRouter(prefix=PREFIX, tags=[tag], route_class=StrictRoute)
