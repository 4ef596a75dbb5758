"""`/memories`: list, read, override, delete and forget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from holdfast.errors import InvalidInput
from holdfast.gateway import presenters
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.headers import IdempotencyKey, IfMatch, expected_revision, set_etag
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
    OverrideRequest,
    Session,
)
from holdfast.gateway.strict_route import StrictRoute

RecordId = Annotated[str, Path(min_length=1, max_length=80)]
InApp = Annotated[Name, Query()]
Cursor = Annotated[str | None, Query(max_length=1_000, description="The `next_cursor` of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(prefix="/memories", tags=["memories"], route_class=StrictRoute)
    _add_read_routes(routes, auth)
    _add_change_routes(routes, auth)
    _add_forget_routes(routes, auth)
    return routes


def _add_read_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("", **allow(AccessRule.USER), responses=refusals(401, 422))
    async def list_memories(
        request: Request,
        app_id: InApp = "default",
        project_id: InApp = "default",
        session_id: Annotated[Session | None, Query()] = None,
        kind: Annotated[Literal["message", "memory"] | None, Query()] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> MemoryListResponse:
        """List memories and messages, newest first, in pages."""
        caller = await auth.user(request)
        page = await caller.memory.list(
            limit=limit, cursor=cursor, kind=kind, **_session_filter(session_id), **caller.where(app_id, project_id)
        )
        return MemoryListResponse(
            memories=[presenters.memory(each) for each in page.items], next_cursor=page.next_cursor
        )

    @routes.get("/{record_id}", **allow(AccessRule.USER), responses=refusals(401, 404, 422))
    async def get_memory(
        request: Request,
        response: Response,
        record_id: RecordId,
        app_id: InApp = "default",
        project_id: InApp = "default",
    ) -> MemoryResponse:
        """Get a memory or message by its id."""
        caller = await auth.user(request)
        found = presenters.memory(await caller.memory.get(record_id, **caller.where(app_id, project_id)))
        set_etag(response, found.id, found.revision)
        return found

    @routes.get("/{record_id}/history", **allow(AccessRule.USER), responses=refusals(401, 404, 422))
    async def get_history(
        request: Request, record_id: RecordId, app_id: InApp = "default", project_id: InApp = "default"
    ) -> HistoryResponse:
        """List all revisions of a memory, oldest first, preceded by the message that it replaces, if any."""
        caller = await auth.user(request)
        found = await caller.memory.history(record_id, **caller.where(app_id, project_id))
        return HistoryResponse(revisions=[presenters.memory(each) for each in found])


def _add_change_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.patch("/{record_id}", **allow(AccessRule.USER), responses=refusals(401, 404, 409, 412, 422))
    async def override(
        request: Request,
        response: Response,
        record_id: RecordId,
        body: OverrideRequest,
        app_id: InApp = "default",
        project_id: InApp = "default",
        if_match: IfMatch = None,
        idempotency_key: IdempotencyKey = None,
    ) -> MemoryResponse:
        """Replace the text of a memory. The old text stays in the history.

        A message itself never changes: a new memory replaces it in every search, and is returned.
        """
        caller = await auth.user(request)
        corrected = await caller.memory.correct(
            record_id,
            body.text,
            reason=body.reason,
            expected_revision=expected_revision(if_match, record_id),
            idempotency_key=idempotency_key,
            **caller.where(app_id, project_id),
        )
        found = presenters.memory(corrected)
        set_etag(response, found.id, found.revision)
        return found


def _add_forget_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.delete("/{record_id}", **allow(AccessRule.USER), responses=refusals(401, 404, 412, 422))
    async def delete(
        request: Request,
        record_id: RecordId,
        app_id: InApp = "default",
        project_id: InApp = "default",
        if_match: IfMatch = None,
        idempotency_key: IdempotencyKey = None,
    ) -> ForgetReceiptResponse:
        """Permanently forget a memory or message, memories derived only from it, and what it replaced."""
        caller = await auth.user(request)
        return presenters.forget_response(
            await caller.memory.forget(
                record_id,
                expected_revision=expected_revision(if_match, record_id),
                idempotency_key=idempotency_key,
                **caller.where(app_id, project_id),
            )
        )

    @routes.post("/forget", **allow(AccessRule.USER), responses=refusals(401, 404, 409, 422))
    async def forget(request: Request, body: ForgetRequest, idempotency_key: IdempotencyKey = None) -> ForgetResponse:
        """Without `token`, preview what would be forgotten and return a token. With it, forget exactly that."""
        caller = await auth.user(request, body.user_id, body.user_key)
        target = {**_target(body), **caller.where(body.app_id, body.project_id)}
        if body.token is None:
            return presenters.preview(await caller.memory.forget_preview(**target))
        done = await caller.memory.forget(token=body.token, idempotency_key=idempotency_key, **target)
        receipt = presenters.forget_response(done)
        return ForgetResponse(messages=done.messages, memories=done.memories, resources=done.resources, receipt=receipt)


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
