"""The provider API's verbs, each served by the binding that serves its caller.

One call leaves one operation row, which names the binding. The response of an external provider is validated before it
is returned; our own store is called inside the gate, as part of the same call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from holdfast.control import response_validation, validation
from holdfast.control.binding_resolution import resolve_for_call
from holdfast.control.dispatch import call_provider
from holdfast.control.response_validation import ValidatedResponse
from holdfast.domain.access import Action
from holdfast.domain.bindings import Binding
from holdfast.domain.checks import checked_text, checked_whole
from holdfast.domain.contract import (
    ANY_PROVIDER,
    DEFAULT_PAGE,
    DEFAULT_TOP_K,
    MAX_CONTENT_CHARS,
    MAX_PAGE,
    MAX_QUERY_CHARS,
    MAX_TOP_K,
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ExtractionJobPage,
    ForgetResult,
    HookContext,
    Intent,
    ListPage,
    ListRequest,
    NewRecord,
    ProfileResult,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourcePayload,
    SourceRef,
    TraceResult,
    WriteResult,
)
from holdfast.domain.control import ProviderResponse
from holdfast.domain.operations import Attribution
from holdfast.domain.scope import Scope
from holdfast.errors import NotFound
from holdfast.ports.provider import CorrectingAdapter, ExplainingAdapter, ExtractingAdapter, ProfilingAdapter
from holdfast.runtime.gate import AttributedRequest, Call, CompositeRequest, Core
from holdfast.runtime.remember import MAX_REASON_CHARS


@dataclass(frozen=True, slots=True)
class Capture(AttributedRequest, CompositeRequest[ProviderResponse[CaptureResult]]):
    """Capture an event, or content to be stored as it is. The provider decides what to extract from it."""

    action: ClassVar[Action] = Action.CAPTURE
    scope: Scope
    source: SourceRef
    payload: SourcePayload
    binding_key: str | None = None
    hook: HookContext | None = None
    mode: CaptureMode = CaptureMode.RESIDUE
    metadata: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        if self.source is None:
            raise validation.missing("source")
        validation.check_source(self.source, self.scope)
        validation.check_payload(self.payload)
        validation.check_binding_key(self.binding_key)
        validation.check_hook(self.hook)
        validation.check_enum(self.mode, CaptureMode, "mode")
        validation.check_data(self.metadata, "metadata")

    def attribution(self) -> Attribution:
        return Attribution(source=self.source, hook=self.hook)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[CaptureResult]:
        binding = await resolve_for_call(call, self.binding_key)
        request = self.request(binding)
        return await call_provider(
            core, call, binding, lambda adapter: adapter.capture(request), response_validation.validate_capture
        )

    def request(self, binding: Binding) -> CaptureRequest:
        again = self.idempotency_key or (None if self.hook is None else self.hook.hook_id)
        return CaptureRequest(
            binding.key, self.scope, self.source, self.payload, self.hook, self.mode, self.metadata, again
        )

    def replay_state(self, outcome: ValidatedResponse[CaptureResult]) -> dict[str, Any]:
        return _to_replay_ids(outcome.value.records)

    def from_replay(self, kept: dict[str, Any]) -> ValidatedResponse[CaptureResult]:
        return ValidatedResponse(CaptureResult(_from_replay_ids(kept)))

    def record_count(self, result: ProviderResponse[CaptureResult]) -> int:
        return len(result.result.records)


@dataclass(frozen=True, slots=True)
class UpsertRecords(AttributedRequest, CompositeRequest[ProviderResponse[WriteResult]]):
    """Store records as they are. One whose metadata has a `key` replaces the record of that key."""

    action: ClassVar[Action] = Action.RECORD_UPSERT
    scope: Scope
    records: tuple[NewRecord, ...]
    source: SourceRef | None = None
    binding_key: str | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_records(self.records)
        validation.check_source(self.source, self.scope)
        validation.check_binding_key(self.binding_key)

    def attribution(self) -> Attribution:
        return Attribution(source=self.source)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[WriteResult]:
        binding = await resolve_for_call(call, self.binding_key)
        request = RecordWriteRequest(binding.key, self.scope, self.records, self.source, self.idempotency_key)
        return await call_provider(
            core, call, binding, lambda adapter: adapter.upsert_records(request), response_validation.validate_write
        )

    def replay_state(self, outcome: ValidatedResponse[WriteResult]) -> dict[str, Any]:
        return _to_replay_ids(outcome.value.records)

    def from_replay(self, kept: dict[str, Any]) -> ValidatedResponse[WriteResult]:
        return ValidatedResponse(WriteResult(_from_replay_ids(kept)))

    def record_count(self, result: ProviderResponse[WriteResult]) -> int:
        return len(result.result.records)


@dataclass(frozen=True, slots=True)
class Query(AttributedRequest, CompositeRequest[ProviderResponse[ContextBundle]]):
    """Query memory. `timeout_seconds` is the longest that the caller can wait."""

    action: ClassVar[Action] = Action.QUERY
    scope: Scope
    query: str
    top_k: int = DEFAULT_TOP_K
    intent: Intent = Intent.ANSWER
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    binding_key: str | None = None
    hook: HookContext | None = None
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        _check_query(self.scope, self.query, self.top_k, self.intent, self.metadata_filter, self.binding_key)
        validation.check_hook(self.hook)
        validation.check_seconds(self.timeout_seconds)

    def attribution(self) -> Attribution | None:
        return None if self.hook is None else Attribution(hook=self.hook)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[ContextBundle]:
        binding = await resolve_for_call(call, self.binding_key)
        return await query_binding(core, call, binding, self.request(binding), self.timeout_seconds)

    def request(self, binding: Binding) -> QueryRequest:
        return QueryRequest(binding.key, self.scope, self.query, self.top_k, self.intent, self.metadata_filter)

    def record_count(self, result: ProviderResponse[ContextBundle]) -> int:
        return len(result.result.snippets)


async def query_binding(
    core: Core, call: Call, binding: Binding, request: QueryRequest, timeout_seconds: float | None = None
) -> ProviderResponse[ContextBundle]:
    """Query through a binding that is already resolved."""
    check = response_validation.bundle_validator(request.top_k)
    return await call_provider(
        core, call, binding, lambda adapter: adapter.query(request), check, timeout_seconds=timeout_seconds
    )


@dataclass(frozen=True, slots=True)
class ExplainQuery(CompositeRequest[ProviderResponse[TraceResult]]):
    """Explain how a query gets its result, if the provider supports it."""

    action: ClassVar[Action] = Action.EXPLAIN
    scope: Scope
    query: str
    top_k: int = DEFAULT_TOP_K
    intent: Intent = Intent.ANSWER
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    binding_key: str | None = None

    def __post_init__(self) -> None:
        _check_query(self.scope, self.query, self.top_k, self.intent, self.metadata_filter, self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[TraceResult]:
        binding = await resolve_for_call(call, self.binding_key)
        request = QueryRequest(binding.key, self.scope, self.query, self.top_k, self.intent, self.metadata_filter)
        return await call_provider(
            core,
            call,
            binding,
            lambda adapter: cast(ExplainingAdapter, adapter).explain(request),
            response_validation.validate_trace,
            needs="explanation",
        )


@dataclass(frozen=True, slots=True)
class ListRecords(CompositeRequest[ProviderResponse[ListPage]]):
    """List the records of exactly this scope, page by page. Cursors are the provider's own."""

    action: ClassVar[Action] = Action.LIST
    scope: Scope
    cursor: str | None = None
    limit: int = DEFAULT_PAGE
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    binding_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_cursor(self.cursor)
        checked_whole(self.limit, "limit", 1, MAX_PAGE)
        validation.check_filter(self.metadata_filter)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[ListPage]:
        binding = await resolve_for_call(call, self.binding_key)
        request = ListRequest(binding.key, self.scope, self.cursor, self.limit, self.metadata_filter)
        check = response_validation.page_validator(self.limit, self.scope)
        return await call_provider(core, call, binding, lambda adapter: adapter.list(request), check)

    def record_count(self, result: ProviderResponse[ListPage]) -> int:
        return len(result.result.items)


