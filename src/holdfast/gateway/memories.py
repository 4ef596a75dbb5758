"""`/memories`: list, read, override, delete and forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from holdfast.errors import InvalidInput
from holdfast.gateway import presenters
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.verb_routes import Callers, VerbRoute, add_routes
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import (
    CHAT,
    MAX_PAGE,
    RESOURCE,
    ForgetReceiptResponse,
    ForgetRequest,
    ForgetResponse,
    HistoryResponse,
    MemoryListResponse,
    MemoryResponse,
    Name,
    Reason,
    Session,
    Text,
)
from holdfast.gateway.strict_route import StrictRoute
from holdfast.runtime.revisions import MAX_REVISION

Revision = Annotated[int, Field(ge=1, le=MAX_REVISION)]
RecordId = Annotated[str, Path(min_length=1, max_length=80)]
InApp = Annotated[Name, Query()]
Cursor = Annotated[str | None, Query(max_length=1_000, description="The `next_cursor` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
PAGE = {"limit": (Limit, 50), "cursor": (Cursor, None)}


async def _find_own(auth: Authenticator, request: Request, values: dict[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    caller = await auth.user(request)
    where = caller.where(values.pop("app_id"), values.pop("project_id"))
    return caller.memory, {**where, **_session_filter(values.pop("session_id", None))}


# Users, in their own memory.
USERS = Callers(AccessRule.USER, _find_own, {"app_id": (InApp, "default"), "project_id": (InApp, "default")})
_ONE = {"record_id": (RecordId, ...)}
_ROUTES = (
    VerbRoute(
        "GET", "", "list", (), 200, "list_memories",
        callers=USERS, model=MemoryListResponse, view=presenters.memory_page, without=("source",),
        fields={
            "session_id": (Annotated[Session | None, Query()], None),
            "kind": (Annotated[Literal["message", "memory"] | None, Query()], None),
            **PAGE,
        },
    ),
    VerbRoute(
        "GET", "/{record_id}", "get", (404,), 200, "get_memory",
        callers=USERS, model=MemoryResponse, view=presenters.memory, fields=_ONE,
    ),
    VerbRoute(
        "GET", "/{record_id}/history", "history", (404,), 200, "get_memory_history",
        callers=USERS, model=HistoryResponse, view=presenters.history, fields=_ONE,
    ),
    VerbRoute(
        "PATCH", "/{record_id}", "correct", (404, 409, 412), 200, "correct_memory", {"memory_id": "record_id"},
        callers=USERS, model=MemoryResponse, view=presenters.memory, without=("since", "until", "evidence"),
        fields={**_ONE, "text": (Text, ...), "reason": (Reason | None, None)},
    ),
    VerbRoute(
        "POST", "/{record_id}/revert", "revert", (404, 409, 412), 200, "revert_memory", {"memory_id": "record_id"},
        callers=USERS, model=MemoryResponse, view=presenters.memory,
        fields={**_ONE, "revision": (Revision, ...), "reason": (Reason | None, None)},
    ),
    VerbRoute(
        "DELETE", "/{record_id}", "forget", (404, 412), 200, "delete_memory",
        callers=USERS, model=ForgetReceiptResponse, fields=_ONE, without=("source", "token"),
        doc="Forget a memory or message permanently, with everything that was learned from it alone.",
    ),
)  # fmt: skip


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(prefix="/memories", tags=["memories"], route_class=StrictRoute)
    add_routes(routes, auth, _ROUTES)

    @routes.post(
        "/forget", response_model=ForgetResponse, **allow(AccessRule.USER), responses=refusals(401, 404, 409, 422)
    )
    async def forget_memories(request: Request, body: ForgetRequest, idempotency_key: IdempotencyKey = None) -> Any:
        """Forget permanently, in two steps.

        Without `token`, preview what would be forgotten and return a token. With it, forget exactly that.
        """
        caller = await auth.user(request, body.user_id, body.user_key)
        target = {**_target(body), **caller.where(body.app_id, body.project_id)}
        if body.token is None:
            return await caller.memory.forget_preview(**target)
        done = await caller.memory.forget(token=body.token, idempotency_key=idempotency_key, **target)
        named = ("messages", "memories", "resources", "deliveries", "tool_entries", "remaining_outside")
        return {**{name: getattr(done, name) for name in named}, "receipt": done}

    return routes


def _session_filter(session_id: str | None) -> dict[str, Any]:
    if session_id is None:
        return {}
    if session_id.startswith(RESOURCE):
        return {"source": session_id}
    return {"conversation": session_id.removeprefix(CHAT)}


def _target(body: ForgetRequest) -> dict[str, Any]:
    chosen = [name for name in ("ids", "session_id", "everything") if getattr(body, name) not in (None, False)]
    if len(chosen) != 1:
        raise InvalidInput("ids", "send exactly one of ids, session_id and everything")
    if body.ids is not None:
        return {"record_id": body.ids}
    return _session_filter(body.session_id)
