"""Recall, projection and inspection of a `MemoryRuntime`."""

from __future__ import annotations

import logging

from holdfast.domain.access import Action
from holdfast.domain.runtime_api.retrieval import (
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionReport,
    MemoryProjectionRequest,
    MemoryRecallReport,
    MemoryRecallRequest,
)
from holdfast.pending_call import pending_methods
from holdfast.runtime.transcripts.inspect import Inspect
from holdfast.runtime.transcripts.project import Project
from holdfast.runtime.transcripts.recall import RecallForHost
from holdfast.sdk.operations import Operations, request_from

_INSPECTION = MemoryInspectionRequest()
log = logging.getLogger("holdfast.runtime")


@pending_methods("runtime")
class RetrievalOperations(Operations):
    """Operations that read memory. A text in the place of a request is its query."""

    _explained = False

    async def recall(self, request: MemoryRecallRequest | str) -> MemoryRecallReport:
        """Recall memories for a query, and matching messages of the current conversation."""
        wanted = request_from(request, MemoryRecallRequest, "query")
        report = await self._perform(Action.RECALL, lambda governance: RecallForHost(governance, wanted, self._last))
        self._explain(report.reason)
        return report

    async def project(self, request: MemoryProjectionRequest | str) -> MemoryProjectionReport:
        """Build a bounded block of memory for a model, with an audit of what is included and what is not."""
        wanted = request_from(request, MemoryProjectionRequest, "user_query")
        report = await self._perform(Action.PROJECT, lambda governance: Project(governance, wanted, self._last))
        self._explain(report.reason)
        return report

    async def inspect(self, request: MemoryInspectionRequest | str = _INSPECTION) -> MemoryInspectionReport:
        """Report the state of this memory: recall for a query, counts, pending work, deferred items, capabilities."""
        wanted = request_from(request, MemoryInspectionRequest, "query")
        return await self._perform(Action.INSPECT, lambda governance: Inspect(governance, wanted, self._last))

    def _explain(self, reason: str | None) -> None:
        """Warn, once, that a runtime without an owner finds nothing: its host may have forgotten to name one."""
        if reason is not None and not self._explained and not self._governance.identity.has_owner:
            self._explained = True
            log.warning("%s", reason)
