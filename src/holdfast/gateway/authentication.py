"""Authentication of callers, and the access rule of each route.

A handler reaches memory only through a `Caller`, and only the authenticator creates one. Every route declares a rule;
the app refuses to start with a route that declares none.

`RouteGuard` is the layer of the edge that checks a request's headers against these rules before its body is read: an
unknown key must cost nothing. It only refuses early what the route would refuse: the route itself authenticates.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from fastapi import Request
from fastapi.params import Form
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.users import KEY_PREFIXES
from holdfast.errors import AccessDenied, HoldfastError, InvalidInput, Unauthenticated
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.exchange import Exchange, exchange_of
from holdfast.gateway.edge.limits import charge_to
from holdfast.gateway.schemas import CHAT
from holdfast.inputs import ScopeKwargs
from holdfast.library import AsyncMemory
from holdfast.ports import KeyDirectory, Service, Verb

T = TypeVar("T")

RULE = "x-holdfast-access"
_BEARER = "bearer "
_MOST_KEY_CHARS = 512
# The most of a body that is read before its sender is known.
UNVERIFIED_BYTES = 64 * 1024
_VERIFIED = "holdfast.verified"
# A request that takes longer, such as a slow upload, is verified again: its key may have been revoked meanwhile.
_VERIFIED_SECONDS = 1.0
_OF_OPERATORS = KEY_PREFIXES[ActorKind.OPERATOR]
_WRONG = "the key is unknown, or belongs to another user; send the key that POST /users returned"
_UNKNOWN = "the key is unknown; it may have been rotated or revoked: `holdfast credential list` lists all credentials"
_NO_USER = (
    "this is the operator's token, and this route needs a user's key: `POST /users` with a `user_id` returns one, as"
    " does `holdfast user create`"
)
_MISSING = "no key was sent; send it as `Authorization: Bearer …`, or as `user_key` if the body has that field"
_OPERATORS = "this needs the operator's token, as `Authorization: Bearer …`"


class AccessRule(StrEnum):
    """The callers that a route admits."""

    PUBLIC = "public"
    USER = "user"  # a user's key, for that user's own memory
    OPERATOR = "operator"  # the operator's token, or an operator's key, for its space
    KNOWN = "known"  # the operator's token, or any key
    COMPANY = "company"  # the same, in the space in the path; the role decides what the caller may do
    SIGN_UP = "sign_up"  # as `operator`; anybody if `open_sign_up` is on
    METRICS = "metrics"  # the operator's token alone: metrics name all spaces


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
        actor = await self._actor_of(request.scope, key)
        # Compared even if the key was not found, so that timing reveals nothing.
        named = _is_same_user(user_id, None if actor is None else actor.id)
        if actor is None and self._is_token(key):
            raise Unauthenticated(_NO_USER)
        if actor is None or not named:
            raise Unauthenticated(_WRONG)
        # Until now the edge may have charged the address: it does not find every key in a body.
        charge_to(request.scope, key)
        if actor.kind is not ActorKind.USER:
            raise AccessDenied(
                f"this is the key of the {actor.kind} {actor.id!r}, and this route needs a user's key; send one, or use"
                " the routes below /companies"
            )
        return self._caller(actor)

    async def operator(self, request: Request) -> Caller:
        """Authenticate the operator's token, or the key of an operator of one space."""
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
        """Authenticate a caller of a space's routes. The gate, which writes an audit row, checks that the space is
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
        return key is not None and self._is_token(key)

    async def is_known(self, scope: Scope, key: str) -> bool:
        """Verify a key before the route does, and count the request for it."""
        key = key[:_MOST_KEY_CHARS]
        if not self._is_token(key):
            actor = await self._directory.actor_of(key)
            if actor is None:
                return False
            scope[_VERIFIED] = _VerifiedKey(key, actor, time.monotonic())
        charge_to(scope, key)
        return True

    def _is_token(self, key: str) -> bool:
        return hmac.compare_digest(_digest(key), self._operator)

    async def _actor_of(self, scope: Scope, key: str) -> Actor | None:
        known: _VerifiedKey | None = scope.get(_VERIFIED)
        if known is not None and known.key == key and time.monotonic() - known.at < _VERIFIED_SECONDS:
            return known.actor
        return await self._directory.actor_of(key)

    async def _by_key(self, request: Request, key: str) -> Caller:
        actor = await self._actor_of(request.scope, key[:_MOST_KEY_CHARS])
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


class _VerifiedKey(NamedTuple):
    key: str
    actor: Actor
    at: float


class RouteNeeds(NamedTuple):
    """The headers that a route needs. `media_type` is that of its body; None if its method has none."""

    rule: AccessRule
    media_type: bytes | None
    takes_body: bool
    key_in_body: bool


class RouteTable:
    """Finds what a route needs, by method and path."""

    def __init__(self, routes: Sequence[APIRoute]) -> None:
        self._plain: dict[tuple[str, str], RouteNeeds] = {}
        self._patterns: list[tuple[str, re.Pattern[str], RouteNeeds]] = []
        for route in routes:
            for method in route.methods or ():
                if route.param_convertors:
                    self._patterns.append((method, route.path_regex, _needs_of(route, method)))
                else:
                    self._plain[method, route.path] = _needs_of(route, method)

    def find(self, method: str, path: str) -> RouteNeeds | None:
        if (found := self._plain.get((method, path))) is not None:
            return found
        return next((needs for at, regex, needs in self._patterns if at == method and regex.match(path)), None)


class RouteGuard:
    """Checks the content type and the key of a request before its body is read.

    If the key may be in the body, a little of it is read to find the key. The rest is read only for a known key.
    """

    def __init__(self, app: ASGIApp, auth: Authenticator, routes: RouteTable) -> None:
        self._app = app
        self._auth = auth
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = exchange_of(scope)
            needs = self._routes.find(exchange.method, exchange.path)
            if needs is not None and needs.rule is not AccessRule.PUBLIC:
                _check_media_type(exchange, needs)
                receive = await self._check_key(exchange, needs, receive)
        await self._app(scope, receive, send)

    async def _check_key(self, exchange: Exchange, needs: RouteNeeds, receive: Receive) -> Receive:
        """Verify the key. Return the channel of the body, of which the start may have been read."""
        key = _key_in_header(exchange)
        if key is not None and await self._is_known(exchange, key):
            return receive
        if needs.rule in _FOR_KEYS:
            if key is not None:
                raise _refuse_key(exchange, _WRONG if needs.rule is AccessRule.USER else _UNKNOWN)
            if not needs.key_in_body:
                raise _refuse_key(exchange, _MISSING)
        return await self._check_start(exchange, receive) if exchange.has_body else receive

    async def _check_start(self, exchange: Exchange, receive: Receive) -> Receive:
        messages: list[Message] = []
        start, more = bytearray(), True
        while more and len(start) <= UNVERIFIED_BYTES:
            messages.append(await receive())
            start += messages[-1].get("body", b"")
            more = messages[-1].get("more_body", False)
        key = find_key(bytes(start[:UNVERIFIED_BYTES]))
        is_known = key is not None and await self._is_known(exchange, key)
        if not is_known and len(start) > UNVERIFIED_BYTES:
            if key is not None:
                raise _refuse_key(exchange, _WRONG)
            raise exchange.refuse(
                413,
                "body_too_large",
                f"the body may have at most {UNVERIFIED_BYTES:,} bytes while its sender is unknown; send the key as"
                " `Authorization: Bearer …`, or as `user_key` at the start of the body",
                hang_up=True,
            )

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        return replay

    async def _is_known(self, exchange: Exchange, key: str) -> bool:
        try:
            return await self._auth.is_known(exchange.scope, key)
        except HoldfastError:
            return True  # the store cannot be read: the route meets the same error, and reports it


def find_key(start: bytes) -> str | None:
    """Find `user_key` near the start of a body, in JSON or multipart. A wrong find is harmless: it must be a known key.

    Only its first occurrence is looked at, and each part of the patterns is bounded, so the time is linear.
    """
    at = start.find(b'"user_key"')
    match = None if at < 0 else (_KEY_IN_JSON.match(start, at) or _KEY_IN_FORM.match(start, at))
    return None if match is None else match.group(1).decode("latin-1")


_KEY_IN_JSON = re.compile(rb'"user_key"\s{0,100}:\s{0,100}"([^"\\]{1,512})"')
_KEY_IN_FORM = re.compile(rb'"user_key"[^\r\n]{0,200}\r\n(?:[^\r\n]{1,200}\r\n){0,4}\r\n([^\r\n]{1,512})\r\n')
# Of callers that must have a key, which the route would refuse in the same words.
_FOR_KEYS = frozenset({AccessRule.USER, AccessRule.KNOWN, AccessRule.COMPANY})
_CHANGING = frozenset({"POST", "PUT", "PATCH"})
_JSON, _FORM = b"application/json", b"multipart/form-data"


def _needs_of(route: APIRoute, method: str) -> RouteNeeds:
    extra = route.openapi_extra or {}
    is_form = route.body_field is not None and isinstance(route.body_field.field_info, Form)
    models = [each.field_info.annotation for each in route.dependant.body_params]
    return RouteNeeds(
        AccessRule(extra[RULE]),
        (_FORM if is_form else _JSON) if method in _CHANGING else None,
        route.body_field is not None or "requestBody" in extra,
        any("user_key" in getattr(model, "model_fields", ()) for model in models),
    )


def _check_media_type(exchange: Exchange, needs: RouteNeeds) -> None:
    """Check the content type, also of an empty body: a page of another site can send others without being asked.

    Only a route that takes no body needs none.
    """
    expected, header = needs.media_type, exchange.given.get(b"content-type")
    if expected is None or (header is None and not needs.takes_body and not exchange.has_body):
        return
    sent = (header or b"").partition(b";")[0].strip().lower()
    is_json = expected == _JSON and sent.startswith(b"application/") and sent.endswith(b"+json")
    if sent != expected and not is_json:
        name = expected.decode("ascii")
        detail = f"the Content-Type must be {name}"
        raise exchange.refuse(415, "unsupported_media_type", detail, hang_up=exchange.has_body)


def _refuse_key(exchange: Exchange, detail: str) -> Exception:
    headers = [(b"www-authenticate", b'Bearer realm="holdfast"')]
    return exchange.refuse(401, Unauthenticated.code, detail, headers, hang_up=exchange.has_body)


def _key_in_header(exchange: Exchange) -> str | None:
    try:
        return _parse_bearer(exchange.given.get(b"authorization"))
    except Unauthenticated as error:
        raise _refuse_key(exchange, str(error)) from None


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
    return _parse_bearer(None if value is None else value.encode("latin-1"))


def _parse_bearer(header: bytes | None) -> str | None:
    if header is None:
        return None
    value = header.decode("latin-1")
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