@dataclass(frozen=True, slots=True)
class GetRecord(CompositeRequest[ProviderResponse[Snippet]]):
    action: ClassVar[Action] = Action.GET
    scope: Scope
    handle: RecordHandle
    binding_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_handle(self.handle)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[Snippet]:
        binding = await resolve_for_call(call, self.binding_key)
        handle = _resolve_handle(binding, self.handle)
        nowhere = _not_found(self.handle)

        def check(
            answer: object, bounds: response_validation.Bounds
        ) -> response_validation.ValidatedResponse[Snippet | None]:
            checked = response_validation.snippet_validator(handle)(answer, bounds)
            if checked.value is None:
                call.entry.failure = nowhere  # an external call's row records this failure too
            return checked

        answer = await call_provider(core, call, binding, lambda adapter: adapter.get(handle, self.scope), check)
        if answer.result is None:
            raise nowhere
        return ProviderResponse(answer.binding, answer.provider, answer.operation_id, answer.result, answer.dropped)

    def record_count(self, result: ProviderResponse[Snippet]) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ForgetProviderRecords(CompositeRequest[ProviderResponse[ForgetResult]]):
    """Forget records by handle. Those that do not exist or are out of reach are reported as missing."""

    action: ClassVar[Action] = Action.FORGET
    scope: Scope
    handles: tuple[RecordHandle, ...]
    binding_key: str | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_handles(self.handles)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[ForgetResult]:
        binding = await resolve_for_call(call, self.binding_key)
        handles = tuple(_resolve_handle(binding, each, f"handles[{at}]") for at, each in enumerate(self.handles))
        check = response_validation.forget_validator(handles)
        return await call_provider(core, call, binding, lambda adapter: adapter.forget(handles, self.scope), check)

    def replay_state(self, outcome: ValidatedResponse[ForgetResult]) -> dict[str, Any]:
        return {"forgotten": _to_replay_ids(outcome.value.forgotten), "missing": _to_replay_ids(outcome.value.missing)}

    def from_replay(self, kept: dict[str, Any]) -> ValidatedResponse[ForgetResult]:
        return ValidatedResponse(ForgetResult(_from_replay_ids(kept["forgotten"]), _from_replay_ids(kept["missing"])))

    def record_count(self, result: ProviderResponse[ForgetResult]) -> int:
        return len(result.result.forgotten)


