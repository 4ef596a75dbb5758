"""Write, maintain, recover and close operations of a `MemoryRuntime`."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.checks import checked_instance
from holdfast.domain.governance import Governance
from holdfast.domain.runtime_api.writing import (
    MemoryCloseReport,
    MemoryCloseRequest,
    MemoryMaintainReport,
    MemoryMaintainRequest,
    MemoryRecoverReport,
    MemoryRecoverRequest,
    MemoryWriteReport,
    MemoryWriteRequest,
)
from holdfast.pending_call import pending_methods
from holdfast.ports import Verb
from holdfast.runtime.skills.write_skills import WriteSkills
from holdfast.runtime.tools.write_feedback import WriteToolFeedback
from holdfast.runtime.transcripts.maintain import Maintain
from holdfast.runtime.transcripts.recover import Close, Recover
from holdfast.runtime.transcripts.write import WriteMemory
from holdfast.sdk.operations import Operations, request_from


@pending_methods("runtime")
class WritingOperations(Operations):
    async def write(self, request: MemoryWriteRequest) -> MemoryWriteReport:
        """Judge candidates, procedures or feedback of tools: each is accepted, deferred or rejected, with a reason."""

        def make(governance: Governance) -> Verb[MemoryWriteReport]:
            given = checked_instance(request, MemoryWriteRequest)
            if given.tool_feedback is not None:
                return WriteToolFeedback.of(governance, given, self._last)
            if given.skills is not None:
                return WriteSkills.of(governance, given)
            return WriteMemory.of(governance, given, self._last)

        return await self._perform(Action.WRITE, make)

    async def maintain(self, request: MemoryMaintainRequest | None = None) -> MemoryMaintainReport:
        """Let a model learn from a committed turn. Without a model the report says so; nothing is raised."""
        options = MemoryMaintainRequest() if request is None else request
        return await self._perform_in(Action.MAINTAIN, Maintain.of, options, MemoryMaintainRequest)

    async def recover(self, request: MemoryRecoverRequest | None = None) -> MemoryRecoverReport:
        """Finish the due background jobs, including those of lost processes."""
        options = MemoryRecoverRequest() if request is None else request
        return await self._perform(
            Action.RECOVER,
            lambda governance: Recover.of(governance, checked_instance(options, MemoryRecoverRequest)),
        )

    async def close(self, request: MemoryCloseRequest | str | None = None) -> MemoryCloseReport:
        """Record the end (a text is the reason), then close the store. Every later call raises `StoreClosed`."""
        options = MemoryCloseRequest() if request is None else request_from(request, MemoryCloseRequest, "reason")
        report = await self._perform(
            Action.CLOSE,
            lambda governance: Close.of(governance, checked_instance(options, MemoryCloseRequest)),
        )
        await self._service.close()
        return report
