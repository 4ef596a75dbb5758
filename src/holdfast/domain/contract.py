"""Requests and results between the control plane and a memory provider.

A provider keeps memory somewhere: in our own store, in files, in an external system. A few methods are required; its
`Capabilities` name the optional ones. A `Scope` says where something belongs, as everywhere; its
`conversation` is the key of the session. Results of a provider are untrusted data until validated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from holdfast.domain.arguments import Rule, text_rule, whole_number
from holdfast.domain.checks import check_count, checked_text
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Part, Scope, could_be_part
from holdfast.domain.transcript import Role
from holdfast.errors import InvalidCursor, InvalidInput, InvalidText

MAX_QUERY_CHARS = 4_000
MAX_TOP_K = 25
DEFAULT_TOP_K = 5
MAX_CONTENT_CHARS = 20_000
MAX_SUMMARY_CHARS = 2_000
MAX_HANDLES = 100
MAX_RECORDS = 100
MAX_PAGE = 200
DEFAULT_PAGE = 50
MAX_NAME_CHARS = 1_024  # of an id, or of the name of a field
MAX_TYPE_CHARS = 256
MAX_FIELDS = 100  # of a request or a configuration
MAX_METADATA = 60  # our own memory keeps four more with them, and has room for 64
MAX_OBJECT_FIELDS = 1_000  # of an object
MAX_DATA_CHARS = 65_536  # of metadata, as JSON
MAX_OBJECT_CHARS = 100_000  # of an object, as JSON
# A cursor is used in URLs: visible ASCII, and not too long.
MAX_CURSOR_CHARS = 8_192
CURSOR_PATTERN = "^[!-~]+$"
ANY_PROVIDER = "*"  # in a handle: the provider that serves the call


def check_data(value: object, field: str, max_chars: int = MAX_DATA_CHARS, max_fields: int = MAX_METADATA) -> None:
    """Require a dictionary that JSON can represent and that is not too large."""
    if not isinstance(value, Mapping):
        raise InvalidInput(field, f"expected an object, got {type(value).__name__}")
    if not value:
        return
    check_count(value, field, 0, max_fields)
    if not all(isinstance(name, str) for name in value):
        raise InvalidInput(field, "must have text keys")
    if not all(1 <= len(name) <= MAX_NAME_CHARS for name in value):
        raise InvalidText(field, f"must have keys of 1 to {MAX_NAME_CHARS:,} characters")
    try:
        written = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(field, "cannot be written as JSON") from None
    if len(written) > max_chars:
        raise InvalidText(field, f"has {len(written):,} characters as JSON; at most {max_chars:,} are allowed")
    checked_text(written, field)


def check_config(value: object, field: str) -> None:
    check_data(value, field, max_fields=MAX_FIELDS)


def check_object(value: object, field: str) -> None:
    check_data(value, field, MAX_OBJECT_CHARS, MAX_OBJECT_FIELDS)


Name = Annotated[str, text_rule(MAX_NAME_CHARS, "NAME")]
FieldName = Annotated[str, Rule(checked_text, "NAME", 1, MAX_NAME_CHARS)]
Data = Annotated[Mapping[FieldName, Any], Rule(check_data, "JSON", max_length=MAX_METADATA)]
Config = Annotated[Mapping[FieldName, Any], Rule(check_config, "JSON", max_length=MAX_FIELDS)]


def is_cursor(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CURSOR_CHARS and re.fullmatch(CURSOR_PATTERN, value) is not None


def check_cursor(value: object, field: str) -> None:
    if isinstance(value, str) and len(value) > MAX_CURSOR_CHARS:
        raise InvalidCursor(field, f"has {len(value):,} characters; at most {MAX_CURSOR_CHARS:,} are allowed")
    if not is_cursor(value):
        raise InvalidCursor(field, "is malformed; pass on the `next_cursor` of a page unchanged")


Cursor = Annotated[
    str, Rule(check_cursor, "CURSOR", 1, MAX_CURSOR_CHARS, CURSOR_PATTERN), "The `next_cursor` of the previous page."
]
PageLimit = Annotated[int, whole_number(1, MAX_PAGE), "At most so many."]
QueryText = Annotated[
    str, text_rule(MAX_QUERY_CHARS, "QUERY"), "What you want to know, as a question or in a few words."
]
TopK = Annotated[int, whole_number(1, MAX_TOP_K), "At most so many results."]
Since = Annotated[datetime, "From this time on."]
Until = Annotated[datetime, "Before this time."]


@dataclass(frozen=True, slots=True)
class Capabilities(Presentable):
    """The optional methods that a provider has. A method without its flag is never called."""

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
class SourceRef(Presentable):
    """The origin of a memory. `space` equals the space of its scope."""

    kind: SourceKind
    space: Part
    issue_id: Name | None = None
    comment_id: Name | None = None
    document_key: Name | None = None
    run_id: Name | None = None
    activity_id: Name | None = None
    external_ref: Name | None = None


class HookKind(StrEnum):
    PRE_RUN_HYDRATE = "pre_run_hydrate"
    POST_RUN_CAPTURE = "post_run_capture"
    ISSUE_COMMENT_CAPTURE = "issue_comment_capture"
    ISSUE_DOCUMENT_CAPTURE = "issue_document_capture"
    MANUAL_CAPTURE = "manual_capture"


@dataclass(frozen=True, slots=True)
class HookContext(Presentable):
    """The hook that triggered a call. `hook_id` is the same for each delivery of an event."""

    kind: HookKind
    hook_id: Part
    triggered_at: datetime
    actor_agent_id: Part | None = None
    run_id: Part | None = None


class LookupKeys(NamedTuple):
    """The agent, project, issue and run of a call: the keys it is looked up by."""

    agent: str | None = None
    project: str | None = None
    issue: str | None = None
    run: str | None = None


def lookup_keys(scope: Scope, source: SourceRef | None, hook: HookContext | None) -> LookupKeys:
    """Take each key from the scope, else from the source or the hook. The scope holds only what the caller asked for.

    A source may hold a name that is too long for a scope. No query can ask for it, so it is left out.
    """
    agent, issue, run = scope.agent, scope.issue, scope.run
    if source is not None:
        issue, run = issue or _name(source.issue_id), run or _name(source.run_id)
    if hook is not None:
        agent, run = agent or _name(hook.actor_agent_id), run or _name(hook.run_id)
    return LookupKeys(agent, scope.project, issue, run)


def _name(value: str | None) -> str | None:
    return value if could_be_part(value) else None


@dataclass(frozen=True, slots=True)
class SourcePayload:
    """The captured content: a text, a structured object, or both. The provider decides how to use it."""

    text: Annotated[str, text_rule(MAX_CONTENT_CHARS)] | None = None
    mime_type: Annotated[str, text_rule(MAX_TYPE_CHARS)] | None = None
    metadata: Data = field(default_factory=dict)
    object: Annotated[Mapping[FieldName, Any], Rule(check_object, "JSON", max_length=MAX_OBJECT_FIELDS)] | None = None


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
class Usage(Presentable):
    """The usage of one call, as its provider reports it. Cents are decimals: a call may cost a thousandth of one."""

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
class RecordHandle(Presentable):
    """A record by its provider's own id."""

    provider_key: Annotated[str, text_rule(MAX_TYPE_CHARS)]
    record_id: Name


