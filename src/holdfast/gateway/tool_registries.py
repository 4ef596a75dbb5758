"""`/agent-tool-registries`: the tools that a host has registered in a user's memory, as snapshots without schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field, StringConstraints
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import response_model, to_json
from holdfast.control.schemas import RequestModel
from holdfast.domain.access import Action
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import profile_of
from holdfast.domain.runtime_api.tools import (
    NO_SUCH_REGISTRY,
    AgentToolRegistryDeleteRequest,
    AgentToolRegistryDetailRequest,
    AgentToolRegistryListReport,
    AgentToolRegistryListRequest,
    AgentToolRegistryMutationReport,
)
from holdfast.domain.tool_registries import (
    MAX_NAME_CHARS,
    MAX_TAGS,
    MAX_TOOLS,
    AgentTool,
    AgentToolRegistry,
    RegistryOwner,
    RegistryScope,
)
from holdfast.errors import InvalidInput, NotFound
from holdfast.gateway.authentication import AccessRule, Authenticator, Caller, allow
from holdfast.gateway.memories import InApp
from holdfast.gateway.problem_responses import refusal, refusals
from holdfast.gateway.strict_route import StrictRoute
from holdfast.ports import Verb
from holdfast.runtime.tools.registries import (
    DeleteToolRegistry,
    GetToolRegistry,
    ListToolRegistries,
    UpsertToolRegistry,
)

T = TypeVar("T")

PREFIX, _ONE = "/agent-tool-registries", "/{registry_id:path}"
_PROFILE = profile_of("server-linux-memory-gateway")
_Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
_Part = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS)]
_Tags = Annotated[list[_Name], Field(max_length=MAX_TAGS)]
_RegistryId = Annotated[str, Path(min_length=1, max_length=MAX_NAME_CHARS)]


class AgentToolRequest(RequestModel):
    """A tool by name and fingerprints, without its schema."""

    tool_id: _Name
    schema_fingerprint: _Name
    display_name: _Part = ""
    version: _Part = ""
    descriptor_fingerprint: _Part = ""
    permission_tags: _Tags = Field(default=[])
    risk_tags: _Tags = Field(default=[])
    tool_groups: _Tags = Field(default=[])
    disabled: bool = False


class AgentToolRegistryRequest(RequestModel):
    """A snapshot of a host's tools. A `fingerprint` must be that of the content."""

    registry_id: _Name
    tools: Annotated[list[AgentToolRequest], Field(max_length=MAX_TOOLS)]
    namespace: _Name = "default"
    owner: Annotated[RegistryOwner, Field(strict=False)] = RegistryOwner.HOST_RUNTIME
    scope: Annotated[RegistryScope, Field(strict=False)] = RegistryScope.GLOBAL
    fingerprint: _Name | None = None
    registered_at: Annotated[str, StringConstraints(max_length=64)] | None = None

    def to_registry(self, registry_id: str) -> AgentToolRegistry:
        if self.registry_id != registry_id:
            raise InvalidInput("registry_id", "differs from the one in the path; send the same in both")
        parts: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return AgentToolRegistry(**{**parts, "tools": [AgentTool(**tool.model_dump()) for tool in self.tools]})


class _Routes:
    """The handlers, which reach the memory of the key's user alone."""

    def __init__(self, auth: Authenticator) -> None:
        self._auth = auth

    async def list_agent_tool_registries(
        self, request: Request, app_id: InApp = "default", project_id: InApp = "default"
    ) -> Response:
        """List the snapshots of all registries, with a report of the experience with their tools."""
        memory = _Memory(await self._auth.user(request), app_id, project_id)
        wanted = AgentToolRegistryListRequest()
        report = await memory.perform(
            Action.LIST_TOOL_REGISTRIES, lambda: ListToolRegistries(memory.governance, wanted)
        )
        return JSONResponse(to_json(report))

    async def get_agent_tool_registry(
        self, request: Request, registry_id: _RegistryId, app_id: InApp = "default", project_id: InApp = "default"
    ) -> Response:
        """Return the snapshot of one registry."""
        memory = _Memory(await self._auth.user(request), app_id, project_id)
        wanted = AgentToolRegistryDetailRequest(registry_id)
        found = await memory.perform(Action.GET_TOOL_REGISTRY, lambda: GetToolRegistry(memory.governance, wanted))
        return JSONResponse(to_json(found))

    async def put_agent_tool_registry(
        self,
        request: Request,
        registry_id: _RegistryId,
        body: AgentToolRegistryRequest,
        app_id: InApp = "default",
        project_id: InApp = "default",
    ) -> Response:
        """Register a snapshot of a host's tools, in place of the earlier one of its id."""
        memory = _Memory(await self._auth.user(request), app_id, project_id)
        report = await memory.perform(
            Action.UPSERT_TOOL_REGISTRY, lambda: UpsertToolRegistry(memory.governance, body.to_registry(registry_id))
        )
        if not report.accepted:
            detail = f"fingerprint: the content has the fingerprint {report.fingerprint}; send that one, or none"
            return refusal(request, 422, report.reason, detail)
        return JSONResponse(to_json(report))

    async def delete_agent_tool_registry(
        self,
        request: Request,
        registry_id: _RegistryId,
        with_experience: Annotated[bool, Query(description="Delete the experience with its tools, too.")] = False,
        app_id: InApp = "default",
        project_id: InApp = "default",
    ) -> Response:
        """Delete a registry. The experience with its tools stays, and gives no hint until they are registered again."""
        memory = _Memory(await self._auth.user(request), app_id, project_id)
        wanted = AgentToolRegistryDeleteRequest(registry_id, with_experience)
        report = await memory.perform(
            Action.DELETE_TOOL_REGISTRY, lambda: DeleteToolRegistry(memory.governance, wanted)
        )
        if report.reason == NO_SUCH_REGISTRY:
            raise NotFound(f"there is no tool registry {registry_id!r:.140}; GET /agent-tool-registries lists them")
        return JSONResponse(to_json(report))


def router(auth: Authenticator) -> APIRouter:
    routes, handlers = APIRouter(prefix=PREFIX, tags=["agent tools"], route_class=StrictRoute), _Routes(auth)
    table: tuple[tuple[str, str, Callable[..., Any], type, tuple[int, ...]], ...] = (
        ("GET", "", handlers.list_agent_tool_registries, AgentToolRegistryListReport, ()),
        ("GET", _ONE, handlers.get_agent_tool_registry, AgentToolRegistry, (404,)),
        ("PUT", _ONE, handlers.put_agent_tool_registry, AgentToolRegistryMutationReport, (409,)),
        ("DELETE", _ONE, handlers.delete_agent_tool_registry, AgentToolRegistryMutationReport, (404,)),
    )
    for method, path, handler, result, errors in table:
        routes.add_api_route(
            path,
            handler,
            methods=[method],
            response_model=response_model(result),
            responses=refusals(401, 403, *errors, 422),
            **allow(AccessRule.USER),
        )
    return routes


class _Memory:
    """A user's own memory in an app and project, as a runtime would have it: the key alone decides whose."""

    def __init__(self, caller: Caller, app_id: str, project_id: str) -> None:
        identity = MemoryIdentity(caller.space, subject_id=caller.user_id, app=app_id, project=project_id)
        self.governance = Governance(identity, _PROFILE, catalogue(_PROFILE))
        self._caller = caller

    async def perform(self, action: Action, make: Callable[[], Verb[T]]) -> T:
        return await self._caller.perform(action, make)