@dataclass(frozen=True, slots=True)
class CorrectRecord(CompositeRequest[ProviderResponse[CorrectResult]]):
    action: ClassVar[Action] = Action.CORRECT
    scope: Scope
    handle: RecordHandle
    text: str
    reason: str | None = None
    binding_key: str | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_handle(self.handle)
        checked_text(self.text, "text", max_chars=MAX_CONTENT_CHARS)
        if self.reason is not None:
            checked_text(self.reason, "reason", max_chars=MAX_REASON_CHARS)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[CorrectResult]:
        binding = await resolve_for_call(call, self.binding_key)
        handle = _resolve_handle(binding, self.handle)
        return await call_provider(
            core,
            call,
            binding,
            lambda adapter: cast(CorrectingAdapter, adapter).correct(handle, self.text, self.scope, self.reason),
            response_validation.validate_correction,
            needs="correction",
        )

    def replay_state(self, outcome: ValidatedResponse[CorrectResult]) -> dict[str, Any]:
        superseded = outcome.value.superseded
        return {
            **_to_replay_ids((outcome.value.record,)),
            "superseded": None if superseded is None else superseded.record_id,
        }

    def from_replay(self, kept: dict[str, Any]) -> ValidatedResponse[CorrectResult]:
        gone = kept["superseded"]
        superseded = None if gone is None else RecordHandle(kept["provider"], gone)
        return ValidatedResponse(CorrectResult(_from_replay_ids(kept)[0], superseded))

    def record_count(self, result: ProviderResponse[CorrectResult]) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ReadProviderProfile(CompositeRequest[ProviderResponse[ProfileResult]]):
    """Read the short profile of the subject or agent that the scope names."""

    action: ClassVar[Action] = Action.PROFILE
    scope: Scope
    binding_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[ProfileResult]:
        binding = await resolve_for_call(call, self.binding_key)
        return await call_provider(
            core,
            call,
            binding,
            lambda adapter: cast(ProfilingAdapter, adapter).profile(self.scope),
            response_validation.validate_profile,
            needs="profile",
        )


