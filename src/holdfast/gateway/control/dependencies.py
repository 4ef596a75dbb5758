"""Parameters and FastAPI dependencies shared by the routes of a company's memory."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from holdfast.control.schemas import Key, Part, RecordId, scope_parts
from holdfast.control_api import AsyncControlPlane
from holdfast.domain.contract import CURSOR_PATTERN, DEFAULT_PAGE, MAX_CURSOR_CHARS, MAX_PAGE
from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.strict_route import StrictRoute

PREFIX = "/companies/{company_id}/memory"

CompanyId = Annotated[Part, Path(description="The company, which is the space of its memory.")]
BindingKey = Annotated[Key, Path()]
Id = Annotated[RecordId, Path()]
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
Since = Annotated[
    str | None,
    Query(max_length=64, description="Start of the period, inclusive, ISO 8601.", examples=["2026-11-15T09:30Z"]),
]
Until = Annotated[str | None, Query(max_length=64, description="End of the period, exclusive, ISO 8601.")]
ByKey = Annotated[Key | None, Query(description="The binding's key.")]
PAGE = DEFAULT_PAGE


def _where(
    agent_id: Annotated[Part | None, Query(description="The agent that owns the memory.")] = None,
    subject_id: Annotated[Part | None, Query(description="The subject that the memory is about.")] = None,
    project_id: Annotated[Part | None, Query()] = None,
    issue_id: Annotated[Part | None, Query()] = None,
    run_id: Annotated[Part | None, Query()] = None,
    session_key: Annotated[Part | None, Query(description="The conversation.")] = None,
    namespace: Annotated[Part | None, Query()] = None,
) -> dict[str, Any]:
    return scope_parts(locals())


Where = Annotated[dict[str, Any], Depends(_where)]


async def plane_of(auth: Authenticator, request: Request, company_id: str) -> AsyncControlPlane:
    """The company's control plane, acting as the caller. The gate authorizes each call."""
    caller = await auth.company(request, company_id)
    return AsyncControlPlane(caller.service, actor=caller.actor, space=company_id)


def router_of(tag: str) -> APIRouter:
    return APIRouter(prefix=PREFIX, tags=[tag], route_class=StrictRoute)
