"""`/memory/*`: the operations of a runtime over HTTP, as the seed names them. A shell around the adapter.

The body is the payload of an envelope; headers and query parameters are its other parts. Every call needs a key, which
fixes the space, and the subject or the agent: an address is no credential. Responses are those of the adapter, also
for refusals of the edge.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import Response

from holdfast.control.json_views import own_docstring
from holdfast.domain.access import Action, ActorKind, is_read
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.gateway.authentication import AccessRule, Authenticator, Caller, allow
from holdfast.gateway.edge.problem_json import RUNTIME_PREFIX, request_id
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.runtime_schemas import EXAMPLES, request_body, response_of
from holdfast.gateway.strict_route import StrictRoute
from holdfast.runtime.idempotency import MAX_KEY_CHARS
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.transports.adapter import AdapterCaller, TransportAdapter
from holdfast.transports.decoder import UNCHANGED, operations
from holdfast.transports.envelope import (
    AdapterEnvelope,
    AdapterResponse,
    EnvelopeAuth,
    EnvelopeSource,
    ErrorKey,
    RejectedResponse,
    ResponseStatus,
    TransportKind,
    TransportMode,
)

_JSON = "application/json"
DEFAULT_APP = "default"  # as in the other routes of users
# The routes of operations, and the names of their methods in generated clients.
ROUTES: Mapping[str, tuple[str, str]] = {
    **{
        name: (f"/{name}", f"{name}_runtime_memory")
        for name in ("write", "recall", "project", "maintain", "inspect", "recover", "replay", "export", "import")
    },
    "commit_transcript": ("/transcripts/commit", "commit_transcript"),
    "replay_transcript": ("/transcripts/replay", "replay_transcript"),
    "request_transcript_lifecycle": ("/transcripts/lifecycle", "request_transcript_lifecycle"),
    "repair_transcript": ("/transcripts/repair", "repair_transcript"),
    "export_transcript": ("/transcripts/export", "export_transcript"),
}
STATUS = {ResponseStatus.ACCEPTED: 200, ResponseStatus.QUEUED: 202, ResponseStatus.DUPLICATED: 409}
STATUS_OF_REJECTION = {
    ErrorKey.INVALID_JSON: 400,
    ErrorKey.UNAUTHORIZED: 401,
    ErrorKey.FORBIDDEN: 403,
    ErrorKey.NOT_FOUND: 404,
    ErrorKey.UNSUPPORTED_OPERATION: 405,
    ErrorKey.PAYLOAD_TOO_LARGE: 413,
    ErrorKey.OPERATION_MISMATCH: 422,
    ErrorKey.RUNTIME_REJECTED: 422,
    ErrorKey.RUNTIME_FAILED: 500,
    ErrorKey.RUNTIME_UNAVAILABLE: 503,
}
_REFUSED = (400, 401, 403, 404, 405, 413, 415, 422, 503)

IdempotencyHeader = Annotated[
    str | None,
    Header(
        alias="x-idempotency-key",
        min_length=1,
        max_length=MAX_KEY_CHARS,
        description="Needed by every operation that changes memory. Repeated, it is answered with the first report.",
    ),
]
AuditHeader = Annotated[
    str | None,
    Header(
        alias="x-audit-id",
        min_length=1,
        max_length=256,
        pattern="^[!-~]+$",
        description="The caller's own id of the call, which the answer repeats; by default the operation's.",
    ),
]
_Part = Annotated[str | None, Query(min_length=1, max_length=MAX_PART_CHARS)]


class EnvelopeParts:
    """The parts of an envelope that are no payload. Without app and project, a user's are those of its other routes."""

    def __init__(
        self,
        owner_id: _Part = None,
        agent_id: _Part = None,
        channel: _Part = None,
        chat_id: _Part = None,
        app_id: _Part = None,
        project_id: _Part = None,
        audit_id: AuditHeader = None,
    ) -> None:
        self.source = EnvelopeSource(agent_id=agent_id, owner_id=owner_id, channel=channel, chat_id=chat_id)
        self.app, self.project = app_id, project_id
        self.audit_id = audit_id


Parts = Annotated[EnvelopeParts, Depends()]


