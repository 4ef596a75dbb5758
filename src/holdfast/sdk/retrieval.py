"""Recall, projection and inspection of a `MemoryRuntime`."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
)
from holdfast.runtime.transcripts.inspect import Inspect
from holdfast.runtime.transcripts.project import Project
from holdfast.runtime.transcripts.recall import RecallForHost
from holdfast.sdk.operations import Operations


class RetrievalOperations(Operations):
    async def recall(self, request: MemoryRecallRequest) -> MemoryRecallReport:
        """Recall memories for a query, and matching messages of the current conversation."""
        return await self._perform(Action.RECALL, lambda governance: RecallForHost(governance, request, self._last))

    async def project(self, request: MemoryProjectionRequest) -> MemoryProjectionReport:
        """Build a bounded block of memory for a model, with an audit of what is included and what is not."""
        return await self._perform(Action.PROJECT, lambda governance: Project(governance, request, self._last))

    async def inspect(self, request: MemoryInspectionRequest) -> MemoryInspectionReport:
        """Report the state of this memory: recall for a query, counts, pending work, deferred items, capabilities."""
        return await self._perform(Action.INSPECT, lambda governance: Inspect(governance, request, self._last))
