"""Who is calling, and which route asks for whom.

A handler reaches memory only through a `Caller`, and only the `Door` makes one. Every route names its rule; one that
names none is refused when the app is put together.
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
from holdfast.gateway.config import GatewayConfig, is_loopback
from holdfast.gateway.edge.exchange import OF_PROXIES
from holdfast.gateway.edge.rates import charge_to
from holdfast.inputs import Where
from holdfast.library import AsyncMemory
from holdfast.ports import Directory, Service, Verb

T = TypeVar("T")

RULE = "x-holdfast-access"
_BEARER = "bearer "
_MOST_KEY_CHARS = 512
_OF_OPERATORS = KEY_PREFIXES[ActorKind.OPERATOR]
_WRONG = "the key is not known, or is not this user's; give the key that POST /users answered"
_UNKNOWN = "the key is not known; it may have been rotated or revoked: `holdfast credential list` shows who there is"
_MISSING = "no key was given; send it as `Authorization: Bearer …`, or as `user_key` where the body has one"
_OPERATORS = "this needs the operator's token, as `Authorization: Bearer …`"


class Rule(StrEnum):
    """Who may call a route."""

    PUBLIC = "public"
    USER = "user"  # the key of a user, for that user's own memory
    OPERATOR = "operator"  # the operator's token, or the key of an operator, for its company
    KNOWN = "known"  # the operator's token, or any key
    COMPANY = "company"  # the same, in the company that the path names; its role says what it may do there
    SIGN_UP = "sign_up"  # as `operator`; anybody on loopback while no token is configured
    METRICS = "metrics"  # the operator's token; anybody on loopback while none is configured


def ruled(rule: Rule) -> dict[str, Any]:
    """The rule of a route, as its decorator takes it: told in the OpenAPI document too."""
    return {"openapi_extra": {RULE: rule.value}}


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the door let in. Whatever is done goes through the gate in this actor's name.

    `proven` by a token or key; whoever is let in without one is on this machine.
    """

    actor: Actor
    space: str
    service: Service
    memory: AsyncMemory
    proven: bool = True

    @property
    def user_id(self) -> str:
        return self.actor.id

    def where(self, app_id: str, project_id: str) -> Where:
        """This user's own memory, in an app and project."""
        return {"subject": self.user_id, "app": app_id, "project": project_id}

    async def perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self.service.perform(self.actor, action, make, space=self.space)


