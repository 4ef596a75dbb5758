"""`/api/v1/memories` of EverOS's cloud, as its Python package calls it: add, flush, search, get and delete.

`user_id` is the subject: the user of the key, or one that the key of an agent or operator reaches; the gate decides.
An agent's key also has the agent itself as a user, for the agent's own memory. Messages of an agent's work are in
conversations of the channel `agent`; they are agent cases, and procedural memories are agent skills.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote, unquote

from fastapi import APIRouter, Path, Request

from holdfast.domain.access import ActorKind
from holdfast.domain.conditions import AllOf, AnyOf, Compare, Condition, Field, Not, Op
from holdfast.domain.filters import condition_from
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane
from holdfast.domain.results import Hit
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import DEFAULT_CONVERSATION, Message
from holdfast.errors import InvalidInput
from holdfast.gateway.authentication import AccessRule, Authenticator, Caller, allow
from holdfast.gateway.everos import cloud_presenters as presenters
from holdfast.gateway.everos.cloud_filters import OwnedFilters, split_user
from holdfast.gateway.everos.cloud_schemas import (
    AgentMemoryData,
    CloudAddData,
    CloudAddRequest,
    CloudDeleteRequest,
    CloudFlushData,
    CloudFlushRequest,
    CloudGetData,
    CloudGetRequest,
    CloudOwnedRequest,
    CloudSearchData,
    CloudSearchRequest,
    CloudTaskData,
    RawMessage,
    SearchedQuery,
    TrajectoryAddRequest,
    ignored_in,
    to_item,
)
from holdfast.gateway.everos.messages import drafts_of
from holdfast.gateway.everos.presenters import SessionNames
from holdfast.gateway.everos.routes import ORDERS, most_hits, to_envelope
from holdfast.gateway.everos.schemas import Envelope, EverosResponse, conversation_of, problem_of
from holdfast.gateway.everos.unsupported import NO_GROUPS, NotSupported
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import RESOURCE, ignored_fields
from holdfast.inputs import ScopeKwargs
from holdfast.runtime.browse import MAX_OFFSET
from holdfast.runtime.search import to_hit

T = TypeVar("T")

PREFIX = "/api/v1/memories"
_APP = "default"
_CHANNEL = "agent"
_TRAJECTORIES = Compare(Field.CHANNEL, Op.EQ, _CHANNEL)
_SKILLS = Compare(Field.PLANE, Op.EQ, Plane.PROCEDURAL.value)
_CASES = AllOf((_TRAJECTORIES, Not(_SKILLS)))
_EPISODES = Not(AnyOf((_TRAJECTORIES, _SKILLS)))
_NO_PROFILES = "profiles are not supported; use episodic_memory, which has what is known of a user"
_LISTS: dict[str, tuple[Condition, str, Callable[[Hit, SessionNames], EverosResponse]]] = {
    "episodic_memory": (_EPISODES, "episodes", presenters.episode),
    "agent_case": (_CASES, "agent_cases", presenters.case),
    "agent_skill": (_SKILLS, "agent_skills", presenters.skill),
}
# The name of a route, its path, its function, and the statuses of its own refusals.
_Handler = tuple[str, str, Callable[..., Awaitable[Any]], tuple[int, ...]]
# In the id of a task, between a message and its user.
_OF_USER = "@"
TaskId = Annotated[str, Path(min_length=1, max_length=4_096)]


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(tags=["EverOS"])
    for name, path, handler, statuses in (*_write_handlers(auth), *_read_handlers(auth)):
        routes.add_api_route(
            f"{PREFIX}{path}",
            handler,
            methods=["POST"],
            name=f"everos_cloud_{name}",
            responses=refusals(400, 401, 403, *statuses, 422),
            **allow(AccessRule.KNOWN),
        )

    @routes.post(
        f"{PREFIX}/delete",
        status_code=204,
        name="everos_cloud_delete",
        responses=refusals(400, 401, 403, 404, 422),
        **allow(AccessRule.KNOWN),
    )
    async def delete(request: Request, body: CloudDeleteRequest, idempotency_key: IdempotencyKey = None) -> None:
        """Forget permanently: one memory or message, one conversation of a user, or everything of a user."""
        caller = await auth.any_key(request)
        await caller.memory.forget(idempotency_key=idempotency_key, **_target(caller, body))

    @routes.get(
        "/api/v1/tasks/{task_id}",
        name="everos_cloud_task",
        responses=refusals(401, 403, 404, 422),
        **allow(AccessRule.KNOWN),
    )
    async def get_task(request: Request, task_id: TaskId) -> Envelope[CloudTaskData]:
        """The state of an add: `success`, as its messages are stored when it returns; 404 once they are forgotten."""
        caller = await auth.any_key(request)
        message_id, _, user = task_id.partition(_OF_USER)
        scope = _user_scope(caller, unquote(user)) if user else _own_scope(caller)
        await caller.memory.get(message_id, **scope)
        return to_envelope(request, CloudTaskData(task_id=task_id, status="success"))

    return routes


def _write_handlers(auth: Authenticator) -> list[_Handler]:
    async def add(
        request: Request, body: CloudAddRequest, idempotency_key: IdempotencyKey = None
    ) -> Envelope[CloudAddData]:
        """Add messages to a user's conversation. They are durable and searchable when this call returns."""
        return await _add(auth, request, body, idempotency_key, channel=None)

    async def add_agent(
        request: Request, body: TrajectoryAddRequest, idempotency_key: IdempotencyKey = None
    ) -> Envelope[CloudAddData]:
        """Add messages of an agent's work for a user, with calls of tools. They are found as agent cases."""
        return await _add(auth, request, body, idempotency_key, channel=_CHANNEL)

    async def flush(
        request: Request, body: CloudFlushRequest, idempotency_key: IdempotencyKey = None
    ) -> Envelope[CloudFlushData]:
        """Seal the messages added to a conversation since the last flush, and extract facts from them."""
        return await _flush(auth, request, body, idempotency_key, channel=None)

    async def flush_agent(
        request: Request, body: CloudFlushRequest, idempotency_key: IdempotencyKey = None
    ) -> Envelope[CloudFlushData]:
        """Seal the messages of an agent's work since the last flush, and extract facts from them."""
        return await _flush(auth, request, body, idempotency_key, channel=_CHANNEL)

    return [
        ("add", "", add, (409, 415)),
        ("flush", "/flush", flush, ()),
        ("add_agent", "/agent", add_agent, (409, 415)),
        ("flush_agent", "/agent/flush", flush_agent, ()),
    ]


