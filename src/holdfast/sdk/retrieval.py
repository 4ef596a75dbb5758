"""Recall, projection and inspection of a `MemoryRuntime`."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.surface.retrieval import (
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
)
from holdfast.runtime.governed.inspect import Inspect
from holdfast.runtime.governed.project import Project
from holdfast.runtime.governed.recall import RecallForHost
from holdfast.sdk.operations import Operations


class RetrievalOperations(Operations):
    async def recall(self, request: MemoryRecallRequest) -> MemoryRecallReport:
        """Memories for a query, and what was said about it in the conversation at hand."""
        return await self._perform(
            Action.RECALL, "recall", lambda governance: RecallForHost(governance, request, self._last)
        )

    async def project(self, request: MemoryProjectionRequest) -> MemoryProjectionReport:
        """A bounded block of memory for a model, with the account of what is in it and what is not."""
        return await self._perform(
            Action.PROJECT, "project", lambda governance: Project(governance, request, self._last)
        )

    async def inspect(self, request: MemoryInspectionRequest) -> MemoryInspectionReport:
        """How this memory is: what would be recalled, what there is and waits, what was deferred, what it can do."""
        return await self._perform(
            Action.INSPECT, "inspect", lambda governance: Inspect(governance, request, self._last)
        )
