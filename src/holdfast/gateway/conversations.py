"""`POST /memories/add`, `/memories/flush` and `/memories/search`: what an agent does in every turn (seed 000)."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, Op
from holdfast.domain.filters import condition_from
from holdfast.domain.memory import Plane
from holdfast.domain.times import from_micros
from holdfast.domain.transcript import Draft, Role
from holdfast.errors import InvalidInput
from holdfast.gateway import present
from holdfast.gateway.access import Door, Rule, ruled
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.models import (
    CHAT,
    AddGiven,
    AddTold,
    FlushGiven,
    FlushTold,
    MessageGiven,
    ScopeName,
    SearchGiven,
    SearchTold,
)
from holdfast.gateway.parameters import StrictRoute
from holdfast.gateway.problems import refusals


def router(door: Door) -> APIRouter:
    routes = APIRouter(prefix="/memories", tags=["conversations"], route_class=StrictRoute)

    @routes.post("/add", **ruled(Rule.USER), responses=refusals(401, 409, 422))
    async def add(request: Request, given: AddGiven, idempotency_key: IdempotencyKey = None) -> AddTold:
        """Add what was said to a conversation. It is durable, and can be found, when this answers."""
        caller = await door.user(request, given.user_id, given.user_key)
        drafts = [_draft(index, message) for index, message in enumerate(given.messages)]
        found = await caller.memory.add(
            drafts,
            idempotency_key=idempotency_key,
            subject=caller.user_id,
            conversation=given.session_id.removeprefix(CHAT),
            app=given.app_id,
            project=given.project_id,
        )
        return present.added(given.session_id, found)

    @routes.post("/flush", **ruled(Rule.USER), responses=refusals(401, 422))
    async def flush(request: Request, given: FlushGiven, idempotency_key: IdempotencyKey = None) -> FlushTold:
        """Seal what was said since the last time, and have facts extracted from it."""
        caller = await door.user(request, given.user_id, given.user_key)
        found = await caller.memory.flush(
            idempotency_key=idempotency_key,
            subject=caller.user_id,
            conversation=given.session_id.removeprefix(CHAT),
            app=given.app_id,
            project=given.project_id,
        )
        status: Literal["extracted", "no_extraction"] = "extracted" if found.messages else "no_extraction"
        return FlushTold(session_id=given.session_id, status=status, message_count=found.messages)

    @routes.post("/search", **ruled(Rule.USER), responses=refusals(401, 422))
    async def search(request: Request, given: SearchGiven) -> SearchTold:
        """What matches the query, best first, in the scopes that are asked for."""
        caller = await door.user(request, given.user_id, given.user_key)
        hits = await caller.memory.search(
            given.query,
            top_k=given.top_k,
            method=given.method,
            radius=given.radius,
            condition=_condition(given, caller.user_id),
            subject=caller.user_id,
            app=given.app_id,
            project=given.project_id,
        )
        asked, conversation = frozenset(given.scope), given.conversation_id
        return SearchTold(results=[present.result(hit, asked, conversation) for hit in hits])

    return routes


_DRAFTED = {"text": "content", "sender": "sender_id"}


def _draft(index: int, said: MessageGiven) -> Draft:
    try:
        return Draft(
            said.content,
            said.sender_id,
            Role(said.role),
            from_micros(said.timestamp * 1_000),
            metadata=said.metadata or {},
        )
    except InvalidInput as error:
        field = f"messages[{index}].{_DRAFTED.get(error.field, error.field)}"
        raise type(error)(field, error.problem) from None


def _condition(given: SearchGiven, subject: str) -> Condition | None:
    wanted: list[Condition] = []
    if "current_chat" in given.scope and given.conversation_id is None:
        raise InvalidInput("conversation_id", "is needed for the scope current_chat; give it, or leave that scope out")
    if "all_user_memory" not in given.scope:
        wanted.append(AnyOf(tuple(_place(name, given) for name in dict.fromkeys(given.scope))))
    if (filters := condition_from(given.filters or {}, subject)) is not None:
        wanted.append(filters)
    if not wanted:
        return None
    return wanted[0] if len(wanted) == 1 else AllOf(tuple(wanted))


def _place(name: ScopeName, given: SearchGiven) -> Condition:
    if name == "current_chat":
        return Compare(Field.CONVERSATION, Op.EQ, given.conversation_id or "")
    return Compare(Field.PLANE, Op.EQ, Plane.RESOURCE.value)
