"""Writing and upkeep, as hosts ask for them and hear of them.

Requests hold what a host gave, unchecked: the verb checks it behind the gate, so that a refusal leaves its operation
row. Lists that a report has for what is not built yet are empty, with the reason beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.domain.candidates import CandidatePrivacy, Reason, Verdict
from holdfast.domain.governed import Authority
from holdfast.domain.identity import MemoryScope
from holdfast.domain.ids import JobId, MemoryId, MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput, Trigger
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.profiles import Pressure

NO_SKILLS = "runtime_skills_not_built"
NO_TOOL_EXPERIENCE = "no_governed_tool_experience"

# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TranscriptEvidenceRef:
    """What a candidate rests on: a message by its id, or all messages of a turn; `scope` says of which conversation."""

    message_id: str | None = None
    turn_id: str | None = None
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class MemoryWriteCandidate:
    """Something to be remembered, if governance lets it. A text among `evidence_refs` is a message's id.

    Given again under the same `candidate_id`, it is answered as the first time.
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
    """One fact that a pipeline found, and the messages it found it in."""

    content: str
    evidence_refs: Sequence[TranscriptEvidenceRef | str] = ()
    authority: Authority | str = Authority.USER_ASSERTED
    privacy: CandidatePrivacy | str = CandidatePrivacy.STANDARD
    valid_from: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LongTermExtraction:
    """What a pipeline made of a conversation in one go. Its id makes it safe to hand in again."""

    extraction_id: str
    pipeline: str
    facts: Sequence[LongTermFact]


@dataclass(frozen=True, slots=True)
class MemoryWriteRequest:
    """Made by `candidates` or `long_term_extraction`. `scope` is the conversation that turn ids are of."""

    given: Sequence[MemoryWriteCandidate] = ()
    extraction: LongTermExtraction | None = None
    scope: MemoryScope | None = None

    @classmethod
    def candidates(cls, *given: MemoryWriteCandidate, scope: MemoryScope | None = None) -> MemoryWriteRequest:
        return cls(given=given, scope=scope)

    @classmethod
    def long_term_extraction(
        cls, extraction: LongTermExtraction, scope: MemoryScope | None = None
    ) -> MemoryWriteRequest:
        return cls(extraction=extraction, scope=scope)


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """What became of one candidate. `memory_id` is the memory that now says it, or said it before."""

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
class SemanticGovernance:
    """One verdict per candidate, in the order in which they were given."""

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
class MemoryWriteReport:
    """`accepted` if at least one candidate was; `reason` is theirs if all have the same, else `mixed`."""

    accepted: bool
    changed: bool
    operation: str
    reason: str
    lifecycle_report: LifecycleReport
    semantic_governance: SemanticGovernance
    procedural_evolution: tuple[str, ...] = ()
    procedural_evolution_reason: str = NO_SKILLS
    procedural_promotions: tuple[str, ...] = ()
    procedural_promotions_reason: str = NO_SKILLS
    agent_tool_experience: tuple[str, ...] = ()
    agent_tool_experience_reason: str = NO_TOOL_EXPERIENCE


# --- maintenance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryMaintainRequest:
    """Learn from a turn that was committed: of the conversation given, else of the one committed last.

    `user_content` and `reply_content` say which of its last messages are meant; what is not in the transcript is
    learned from by nobody. Without them it is the last turn.
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
class ModelUsage:
    """What asking a model took; zero where the model does not say."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class MemoryMaintainReport:
    """`job_id` is the work that was queued. If it did not end in time, it goes on without the caller."""

    accepted: bool
    changed: bool
    operation: str
    reason: str
    lifecycle_report: LifecycleReport
    semantic_governance: SemanticGovernance = SemanticGovernance()
    usage: ModelUsage | None = None
    job_id: JobId | None = None
    dropped: int = 0
    procedural_evolution: tuple[str, ...] = ()
    procedural_evolution_reason: str = NO_SKILLS
    procedural_promotions: tuple[str, ...] = ()
    procedural_promotions_reason: str = NO_SKILLS
    agent_tool_experience: tuple[str, ...] = ()
    agent_tool_experience_reason: str = NO_TOOL_EXPERIENCE


# --- recovery and the end ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryRecoverRequest:
    trigger: Trigger | str = Trigger.OPERATOR_REQUESTED
    mode_input: ModeInput = field(default_factory=ModeInput)


@dataclass(frozen=True, slots=True)
class MemoryRecoverReport:
    """Background work of this space: what was finished now, what failed at last, and what is still waiting, by kind.

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
    reason: str = "host_closed"


@dataclass(frozen=True, slots=True)
class MemoryCloseReport:
    reason: str
    lifecycle_report: LifecycleReport