class CaptureMode(StrEnum):
    RESIDUE = "capture_residue"  # evidence to extract memories from
    RECORD = "capture_record"  # stored unchanged


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A capture. A repeated one has the same `idempotency_id`; a provider that can, stores it once."""

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
    text: Annotated[str, text_rule(MAX_CONTENT_CHARS)]
    summary: Annotated[str, text_rule(MAX_SUMMARY_CHARS)] | None = None
    metadata: Data = field(default_factory=dict)


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
    """A query. Snippets that score less than `min_score` are dropped, also if the provider ignores it."""

    binding_key: str
    scope: Scope
    query: str
    top_k: int = DEFAULT_TOP_K
    intent: Intent = Intent.ANSWER
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    min_score: float | None = None


@dataclass(frozen=True, slots=True)
class ListRequest:
    binding_key: str
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snippet(Presentable):
    """A record of a provider. `scope` is its scope, if the provider says; records of another space are dropped.

    A message has a `role`, and may have a `sender` and the time when it was said. A memory has none of these.
    """

    handle: RecordHandle
    text: str
    score: float | None = None
    summary: str | None = None
    source: SourceRef | None = None
    scope: Scope | None = None
    recorded_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sender: str | None = None
    role: Role | None = None
    said_at: datetime | None = None


class ExtractionStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ExtractionJob(Presentable):
    provider_job_id: str
    status: ExtractionStatus
    hook_kind: HookKind | None = None
    source: SourceRef | None = None
    error: str | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CaptureResult(Presentable):
    records: tuple[RecordHandle, ...] = ()
    jobs: tuple[ExtractionJob, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteResult(Presentable):
    records: tuple[RecordHandle, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextBundle(Presentable):
    snippets: tuple[Snippet, ...] = ()
    profile_summary: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage(PresentableList[Snippet]):
    items: tuple[Snippet, ...] = ()
    next_cursor: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgetResult(Presentable):
    """The result of a forget. `missing` are records that do not exist or are out of reach."""

    forgotten: tuple[RecordHandle, ...] = ()
    missing: tuple[RecordHandle, ...] = ()
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class CorrectResult(Presentable):
    """The result of a correction. `record` is the current one."""

    record: RecordHandle
    superseded: RecordHandle | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileResult(Presentable):
    summary: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionJobPage(PresentableList[ExtractionJob]):
    items: tuple[ExtractionJob, ...] = ()
    next_cursor: str | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceResult(Presentable):
    """An explanation of a query's result, in the provider's own terms."""

    trace: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = ()
