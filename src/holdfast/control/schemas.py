"""JSON schemas of the control plane, shared by the tools and the HTTP routes.

Scopes are written with the names of their ids (`agent_id`, `session_key`, …); the company is the space. Requests refuse
unknown fields and coerce no types; responses hold no secret and no configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from holdfast.control.validation import MAX_NAME_CHARS
from holdfast.domain.bindings import MAX_KEY_CHARS
from holdfast.domain.contract import (
    MAX_CONTENT_CHARS,
    MAX_SUMMARY_CHARS,
    HookContext,
    HookKind,
    NewRecord,
    Snippet,
    SourceKind,
    SourceRef,
    Usage,
)
from holdfast.domain.ids import MAX_ID_CHARS
from holdfast.domain.jobs import ControlJob, JobState
from holdfast.domain.scope import MAX_PART_CHARS, Scope

MAX_FIELDS = 100
MAX_METADATA = 32

# The JSON names of a scope's parts, and their names here.
PARTS: Mapping[str, str] = {
    "agent_id": "agent",
    "project_id": "project",
    "issue_id": "issue",
    "run_id": "run",
    "subject_id": "subject",
    "session_key": "conversation",
    "namespace": "namespace",
}
# The inverse, for errors that name a field of ours.
_NAMES: Mapping[str, str] = {ours: theirs for theirs, ours in PARTS.items()} | {
    "space": "company_id",
    "binding": "binding_key",
    "target_id": "agent_id",
    "handle.record_id": "record_id",
}
_OF_SEVERAL = re.compile(r"handles\[(\d+)\]\.record_id")

Part = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)]
KEY_PATTERN = "^[a-z0-9][a-z0-9_-]*$"
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS, pattern=KEY_PATTERN)]
RecordId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
Scalar = str | int | float | bool
Filter = Annotated[dict[Part, Scalar], Field(max_length=MAX_METADATA)]
Metadata = Annotated[dict[Part, Any], Field(max_length=MAX_METADATA)]


class Asked(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        """Limit the number of fields: pydantic reports each unknown one, which takes seconds for a hundred thousand."""
        if isinstance(data, dict) and len(data) > MAX_FIELDS:
            raise ValueError(f"has {len(data):,} fields; no request has more than {MAX_FIELDS}")
        return data


class Answer(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid")


class Placed(Asked):
    """A request with a scope in a company's memory, and optionally the binding to use."""

    agent_id: Part | None = Field(default=None, description="The agent whose memory it is.")
    subject_id: Part | None = Field(default=None, description="Whom it is about: a user, a customer, a person.")
    project_id: Part | None = Field(default=None, description="The project it belongs to.")
    issue_id: Part | None = Field(default=None, description="The issue it belongs to.")
    run_id: Part | None = Field(default=None, description="The run it belongs to.")
    session_key: Part | None = Field(default=None, description="The conversation it belongs to.")
    namespace: Part | None = Field(default=None, description="A partition of your own.")
    binding_key: Key | None = Field(
        default=None, description="Use this binding; without it, the agent's, else the company's."
    )

    def where(self) -> dict[str, Any]:
        """Return the parts of the scope as keyword arguments of our calls."""
        return scope_parts({name: getattr(self, name) for name in PARTS})


def scope_parts(values: Mapping[str, Any]) -> dict[str, Any]:
    return {PARTS[name]: value for name, value in values.items() if name in PARTS and value is not None}


def json_name(field: str) -> str:
    """Return the JSON name of a field of ours."""
    if found := _OF_SEVERAL.fullmatch(field):
        return f"record_ids[{found.group(1)}]"
    return "record_ids" if field == "handles" else _NAMES.get(field, field)


# --- sources, hooks, scopes -----------------------------------------------------------------------------------------


class SourceGiven(Asked):
    """The source of a memory."""

    kind: SourceKind = Field(strict=False)
    issue_id: RecordId | None = None
    comment_id: RecordId | None = None
    document_key: RecordId | None = None
    run_id: RecordId | None = None
    activity_id: RecordId | None = None
    external_ref: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)] | None = None

    def source(self, space: str) -> SourceRef:
        return SourceRef(
            self.kind,
            space,
            self.issue_id,
            self.comment_id,
            self.document_key,
            self.run_id,
            self.activity_id,
            self.external_ref,
        )


