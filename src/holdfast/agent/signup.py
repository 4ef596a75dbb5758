"""Sign up a user at a Memory Gateway: `POST /users`, which returns the key once.

With the operator's token, that call gives an existing user a new key and revokes the old one. So the operator first
checks that the user does not exist, and the token is sent only to a gateway that has asked for it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

from holdfast.agent.texts import parse_object
from holdfast.client.gateway import Category, GatewayClient, GatewayError
from holdfast.client.transport import HttpReply, HttpTransport, NoResponse
from holdfast.domain.secret import Secret
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    OutcomeUnknown,
    StoreUnavailable,
    StoreUnusable,
    Unauthenticated,
    UserExists,
)
from holdfast.settings import Settings

_SECONDS = 10.0
_MAX_ANSWER_BYTES = 1_000_000
_PAGE = 100
_TRIED = "holdfast-agent-init"


async def sign_up(url: str, user_id: str, key: Secret | None, settings: Settings) -> Secret:
    """Return the user's key: a new user's, or `key` if the gateway accepts it."""
    if key is not None:
        await _check(url, user_id, key)
        return key
    async with _line(url, None) as line:
        reply = await _create_user(line, user_id)
    if reply.status in (401, 403):
        token = settings.key or settings.operator_token
        if token is None:
            raise Unauthenticated(
                f"{url} lets only its operator create users; set HOLDFAST_KEY to the operator's token, or, where"
                " its store is, HOLDFAST_STORE to that store"
            )
        async with _line(url, Secret(token.get_secret_value(), "HOLDFAST_KEY")) as line:
            await _refuse_known(line, user_id)
            reply = await _create_user(line, user_id)
    return _key(url, user_id, reply)


async def _check(url: str, user_id: str, key: Secret) -> None:
    gateway = GatewayClient(url, user_id, key, timeout_seconds=_SECONDS)
    problem: HoldfastError | None = None
    try:
        await gateway.search(_TRIED, "hello", scope=["all_user_memory"], top_k=1)
    except GatewayError as error:
        problem = _key_check_error(url, user_id, error)
    finally:
        await gateway.close()
    if problem is not None:
        raise problem


def _key_check_error(url: str, user_id: str, error: GatewayError) -> HoldfastError:
    if error.category is Category.UNAUTHORIZED:
        return Unauthenticated(f"{url} does not accept this key for user {user_id!r:.80}; check both")
    if error.category in (Category.UNREACHABLE, Category.LOST):
        return _unavailable(url, "cannot be reached")
    return StoreUnusable(f"{url} did not answer as a Memory Gateway does ({error}); check the address")


@asynccontextmanager
async def _line(url: str, key: Secret | None) -> AsyncIterator[HttpTransport]:
    line = HttpTransport(url, key, _SECONDS, max_answer_bytes=_MAX_ANSWER_BYTES)
    try:
        yield line
    finally:
        await line.close()


async def _create_user(line: HttpTransport, user_id: str) -> HttpReply:
    try:
        return await line.call("POST", "/users", json.dumps({"user_id": user_id}).encode())
    except NoResponse as lost:
        sent, reason = lost.sent, lost.reason
    if sent:
        raise OutcomeUnknown(f"{line.url} {reason}; if the user was created, its key is lost. {_rotate_hint(user_id)}")
    raise _unavailable(line.url, reason)


async def _refuse_known(line: HttpTransport, user_id: str) -> None:
    """Check, as the operator, that the user does not exist yet."""
    cursor: str | None = ""
    while cursor is not None:
        reply = await _list_users(line, cursor)
        if reply.status in (404, 405):
            return  # this gateway cannot list users; its contract is to return the same key again
        if reply.status in (401, 403):
            raise Unauthenticated(f"{line.url} does not accept the given token as its operator's")
        page = parse_object(reply.body)
        users, following = page.get("users"), page.get("next_cursor")
        if reply.status != 200 or not isinstance(users, list):
            raise _unexpected_reply(line.url, reply)
        if any(isinstance(each, dict) and each.get("user_id") == user_id for each in users):
            raise _user_exists(line.url, user_id)
        cursor = f"&cursor={quote(following, safe='')}" if users and isinstance(following, str) else None


async def _list_users(line: HttpTransport, cursor: str) -> HttpReply:
    try:
        return await line.call("GET", f"/users?limit={_PAGE}{cursor}")
    except NoResponse as lost:
        problem = _unavailable(line.url, lost.reason)
    raise problem


def _key(url: str, user_id: str, reply: HttpReply) -> Secret:
    if reply.status == 409:
        raise _user_exists(url, user_id)
    if reply.status in (401, 403):
        raise Unauthenticated(f"{url} does not let the holder of the given token create users")
    if reply.status == 422:
        raise InvalidInput("--user", f"is not a name that {url} accepts")
    if reply.status in (200, 201):
        try:
            return Secret(parse_object(reply.body).get("user_key"), "user_key")
        except InvalidInput:
            pass
    raise _unexpected_reply(url, reply)


def _user_exists(url: str, user_id: str) -> UserExists:
    return UserExists(
        f"{url} already has a user {user_id!r:.80}. If that is you, add --key-file FILE with the key in that file;"
        f" else choose another --user. {_rotate_hint(user_id)}"
    )


def _rotate_hint(user_id: str) -> str:
    return f"`holdfast user rotate {user_id!r:.80}`, run where the gateway's store is, makes a new key for a lost one"


def _unavailable(url: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(f"{url} {reason}; is the gateway running? `holdfast serve` starts one. Nothing was written")


def _unexpected_reply(url: str, reply: HttpReply) -> HoldfastError:
    if reply.status == 429 or reply.status >= 500:
        return StoreUnavailable(f"{url} answered {reply.status}: it is overloaded or broken; try again later")
    return StoreUnusable(f"{url} answered {reply.status}, not as a Memory Gateway does; check the address")
