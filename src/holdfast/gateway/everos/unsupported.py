"""Calls of EverOS's cloud that have no equivalent here: each is refused by one error, which says what to do instead."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException

from holdfast.domain.contract import MAX_FIELDS
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.problem_responses import refusals

NO_GROUPS = "groups are not supported: send user_id, and for a conversation of several people a session_id"
_NO_SENDERS = "senders have no records of their own; send sender_id with each message"
_NO_SETTINGS = "settings of EverOS's cloud have no equivalent; `holdfast serve` reads its own from the environment"
_NO_UPLOADS = (
    "files are not uploaded this way; send them to POST /resources, which accepts text, Markdown, HTML, PDF and DOCX"
)
_CALLS = (
    ("POST", "/api/v1/memories/group", "add_group", NO_GROUPS),
    ("POST", "/api/v1/memories/group/flush", "flush_group", NO_GROUPS),
    ("POST", "/api/v1/groups", "create_group", NO_GROUPS),
    ("GET", "/api/v1/groups/{group_id}", "get_group", NO_GROUPS),
    ("PATCH", "/api/v1/groups/{group_id}", "patch_group", NO_GROUPS),
    ("POST", "/api/v1/senders", "create_sender", _NO_SENDERS),
    ("GET", "/api/v1/senders/{sender_id}", "get_sender", _NO_SENDERS),
    ("PATCH", "/api/v1/senders/{sender_id}", "patch_sender", _NO_SENDERS),
    ("GET", "/api/v1/settings", "get_settings", _NO_SETTINGS),
    ("PUT", "/api/v1/settings", "put_settings", _NO_SETTINGS),
    ("POST", "/api/v1/object/sign", "sign_object", _NO_UPLOADS),
)
# It is not read.
_ANY_BODY = {"content": {"application/json": {"schema": {"type": "object", "maxProperties": MAX_FIELDS}}}}


class NotSupported(HTTPException):
    """There is no equivalent here. 422, which no client of EverOS retries or takes for a missing record."""

    def __init__(self, detail: str) -> None:
        super().__init__(422, detail)


def router(auth: Authenticator) -> APIRouter:
    routes = APIRouter(tags=["EverOS"])
    for method, path, name, problem in _CALLS:
        extra = allow(AccessRule.KNOWN)["openapi_extra"] | {"parameters": _parameters(path)}
        if method != "GET":
            extra["requestBody"] = _ANY_BODY
        routes.add_api_route(
            path,
            _refusing(auth, problem),
            methods=[method],
            name=f"everos_{name}",
            status_code=422,
            response_model=None,
            responses=refusals(401, 422),
            openapi_extra=extra,
        )
    return routes


def _refusing(auth: Authenticator, problem: str) -> Callable[[Request], Awaitable[None]]:
    async def refuse(request: Request) -> None:
        await auth.any_key(request)
        raise NotSupported(problem)

    refuse.__doc__ = f"Not supported: {problem}."
    return refuse


def _parameters(path: str) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": MAX_PART_CHARS}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in re.findall(r"\{(\w+)\}", path)]
