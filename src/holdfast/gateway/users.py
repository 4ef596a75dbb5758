"""`/users`: who may come in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from holdfast.domain.access import Action
from holdfast.domain.scope import MAX_PART_CHARS, Scope
from holdfast.errors import Unauthenticated
from holdfast.gateway import present
from holdfast.gateway.access import Door, Rule, ruled
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.memories import Cursor
from holdfast.gateway.models import MAX_PAGE, NewUser, UserList, UserListed, UserTold
from holdfast.gateway.parameters import StrictRoute
from holdfast.gateway.problems import refusals
from holdfast.runtime.users import CreateUser

_WHO = "this needs the operator's token, as `Authorization: Bearer …`; or, of a user who is there, its current key"
UserId = Annotated[str, Path(min_length=1, max_length=MAX_PART_CHARS)]


def router(door: Door) -> APIRouter:
    routes = APIRouter(prefix="/users", tags=["users"], route_class=StrictRoute)

    @routes.post(
        "", status_code=201, **ruled(Rule.SIGN_UP), responses={200: {"model": UserTold}, **refusals(401, 409, 422)}
    )
    async def create_user(
        request: Request, response: Response, given: NewUser, idempotency_key: IdempotencyKey = None
    ) -> UserTold:
        """Create a user, and show its key this once.

        For a user who is there already: 200 and no key, with its current key; a new key, with the operator's token.
        """
        caller = await door.sign_up(request)
        if caller is None:
            try:
                known = await door.user(request, given.user_id, given.user_key)
            except Unauthenticated:
                raise Unauthenticated(_WHO) from None
            response.status_code = 200
            return UserTold(user_id=known.user_id)
        presented = None if caller.proven else door.key_of(request, given.user_key)
        issued = await caller.perform(
            Action.CREATE_USER,
            lambda: CreateUser(Scope(caller.space), given.user_id, presented, caller.proven, idempotency_key),
        )
        response.status_code = 201 if issued.created else 200
        response.headers["Cache-Control"] = "no-store"
        return UserTold(user_id=issued.user.id, user_key=issued.key)

    @routes.get("", **ruled(Rule.OPERATOR), responses=refusals(401, 403, 422))
    async def list_users(
        request: Request, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50, cursor: Cursor = None
    ) -> UserList:
        """All users, in the order of their ids, without their keys."""
        caller = await door.operator(request)
        page = await caller.memory.users(limit=limit, cursor=cursor)
        return UserList(users=[present.user(each) for each in page.items], next_cursor=page.next_cursor)

    @routes.delete("/{user_id:path}", **ruled(Rule.OPERATOR), responses=refusals(401, 403, 404, 422))
    async def revoke_user(request: Request, user_id: UserId, idempotency_key: IdempotencyKey = None) -> UserListed:
        """Take a user's key away. Its memory stays; the operator's token gives it a new key."""
        caller = await door.operator(request)
        return present.user(await caller.memory.revoke_user(user_id, idempotency_key=idempotency_key))

    return routes
