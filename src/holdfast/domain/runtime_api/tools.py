"""Requests and reports of tool registries, tool experience and hints. Nothing here runs a tool, or permits to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from holdfast.domain.presentable import Presentable
from holdfast.domain.runtime_skills import ReuseOutcome
from holdfast.domain.tool_experience import (
    AgentToolObservation,
    Confidence,
    ExperienceReason,
    ToolDisposition,
    ToolDrift,
    ToolExperience,
)
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry, ToolRegistryRef

# The reasons of reports, besides `FINGERPRINT_MISMATCH`.
NO_TOOL_REGISTRY = "no_agent_tool_registry"
NO_SUCH_REGISTRY = "no_such_agent_tool_registry"
REGISTRIES_AVAILABLE = "agent_tool_registries_available"
REGISTRIES_UNAVAILABLE = "agent_tool_registries_unavailable"
NO_TOOL_EXPERIENCE = "no_governed_tool_experience"
TOOL_EXPERIENCE_AVAILABLE = "governed_tool_experience_available"
NO_OBSERVATIONS = "no_observations"
FEEDBACK = "agent_tool_usage_feedback"


# --- registries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentToolRegistryListRequest:
    """All registries of this memory."""


@dataclass(frozen=True, slots=True)
class AgentToolRegistryDetailRequest:
    """Show a registry of this memory."""

    registry_id: str


@dataclass(frozen=True, slots=True)
class AgentToolRegistryDeleteRequest:
    """Delete a registry. The experience with its tools stays, and gives no hint until they are registered again."""

    registry_id: str
    with_experience: Annotated[bool, "Delete the experience with its tools, too."] = False


@dataclass(frozen=True, slots=True)
class AgentToolRegistryMutationReport(Presentable):
    """The result of a change. If it was not accepted, nothing changed, and `reason` says why.

    `fingerprint` is the one of the content: compare it with yours after a mismatch.
    """

    _summary = ("accepted", "changed", "registry_id", "reason")

    accepted: bool
    changed: bool
    registry_id: str
    operation: str
    reason: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class AgentToolRegistrySummary(Presentable):
    """A registry in short. Experience is counted by tool and task: what gives hints, waits for repetition, or drifted.

    What drifted is of a tool that is gone, is disabled, or has another schema now.
    """

    registry_id: str
    namespace: str
    owner: str
    scope: str
    fingerprint: str
    registered_at: datetime
    tools: int
    disabled: int
    governed: int
    deferred: int
    drifted: int


@dataclass(frozen=True, slots=True)
class AgentToolRegistryReport(Presentable):
    """The registries of a memory. `unregistered` counts experience whose registry is gone."""

    _summary = ("total", "tools", "unregistered", "reason")

    total: int = 0
    tools: int = 0
    registries: tuple[AgentToolRegistrySummary, ...] = ()
    unregistered: int = 0
    reason: str = NO_TOOL_REGISTRY


NO_REGISTRIES = AgentToolRegistryReport()


@dataclass(frozen=True, slots=True)
class AgentToolRegistryListReport(Presentable):
    """The snapshots of all registries, and the report about them."""

    _summary = ("report",)

    registries: tuple[AgentToolRegistry, ...]
    report: AgentToolRegistryReport


# --- feedback ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentToolUsageFeedback:
    """Observations of tools by their host. Nothing is taken of a feedback that holds a secret, a payload or a schema.

    `reuse_outcome` is `mismatch` if a hint misled. Only an operator gives an `operator_note`; the note is not stored.
    """

    registry_ref: ToolRegistryRef
    observations: Sequence[AgentToolObservation] = ()
    user_visible_result_summary: str = ""
    reuse_outcome: ReuseOutcome | str = ReuseOutcome.NEUTRAL
    operator_note: str | None = None


@dataclass(frozen=True, slots=True)
class ToolExperienceReport(Presentable):
    """The decision about one tool and task. The counts are those of all feedbacks; 0 if it was rejected."""

    _summary = ("tool_id", "task_signature", "disposition", "reason")

    registry_id: str
    tool_id: str
    schema_fingerprint: str
    task_signature: str
    disposition: ToolDisposition
    reason: ToolDrift | ExperienceReason
    confidence: Confidence | None
    observed: int
    success_count: int
    call_count: int
    changed: bool


# --- hints ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentToolHint(Presentable):
    """A tool that has worked before. It is no authorization: the host decides, checks and runs.

    `task_signature` and the counts are those of the task that speaks most for the tool.
    """

    _summary = ("tool_id", "reason", "confidence")

    tool_id: str
    registry_id: str
    schema_fingerprint: str
    task_signature: str
    reason: str
    confidence: Confidence
    success_count: int
    call_count: int
    updated_at: datetime
    permission_tags: tuple[str, ...] = ()
    risk_tags: tuple[str, ...] = ()
    host_execution_required: bool = True

    @property
    def id(self) -> str:
        return f"{self.registry_id}/{self.tool_id}"

    @classmethod
    def of(cls, experience: ToolExperience, confidence: Confidence, tool: AgentTool) -> AgentToolHint:
        key = experience.key
        counted = f"{experience.succeeded} of {experience.calls} calls succeeded for {key.task_signature}"
        return cls(
            tool_id=key.tool_id,
            registry_id=key.registry_id,
            schema_fingerprint=key.schema_fingerprint,
            task_signature=key.task_signature,
            reason=f"{counted}: {experience.summary}" if experience.summary else counted,
            confidence=confidence,
            success_count=experience.succeeded,
            call_count=experience.calls,
            updated_at=experience.updated_at,
            permission_tags=tuple(tool.permission_tags),
            risk_tags=tuple(tool.risk_tags),
        )


@dataclass(frozen=True, slots=True)
class ToolExperienceStatus(Presentable):
    available: bool = False
    reason: str = NO_TOOL_EXPERIENCE

    @classmethod
    def of(cls, hints: Sequence[AgentToolHint]) -> ToolExperienceStatus:
        return cls(True, TOOL_EXPERIENCE_AVAILABLE) if hints else NO_EXPERIENCE


NO_EXPERIENCE = ToolExperienceStatus()


@dataclass(frozen=True, slots=True)
class ProjectedAgentTool(Presentable):
    """A hint, and the length of its text in the block; 0 if there was no room for it."""

    registry_id: str
    tool_id: str
    schema_fingerprint: str
    chars: int
    cut: bool
