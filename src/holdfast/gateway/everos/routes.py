"""`/api/v2/memory/{add,flush,search,get}` and the same under `/api/v1`.

The bearer key says whose memory it is, and `user_id` may only repeat that. There are no agents behind a user's key:
what is asked for by `agent_id` is answered with empty lists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Request

from holdfast.domain.filters import condition_from
from holdfast.domain.transcript import Message
from holdfast.errors import AccessDenied
from holdfast.gateway.access import Caller, Door, Rule, ruled
from holdfast.gateway.edge.refusals import request_id
from holdfast.gateway.everos import present
from holdfast.gateway.everos.messages import drafts_of, unprocessed
from holdfast.gateway.everos.models import (
    AS_MANY_AS_ALLOWED,
    AddData,
    AddInput,
    Envelope,
    FlushData,
    FlushInput,
    GetData,
    GetInput,
    Owned,
    Scoped,
    SearchData,
    SearchInput,
    UnprocessedMessage,
    conversation_of,
    problem_of,
)
from holdfast.gateway.everos.present import Sessions
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.models import MAX_TOP_K, RESOURCE
from holdfast.gateway.problems import refusals
from holdfast.inputs import Where
from holdfast.runtime.browse import MAX_OFFSET
from holdfast.runtime.search import hit

T = TypeVar("T")

PREFIXES = ("/api/v2/memory", "/api/v1/memory")
# What is told of a session that is never flushed.
MOST_UNPROCESSED = 500
_ORDERS = {"timestamp": "said", "updated_at": "recorded"}


def router(door: Door) -> APIRouter:
    routes = APIRouter(tags=["EverOS"])
    for prefix in PREFIXES:
        version = prefix.split("/")[2]
        for name, handler, statuses in _handlers(door):
            routes.add_api_route(
                f"{prefix}/{name}",
                handler,
                methods=["POST"],
                operation_id=f"everos_{version}_{name}",
                responses=refusals(400, 401, *statuses, 422),
                **ruled(Rule.USER),
            )
    return routes


def _handlers(door: Door) -> list[tuple[str, Callable[..., Awaitable[Any]], tuple[int, ...]]]:
    async def add(request: Request, given: AddInput, idempotency_key: IdempotencyKey = None) -> Envelope[AddData]:
        """Add what was said to a session. It is durable, and can be found, when this answers."""
        caller = await door.user(request)
        session = given.session_id
        await caller.memory.add(
            drafts_of(given.messages, caller.user_id),
            idempotency_key=idempotency_key,
            # Found by its session id like a resource that was uploaded.
            source=session if session.startswith(RESOURCE) else None,
            **_where(caller, given, session),
        )
        return _told(request, AddData(message_count=len(given.messages), status="accumulated"))

    async def flush(request: Request, given: FlushInput, idempotency_key: IdempotencyKey = None) -> Envelope[FlushData]:
        """Seal what was said since the last time, and have facts extracted from it."""
        caller = await door.user(request)
        found = await caller.memory.flush(idempotency_key=idempotency_key, **_where(caller, given, given.session_id))
        return _told(request, FlushData(status="extracted" if found.messages else "no_extraction"))

    async def search(request: Request, given: SearchInput) -> Envelope[SearchData]:
        """What matches the query, best first: every message and memory is an episode."""
        caller = await _owner(door, request, given)
        condition = condition_from(given.filters or {}, caller.user_id, everos=True)
        waiting = await _unprocessed(caller, given, given.filters or {})
        if given.user_id is None:
            return _told(request, SearchData(unprocessed_messages=waiting))
        hits = await caller.memory.search(
            given.query,
            top_k=MAX_TOP_K if given.top_k == AS_MANY_AS_ALLOWED else given.top_k,
            method=given.method,
            radius=given.radius,
            min_score=given.min_score,
            condition=condition,
            **_where(caller, given),
        )
        sessions = Sessions(given.filters)
        episodes = [present.found(each, sessions) for each in hits]
        return _told(request, SearchData(episodes=episodes, unprocessed_messages=waiting))

    async def get(request: Request, given: GetInput) -> Envelope[GetData]:
        """Messages and memories as episodes, page by page, and how many there are."""
        caller = await _owner(door, request, given)
        condition = condition_from(given.filters or {}, caller.user_id, everos=True)
        if given.memory_type != "episode":
            return _told(request, GetData())
        found = await caller.memory.browse(
            order=_ORDERS[given.sort_by],
            ascending=given.sort_order == "asc",
            offset=min((given.page - 1) * given.page_size, MAX_OFFSET),
            limit=given.page_size,
            condition=condition,
            **_where(caller, given),
        )
        sessions = Sessions(given.filters)
        episodes = [present.episode(hit(each, 0.0), sessions) for each in found.items]
        return _told(request, GetData(episodes=episodes, total_count=found.total, count=len(episodes)))

    return [("add", add, (403, 409, 415)), ("flush", flush, ()), ("search", search, (403,)), ("get", get, (403,))]


async def _owner(door: Door, request: Request, given: Owned) -> Caller:
    caller = await door.user(request)
    if given.user_id is not None and given.user_id != caller.user_id:
        raise AccessDenied("user_id: is not the user whose key this is; give that user's id, or the other user's key")
    return caller


async def _unprocessed(caller: Caller, given: Scoped, filters: Mapping[str, Any]) -> list[UnprocessedMessage]:
    """What the next flush will seal, oldest first, if the filters name one session and nothing but its id."""
    session = filters.get("session_id")
    if not isinstance(session, str) or problem_of(session) is not None:
        return []
    page = await caller.memory.list(
        kind="message", unsealed=True, limit=MOST_UNPROCESSED, **_where(caller, given, session)
    )
    # What the space shares under that name is not this user's to flush.
    own = [each for each in page.items if isinstance(each, Message) and each.scope.subject == caller.user_id]
    return [unprocessed(each, session) for each in reversed(own)]


def _where(caller: Caller, given: Scoped, session_id: str | None = None) -> Where:
    where: Where = {"subject": caller.user_id, "app": given.app_id, "project": given.project_id}
    if session_id is not None:
        where["conversation"] = conversation_of(session_id)
    return where


def _told(request: Request, data: T) -> Envelope[T]:
    return Envelope(request_id=request_id(request.scope) or uuid4().hex, data=data)
