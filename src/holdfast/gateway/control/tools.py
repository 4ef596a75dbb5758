"""Routes that list and call the tools for agents."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request
from pydantic import create_model
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import response_model
from holdfast.control.schemas import ResponseModel
from holdfast.control.tools import MemoryTool, call_tool, tools
from holdfast.domain.access import require_space
from holdfast.domain.contract import MAX_FIELDS
from holdfast.domain.scope import Scope
from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control.dependencies import CompanyId, plane_of, route_options, router_of

_TOOLS: Any = list[response_model(MemoryTool)]  # type: ignore[misc]
_LIST = create_model("ToolsResponse", __base__=ResponseModel, tools=(_TOOLS, ...))


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("tools")

    @routes.get("/tools", **route_options(_LIST))
    async def list_tools(request: Request, company_id: CompanyId) -> Response:
        """List the tools that an agent has for this memory."""
        require_space((await auth.company(request, company_id)).actor, Scope(company_id))
        return JSONResponse({"tools": [asdict(each) for each in tools()]})

    @routes.post("/tools/{name}", **route_options(dict[str, Any], 404, 409, 502, 504))
    async def use_tool(
        request: Request,
        company_id: CompanyId,
        name: Annotated[str, Path(min_length=1, max_length=64)],
        arguments: Annotated[dict[str, Any], Body(max_length=MAX_FIELDS)],
    ) -> dict[str, Any]:
        """Call a tool with its arguments. The response matches the tool's output schema."""
        return await call_tool(await plane_of(auth, request, company_id), name, arguments)

    return routes
