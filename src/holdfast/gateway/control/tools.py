"""Routes that list and call the tools for agents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request

from holdfast.control.schemas import Answer
from holdfast.control.tools import call_tool, tools
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import CompanyId, plane_of, router_of
from holdfast.gateway.problem_responses import refusals


class ToolTold(Answer):
    """The description of a tool for a model. The schemas are JSON Schema 2020-12."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    reads: bool
    destroys: bool


class ToolList(Answer):
    tools: list[ToolTold]


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("tools")

    @routes.get("/tools", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_tools(request: Request, company_id: CompanyId) -> ToolList:
        """List the tools that an agent has for this memory."""
        await plane_of(auth, request, company_id)
        return ToolList(
            tools=[
                ToolTold(
                    name=each.name,
                    description=each.description,
                    input_schema=dict(each.input_schema),
                    output_schema=dict(each.output_schema),
                    reads=each.reads,
                    destroys=each.destroys,
                )
                for each in tools()
            ]
        )

    @routes.post("/tools/{name}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, 502, 504))
    async def use_tool(
        request: Request,
        company_id: CompanyId,
        name: Annotated[str, Path(min_length=1, max_length=64)],
        arguments: Annotated[dict[str, Any], Body()],
    ) -> dict[str, Any]:
        """Call a tool with its arguments. The response matches the tool's output schema."""
        return await call_tool(await plane_of(auth, request, company_id), name, arguments)

    return routes