def router(auth: Authenticator, adapter: TransportAdapter) -> APIRouter:
    routes = APIRouter(prefix=RUNTIME_PREFIX, tags=["runtime"], route_class=StrictRoute)
    routes.add_api_route(
        "/profile/capabilities",
        _reading(auth, adapter, "capabilities"),
        methods=["GET"],
        name="show_runtime_capabilities",
        response_class=Response,
        responses={200: response_of("capabilities"), **refusals(401, 403)},
        **allow(AccessRule.KNOWN),
    )
    for name, (path, method) in ROUTES.items():
        changes = not is_read(operations()[name].action)
        more: dict[int | str, Any] = {202: response_of(name, "queued")} if name == Action.MAINTAIN else {}
        more |= {409: response_of(name, "duplicated")} if changes else {}
        routes.add_api_route(
            path,
            (_changing if changes else _asking)(auth, adapter, name),
            methods=["POST"],
            name=method,
            description=own_docstring(getattr(AsyncMemoryRuntime, operations()[name].method)) or "",
            response_class=Response,
            responses={200: response_of(name), **more, **refusals(*_REFUSED)},
            openapi_extra={**allow(AccessRule.KNOWN)["openapi_extra"], "requestBody": request_body(name)},
        )
    return routes


Endpoint = Callable[..., Awaitable[Response]]


def _reading(auth: Authenticator, adapter: TransportAdapter, name: str) -> Endpoint:
    async def read(request: Request, parts: Parts) -> Response:
        """List what this runtime can do, and why the rest is unavailable."""
        return await _handle(adapter, await auth.any_key(request), request, name, parts)

    return read


def _asking(auth: Authenticator, adapter: TransportAdapter, name: str) -> Endpoint:
    async def ask(request: Request, parts: Parts) -> Response:
        return await _handle(adapter, await auth.any_key(request), request, name, parts)

    return ask


def _changing(auth: Authenticator, adapter: TransportAdapter, name: str) -> Endpoint:
    async def change(request: Request, parts: Parts, idempotency_key: IdempotencyHeader = None) -> Response:
        return await _handle(adapter, await auth.any_key(request), request, name, parts, idempotency_key)

    return change


async def _handle(
    adapter: TransportAdapter,
    caller: Caller,
    request: Request,
    operation: str,
    parts: EnvelopeParts,
    idempotency_key: str | None = None,
) -> Response:
    principal = str(caller.actor)
    envelope = AdapterEnvelope(
        operation,
        (await request.body()).decode(*UNCHANGED),
        TransportKind.HTTP,
        TransportMode.SERVER,
        replace(parts.source, source_id=principal, source_kind=caller.actor.kind),
        EnvelopeAuth(True, "bearer", principal),
        request_id(request.scope) or None,
        idempotency_key,
        parts.audit_id,
    )
    response = await adapter.handle(adapter_caller(caller, parts.app, parts.project), envelope)
    headers = {} if response.audit_id is None else {"x-audit-id": response.audit_id}
    status = status_of(response)
    if status == 405:
        headers["Allow"] = ""
    content = json.dumps(response.to_dict(), ensure_ascii=False, separators=(",", ":"))
    return Response(content.encode("utf-8", "backslashreplace"), status, headers, _JSON)


def adapter_caller(caller: Caller, app: str | None = None, project: str | None = None) -> AdapterCaller:
    """The caller of a request, with the memory that its key fixes."""
    actor = caller.actor
    if actor.kind in (ActorKind.USER, ActorKind.DEVICE):
        own = MemoryIdentity(caller.space, actor.id, None, app or DEFAULT_APP, project or DEFAULT_APP)
    else:
        agent = actor.id if actor.kind is ActorKind.AGENT else None
        own = MemoryIdentity(caller.space, None, agent, app, project)
    return AdapterCaller(caller.service, actor, own)


def status_of(response: AdapterResponse) -> int:
    if isinstance(response, RejectedResponse):
        return STATUS_OF_REJECTION[response.error_key]
    return STATUS[response.status]


__all__ = ["EXAMPLES", "ROUTES", "adapter_caller", "router", "status_of"]