async def _add(
    auth: Authenticator,
    request: Request,
    body: CloudAddRequest | TrajectoryAddRequest,
    idempotency_key: str | None,
    *,
    channel: str | None,
) -> Envelope[CloudAddData]:
    caller = await auth.any_key(request)
    # Users of an agent's own memory are not known here.
    user = None if _is_agent_itself(caller, body.user_id) else body.user_id
    session = body.session_id or ""
    added = await caller.memory.add(
        drafts_of([to_item(message, user or "user") for message in body.messages], user),
        idempotency_key=idempotency_key,
        # As on EverOS's own routes, makes it searchable by session id.
        source=session if session.startswith(RESOURCE) else None,
        **_conversation_scope(caller, body, channel),
    )
    data = CloudAddData(
        message="the messages are stored and can be searched",
        message_count=len(body.messages),
        status="accumulated",
        task_id=_task_id(caller, body.user_id, added.message_ids),
        ignored=ignored_in(body),
    )
    return to_envelope(request, data)


def _task_id(caller: Caller, user_id: str, message_ids: Iterable[MessageId | None]) -> str | None:
    """The first message, and its user if the key alone does not say whose it is."""
    first = next((each for each in message_ids if each is not None), None)
    if first is None or caller.actor.id == user_id:
        return first
    return f"{first}{_OF_USER}{quote(user_id, safe='')}"


