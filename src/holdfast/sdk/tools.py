"""Tool registries of a `MemoryRuntime`: register, list, show and delete. `write` takes the feedback of their tools."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.runtime_api.tools import (
    AgentToolRegistryDeleteRequest,
    AgentToolRegistryDetailRequest,
    AgentToolRegistryListReport,
    AgentToolRegistryListRequest,
    AgentToolRegistryMutationReport,
)
from holdfast.domain.tool_registries import AgentToolRegistry
from holdfast.pending_call import pending_methods
from holdfast.runtime.tools.registries import (
    DeleteToolRegistry,
    GetToolRegistry,
    ListToolRegistries,
    UpsertToolRegistry,
)
from holdfast.sdk.operations import Operations, request_from


@pending_methods("runtime")
class ToolOperations(Operations):
    async def upsert_agent_tool_registry(self, registry: AgentToolRegistry) -> AgentToolRegistryMutationReport:
        """Register a snapshot of the host's tools, in place of the earlier one of its id. No schema is stored."""
        return await self._perform(
            Action.UPSERT_TOOL_REGISTRY, lambda governance: UpsertToolRegistry(governance, registry)
        )

    async def list_agent_tool_registries(
        self, request: AgentToolRegistryListRequest | None = None
    ) -> AgentToolRegistryListReport:
        """List the registries of this memory, with a report of the experience with their tools."""
        wanted = AgentToolRegistryListRequest() if request is None else request
        return await self._perform(
            Action.LIST_TOOL_REGISTRIES, lambda governance: ListToolRegistries(governance, wanted)
        )

    async def get_agent_tool_registry(self, request: AgentToolRegistryDetailRequest | str) -> AgentToolRegistry:
        """Show a registry by its id."""
        wanted = request_from(request, AgentToolRegistryDetailRequest, "registry_id")
        return await self._perform(Action.GET_TOOL_REGISTRY, lambda governance: GetToolRegistry(governance, wanted))

    async def delete_agent_tool_registry(
        self, request: AgentToolRegistryDeleteRequest | str
    ) -> AgentToolRegistryMutationReport:
        """Delete a registry by its id. Experience with its tools stays without hints, unless it is to go too."""
        wanted = request_from(request, AgentToolRegistryDeleteRequest, "registry_id")
        return await self._perform(
            Action.DELETE_TOOL_REGISTRY, lambda governance: DeleteToolRegistry(governance, wanted)
        )
