"""`/users`: create, list and revoke users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from holdfast.domain.access import Action
from holdfast.domain.scope import MAX_PART_CHARS, Scope
from holdfast.errors import Unauthenticated
from holdfast.gateway import presenters
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.memories import Cursor
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import MAX_PAGE, CreateUserRequest, UserKeyResponse, UserListResponse, UserResponse
from holdfast.gateway.strict_route import StrictRoute
from holdfast.runtime.users import CreateUser

_WHO = "this needs the operator's token, as `Authorization: Bearer …`; or, for an existing user, its current key"
UserId = Annotated[str, Path(min_length=1, max_length=MAX_PART_CHARS)]


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
        presented = None if caller.proven else auth.key_of(request, body.user_key)
        issued = await caller.perform(
            Action.CREATE_USER,
            lambda: CreateUser(Scope(caller.space), body.user_id, presented, caller.proven, idempotency_key),
        )
        response.status_code = 201 if issued.created else 200
        response.headers["Cache-Control"] = "no-store"
        return UserKeyResponse(user_id=issued.user.id, user_key=issued.key)

    @routes.get("", **allow(AccessRule.OPERATOR), responses=refusals(401, 403, 422))
    async def list_users(
        request: Request, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50, cursor: Cursor = None
    ) -> UserListResponse:
        """List all users by id, without their keys."""
        caller = await auth.operator(request)
        page = await caller.memory.users(limit=limit, cursor=cursor)
        return UserListResponse(users=[presenters.user(each) for each in page.items], next_cursor=page.next_cursor)

    @routes.delete("/{user_id:path}", **allow(AccessRule.OPERATOR), responses=refusals(401, 403, 404, 422))
    async def revoke_user(request: Request, user_id: UserId, idempotency_key: IdempotencyKey = None) -> UserResponse:
        """Revoke a user's key. The user's memory stays. The operator's token can issue a new key."""
        caller = await auth.operator(request)
        return presenters.user(await caller.memory.revoke_user(user_id, idempotency_key=idempotency_key))

    return routes
