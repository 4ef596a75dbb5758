"""What the routes of a company's memory have in common: whose it is, where in it, and who is calling."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from holdfast.control.forms import Key, Part, RecordId, where_of
from holdfast.domain.contract import CURSOR_PATTERN, DEFAULT_PAGE, MAX_CURSOR_CHARS, MAX_PAGE
from holdfast.gateway.access import Door
from holdfast.gateway.parameters import StrictRoute
from holdfast.plane import AsyncControlPlane

PREFIX = "/companies/{company_id}/memory"

CompanyId = Annotated[Part, Path(description="The company: the space that its memory is kept in.")]
BindingKey = Annotated[Key, Path()]
Id = Annotated[RecordId, Path()]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_CURSOR_CHARS,
        pattern=CURSOR_PATTERN,
        description="The `next_cursor` of the page before.",
    ),
]
Since = Annotated[
    str | None,
    Query(max_length=64, description="The first moment that counts, ISO 8601.", examples=["2026-11-15T09:30Z"]),
]
Until = Annotated[str | None, Query(max_length=64, description="The first moment that does not.")]
ByKey = Annotated[Key | None, Query(description="Of this binding.")]
PAGE = DEFAULT_PAGE


def _where(
    agent_id: Annotated[Part | None, Query(description="The agent whose memory it is.")] = None,
    subject_id: Annotated[Part | None, Query(description="Whom it is about.")] = None,
    project_id: Annotated[Part | None, Query()] = None,
    issue_id: Annotated[Part | None, Query()] = None,
    run_id: Annotated[Part | None, Query()] = None,
    session_key: Annotated[Part | None, Query(description="The conversation.")] = None,
    namespace: Annotated[Part | None, Query()] = None,
) -> dict[str, Any]:
    return where_of(locals())


Where = Annotated[dict[str, Any], Depends(_where)]


async def plane_of(door: Door, request: Request, company_id: str) -> AsyncControlPlane:
    """The company's control plane in the caller's name. Whether the caller may, the gate says of each call."""
    caller = await door.company(request, company_id)
    return AsyncControlPlane(caller.service, actor=caller.actor, space=company_id)


def router_of(tag: str) -> APIRouter:
    return APIRouter(prefix=PREFIX, tags=[tag], route_class=StrictRoute)