@dataclass(frozen=True, slots=True)
class ListProviderJobs(CompositeRequest[ProviderResponse[ExtractionJobPage]]):
    """List the provider's own extraction jobs, as it reports them."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    cursor: str | None = None
    binding_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        validation.check_cursor(self.cursor)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[ExtractionJobPage]:
        binding = await resolve_for_call(call, self.binding_key)
        return await call_provider(
            core,
            call,
            binding,
            lambda adapter: cast(ExtractingAdapter, adapter).list_extraction_jobs(self.scope, self.cursor),
            response_validation.validate_jobs,
            needs="extraction_jobs",
        )

    def record_count(self, result: ProviderResponse[ExtractionJobPage]) -> int:
        return len(result.result.items)


@dataclass(frozen=True, slots=True)
class RetryProviderJob(CompositeRequest[ProviderResponse[CaptureResult]]):
    action: ClassVar[Action] = Action.MANAGE_JOBS
    scope: Scope
    job_id: str
    binding_key: str | None = None

    def __post_init__(self) -> None:
        validation.check_one_company(self.scope)
        checked_text(self.job_id, "job_id", max_chars=validation.MAX_NAME_CHARS)
        validation.check_binding_key(self.binding_key)

    async def carry_out(self, core: Core, call: Call) -> ProviderResponse[CaptureResult]:
        binding = await resolve_for_call(call, self.binding_key)
        return await call_provider(
            core,
            call,
            binding,
            lambda adapter: cast(ExtractingAdapter, adapter).retry_extraction_job(self.job_id, self.scope),
            response_validation.validate_capture,
            needs="extraction_retry",
        )

    def record_count(self, result: ProviderResponse[CaptureResult]) -> int:
        return 1


def _check_query(
    scope: Scope, query: str, top_k: int, intent: Intent, metadata_filter: object, binding_key: str | None
) -> None:
    validation.check_one_company(scope)
    checked_text(query, "query", max_chars=MAX_QUERY_CHARS)
    checked_whole(top_k, "top_k", 1, MAX_TOP_K)
    validation.check_enum(intent, Intent, "intent")
    validation.check_filter(metadata_filter)
    validation.check_binding_key(binding_key)


def _resolve_handle(binding: Binding, handle: RecordHandle, field_name: str = "handle") -> RecordHandle:
    """Return the handle with the binding's provider filled in; refuse a handle of another provider."""
    if handle.provider_key == ANY_PROVIDER:
        return replace(handle, provider_key=binding.provider)
    if handle.provider_key != binding.provider:
        raise NotFound(
            f"{field_name}: belongs to the provider {handle.provider_key!r:.80}, but the binding {binding.key!r} is"
            f" served by {binding.provider!r:.80}; name the binding that returned it"
        )
    return handle


def _not_found(handle: RecordHandle) -> NotFound:
    return NotFound(f"there is no record {handle.record_id!r:.80} in this scope")


def _to_replay_ids(records: tuple[RecordHandle, ...]) -> dict[str, Any]:
    """Reduce records to their ids, for replay."""
    provider = records[0].provider_key if records else None
    return {"provider": provider, "records": [each.record_id for each in records]}


def _from_replay_ids(kept: dict[str, Any]) -> tuple[RecordHandle, ...]:
    return tuple(RecordHandle(kept["provider"], each) for each in kept["records"])
