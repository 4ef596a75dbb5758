"""`inspect`: report the state of a memory: recall and projection for a query, counts, pending work, deferred items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.checks import checked_instance
from holdfast.domain.events import EventKind
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope
from holdfast.domain.lifecycle import admit
from holdfast.domain.memory import MemoryRecord, Status
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_api.retrieval import (
    DeferredGovernance,
    DeferredMemory,
    HygieneReport,
    MemoryInspectionReport,
    MemoryInspectionRequest,
    MemoryProjectionRequest,
    OperatorActionReport,
    WorkingInspection,
)
from holdfast.domain.runtime_api.tools import REGISTRIES_UNAVAILABLE, AgentToolRegistryReport
from holdfast.domain.scope import Scope
from holdfast.domain.search import ListFilter
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.search import QueryRead
from holdfast.runtime.tools.registries import report_registries
from holdfast.runtime.transcripts.budgets import measure_usage
from holdfast.runtime.transcripts.conversation_address import StartedOperation
from holdfast.runtime.transcripts.project import Project
from holdfast.runtime.transcripts.recall import recall
from holdfast.runtime.transcripts.retrieval_context import PreparedRetrieval, RetrievalContext

RECALLED = 8
# Maximum number of turns whose states are counted; use pages to look further.
_MOST_TURNS = 4_096
_OF_OPERATORS = frozenset({EventKind.OPERATOR, EventKind.LIFECYCLE})


@dataclass(frozen=True, slots=True)
class Inspect(QueryRead, Read[PreparedRetrieval, MemoryInspectionReport]):
    """Report the state of a memory. `last` is the conversation that the runtime committed last."""

    action: ClassVar[Action] = Action.INSPECT
    governance: Governance
    request: MemoryInspectionRequest
    last: MemoryScope | None = None
    scope: Scope = field(init=False)
    sight: RetrievalContext = field(init=False)
    projection: Project = field(init=False)

    def __post_init__(self) -> None:
        request = checked_instance(self.request, MemoryInspectionRequest)
        projection_request = MemoryProjectionRequest(
            # Without a query nothing is projected, but the rest is validated the same way.
            user_query="nothing" if request.query is None else request.query,
            system_max_len=request.system_max_len,
            pressure=request.pressure,
            mode_input=request.mode_input,
            scope=request.scope,
        )
        object.__setattr__(self, "projection", Project(self.governance, projection_request, self.last))
        object.__setattr__(self, "sight", self.projection.sight)
        object.__setattr__(self, "scope", self.sight.scope)

    async def prepare(self, core: Core, grant: Grant) -> PreparedRetrieval:
        if self.request.query is None:
            return PreparedRetrieval(core, None, core.clock.now(), skills=await self.sight.scan_skills())
        return await self.projection.prepare(core, grant)

    def apply(self, reader: Reader, prepared: PreparedRetrieval) -> MemoryInspectionReport:
        admission = admit(self.action, self.projection.mode, self.projection.pressure)
        started = StartedOperation(prepared.core, self.action, prepared.now, admission)
        hygiene = self._hygiene(reader, prepared.core)
        summary = f"{hygiene.memories} memories, {hygiene.messages} messages, {hygiene.pending_vectors} wait"
        return MemoryInspectionReport(
            working=self._working(reader, prepared),
            hygiene=hygiene,
            deferred_governance=self._deferred_memories(reader),
            capabilities=self.governance.catalogue,
            operator_action_report=OperatorActionReport(tuple(reader.events.page(self._max_items, _OF_OPERATORS))),
            lifecycle_report=started.report(summary),
            agent_skill_directory=prepared.skills,
            agent_tool_registry=self._tools(reader),
        )

    def _tools(self, reader: Reader) -> AgentToolRegistryReport:
        if not self.governance.catalogue["agent_tool_registries"].visible:
            return AgentToolRegistryReport(reason=REGISTRIES_UNAVAILABLE)
        return report_registries(reader, self.governance.identity.scope)

    @property
    def _max_items(self) -> int:
        return self.governance.budget.transcript.repair_issues

    def _working(self, reader: Reader, prepared: PreparedRetrieval) -> WorkingInspection:
        if self.request.query is None:
            return WorkingInspection(None, None)
        _, working, _ = recall(reader, prepared, self.sight, self.request.query, RECALLED)
        projected = self.projection.apply(reader, prepared)
        return WorkingInspection(working, projected.audit, projected.reason)

    def _hygiene(self, reader: Reader, core: Core) -> HygieneReport:
        counts = reader.maintenance.counts(core.embedder.fingerprint, core.analyzer.version)
        thread = self.sight.thread(reader)
        states = () if thread is None else reader.transcripts.turn_states(thread, 0, _MOST_TURNS)
        return HygieneReport(
            messages=counts["messages"],
            memories=counts["memories"],
            conversations=counts["conversations"],
            tombstones=counts["tombstones"],
            pending_vectors=counts["pending_vectors"],
            jobs=reader.jobs.counts(),
            turns=0 if thread is None else reader.transcripts.turn_count(thread),
            turns_by_state=Counter(turn.state for turn in states),
            turns_counted=len(states),
            usage=measure_usage(reader, self.governance),
        )

    def _deferred_memories(self, reader: Reader) -> DeferredGovernance:
        memories = [
            DeferredMemory(memory.id, memory.plane, memory.trust, memory.recorded_at, memory.author, memory.reason)
            for memory in islice(_deferred_pages(reader, self._max_items + 1), self._max_items + 1)
        ]
        return DeferredGovernance(tuple(memories[: self._max_items]), more=len(memories) > self._max_items)


def _deferred_pages(reader: Reader, page_size: int) -> Iterator[MemoryRecord]:
    """Yield the quarantined memories, the newest first, without skills that were approved and are off."""
    memory_filter, before = ListFilter(kind=HitKind.MEMORY, status=Status.QUARANTINED), None
    while page := reader.records.page(memory_filter, before, page_size):
        before = page[-1].id.partition("_")[2]
        skills = reader.skills.states([memory.id for memory in page])
        for memory in page:
            skill = skills.get(memory.id)
            if isinstance(memory, MemoryRecord) and (skill is None or skill.needs_approval):
                yield memory
