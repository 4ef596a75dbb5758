"""`/users`: create, list and revoke users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from holdfast.domain.access import Action
from holdfast.domain.scope import Scope
from holdfast.errors import Unauthenticated
from holdfast.gateway.authentication import AccessRule, Authenticator, allow, key_of
from holdfast.gateway.control.verb_routes import Callers, VerbRoute, add_routes
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.memories import PAGE
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import CreateUserRequest, UserKeyResponse, UserListResponse, UserResponse
from holdfast.gateway.strict_route import StrictRoute
from holdfast.runtime.users import CreateUser

_WHO = "this needs the operator's token, as `Authorization: Bearer …`; or, for an existing user, its current key"


async def _find_space(auth: Authenticator, request: Request, values: dict[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    return (await auth.operator(request)).memory, {}


_OPERATORS = Callers(AccessRule.OPERATOR, _find_space, {})
_ROUTES = (
    VerbRoute(
        "GET", "", "users", callers=_OPERATORS, model=UserListResponse, fields=PAGE, without=("kind",),
        doc="List all users by id, without their keys.",
    ),
    VerbRoute(
        "DELETE", "/{user_id:path}", "revoke_user", (404,), callers=_OPERATORS, model=UserResponse, without=("kind",),
        doc="Revoke a user's key. The user's memory stays. The operator's token can issue a new key.",
    ),
)  # fmt: skip


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(prefix="/users", tags=["users"], route_class=StrictRoute)

    @routes.post(
        "",
        status_code=201,
        **allow(AccessRule.SIGN_UP),
        responses={200: {"model": UserKeyResponse}, **refusals(401, 409, 422)},
    )
    async def create_user(
        request: Request, response: Response, body: CreateUserRequest, idempotency_key: IdempotencyKey = None
    ) -> UserKeyResponse:
        """Create a user. The key is in this response only.

        If the user exists: with the user's current key, 200 and no key; with the operator's token, a new key.
        """
        caller = await auth.sign_up(request)
        if caller is None:
            try:
                known = await auth.user(request, body.user_id, body.user_key)
            except Unauthenticated:
                raise Unauthenticated(_WHO) from None
            response.status_code = 200
            return UserKeyResponse(user_id=known.user_id)
        anybody = caller.actor is auth.anybody
        presented = key_of(request, body.user_key) if anybody else None
        issued = await caller.perform(
            Action.CREATE_USER,
            lambda: CreateUser(Scope(caller.space), body.user_id, presented, not anybody, idempotency_key),
        )
        response.status_code = 201 if issued.created else 200
        response.headers["Cache-Control"] = "no-store"
        return UserKeyResponse(user_id=issued.user.id, user_key=issued.key)

    add_routes(routes, auth, _ROUTES)
    return routes
