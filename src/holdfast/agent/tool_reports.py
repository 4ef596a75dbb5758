"""Report an agent's tools and calls to a host's runtime, which learns which tools work for what.

    async with AsyncMemoryRuntime.open("host.db", agent="main") as runtime:
        loader = EngineLoader(tool_reports=ToolReports(runtime))

Neither arguments nor results are reported: of a call, only the tool, the task and the outcome. The tools of the agent's
own memory read what users said, so their calls are marked as private; results of all others may come from anywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from holdfast.agent.ports import ToolSpec
from holdfast.agent.result import ToolUse
from holdfast.domain.canonical import fingerprint
from holdfast.domain.runtime_api.tools import AgentToolRegistryMutationReport, AgentToolUsageFeedback
from holdfast.domain.runtime_api.writing import MemoryWriteReport, MemoryWriteRequest
from holdfast.domain.tool_experience import MAX_OBSERVATIONS, AgentToolObservation, CallOutcome
from holdfast.domain.tool_registries import (
    AgentTool,
    AgentToolRegistry,
    RegistryOwner,
    registry_fingerprint,
    schema_fingerprint,
)
from holdfast.errors import HoldfastError

REGISTRY = "agent-tools"
PRIVATE_TOOLS = frozenset({"memory", "session_search"})
NO_TASK = "chat"
_logger = logging.getLogger("holdfast.agent")


class ToolMemory(Protocol):
    """The part of a runtime that learns about tools: `AsyncMemoryRuntime` has it."""

    async def upsert_agent_tool_registry(self, registry: AgentToolRegistry) -> AgentToolRegistryMutationReport: ...

    async def write(self, request: MemoryWriteRequest) -> MemoryWriteReport: ...


class ToolReports:
    """Reports to one runtime. A report that fails is logged: it is no reason to lose an answer."""

    def __init__(self, memory: ToolMemory) -> None:
        self._memory = memory

    async def send(
        self, run_id: str, tools: Sequence[ToolSpec], used: Sequence[ToolUse], skills: Sequence[str]
    ) -> None:
        """Register the tools, and report the calls of a run. The task of a run with one active skill is that skill."""
        registry = registry_of(tools)
        observations = _observe(run_id, registry, used, f"skill/{skills[0]}" if len(skills) == 1 else NO_TASK)
        try:
            await self._memory.upsert_agent_tool_registry(registry)
            for start in range(0, len(observations), MAX_OBSERVATIONS):
                feedback = AgentToolUsageFeedback(registry.ref, observations[start : start + MAX_OBSERVATIONS])
                await self._memory.write(MemoryWriteRequest.agent_tool_usage_feedback(feedback))
        except HoldfastError as error:
            _logger.warning("the tool calls of run %s could not be reported: %s", run_id, error.code)


def registry_of(tools: Sequence[ToolSpec]) -> AgentToolRegistry:
    """Return the registry of an agent's tools: fingerprints of their schemas and descriptions."""
    entries = tuple(
        AgentTool(spec.name, schema_fingerprint(spec.parameters), descriptor_fingerprint=fingerprint(spec.description))
        for spec in tools
    )
    made = AgentToolRegistry(REGISTRY, entries, namespace="holdfast", owner=RegistryOwner.AGENT_TOOLS)
    return AgentToolRegistry(REGISTRY, entries, made.namespace, made.owner, made.scope, registry_fingerprint(made))


def _observe(
    run_id: str, registry: AgentToolRegistry, used: Sequence[ToolUse], task: str
) -> list[AgentToolObservation]:
    """Describe the calls of tools that exist: a model may call others."""
    known = registry.by_id
    return [
        AgentToolObservation(
            f"{run_id}/{number}",
            REGISTRY,
            use.name,
            known[use.name].schema_fingerprint,
            task,
            CallOutcome.SUCCEEDED if use.ok else CallOutcome.FAILED,
            external_content=use.name not in PRIVATE_TOOLS,
            private_content_used=use.name in PRIVATE_TOOLS,
        )
        for number, use in enumerate(used)
        if use.name in known
    ]
