"""The Model Context Protocol over streamable HTTP: `POST /mcp` for the default tools, `/mcp/<name>` for another set.

Every request needs a key, which says whose memory the tools see. No request leaves anything behind: there are no
sessions, so any process may answer. The edge has checked the Host and Origin headers, and has bounded the body.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.strict_route import StrictRoute
from holdfast.transports.adapter import TransportAdapter

if TYPE_CHECKING:
    from holdfast.mcp.session import ToolCaller

_CALLER = "holdfast.tool_caller"
_Part = Annotated[str | None, Query(min_length=1, max_length=MAX_PART_CHARS)]


def is_installed() -> bool:
    """True if the protocol's package is installed."""
    return importlib.util.find_spec("mcp") is not None and importlib.util.find_spec("mcp_types") is not None


def router(auth: Authenticator, adapter: TransportAdapter) -> APIRouter:
    from holdfast.mcp.server import create_server
    from holdfast.mcp.tool_choices import ToolChoice

    routes = APIRouter(tags=["mcp"], route_class=StrictRoute)
    for choice in ToolChoice:
        path = "/mcp" if choice is ToolChoice.SIMPLE else f"/mcp/{choice}"
        server = create_server(choice, _caller_of, discreet=True)
        routes.add_api_route(
            path,
            _endpoint(auth, adapter, server),
            methods=["POST"],
            name=f"call_mcp_{choice}",
            include_in_schema=False,  # the protocol describes itself
            openapi_extra={**allow(AccessRule.KNOWN)["openapi_extra"], "requestBody": {"required": True}},
        )
    return routes


def _caller_of(context: Any) -> ToolCaller:
    """Return the caller that the route has authenticated."""
    caller: ToolCaller = context.request.scope[_CALLER]
    return caller


def _endpoint(auth: Authenticator, adapter: TransportAdapter, server: Any) -> Any:
    from holdfast.mcp.session import ToolCaller

    async def endpoint(request: Request, app_id: _Part = None, project_id: _Part = None) -> Response:
        caller = await auth.any_key(request)
        fixed = {} if project_id is None else {"project_id": project_id}
        request.scope[_CALLER] = ToolCaller(
            caller.service, caller.actor, caller.space, adapter, fixed, app_id, auth_kind="bearer"
        )
        return _ProtocolResponse(server)

    return endpoint


class _ProtocolResponse(Response):
    """Lets the protocol's package answer the request."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        # One for each request: it may run once, and without sessions it holds nothing.
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)
