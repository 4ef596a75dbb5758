"""Requests and reports of writing and maintenance.

Requests are not validated here; the verb does so after authorization, so that a refusal leaves its audit row. Lists
that are not built yet are empty, with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from holdfast.domain.candidates import CandidatePrivacy, Reason, Verdict
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import JobId, MemoryId, MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput, Trigger
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import Pressure
from holdfast.domain.runtime_api.skills import (
    NO_EVOLUTION,
    ProceduralEvolution,
    ProceduralWrites,
    RuntimeSkillWrite,
    SkillReuse,
)
from holdfast.domain.runtime_api.tools import NO_TOOL_EXPERIENCE, AgentToolUsageFeedback, ToolExperienceReport
from holdfast.domain.runtime_skills import SkillSource
from holdfast.domain.transcript_turns import Authority

NO_SKILLS = "no_procedural_writes"

# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TranscriptEvidenceRef:
    """Evidence of a candidate: a message by its id, or all messages of a turn; `scope` is the conversation."""

    message_id: str | None = None
    turn_id: str | None = None
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class MemoryWriteCandidate:
    """A candidate to remember, if governance accepts it. A text in `evidence_refs` is a message id.

    Repeated with the same `candidate_id`, it gets the first verdict again.
    """

    candidate_id: str
    authority: Authority | str
    content: str
    target: Plane | str = Plane.LONG_TERM
    privacy: CandidatePrivacy | str = CandidatePrivacy.STANDARD
    evidence_refs: Sequence[TranscriptEvidenceRef | str] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LongTermFact:
    """One fact that a pipeline found, with its evidence."""

    content: str
    evidence_refs: Sequence[TranscriptEvidenceRef | str] = ()
    authority: Authority | str = Authority.USER_ASSERTED
    privacy: CandidatePrivacy | str = CandidatePrivacy.STANDARD
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LongTermExtraction:
    """The facts of one pipeline run over a conversation. The id makes a repeated write idempotent."""

    extraction_id: str
    pipeline: str
    facts: Sequence[LongTermFact]


@dataclass(frozen=True, slots=True)
class MemoryWriteRequest:
    """Built by `candidates`, `long_term_extraction`, `procedural` or `agent_tool_usage_feedback`.

    `scope` is the conversation: of the turn ids, or in which the tools were called.
    """

    given: Sequence[MemoryWriteCandidate] = ()
    extraction: LongTermExtraction | None = None
    scope: MemoryScope | None = None
    skills: ProceduralWrites | None = None
    tool_feedback: AgentToolUsageFeedback | None = None

    @classmethod
    def candidates(cls, *given: MemoryWriteCandidate, scope: MemoryScope | None = None) -> MemoryWriteRequest:
        return cls(given=given, scope=scope)

    @classmethod
    def long_term_extraction(
        cls, extraction: LongTermExtraction, scope: MemoryScope | None = None
    ) -> MemoryWriteRequest:
        return cls(extraction=extraction, scope=scope)

    @classmethod
    def procedural(
        cls, *writes: RuntimeSkillWrite, source: SkillSource | str = SkillSource.MANUAL
    ) -> MemoryWriteRequest:
        return cls(skills=ProceduralWrites(writes, source))

    @classmethod
    def agent_tool_usage_feedback(
        cls, feedback: AgentToolUsageFeedback, scope: MemoryScope | None = None
    ) -> MemoryWriteRequest:
        return cls(tool_feedback=feedback, scope=scope)


@dataclass(frozen=True, slots=True)
class CandidateVerdict(Presentable):
    """The decision on one candidate. `memory_id` is the memory that holds it, new or existing."""

    candidate_id: str
    verdict: Verdict
    reason: Reason
    target: Plane
    trust: Trust
    status: Status | None
    changed: bool
    memory_id: MemoryId | None = None
    revision: int | None = None
    evidence: tuple[MessageId, ...] = ()
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class SemanticGovernance(Presentable):
    """One verdict per candidate, in the order of the request."""

    verdicts: tuple[CandidateVerdict, ...] = ()

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict is verdict for each in self.verdicts)

    @property
    def accepted(self) -> int:
        return self.count(Verdict.ACCEPTED)

    @property
    def deferred(self) -> int:
        return self.count(Verdict.DEFERRED)

    @property
    def rejected(self) -> int:
        return self.count(Verdict.REJECTED)


@dataclass(frozen=True, slots=True)
class MemoryWriteReport(Presentable):
    """The result of a write. `accepted` if one candidate was; `reason` is the one that all share, else `mixed`."""

    accepted: bool
    changed: bool
    operation: str
    reason: str
    lifecycle_report: LifecycleReport
    semantic_governance: SemanticGovernance
    procedural_evolution: ProceduralEvolution = NO_EVOLUTION
    procedural_evolution_reason: str = NO_SKILLS
    procedural_promotions: tuple[str, ...] = ()
    procedural_promotions_reason: str = NO_SKILLS
    agent_tool_experience: tuple[ToolExperienceReport, ...] = ()
    agent_tool_experience_reason: str = NO_TOOL_EXPERIENCE


# --- maintenance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryMaintainRequest:
    """Learn from a committed turn of the given conversation, else of the one committed last.

    `runtime_skill_selected_ids` are the skills that the turn used, by name or id; `reuse_outcome` is how it went:
    neutral, succeeded or mismatch. That is counted without a model, too, and once for each turn.

    `user_content` and `reply_content` select its last messages by text; nothing is learned from text that is not in the
    transcript. Without them it is the last turn.
    """

    ingress: str = "sdk"
    user_content: str | None = None
    reply_content: str | None = None
    tool_calls: Sequence[str] = ()
    external_content_used: bool = False
    runtime_skill_selected_ids: Sequence[str] = ()
    task_learning_selected_ids: Sequence[str] = ()
    reuse_outcome: str = "neutral"
    reuse_outcome_note: str | None = None
    pressure: Pressure | str = Pressure.NORMAL
    mode_input: ModeInput = field(default_factory=ModeInput)
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage(Presentable):
    """Usage of a model; zero where the model reports none."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class MemoryMaintainReport(Presentable):
    """The result of maintenance. `job_id` is the queued job. If it did not end in time, it runs in the background.

    `evolution_proposals` are the ids of the proposals made about skills that failed.
    """

    accepted: bool
    changed: bool
    operation: str
    reason: str
    lifecycle_report: LifecycleReport
    semantic_governance: SemanticGovernance = SemanticGovernance()
    usage: ModelUsage | None = None
    job_id: JobId | None = None
    dropped: int = 0
    procedural_evolution: ProceduralEvolution = NO_EVOLUTION
    procedural_evolution_reason: str = NO_SKILLS
    procedural_promotions: tuple[str, ...] = ()
    procedural_promotions_reason: str = NO_SKILLS
    runtime_skill_reuse: tuple[SkillReuse, ...] = ()
    evolution_proposals: tuple[str, ...] = ()
    agent_tool_experience: tuple[ToolExperienceReport, ...] = ()
    agent_tool_experience_reason: str = NO_TOOL_EXPERIENCE


# --- recovery and close -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryRecoverRequest:
    trigger: Trigger | str = Trigger.OPERATOR_REQUESTED
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemoryRecoverReport(Presentable):
    """Background jobs of this space by kind: finished now, failed finally, and still waiting.

    `waiting_for_model` jobs need a model that this process does not have.
    """

    changed: bool
    reason: str
    lifecycle_report: LifecycleReport
    finished: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    waiting_for_model: int = 0


@dataclass(frozen=True, slots=True)
class MemoryCloseRequest:
    reason: Annotated[str, "The reason; it goes to the event log, so quote no content."] = "host_closed"


@dataclass(frozen=True, slots=True)
class MemoryCloseReport(Presentable):
    reason: str
    lifecycle_report: LifecycleReport
