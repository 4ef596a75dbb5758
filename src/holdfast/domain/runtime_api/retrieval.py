"""Requests and reports of recall, projection and inspection.

Requests are not validated here; the verbs do so after authorization. Lists that are not built yet are empty, with a
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from holdfast.domain.agent_skills import (
    NO_DIRECTORIES,
    NO_SKILL_DIRECTORY,
    AgentSkillDirectoryReport,
    AgentSkillHit,
    ProjectedAgentSkill,
)
from holdfast.domain.capabilities import MemoryCapabilityCatalog
from holdfast.domain.events import Event
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.lifecycle import LifecycleReport, ModeInput
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.presentable import Presentable
from holdfast.domain.profile_usage import BudgetUsage
from holdfast.domain.profiles import Pressure
from holdfast.domain.projection_block import OmissionReason, PrivateGate, RecentMessage, SectionAudit, SourceAudit
from holdfast.domain.redaction import TranscriptReplayAudit
from holdfast.domain.results import HitKind
from holdfast.domain.runtime_api.tools import (
    NO_EXPERIENCE,
    NO_REGISTRIES,
    NO_TOOL_EXPERIENCE,
    AgentToolHint,
    AgentToolRegistryReport,
    ProjectedAgentTool,
    ToolExperienceStatus,
)
from holdfast.domain.tool_registries import ToolRegistryRef
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import ConversationKey, TranscriptState

# Reasons why a list that is not built yet is empty.
NO_GRAPH = "no_memory_graph"
NOT_PROJECTED = "not_part_of_this_runtime"


# --- recall -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryRecallRequest:
    """Without a `scope`, the conversation that was committed last is used, if there is one.

    `min_score` replaces the floor below which a record does not bear on the query; 0 shows all.
    """

    query: str
    limit: Annotated[int, "At most so many records."] = 8
    tool_registry_refs: tuple[ToolRegistryRef, ...] = ()
    scope: MemoryScope | None = None
    min_score: Annotated[float | None, "The floor below which a record does not bear on the query; 0 shows all."] = None


@dataclass(frozen=True, slots=True)
class RecalledRecord(Presentable):
    """A memory, or a message of the current conversation. Its evidence is given by id, never quoted.

    A runtime skill has a name, and its text is a summary: `get_runtime_skill` shows the procedure.
    """

    _summary = ("score", "text", "sender", "trust", "id")

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
    skill_name: str | None = None


@dataclass(frozen=True, slots=True)
class WorkingRecall(Presentable):
    """The hits, the number of candidates, and omissions by reason. `by_words_only` if the embedder did not respond."""

    hits: tuple[RecalledRecord, ...]
    candidates: int
    omitted: Mapping[str, int]
    conversation: ConversationKey | None
    embedder: str
    by_words_only: bool = False


@dataclass(frozen=True, slots=True)
class MemoryRecallReport(Presentable):
    """The result of a recall. `procedural_hits` are runtime skills as summaries; all other hits are in `working`.

    Without any of them, `reason` says why. `agent_tool_hints` are no authorization.
    """

    query: str
    procedural_hits: tuple[RecalledRecord, ...]
    working: WorkingRecall
    lifecycle_report: LifecycleReport
    agent_skill_hits: tuple[AgentSkillHit, ...] = ()
    agent_skill_reason: str | None = NO_SKILL_DIRECTORY
    agent_tool_hints: tuple[AgentToolHint, ...] = ()
    tool_experience_status: ToolExperienceStatus = NO_EXPERIENCE
    graph_hits: tuple[()] = ()
    graph_reason: str = NO_GRAPH
    reason: str | None = None


# --- projection -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryProjectionRequest:
    """`system_max_len` limits the characters of the block; so does `provider_max_chars`, for a model that takes less.

    A host that sends the conversation to the model itself sets `recent_messages_limit` to 0. `min_score` replaces the
    floor below which a record does not bear on the query; 0 shows all. With the `audit_id` of an audit, the event log
    says which records were shown.
    """

    user_query: str
    system_max_len: Annotated[int, "The most characters of the block."] = 4_096
    recent_messages_limit: Annotated[int, "At most so many of the last messages."] = 8
    pressure: Annotated[Pressure, "The pressure on the host, which makes the block shorter."] = Pressure.NORMAL
    mode_input: ModeInput = field(default_factory=ModeInput)
    tool_registry_refs: tuple[ToolRegistryRef, ...] = ()
    scope: MemoryScope | None = None
    include_private: Annotated[bool, "Ask for memories of private planes, too; the private gate decides."] = False
    provider_max_chars: Annotated[int | None, "The most characters that the model takes."] = None
    min_score: Annotated[float | None, "The floor below which a record does not bear on the query; 0 shows all."] = None
    audit_id: Annotated[str | None, "The id of an audit, for which the projection leaves its event."] = None


@dataclass(frozen=True, slots=True)
class ProjectionContext(Presentable):
    """The content of the block in its order, each text as shown there.

    `transcript` counts the messages of the conversation's last turns, and those that a model may not see.
    """

    records: tuple[RecalledRecord, ...]
    recent_messages: tuple[RecentMessage, ...]
    transcript: TranscriptReplayAudit
    agent_skills: tuple[AgentSkillHit, ...] = ()
    agent_tools: tuple[AgentToolHint, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceAuthority(Presentable):
    """The sources of the block: messages by authority, memories by trust."""

    authorities: Mapping[str, int]
    trust: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProjectionAudit(Presentable):
    """The audit of a block. It holds ids, names and counts, never message text.

    The budgets are the effective ones after profile, request, provider and pressure. `truncated` if a larger budget
    would have shown more: only the best of the `candidates` that could fit were considered.
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
    omitted: Mapping[OmissionReason, int]
    recent_messages_limit: int
    agent_skills: tuple[ProjectedAgentSkill, ...] = ()
    agent_skills_reason: str | None = NO_SKILL_DIRECTORY
    agent_tools: tuple[ProjectedAgentTool, ...] = ()
    agent_tools_reason: str = NO_TOOL_EXPERIENCE


