"""Recall, projection and inspection: what hosts ask, and what they are answered.

Requests are as hosts give them; the verbs check them behind the gate. Lists that nothing fills yet are empty, with the
reason beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.domain.capabilities import Catalogue
from holdfast.domain.events import Event
from holdfast.domain.governed import ConversationKey, TranscriptState
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.profiles import Pressure
from holdfast.domain.projecting import Missed, PrivateGate, RecentMessage, SectionAudit, SourceAudit
from holdfast.domain.redaction import ReplayAudit
from holdfast.domain.results import HitKind
from holdfast.domain.transcript import Role

# Why a list is empty that nothing fills yet.
NO_SKILL_DIRECTORY = "no_agent_skill_directory"
NO_TOOL_REGISTRY = "no_agent_tool_registry"
NO_TOOL_EXPERIENCE = "no_governed_tool_experience"
NO_GRAPH = "no_memory_graph"
NOT_PROJECTED = "not_part_of_this_runtime"


@dataclass(frozen=True, slots=True)
class ToolRegistryRef:
    """A registry of the host's tools, as it is now."""

    registry_id: str
    fingerprint: str
    scope: str = "global"


# --- recall -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryRecallRequest:
    """Without a `scope`, the conversation that was committed last is meant; without either, none."""

    query: str
    limit: int = 8
    tool_registry_refs: tuple[ToolRegistryRef, ...] = ()
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class RecalledRecord:
    """A memory, or a message of the conversation at hand. What it rests on is named, never quoted."""

    id: str
    kind: HitKind
    plane: Plane | None
    text: str
    score: float
    trust: Trust | None
    recorded_at: datetime
    said_at: datetime | None
    sender: str | None
    role: Role | None
    source: str | None
    evidence_ids: tuple[MessageId, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class WorkingRecall:
    """What came, of how many candidates, and what was left out why. `by_words_only` if the embedder did not answer."""

    hits: tuple[RecalledRecord, ...]
    candidates: int
    omitted: Mapping[str, int]
    conversation: ConversationKey | None
    embedder: str
    by_words_only: bool = False


@dataclass(frozen=True, slots=True)
class ToolExperienceStatus:
    available: bool = False
    reason: str = NO_TOOL_EXPERIENCE


@dataclass(frozen=True, slots=True)
class MemoryRecallReport:
    """`procedural_hits` are memories of how something is done, the rest is in `working`."""

    query: str
    procedural_hits: tuple[RecalledRecord, ...]
    working: WorkingRecall
    lifecycle_report: LifecycleReport
    agent_skill_hits: tuple[()] = ()
    agent_skill_reason: str = NO_SKILL_DIRECTORY
    agent_tool_hints: tuple[()] = ()
    tool_experience_status: ToolExperienceStatus = ToolExperienceStatus()
    graph_hits: tuple[()] = ()
    graph_reason: str = NO_GRAPH


# --- projection -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryProjectionRequest:
    """`system_max_len` is the most characters of the block; `provider_max_chars`, where a model takes less, is as well.

    A host that sends the conversation to the model itself sets `recent_messages_limit` to 0.
    """

    user_query: str
    system_max_len: int = 4_096
    recent_messages_limit: int = 8
    pressure: Pressure = Pressure.NORMAL
    mode_input: ModeInput = field(default_factory=ModeInput)
    tool_registry_refs: tuple[ToolRegistryRef, ...] = ()
    scope: MemoryScope | None = None
    include_private: bool = False
    provider_max_chars: int | None = None


@dataclass(frozen=True, slots=True)
class ProjectionContext:
    """What is in the block, taken apart: in the block's order, each text as it is shown there.

    `transcript` counts what the conversation's last turns held, and how much of it a model may not see.
    """

    records: tuple[RecalledRecord, ...]
    recent_messages: tuple[RecentMessage, ...]
    transcript: ReplayAudit


@dataclass(frozen=True, slots=True)
class SourceAuthority:
    """What the block rests on: how many messages of which authority, how many memories of which trust."""

    authorities: Mapping[str, int]
    trust: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProjectionAudit:
    """How a block came about. It holds ids, names and counts, and nothing of what was said.

    The budgets are as they were after profile, request, provider and pressure. `truncated` if more room would have
    shown more: of so many `candidates`, the best that could fit were looked at.
    """

    projection_id: str
    profile: str
    identity: MemoryIdentity
    scope: MemoryScope | None
    memory_space_id: str
    subject_id: str | None
    conversation_id: str | None
    pressure: Pressure
    source_budget_chars: int
    render_budget_chars: int
    system_memory_chars: int
    injected: bool
    truncated: bool
    candidates: int
    private_gate: PrivateGate
    source_authority: SourceAuthority
    sources: tuple[SourceAudit, ...]
    sections: tuple[SectionAudit, ...]
    cut_ids: tuple[str, ...]
    omitted: Mapping[Missed, int]
    recent_messages_limit: int
    agent_skills: tuple[()] = ()
    agent_skills_reason: str = NO_SKILL_DIRECTORY
    agent_tools: tuple[()] = ()
    agent_tools_reason: str = NO_TOOL_EXPERIENCE


@dataclass(frozen=True, slots=True)
class ProjectionFaithfulness:
    """Whether each line of the block is a record that was found, whole or marked as cut."""

    lines: int
    whole: int
    cut: int
    faithful: bool


@dataclass(frozen=True, slots=True)
class PrivateDisclosureIntegrity:
    """How many memories of guarded planes are in the block, and whether the gate was open for them."""

    private_records: int
    kept: bool


@dataclass(frozen=True, slots=True)
class MemoryProjectionReport:
    system_memory_block: str
    context: ProjectionContext
    audit: ProjectionAudit
    projection_faithfulness: ProjectionFaithfulness
    private_disclosure_integrity: PrivateDisclosureIntegrity
    lifecycle_report: LifecycleReport
    runtime_projection: tuple[()] = ()
    runtime_projection_reason: str = NOT_PROJECTED
    life_projection: tuple[()] = ()
    life_projection_reason: str = NOT_PROJECTED
    work_integrity: tuple[()] = ()
    work_integrity_reason: str = NOT_PROJECTED
    subject_projection: tuple[()] = ()
    subject_projection_reason: str = NOT_PROJECTED


# --- inspection -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryInspectionRequest:
    """With a query, also what would be recalled and projected for it."""

    query: str | None = None
    system_max_len: int = 4_096
    pressure: Pressure = Pressure.NORMAL
    mode_input: ModeInput = field(default_factory=ModeInput)
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class WorkingInspection:
    """What a projection for the query would be made of; both None without a query."""

    recall: WorkingRecall | None
    projection: ProjectionAudit | None


@dataclass(frozen=True, slots=True)
class HygieneReport:
    """What there is, and what waits. `turns` are those of the conversation at hand, the first so many by state."""

    messages: int
    memories: int
    conversations: int
    tombstones: int
    pending_vectors: int
    jobs: Mapping[str, int]
    turns: int
    turns_by_state: Mapping[TranscriptState, int]
    turns_counted: int


@dataclass(frozen=True, slots=True)
class DeferredMemory:
    """A memory in quarantine: kept, never recalled, until something with more authority says the same."""

    id: MemoryId
    plane: Plane
    trust: Trust
    recorded_at: datetime
    author: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class DeferredGovernance:
    """Newest first; `more` if there are others."""

    memories: tuple[DeferredMemory, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class DirectoryReport:
    """What a host has mounted or registered, which is nothing yet."""

    entries: tuple[()]
    reason: str


@dataclass(frozen=True, slots=True)
class OperatorActionReport:
    """What operators and the runtime's own life did last, newest first."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class MemoryInspectionReport:
    working: WorkingInspection
    hygiene: HygieneReport
    deferred_governance: DeferredGovernance
    capabilities: Catalogue
    operator_action_report: OperatorActionReport
    lifecycle_report: LifecycleReport
    agent_skill_directory: DirectoryReport = DirectoryReport((), NO_SKILL_DIRECTORY)
    agent_tool_registry: DirectoryReport = DirectoryReport((), NO_TOOL_REGISTRY)
