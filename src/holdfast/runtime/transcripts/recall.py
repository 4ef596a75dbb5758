"""`recall` of the runtime: memories for a query, and matching messages of the current conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from holdfast.domain.access import Action, Grant
from holdfast.domain.agent_skills import reason_for_none
from holdfast.domain.checks import MAX_QUERY_CHARS, checked_instance, checked_text, checked_whole
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryScope, key_of
from holdfast.domain.memory import Plane
from holdfast.domain.projection_block import OmissionReason
from holdfast.domain.recall_policy import check_floor
from holdfast.domain.runtime_api.retrieval import MemoryRecallReport, MemoryRecallRequest, RecalledRecord, WorkingRecall
from holdfast.domain.runtime_api.tools import ToolExperienceStatus
from holdfast.domain.runtime_skills import MAX_HITS
from holdfast.domain.scope import Scope
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.runtime.recall import select_loaded
from holdfast.runtime.search import PreparedQuery, QueryRead, to_hits
from holdfast.runtime.skills.recalled_skills import skill_names, with_summaries
from holdfast.runtime.tools.hints import find_hints
from holdfast.runtime.transcripts.conversation_address import StartedOperation
from holdfast.runtime.transcripts.retrieval_context import (
    PreparedRetrieval,
    RetrievalContext,
    check_registries,
    drop_broken,
    to_recalled_record,
)

MAX_LIMIT = 200
_CANDIDATES_PER_PLACE = 4


@dataclass(frozen=True, slots=True)
class RecallForHost(QueryRead, Read[PreparedRetrieval, MemoryRecallReport]):
    """Recall for a query. `last` is the conversation that the runtime committed last."""

    action: ClassVar[Action] = Action.RECALL
    governance: Governance
    request: MemoryRecallRequest
    last: MemoryScope | None = None
    scope: Scope = field(init=False)
    sight: RetrievalContext = field(init=False)

    def __post_init__(self) -> None:
        request = checked_instance(self.request, MemoryRecallRequest)
        checked_text(request.query, "query", max_chars=MAX_QUERY_CHARS)
        checked_whole(request.limit, "limit", 1, MAX_LIMIT)
        check_registries(request.tool_registry_refs)
        check_floor(request.min_score)
        object.__setattr__(self, "sight", RetrievalContext.of(self.governance, request.scope, self.last))
        object.__setattr__(self, "scope", self.sight.scope)

    async def prepare(self, core: Core, grant: Grant) -> PreparedRetrieval:
        return await self.sight.prepare_query(core, grant, self.request.query)

    def apply(self, reader: Reader, prepared: PreparedRetrieval) -> MemoryRecallReport:
        wanted = self.request
        procedural, working, reason = recall(reader, prepared, self.sight, wanted.query, wanted.limit, wanted.min_score)
        skills = prepared.skill_hits[: wanted.limit]
        hints = find_hints(reader, self.governance, wanted.tool_registry_refs, wanted.limit)
        found = len(procedural) + len(working.hits)
        summary = f"{found} records of {working.candidates} candidates"
        return MemoryRecallReport(
            query=self.request.query,
            procedural_hits=procedural,
            working=working,
            agent_skill_hits=skills,
            agent_skill_reason=reason_for_none(prepared.skills, skills),
            agent_tool_hints=hints,
            tool_experience_status=ToolExperienceStatus.of(hints),
            lifecycle_report=StartedOperation(prepared.core, self.action, prepared.now).report(summary),
            reason=None if found else reason,
        )

    def record_count(self, result: MemoryRecallReport) -> int:
        return len(result.procedural_hits) + len(result.working.hits)


def recall(
    reader: Reader,
    prepared: PreparedQuery,
    sight: RetrievalContext,
    query: str,
    limit: int,
    min_score: float | None = None,
) -> tuple[tuple[RecalledRecord, ...], WorkingRecall, str]:
    """Return runtime skills as summaries, and the rest; and the reason, if there are none of both.

    One ranking, so both are the best of the same candidates.
    """
    thread = sight.thread(reader)
    top_k = limit * _CANDIDATES_PER_PLACE + MAX_HITS
    # Only facts that are valid now.
    options = sight.search_options(thread, top_k, prepared.now)
    ranked = prepared.core.searcher.rank(reader.index, sight.scope, query, prepared.vector, options)
    found, broken = drop_broken(reader, to_hits(reader, ranked))
    rules = [hit for hit in found if hit.plane is Plane.PROCEDURAL]
    others = [hit for hit in found if hit.plane is not Plane.PROCEDURAL]
    procedural = select_loaded(reader, rules, min(limit, MAX_HITS), query, min_score)
    chosen = select_loaded(reader, others, limit, query, min_score)
    working = WorkingRecall(
        hits=tuple(map(to_recalled_record, chosen.records)),
        candidates=ranked.candidates,
        omitted={**chosen.omission_counts, **({OmissionReason.BROKEN.value: broken} if broken else {})},
        conversation=None if thread is None else key_of(thread),
        embedder=prepared.core.embedder.fingerprint,
        by_words_only=prepared.by_words_only,
    )
    names = skill_names(reader, procedural.records)
    skills = (to_recalled_record(hit, skill_name=names[hit.id]) for hit in with_summaries(procedural.records))
    return tuple(skills), working, sight.explain_nothing(ranked, min_score)
