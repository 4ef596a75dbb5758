"""What the control plane and a provider of memory say to each other.

A provider keeps memory somewhere: in our own store, in files, in somebody else's system. What it must be able to do is
small; what it may do besides, its `Capabilities` say. Where something belongs is a `Scope` here as everywhere: the
space is the company, `conversation` the session's key. What a provider gives back is data, and hostile until checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.domain.scope import Scope, could_be_part

MAX_QUERY_CHARS = 4_000
MAX_TOP_K = 25
DEFAULT_TOP_K = 5
MAX_CONTENT_CHARS = 20_000
MAX_SUMMARY_CHARS = 2_000
MAX_HANDLES = 100
MAX_RECORDS = 100
MAX_PAGE = 200
DEFAULT_PAGE = 50
# A cursor travels in addresses: visible ASCII, and not too long.
MAX_CURSOR_CHARS = 8_192
CURSOR_PATTERN = "^[!-~]+$"
ANY_PROVIDER = "*"  # in a handle: of whoever serves the call


def is_cursor(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CURSOR_CHARS and re.fullmatch(CURSOR_PATTERN, value) is not None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a provider can do beyond what every one must. A verb that is not named here is not called."""

    profile: bool = False
    correction: bool = False
    multimodal: bool = False
    provider_managed_extraction: bool = False
    async_extraction: bool = False
    provider_native_browse: bool = False
    extraction_jobs: bool = False  # list_extraction_jobs
    extraction_retry: bool = False  # retry_extraction_job
    explanation: bool = False


class SourceKind(StrEnum):
    ISSUE_COMMENT = "issue_comment"
    ISSUE_DOCUMENT = "issue_document"
    ISSUE = "issue"
    RUN = "run"
    ACTIVITY = "activity"
    MANUAL_NOTE = "manual_note"
    EXTERNAL_DOCUMENT = "external_document"


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a memory came from. `space` is the company, and the same as its scope's."""

    kind: SourceKind
    space: str
    issue_id: str | None = None
    comment_id: str | None = None
    document_key: str | None = None
    run_id: str | None = None
    activity_id: str | None = None
    external_ref: str | None = None


class HookKind(StrEnum):
    PRE_RUN_HYDRATE = "pre_run_hydrate"
    POST_RUN_CAPTURE = "post_run_capture"
    ISSUE_COMMENT_CAPTURE = "issue_comment_capture"
    ISSUE_DOCUMENT_CAPTURE = "issue_document_capture"
    MANUAL_CAPTURE = "manual_capture"


@dataclass(frozen=True, slots=True)
class HookContext:
    """What set something off. `hook_id` is the same for the same event, however often it is delivered."""

    kind: HookKind
    hook_id: str
    triggered_at: datetime
    actor_agent_id: str | None = None
    run_id: str | None = None


class Concern(NamedTuple):
    """What something is looked up by: the agent, project, issue and run that it was for."""

    agent: str | None = None
    project: str | None = None
    issue: str | None = None
    run: str | None = None


def concern(scope: Scope, source: SourceRef | None, hook: HookContext | None) -> Concern:
    """Each as the scope has it, else as the source or the hook does. The scope itself says only what was asked for.

    A source may name what is too long for a scope. Nobody can ask for that, so it is not looked up by either.
    """
    agent, issue, run = scope.agent, scope.issue, scope.run
    if source is not None:
        issue, run = issue or _name(source.issue_id), run or _name(source.run_id)
    if hook is not None:
        agent, run = agent or _name(hook.actor_agent_id), run or _name(hook.run_id)
    return Concern(agent, scope.project, issue, run)


def _name(given: str | None) -> str | None:
    return given if could_be_part(given) else None


@dataclass(frozen=True, slots=True)
class SourcePayload:
    """What was captured: a text, a structured object, or both. A provider decides what it makes of it."""

    text: str | None = None
    mime_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    object: Mapping[str, Any] | None = None


class BillingType(StrEnum):
    METERED_API = "metered_api"
    SUBSCRIPTION_INCLUDED = "subscription_included"
    SUBSCRIPTION_OVERAGE = "subscription_overage"
    UNKNOWN = "unknown"


class AttributionMode(StrEnum):
    BILLED_DIRECTLY = "billed_directly"
    INCLUDED_IN_RUN = "included_in_run"
    EXTERNAL_INVOICE = "external_invoice"
    UNTRACKED = "untracked"


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call took, as its provider tells it. Cents are decimals: a call may cost a thousandth of one."""

    provider: str
    biller: str | None = None
    model: str | None = None
    billing_type: BillingType = BillingType.UNKNOWN
    attribution_mode: AttributionMode = AttributionMode.UNTRACKED
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    embedding_tokens: int = 0
    cost_cents: Decimal | None = None
    currency: str = "USD"
    latency_ms: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordHandle:
    """A record by its provider's own id."""

    provider_key: str
    record_id: str


class CaptureMode(StrEnum):
    RESIDUE = "capture_residue"  # evidence: what happened, to be learned from
    RECORD = "capture_record"  # to be kept as it is


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """`idempotency_id` is the same when the same capture is made again; a provider that can, keeps it once."""

    binding_key: str
    scope: Scope
    source: SourceRef
    payload: SourcePayload
    hook: HookContext | None = None
    mode: CaptureMode = CaptureMode.RESIDUE
    metadata: Mapping[str, Any] = field(default_factory=dict)
    idempotency_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewRecord:
    text: str
    summary: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordWriteRequest:
    binding_key: str
    scope: Scope
    records: tuple[NewRecord, ...]
    source: SourceRef | None = None
    idempotency_id: str | None = None


class Intent(StrEnum):
    AGENT_PREAMBLE = "agent_preamble"
    ANSWER = "answer"
    BROWSE = "browse"


@dataclass(frozen=True, slots=True)
class QueryRequest:
    binding_key: str
    scope: Scope
    query: str
    top_k: int = DEFAULT_TOP_K
    intent: Intent = Intent.ANSWER
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListRequest:
    binding_key: str
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snippet:
    """`scope` is where the record belongs, if its provider says; what is of another company is dropped."""

    handle: RecordHandle
    text: str
    score: float | None = None
    summary: str | None = None
    source: SourceRef | None = None
    scope: Scope | None = None
    recorded_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ExtractionStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ExtractionJob:
    provider_job_id: str
    status: ExtractionStatus
    hook_kind: HookKind | None = None
    source: SourceRef | None = None
    error: str | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CaptureResult:
    records: tuple[RecordHandle, ...] = ()
    jobs: tuple[ExtractionJob, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteResult:
    records: tuple[RecordHandle, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextBundle:
    snippets: tuple[Snippet, ...] = ()
    profile_summary: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage:
    items: tuple[Snippet, ...] = ()
    next_cursor: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """`missing` are those that were not there, or out of reach."""

    forgotten: tuple[RecordHandle, ...] = ()
    missing: tuple[RecordHandle, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class CorrectResult:
    """`record` is what counts from now on."""

    record: RecordHandle
    superseded: RecordHandle | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileResult:
    summary: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[ExtractionJob, ...] = ()
    next_cursor: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceResult:
    """How a query came to its result, in the provider's own terms."""

    trace: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = ()