@dataclass(frozen=True, slots=True)
class ProjectionFaithfulness(Presentable):
    """The check that each line of the block is a found record, whole or marked as cut."""

    lines: int
    whole: int
    cut: int
    faithful: bool


@dataclass(frozen=True, slots=True)
class PrivateDisclosureIntegrity(Presentable):
    """The number of memories of guarded planes in the block, and whether the gate was open for them."""

    private_records: int
    kept: bool


@dataclass(frozen=True, slots=True)
class MemoryProjectionReport(Presentable):
    """The block and its audit. If the block is empty, `reason` says why."""

    _summary = ("system_memory_block", "reason")
    system_memory_block: str
    context: ProjectionContext
    audit: ProjectionAudit
    projection_faithfulness: ProjectionFaithfulness
    private_disclosure_integrity: PrivateDisclosureIntegrity
    lifecycle_report: LifecycleReport
    agent_tool_hints: tuple[AgentToolHint, ...] = ()
    tool_experience_status: ToolExperienceStatus = NO_EXPERIENCE
    runtime_projection: tuple[()] = ()
    runtime_projection_reason: str = NOT_PROJECTED
    life_projection: tuple[()] = ()
    life_projection_reason: str = NOT_PROJECTED
    work_integrity: tuple[()] = ()
    work_integrity_reason: str = NOT_PROJECTED
    subject_projection: tuple[()] = ()
    subject_projection_reason: str = NOT_PROJECTED
    reason: str | None = None


# --- inspection -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryInspectionRequest:
    """A request to inspect memory. With a query, the report includes the recall and the projection for it."""

    query: str | None = None
    system_max_len: Annotated[int, "The most characters of the projection."] = 4_096
    pressure: Annotated[Pressure, "The pressure on the host, which makes the projection shorter."] = Pressure.NORMAL
    mode_input: ModeInput = field(default_factory=ModeInput)
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True)
class WorkingInspection(Presentable):
    """The recall and projection of the query; both None without a query. If nothing is projected, `reason` says why."""

    recall: WorkingRecall | None
    projection: ProjectionAudit | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class HygieneReport(Presentable):
    """Counts of records and pending work. `turns` are of the current conversation, `turns_counted` of them by state.

    `usage` compares what runtimes wrote with the budgets; nothing more is written while one is exceeded.
    """

    messages: int
    memories: int
    conversations: int
    tombstones: int
    pending_vectors: int
    jobs: Mapping[str, int]
    turns: int
    turns_by_state: Mapping[TranscriptState, int]
    turns_counted: int
    usage: BudgetUsage


@dataclass(frozen=True, slots=True)
class DeferredMemory(Presentable):
    """A quarantined memory: stored, but not recalled until a higher authority confirms it."""

    id: MemoryId
    plane: Plane
    trust: Trust
    recorded_at: datetime
    author: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class DeferredGovernance(Presentable):
    """Quarantined memories, newest first; `more` if there are others."""

    memories: tuple[DeferredMemory, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class OperatorActionReport(Presentable):
    """The last operator and lifecycle events, newest first."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class MemoryInspectionReport(Presentable):
    working: WorkingInspection
    hygiene: HygieneReport
    deferred_governance: DeferredGovernance
    capabilities: MemoryCapabilityCatalog
    operator_action_report: OperatorActionReport
    lifecycle_report: LifecycleReport
    agent_skill_directory: AgentSkillDirectoryReport = NO_DIRECTORIES
    agent_tool_registry: AgentToolRegistryReport = NO_REGISTRIES