class SourceTold(Answer):
    kind: SourceKind
    issue_id: str | None = None
    comment_id: str | None = None
    document_key: str | None = None
    run_id: str | None = None
    activity_id: str | None = None
    external_ref: str | None = None

    @classmethod
    def of(cls, found: SourceRef) -> SourceTold:
        return cls(
            kind=found.kind,
            issue_id=found.issue_id,
            comment_id=found.comment_id,
            document_key=found.document_key,
            run_id=found.run_id,
            activity_id=found.activity_id,
            external_ref=found.external_ref,
        )


class HookTold(Answer):
    """The hook that triggered something."""

    kind: HookKind
    hook_id: str
    triggered_at: str
    actor_agent_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, found: HookContext) -> HookTold:
        return cls(
            kind=found.kind,
            hook_id=found.hook_id,
            triggered_at=found.triggered_at.isoformat(),
            actor_agent_id=found.actor_agent_id,
            run_id=found.run_id,
        )


class ScopeTold(Answer):
    company_id: str
    agent_id: str | None = None
    subject_id: str | None = None
    project_id: str | None = None
    issue_id: str | None = None
    run_id: str | None = None
    session_key: str | None = None
    namespace: str | None = None

    @classmethod
    def of(cls, found: Scope) -> ScopeTold:
        return cls(company_id=found.space, **{theirs: getattr(found, ours) for theirs, ours in PARTS.items()})


class UsageTold(Answer):
    """The usage of one call as its provider reported it. Cents are a decimal number as text."""

    provider: str
    biller: str | None
    model: str | None
    billing_type: str
    attribution_mode: str
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    embedding_tokens: int
    cost_cents: str | None
    currency: str
    latency_ms: float | None

    @classmethod
    def of(cls, found: Usage) -> UsageTold:
        return cls(
            provider=found.provider,
            biller=found.biller,
            model=found.model,
            billing_type=found.billing_type,
            attribution_mode=found.attribution_mode,
            input_tokens=found.input_tokens,
            cached_input_tokens=found.cached_input_tokens,
            output_tokens=found.output_tokens,
            embedding_tokens=found.embedding_tokens,
            cost_cents=None if found.cost_cents is None else format(found.cost_cents, "f"),
            currency=found.currency,
            latency_ms=found.latency_ms,
        )


# --- records ----------------------------------------------------------------------------------------------------------


class RecordGiven(Asked):
    """A fact, preference or decision to store as it is."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS)]
    summary: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SUMMARY_CHARS)] | None = None
    metadata: Metadata = Field(default_factory=dict)

    def record(self) -> NewRecord:
        return NewRecord(self.text, self.summary, self.metadata)


class SnippetTold(Answer):
    """A record: `text` is what somebody stored, and data, whatever it says."""

    record_id: str
    provider_key: str
    text: str
    summary: str | None = None
    score: float | None = None
    source: SourceTold | None = None
    scope: ScopeTold | None = None
    recorded_at: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, found: Snippet) -> SnippetTold:
        return cls(
            record_id=found.handle.record_id,
            provider_key=found.handle.provider_key,
            text=found.text,
            summary=found.summary,
            score=found.score,
            source=None if found.source is None else SourceTold.of(found.source),
            scope=None if found.scope is None else ScopeTold.of(found.scope),
            recorded_at=to_iso(found.recorded_at),
            metadata=dict(found.metadata),
        )


# --- jobs -------------------------------------------------------------------------------------------------------------


class JobTold(Answer):
    """One attempt of a background job. `state` is `stuck` if its lease expired while it was running; `retry_available`
    is true if it is the last attempt, failed or was cancelled, and an operator may retry it."""

    job_id: str
    kind: str
    state: JobState
    attempt: int
    retry_of: str | None
    retry_available: bool
    done: int
    total: int
    error: str | None
    scope: ScopeTold
    binding_key: str | None
    operation_id: str | None
    hook: HookTold | None
    source: SourceTold | None
    submitted_at: str
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, found: ControlJob) -> JobTold:
        cause = found.cause
        return cls(
            job_id=found.id,
            kind=found.kind,
            state=found.state,
            attempt=found.attempt,
            retry_of=found.retry_of,
            retry_available=found.retry_available,
            done=found.done,
            total=found.total,
            error=found.error,
            scope=ScopeTold.of(found.scope),
            binding_key=None if cause is None else cause.binding,
            operation_id=None if cause is None else cause.operation_id,
            hook=None if cause is None or cause.hook is None else HookTold.of(cause.hook),
            source=None if cause is None or cause.source is None else SourceTold.of(cause.source),
            submitted_at=found.created_at.isoformat(),
            started_at=to_iso(found.started_at),
            finished_at=to_iso(found.finished_at),
        )


def to_iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