class Door:
    """Lets callers in. Unknown users and wrong keys get the same answer, after the same work."""

    def __init__(self, service: Service, directory: Directory, config: GatewayConfig) -> None:
        self._service = service
        self._directory = directory
        self._space = config.space
        self._operator = None if config.operator_token is None else _digest(config.operator_token)

    async def user(self, request: Request, user_id: str | None = None, user_key: str | None = None) -> Caller:
        """The user whose key this is: from the header, or from the body beside `user_id`."""
        given = _presented(request, user_key)
        if given is None:
            raise Unauthenticated(_MISSING)
        found = await self._directory.actor_of(given)
        # Compared whether or not the key was found.
        named = _same(user_id, None if found is None else found.id)
        if found is None or not named:
            raise Unauthenticated(_WRONG)
        # The edge knows addresses, and keys that were let in before.
        charge_to(request.scope, given)
        if found.kind is not ActorKind.USER:
            raise AccessDenied(
                f"this is the key of the {found.kind} {found.id!r}, and here users read and write what is their own;"
                " use the routes below /companies, or the key of a user"
            )
        return self._let_in(found)

    async def operator(self, request: Request) -> Caller:
        """Whoever holds the operator's token, or the key of an operator of one company."""
        given = _bearer(request)
        if given is not None and self.is_operator(request):
            return self._by_token(request, given)
        if given is not None and given.startswith(_OF_OPERATORS):
            caller = await self._by_key(request, given)
            if caller.actor.kind is ActorKind.OPERATOR:
                return caller
        if self._operator is None:
            raise AccessDenied(
                "no operator's token is configured; set HOLDFAST_OPERATOR_TOKEN, or use the command line"
            )
        raise Unauthenticated(_OPERATORS)

    async def known(self, request: Request) -> Caller:
        given = _bearer(request)
        if given is None:
            raise Unauthenticated(_MISSING)
        return self._by_token(request, given) if self.is_operator(request) else await self._by_key(request, given)

    async def company(self, request: Request, company: str) -> Caller:
        """Whoever calls what belongs to a company. That it is the caller's own is the gate's to see to, which leaves
        a row of it."""
        given = _bearer(request)
        if given is None and self._operator is None and is_local(request):
            return self._let_in(Actor(ActorKind.OPERATOR, "loopback"), company, proven=False)
        caller = await self.known(request)
        return self._let_in(caller.actor, company)

    async def sign_up(self, request: Request) -> Caller | None:
        """Whoever may create users; None for somebody who may not."""
        given = _bearer(request)
        if self.is_operator(request) or (given is not None and given.startswith(_OF_OPERATORS)):
            return await self.operator(request)
        if self._operator is None and is_local(request):
            return self._let_in(Actor(ActorKind.OPERATOR, "loopback"), proven=False)
        return None

    def metrics(self, request: Request) -> None:
        """With a token configured only for its holder: a proxy on this machine makes everybody look local."""
        if not (self.is_operator(request) if self._operator is not None else is_local(request)):
            raise Unauthenticated(_OPERATORS)

    def key_of(self, request: Request, in_body: str | None) -> str | None:
        """The user's key that a request brings along, if it does."""
        return _presented(request, in_body)

    def is_operator(self, request: Request) -> bool:
        given = _bearer(request)
        return self._operator is not None and given is not None and hmac.compare_digest(_digest(given), self._operator)

    async def _by_key(self, request: Request, given: str) -> Caller:
        found = await self._directory.actor_of(given[:_MOST_KEY_CHARS])
        if found is None:
            raise Unauthenticated(_UNKNOWN)
        charge_to(request.scope, given)
        return self._let_in(found)

    def _by_token(self, request: Request, given: str) -> Caller:
        charge_to(request.scope, given)
        return self._let_in(Actor(ActorKind.OPERATOR, "gateway"))

    def _let_in(self, actor: Actor, company: str | None = None, *, proven: bool = True) -> Caller:
        space = company or actor.space or self._space
        memory = AsyncMemory(self._service, actor=actor, space=space)
        return Caller(actor, space, self._service, memory, proven)


def _presented(request: Request, in_body: str | None) -> str | None:
    in_header = _bearer(request)
    if in_header is not None and in_body is not None and not hmac.compare_digest(_digest(in_header), _digest(in_body)):
        raise InvalidInput("user_key", "differs from the one in the Authorization header; send one of them")
    given = in_header if in_header is not None else in_body
    # A key that is longer than any of ours is looked up like every other, and not found.
    return None if given is None else given[:_MOST_KEY_CHARS]


def _bearer(request: Request) -> str | None:
    value = request.headers.get("authorization")
    if value is None:
        return None
    if not value.lower().startswith(_BEARER) or not value[len(_BEARER) :].strip():
        raise Unauthenticated(
            "the Authorization header must read `Bearer` and a key; is the variable that holds the key empty?"
        )
    return value[len(_BEARER) :].strip()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _same(given: str | None, found: str | None) -> bool:
    """Whether the user that was named is the one; without a name, the key alone says who it is."""
    return given is None or hmac.compare_digest(_digest(given), _digest(found or ""))


def is_local(request: Request) -> bool:
    """Whether it came from this machine, and not through a proxy on it."""
    if any(name in OF_PROXIES for name, _ in request.scope["headers"]):
        return False
    return request.client is not None and is_loopback(request.client.host.removeprefix("::ffff:"))


def unruled(routes: list[Any]) -> list[str]:
    """Routes that do not say who may call them."""
    known = {rule.value for rule in Rule}
    return [f"{route.path}" for route in routes if (getattr(route, "openapi_extra", None) or {}).get(RULE) not in known]
