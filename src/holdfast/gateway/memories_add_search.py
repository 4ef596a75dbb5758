"""`POST /memories/add`, `/memories/flush`, `/memories/search` and `/memories/recall`: the calls of an agent's turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request

from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, Op
from holdfast.domain.filters import condition_from
from holdfast.domain.memory import Plane
from holdfast.domain.results import Hit
from holdfast.domain.times import from_micros
from holdfast.domain.transcript import Draft, Role
from holdfast.errors import InvalidInput
from holdfast.gateway import presenters
from holdfast.gateway.authentication import AccessRule, Authenticator, Caller, allow
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import (
    SEARCH_OPTIONS,
    AddMessagesRequest,
    AddMessagesResponse,
    FlushRequest,
    FlushResponse,
    MessageRequest,
    RecallRequest,
    RecallResponse,
    ScopeName,
    SearchRequest,
    SearchResponse,
    ignored_fields,
)
from holdfast.gateway.strict_route import StrictRoute


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(prefix="/memories", tags=["conversations"], route_class=StrictRoute)

    @routes.post(
        "/add", response_model=AddMessagesResponse, **allow(AccessRule.USER), responses=refusals(401, 409, 422)
    )
    async def add_memories(
        request: Request, body: AddMessagesRequest, idempotency_key: IdempotencyKey = None
    ) -> dict[str, Any]:
        """Add messages to a conversation. They are durable and searchable when this call returns."""
        caller = await auth.user(request, body.user_id, body.user_key)
        drafts = [_draft(index, message) for index, message in enumerate(body.messages)]
        where = caller.where(body.app_id, body.project_id, body.session_id)
        added = await caller.memory.add(drafts, idempotency_key=idempotency_key, **where)
        counts = {"message_count": len(added.message_ids), "stored": added.stored, "replayed": added.replayed}
        return {
            **counts,
            "session_id": body.session_id,
            "status": "accumulated",
            "message_ids": added.message_ids,
            "skipped": added.skipped,
            "ignored": ignored_fields(body),
        }

    @routes.post("/flush", **allow(AccessRule.USER), responses=refusals(401, 422))
    async def flush_memories(
        request: Request, body: FlushRequest, idempotency_key: IdempotencyKey = None
    ) -> FlushResponse:
        """Seal the messages added since the last flush, and extract facts from them."""
        caller = await auth.user(request, body.user_id, body.user_key)
        where = caller.where(body.app_id, body.project_id, body.session_id)
        found = await caller.memory.flush(idempotency_key=idempotency_key, **where)
        status: Literal["extracted", "no_extraction"] = "extracted" if found.messages else "no_extraction"
        return FlushResponse(session_id=body.session_id, status=status, message_count=found.messages)

    @routes.post("/search", response_model=SearchResponse, **allow(AccessRule.USER), responses=refusals(401, 422))
    async def search_memories(request: Request, body: SearchRequest) -> dict[str, Any]:
        """Search conversations, memories and documents; best matches first."""
        caller = await auth.user(request, body.user_id, body.user_key)
        hits = await caller.memory.search(body.query, **_options(caller, body))
        return {"results": _results(hits, body), "ignored": ignored_fields(body)}

    @routes.post("/recall", response_model=RecallResponse, **allow(AccessRule.USER), responses=refusals(401, 422))
    async def recall_memories(request: Request, body: RecallRequest) -> dict[str, Any]:
        """Select what to show a model, as one message.

        It has what bears on the query, best first, each thing once. If nothing does, it is empty and `reason` says why.
        """
        caller = await auth.user(request, body.user_id, body.user_key)
        budgets = {"budget_chars": body.budget_chars, "budget_tokens": body.budget_tokens}
        found = await caller.memory.recall(body.query, **budgets, **_options(caller, body))
        parts = {"message": found.message, "reason": found.reason, "omitted": found.omitted}
        return {**parts, "results": _results(found.hits, body), "ignored": ignored_fields(body)}

    return routes


def _options(caller: Caller, body: SearchRequest) -> dict[str, Any]:
    return {
        **{name: getattr(body, name) for name in ("top_k", "method", "radius", "planes", *SEARCH_OPTIONS)},
        "condition": _condition(body, caller.user_id),
        **caller.where(body.app_id, body.project_id),
    }


def _results(hits: Sequence[Hit], body: SearchRequest) -> list[dict[str, Any]]:
    scopes, conversation = frozenset(_scopes(body)), body.conversation_id
    return [presenters.result(hit, scopes, conversation) for hit in hits]


def _scopes(body: SearchRequest) -> Sequence[ScopeName]:
    if body.scope is not None:
        return body.scope
    return ("all_user_memory",) if body.conversation_id is None else ("current_chat", "resources")


_DRAFTED = {"text": "content", "sender": "sender_id"}


def _draft(index: int, message: MessageRequest) -> Draft:
    try:
        return Draft(
            message.content,
            message.sender_id,
            Role(message.role),
            None if message.timestamp is None else from_micros(message.timestamp * 1_000),
            metadata=message.metadata or {},
        )
    except InvalidInput as error:
        field = f"messages[{index}].{_DRAFTED.get(error.field, error.field)}"
        raise type(error)(field, error.problem) from None


def _condition(body: SearchRequest, subject: str) -> Condition | None:
    conditions: list[Condition] = []
    scopes = _scopes(body)
    if "current_chat" in scopes and body.conversation_id is None:
        raise InvalidInput(
            "conversation_id", "is required for the scope current_chat; send it, or leave that scope out"
        )
    if "all_user_memory" not in scopes:
        conditions.append(AnyOf(tuple(_place(name, body) for name in dict.fromkeys(scopes))))
    if body.filters and (filters := condition_from(body.filters, subject)) is not None:
        conditions.append(filters)
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def _place(name: ScopeName, body: SearchRequest) -> Condition:
    if name == "current_chat":
        return Compare(Field.CONVERSATION, Op.EQ, body.conversation_id or "")
    return Compare(Field.PLANE, Op.EQ, Plane.RESOURCE.value)
