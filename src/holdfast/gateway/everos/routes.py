"""`/api/v2/memory/{add,flush,search,get}` and the same under `/api/v1`.

The bearer key identifies the user; `user_id` must be the same. A user's key has no agents: requests with `agent_id` get
empty lists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Request

from holdfast.domain.filters import condition_from
from holdfast.domain.transcript import Message
from holdfast.errors import AccessDenied
from holdfast.gateway.authentication import AccessRule, Authenticator, Caller, allow
from holdfast.gateway.edge.problem_json import request_id
from holdfast.gateway.everos import presenters
from holdfast.gateway.everos.messages import drafts_of, to_unprocessed_message
from holdfast.gateway.everos.presenters import SessionNames
from holdfast.gateway.everos.schemas import (
    AS_MANY_AS_ALLOWED,
    AddData,
    AddInput,
    Envelope,
    EverosScopedRequest,
    FlushData,
    FlushInput,
    GetData,
    GetInput,
    OwnedRequest,
    SearchData,
    SearchInput,
    UnprocessedMessage,
    problem_of,
)
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import MAX_TOP_K, RESOURCE, ignored_fields
from holdfast.runtime.browse import MAX_OFFSET
from holdfast.runtime.search import to_hit

T = TypeVar("T")
# The name of a route, its function, and the statuses of its own refusals.
Handler = tuple[str, Callable[..., Awaitable[Any]], tuple[int, ...]]

PREFIXES = ("/api/v2/memory", "/api/v1/memory")
# Limit for a session that is never flushed.
MOST_UNPROCESSED = 500
ORDERS = {"timestamp": "said", "updated_at": "recorded"}


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(tags=["EverOS"])
    for prefix in PREFIXES:
        version = prefix.split("/")[2]
        for name, handler, statuses in (*_write_handlers(auth), *_read_handlers(auth)):
            routes.add_api_route(
                f"{prefix}/{name}",
                handler,
                methods=["POST"],
                name=f"everos_{name}" if version == "v2" else f"everos_{version}_{name}",
                responses=refusals(400, 401, *statuses, 422),
                **allow(AccessRule.USER),
            )
    return routes


def _write_handlers(auth: Authenticator) -> list[Handler]:
    async def add(request: Request, body: AddInput, idempotency_key: IdempotencyKey = None) -> Envelope[AddData]:
        """Add messages to a session. They are durable and searchable when this call returns."""
        caller = await auth.user(request)
        session = body.session_id
        await caller.memory.add(
            drafts_of(body.messages, caller.user_id),
            idempotency_key=idempotency_key,
            # Makes it searchable by session id, like an uploaded resource.
            source=session if session.startswith(RESOURCE) else None,
            **caller.where(body.app_id, body.project_id, session),
        )
        return to_envelope(
            request, AddData(message_count=len(body.messages), status="accumulated", ignored=ignored_fields(body))
        )

    async def flush(request: Request, body: FlushInput, idempotency_key: IdempotencyKey = None) -> Envelope[FlushData]:
        """Seal the messages added since the last flush, and extract facts from them."""
        caller = await auth.user(request)
        where = caller.where(body.app_id, body.project_id, body.session_id)
        found = await caller.memory.flush(idempotency_key=idempotency_key, **where)
        return to_envelope(request, FlushData(status="extracted" if found.messages else "no_extraction"))

    return [("add", add, (403, 409, 415)), ("flush", flush, ())]


def _read_handlers(auth: Authenticator) -> list[Handler]:
    async def search(request: Request, body: SearchInput) -> Envelope[SearchData]:
        """Search messages and memories; best matches first. Each is returned as an episode."""
        caller = await _owner(auth, request, body)
        condition = condition_from(body.filters or {}, caller.user_id, everos=True)
        waiting = await _unprocessed_messages(caller, body, body.filters or {})
        ignored = ignored_fields(body)
        if body.user_id is None:
            return to_envelope(request, SearchData(unprocessed_messages=waiting, ignored=ignored))
        hits = await caller.memory.search(
            body.query,
            top_k=most_hits(body.top_k),
            method=body.method,
            radius=body.radius,
            min_score=body.min_score,
            condition=condition,
            **caller.where(body.app_id, body.project_id),
        )
        sessions = SessionNames(body.filters)
        episodes = [presenters.found_episode(each, sessions) for each in hits]
        return to_envelope(request, SearchData(episodes=episodes, unprocessed_messages=waiting, ignored=ignored))

    async def get(request: Request, body: GetInput) -> Envelope[GetData]:
        """List messages and memories as episodes, in pages, with the total count."""
        caller = await _owner(auth, request, body)
        condition = condition_from(body.filters or {}, caller.user_id, everos=True)
        if body.memory_type != "episode":
            return to_envelope(request, GetData())
        found = await caller.memory.browse(
            order=ORDERS[body.sort_by],
            ascending=body.sort_order == "asc",
            offset=min((body.page - 1) * body.page_size, MAX_OFFSET),
            limit=body.page_size,
            condition=condition,
            **caller.where(body.app_id, body.project_id),
        )
        sessions = SessionNames(body.filters)
        episodes = [presenters.episode(to_hit(each, 0.0), sessions) for each in found.items]
        return to_envelope(request, GetData(episodes=episodes, total_count=found.total, count=len(episodes)))

    return [("search", search, (403,)), ("get", get, (403,))]


async def _owner(auth: Authenticator, request: Request, body: OwnedRequest) -> Caller:
    caller = await auth.user(request)
    if body.user_id is not None and body.user_id != caller.user_id:
        raise AccessDenied("user_id: is not the user of this key; send that user's id, or the other user's key")
    return caller


async def _unprocessed_messages(
    caller: Caller, body: EverosScopedRequest, filters: Mapping[str, Any]
) -> list[UnprocessedMessage]:
    """Messages that the next flush will seal, oldest first, if `session_id` is filtered by a single plain value."""
    session = filters.get("session_id")
    if not isinstance(session, str) or problem_of(session) is not None:
        return []
    where = caller.where(body.app_id, body.project_id, session)
    page = await caller.memory.list(kind="message", unsealed=True, limit=MOST_UNPROCESSED, **where)
    # This user cannot flush messages that the space shares under the same name.
    own = [each for each in page.items if isinstance(each, Message) and each.scope.subject == caller.user_id]
    return [to_unprocessed_message(each, session) for each in reversed(own)]


def most_hits(top_k: int) -> int:
    return MAX_TOP_K if top_k == AS_MANY_AS_ALLOWED else top_k


def to_envelope(request: Request, data: T) -> Envelope[T]:
    return Envelope(request_id=request_id(request.scope) or uuid4().hex, data=data)