async def _flush(
    auth: Authenticator,
    request: Request,
    body: CloudFlushRequest,
    idempotency_key: str | None,
    *,
    channel: str | None,
) -> Envelope[CloudFlushData]:
    caller = await auth.any_key(request)
    scope = _conversation_scope(caller, body, channel)
    sealed = (await caller.memory.flush(idempotency_key=idempotency_key, **scope)).messages
    message = f"{sealed:,} messages are sealed, and facts are extracted" if sealed else "there was nothing to seal"
    status: Literal["extracted", "no_extraction"] = "extracted" if sealed else "no_extraction"
    return to_envelope(request, CloudFlushData(message=message, status=status))


def _read_handlers(auth: Authenticator) -> list[_Handler]:
    async def search(request: Request, body: CloudSearchRequest) -> Envelope[CloudSearchData]:
        """Search what is known of a user; best matches first."""
        caller, wanted = await auth.any_key(request), set(body.memory_types)
        if wanted == {"profile"}:
            raise NotSupported(f"memory_types: {_NO_PROFILES}")
        owned = split_user(body.filters)
        find = _Search(caller, body, owned)
        data = CloudSearchData(
            query=SearchedQuery(text=body.query, method=body.method, filters_applied=body.filters),
            ignored=[*ignored_fields(body), *(["memory_types.profile"] if "profile" in wanted else [])],
        )
        if "episodic_memory" in wanted:
            data.episodes = await find.matching(_EPISODES, presenters.found_episode)
        if "agent_memory" in wanted:
            cases = await find.matching(_CASES, presenters.found_case)
            skills = await find.matching(_SKILLS, presenters.found_skill)
            data.agent_memory = AgentMemoryData(cases=cases, skills=skills)
        if "raw_message" in wanted:
            data.raw_messages = await _raw_messages(caller, owned, most_hits(body.top_k))
        return to_envelope(request, data)

    async def get(request: Request, body: CloudGetRequest) -> Envelope[CloudGetData]:
        """List what is known of a user, in pages, with the total count."""
        caller, owned = await auth.any_key(request), split_user(body.filters)
        if body.memory_type == "profile":
            raise NotSupported(f"memory_type: {_NO_PROFILES}")
        selection, field, present = _LISTS[body.memory_type]
        found = await caller.memory.browse(
            order=ORDERS[body.rank_by],
            ascending=body.rank_order == "asc",
            offset=min((body.page - 1) * body.page_size, MAX_OFFSET),
            limit=body.page_size,
            condition=_narrow(selection, _condition(owned)),
            **_user_scope(caller, owned.user_id),
        )
        sessions = SessionNames(owned.others)
        items: dict[str, Any] = {field: [present(to_hit(each, 0.0), sessions) for each in found.items]}
        return to_envelope(request, CloudGetData(**items, total_count=found.total, count=len(found.items)))

    return [("search", "/search", search, ()), ("get", "/get", get, ())]


class _Search:
    """The search of a request, for one kind of memory at a time."""

    def __init__(self, caller: Caller, body: CloudSearchRequest, owned: OwnedFilters) -> None:
        self._caller = caller
        self._body = body
        self._user_id = owned.user_id
        self._condition = _condition(owned)
        self._sessions = SessionNames(owned.others)

    async def matching(self, selection: Condition, present: Callable[[Hit, SessionNames], T]) -> list[T]:
        body = self._body
        hits = await self._caller.memory.search(
            body.query,
            top_k=most_hits(body.top_k),
            method=body.method,
            radius=body.radius,
            condition=_narrow(selection, self._condition),
            **_user_scope(self._caller, self._user_id),
        )
        return [present(hit, self._sessions) for hit in hits]


def _condition(owned: OwnedFilters) -> Condition | None:
    return condition_from(owned.others, owned.user_id, everos=True)


