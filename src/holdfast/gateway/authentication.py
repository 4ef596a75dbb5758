"""Authentication of callers, and the access rule of each route.

A handler reaches memory only through a `Caller`, and only the authenticator creates one. Every route declares a rule;
the app refuses to start with a route that declares none.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from fastapi import Request

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.users import KEY_PREFIXES
from holdfast.errors import AccessDenied, InvalidInput, Unauthenticated
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.limits import charge_to
from holdfast.gateway.schemas import CHAT
from holdfast.inputs import ScopeKwargs
from holdfast.library import AsyncMemory
from holdfast.ports import KeyDirectory, Service, Verb

T = TypeVar("T")

RULE = "x-holdfast-access"
_BEARER = "bearer "
_MOST_KEY_CHARS = 512
_OF_OPERATORS = KEY_PREFIXES[ActorKind.OPERATOR]
_WRONG = "the key is unknown, or belongs to another user; send the key that POST /users returned"
_UNKNOWN = "the key is unknown; it may have been rotated or revoked: `holdfast credential list` lists all credentials"
_MISSING = "no key was sent; send it as `Authorization: Bearer …`, or as `user_key` if the body has that field"
_OPERATORS = "this needs the operator's token, as `Authorization: Bearer …`"


class AccessRule(StrEnum):
    """The callers that a route admits."""

    PUBLIC = "public"
    USER = "user"  # a user's key, for that user's own memory
    OPERATOR = "operator"  # the operator's token, or an operator's key, for its company
    KNOWN = "known"  # the operator's token, or any key
    COMPANY = "company"  # the same, in the company in the path; the role decides what the caller may do
    SIGN_UP = "sign_up"  # as `operator`; anybody if `open_sign_up` is on
    METRICS = "metrics"  # the operator's token alone: metrics name all companies


def allow(rule: AccessRule) -> dict[str, Any]:
    """Keyword arguments for a route's decorator that declare its rule, also in the OpenAPI document."""
    return {"openapi_extra": {RULE: rule.value}}


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. All its calls pass the gate as this actor."""

    actor: Actor
    space: str
    service: Service
    memory: AsyncMemory

    @property
    def user_id(self) -> str:
        return self.actor.id

    def where(self, app_id: str, project_id: str, session_id: str | None = None) -> ScopeKwargs:
        """The scope of this user's own memory in an app and project, and in the conversation of a session."""
        where: ScopeKwargs = {"subject": self.user_id, "app": app_id, "project": project_id}
        if session_id is not None:
            where["conversation"] = session_id.removeprefix(CHAT)
        return where

    async def perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self.service.perform(self.actor, action, make, space=self.space)


class Authenticator:
    """Authenticates callers. Unknown users and wrong keys get the same response, after the same work."""

    def __init__(self, service: Service, directory: KeyDirectory, config: GatewayConfig) -> None:
        self._service = service
        self._directory = directory
        self._space = config.space
        self._operator = _digest(config.operator_token)
        # Who signs up without a credential, if that is allowed. It creates plain users of its own space alone.
        self.anybody = Actor(ActorKind.OPERATOR, "sign-up", config.space) if config.open_sign_up else None

    async def user(self, request: Request, user_id: str | None = None, user_key: str | None = None) -> Caller:
        """Authenticate a user by the key in the header, or by `user_key` and `user_id` in the body."""
        key = key_of(request, user_key)
        if key is None:
            raise Unauthenticated(_MISSING)
        actor = await self._directory.actor_of(key)
        # Compared even if the key was not found, so that timing reveals nothing.
        named = _is_same_user(user_id, None if actor is None else actor.id)
        if actor is None or not named:
            raise Unauthenticated(_WRONG)
        # Until now the edge charged the address: it cannot verify keys.
        charge_to(request.scope, key)
        if actor.kind is not ActorKind.USER:
            raise AccessDenied(
                f"this is the key of the {actor.kind} {actor.id!r}, and this route needs a user's key; send one, or use"
                " the routes below /companies"
            )
        return self._caller(actor)

    async def operator(self, request: Request) -> Caller:
        """Authenticate the operator's token, or the key of an operator of one company."""
        key = _bearer(request)
        if key is not None and self.is_operator(request):
            return self._by_token(request, key)
        if key is not None and key.startswith(_OF_OPERATORS):
            caller = await self._by_key(request, key)
            if caller.actor.kind is ActorKind.OPERATOR:
                return caller
        raise Unauthenticated(_OPERATORS)

    async def any_key(self, request: Request) -> Caller:
        key = _bearer(request)
        if key is None:
            raise Unauthenticated(_MISSING)
        return self._by_token(request, key) if self.is_operator(request) else await self._by_key(request, key)

    async def company(self, request: Request, company: str) -> Caller:
        """Authenticate a caller of a company's routes. The gate, which writes an audit row, checks that the company is
        the caller's own."""
        caller = await self.any_key(request)
        return self._caller(caller.actor, company)

    async def sign_up(self, request: Request) -> Caller | None:
        """Authenticate a caller that may create users; None for any other."""
        key = _bearer(request)
        if self.is_operator(request) or (key is not None and key.startswith(_OF_OPERATORS)):
            return await self.operator(request)
        return None if self.anybody is None else self._caller(self.anybody)

    def metrics(self, request: Request) -> None:
        """Admit only the token's holder."""
        if not self.is_operator(request):
            raise Unauthenticated(_OPERATORS)

    def is_operator(self, request: Request) -> bool:
        key = _bearer(request)
        return key is not None and hmac.compare_digest(_digest(key), self._operator)

    async def _by_key(self, request: Request, key: str) -> Caller:
        actor = await self._directory.actor_of(key[:_MOST_KEY_CHARS])
        if actor is None:
            raise Unauthenticated(_UNKNOWN)
        charge_to(request.scope, key)
        return self._caller(actor)

    def _by_token(self, request: Request, key: str) -> Caller:
        charge_to(request.scope, key)
        return self._caller(Actor(ActorKind.OPERATOR, "gateway"))

    def _caller(self, actor: Actor, company: str | None = None) -> Caller:
        space = company or actor.space or self._space
        memory = AsyncMemory(self._service, actor=actor, space=space)
        return Caller(actor, space, self._service, memory)


def key_of(request: Request, in_body: str | None) -> str | None:
    """The user's key in the header or the body, if any."""
    in_header = _bearer(request)
    if in_header is not None and in_body is not None and not hmac.compare_digest(_digest(in_header), _digest(in_body)):
        raise InvalidInput("user_key", "differs from the key in the Authorization header; send only one")
    key = in_header if in_header is not None else in_body
    # Cut, not refused: an overlong key is looked up like any other, and not found.
    return None if key is None else key[:_MOST_KEY_CHARS]


def _bearer(request: Request) -> str | None:
    value = request.headers.get("authorization")
    if value is None:
        return None
    if not value.lower().startswith(_BEARER) or not value[len(_BEARER) :].strip():
        raise Unauthenticated(
            "the Authorization header must be `Bearer` and a key; is the variable that holds the key empty?"
        )
    return value[len(_BEARER) :].strip()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _is_same_user(user_id: str | None, actor_id: str | None) -> bool:
    """Compare in constant time. True without a `user_id`: then the key alone identifies the user."""
    return user_id is None or hmac.compare_digest(_digest(user_id), _digest(actor_id or ""))


def routes_without_rule(routes: list[Any]) -> list[str]:
    """Paths of routes without an access rule."""
    known = {rule.value for rule in AccessRule}
    return [f"{route.path}" for route in routes if (getattr(route, "openapi_extra", None) or {}).get(RULE) not in known]