def _narrow(selection: Condition, condition: Condition | None) -> Condition:
    if condition is None:
        return selection
    return AllOf((selection, *(condition.all_of if isinstance(condition, AllOf) else (condition,))))


async def _raw_messages(caller: Caller, owned: OwnedFilters, most: int) -> list[RawMessage]:
    """The newest messages that no flush has sealed, oldest first."""
    session = owned.others.get("session_id")
    if owned.others and (len(owned.others) > 1 or not isinstance(session, str) or problem_of(session) is not None):
        raise NotSupported("filters: for memory_types raw_message, send user_id, and one session_id or none")
    scope = _user_scope(caller, owned.user_id)
    if session is not None:
        scope["conversation"] = conversation_of(session)
    page = await caller.memory.list(kind="message", unsealed=True, limit=most, **scope)
    partition = Scope(caller.space, agent=scope.get("agent"), subject=scope.get("subject")).partition
    own = [each for each in page.items if isinstance(each, Message) and each.scope.partition == partition]
    return [presenters.raw_message(each, session or each.scope.conversation or "") for each in reversed(own)]


# --- scopes ---


def _is_agent_itself(caller: Caller, user_id: str) -> bool:
    return caller.actor.kind is ActorKind.AGENT and caller.actor.id == user_id


def _user_scope(caller: Caller, user_id: str) -> ScopeKwargs:
    """The scope of a user's memory, for this caller. The gate checks that the caller may reach it."""
    scope: ScopeKwargs = {"app": _APP, "project": _APP}
    if caller.actor.kind is ActorKind.AGENT:
        scope["agent"] = caller.actor.id
    if not _is_agent_itself(caller, user_id):
        scope["subject"] = user_id
    return scope


def _own_scope(caller: Caller) -> ScopeKwargs:
    """The scope of the caller's own memory; all of its space for operators."""
    if caller.actor.kind in (ActorKind.OPERATOR, ActorKind.SYSTEM):
        return {"app": _APP, "project": _APP}
    return _user_scope(caller, caller.actor.id)


def _conversation_scope(caller: Caller, body: CloudOwnedRequest, channel: str | None) -> ScopeKwargs:
    scope = _user_scope(caller, body.user_id)
    scope["conversation"] = conversation_of(body.session_id or DEFAULT_CONVERSATION)
    scope["channel"] = channel
    return scope


def _target(caller: Caller, body: CloudDeleteRequest) -> dict[str, Any]:
    """The arguments of `forget`. What would delete more or less than the request says is refused."""
    if body.group_id:
        raise NotSupported(f"group_id: {NO_GROUPS}")
    if "sender_id" in body.model_fields_set:
        raise NotSupported("sender_id: memory is deleted by id, conversation or user; leave it out")
    if body.memory_id is not None:
        if "session_id" in body.model_fields_set:
            raise InvalidInput("session_id", "narrows no memory_id; send one of them")
        scope = _own_scope(caller) if body.user_id is None else _user_scope(caller, body.user_id)
        return {"record_id": body.memory_id, **scope}
    if body.user_id is None:
        raise InvalidInput("user_id", "is missing; send it, or memory_id")
    scope = _user_scope(caller, body.user_id)
    if "session_id" in body.model_fields_set:
        return {**scope, **_session_target(body.session_id)}
    if _is_agent_itself(caller, body.user_id):
        raise NotSupported("user_id: an agent's own memory is deleted by session_id or memory_id; send one of them")
    return {**scope}


def _session_target(session_id: str | None) -> dict[str, str]:
    if not session_id:
        raise NotSupported("session_id: every memory is of a conversation or of none; name one, or leave it out")
    if (problem := problem_of(session_id)) is not None:
        raise InvalidInput("session_id", problem)
    return {"source": session_id} if session_id.startswith(RESOURCE) else {"conversation": conversation_of(session_id)}
