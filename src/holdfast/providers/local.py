"""The provider `local`: Holdfast's own engine, called inside the gate. Every space starts with it.

A capture is evidence in a conversation, from which facts are extracted in the background; a record is a memory. Every
write stores its whole scope. On a query only some parts filter (`filter_by`), so that a new run finds what older ones
stored. Everything runs within the caller's operation, which commits together with its writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from holdfast.domain.bindings import LOCAL
from holdfast.domain.checks import Metadata, checked_text
from holdfast.domain.contract import (
    MAX_SUMMARY_CHARS,
    Capabilities,
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ExtractionJob,
    ExtractionJobPage,
    ExtractionStatus,
    ForgetResult,
    Intent,
    ListPage,
    ListRequest,
    ProfileResult,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourceKind,
    SourceRef,
    TraceResult,
    WriteResult,
)
from holdfast.domain.contract_records import (
    CaptureMetadata,
    capture_conversation,
    capture_id,
    captured_text,
    encode_metadata,
    matches_metadata,
    provenance,
    to_snippet,
)
from holdfast.domain.ids import MAX_ID_CHARS
from holdfast.domain.jobs import Cause, Job
from holdfast.domain.memory import GUARDED_PLANES, Status
from holdfast.domain.results import Explanation, Hit, Record
from holdfast.domain.scope import Scope
from holdfast.domain.search import MAX_TOP_K
from holdfast.domain.secret import Secret
from holdfast.domain.transcript import Draft, Message, Role
from holdfast.errors import NotFound, ProviderMisconfigured
from holdfast.ports import SearchOptions
from holdfast.ports.provider import Adapter, NestedCall
from holdfast.providers.configuration import Configuration, ConfiguredProvider
from holdfast.runtime.lookup import Get
from holdfast.runtime.provider_verbs import (
    ForgetByIds,
    KeepResidue,
    PageJobs,
    PageRecords,
    PutRecord,
    PutRecords,
    ReadProfile,
    RetryExtraction,
    StoredRecords,
)
from holdfast.runtime.recall import RecallMemory
from holdfast.runtime.remember import Correct
from holdfast.runtime.search import Explain, Search

Filter = Literal["project", "namespace", "session_key", "issue", "run"]
# Parts with another name in the provider API.
_PARTS: Mapping[Filter, str] = {"session_key": "conversation"}
_ALL_OF_THEM: tuple[Filter, ...] = ("project", "namespace", "session_key", "issue", "run")
# With a metadata filter, fetch this many candidates per requested result.
_LOOKED_AT_PER_PLACE = 20
_LINE_CHARS = 160
# Effectively unlimited: the preamble applies its own limit later.
_ROOM_CHARS = 1_000_000
_OUR_OWN_WORDS = frozenset({SourceKind.RUN, SourceKind.ACTIVITY})
_FROM_OUTSIDE = frozenset({SourceKind.EXTERNAL_DOCUMENT})


class _CheckedSearch(Search):
    """A search whose query was checked as a request of the contract, whose limits are narrower."""

    __slots__ = ()

    def __post_init__(self) -> None:
        pass


class _CheckedRecall(RecallMemory):
    """A recall whose query was checked likewise."""

    __slots__ = ()

    def __post_init__(self) -> None:
        pass


class LocalConfiguration(Configuration):
    filter_by: tuple[Filter, ...] = Field(
        default=("namespace",),
        strict=False,
        description="The parts of a scope that filter query results. The space, subject and agent always do.",
    )


class LocalProvider(ConfiguredProvider[LocalConfiguration]):
    key: ClassVar[str] = LOCAL
    description: ClassVar[str] = "Holdfast's own engine, in the control plane's own store."
    outside: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        profile=True,
        correction=True,
        provider_managed_extraction=True,
        async_extraction=True,
        extraction_jobs=True,
        extraction_retry=True,
        explanation=True,
    )
    configuration = LocalConfiguration

    def opened(self, config: LocalConfiguration, secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Adapter:
        if beneath is None:
            raise ProviderMisconfigured(f"{LOCAL} runs inside a call, and was opened without one")
        return LocalAdapter(config, beneath)


class LocalAdapter:
    """Implements `ports.Adapter` with every optional capability, for one call."""

    key = LOCAL
    capabilities = LocalProvider.capabilities

    def __init__(self, config: LocalConfiguration, beneath: NestedCall) -> None:
        self._beneath = beneath
        unfiltered = set(_ALL_OF_THEM) - set(config.filter_by)
        self._dropped: dict[str, Any] = {_PARTS.get(name, name): None for name in unfiltered}

    # --- writing ---

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        text = captured_text(request.payload)
        noted = CaptureMetadata(request.source, None, _capture_metadata(request))
        cause = Cause(self._beneath.operation_id, request.binding_key, request.hook, _job_source(request))
        if request.mode is CaptureMode.RECORD:
            once = None if request.idempotency_id is None else f"capture/{request.idempotency_id}"
            record = PutRecord(text, encode_metadata(noted), once, once=True)
            return _to_capture_result(await self._beneath.run(self._build_put(request, (record,), cause)), None)
        verb = KeepResidue(
            scope=replace(request.scope, conversation=capture_conversation(request.scope)),
            draft=_build_draft(request, text, encode_metadata(noted)),
            source=provenance(request.source),
            cause=cause,
        )
        return _to_capture_result(await self._beneath.run(verb), cause)

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        records = []
        for index, record in enumerate(request.records):
            metadata = encode_metadata(CaptureMetadata(request.source, record.summary, record.metadata))
            key = record.metadata.get("key")
            if isinstance(key, str):
                records.append(PutRecord(record.text, metadata, f"record/{key}"))
            else:
                once = None if request.idempotency_id is None else f"upsert/{index}/{request.idempotency_id}"
                records.append(PutRecord(record.text, metadata, once, once=True))
        cause = Cause(self._beneath.operation_id, request.binding_key, None, request.source)
        done = await self._beneath.run(self._build_put(request, tuple(records), cause))
        return WriteResult(_to_handles(done.record_ids))

    @staticmethod
    def _build_put(
        request: CaptureRequest | RecordWriteRequest, records: tuple[PutRecord, ...], cause: Cause
    ) -> PutRecords:
        source = request.source
        # A source inside the space is the writer's own statement; only external documents get a provenance.
        origin = provenance(source) if source is not None and source.kind in _FROM_OUTSIDE else None
        return PutRecords(request.scope, records, origin, cause=cause)

    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult:
        if not _is_local_handle(handle):
            raise NotFound(f"there is no record {handle.record_id!r:.80} in this scope")
        once = self._beneath.idempotency_key
        verb = Correct(self._read_scope(scope), handle.record_id, text, reason, idempotency_key=once)
        done = await self._beneath.run(verb)
        superseded = None if done.memory.id == handle.record_id else handle
        return CorrectResult(RecordHandle(LOCAL, done.memory.id), superseded)

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        named = tuple(dict.fromkeys(handle.record_id for handle in handles if _is_local_handle(handle)))
        gone: frozenset[str] = frozenset()
        if named:
            verb = ForgetByIds(self._read_scope(scope), named, self._beneath.idempotency_key)
            gone = frozenset((await self._beneath.run(verb)).forgotten)
        each = tuple(dict.fromkeys(handles))
        return ForgetResult(
            tuple(handle for handle in each if _is_local_handle(handle) and handle.record_id in gone),
            tuple(handle for handle in each if not _is_local_handle(handle) or handle.record_id not in gone),
        )

    # --- reading ---

    async def query(self, request: QueryRequest) -> ContextBundle:
        wanted = SearchOptions(top_k=self._candidate_count(request), min_score=request.min_score)
        scope = self._read_scope(request.scope)
        hits: Iterable[Hit]
        if request.intent is Intent.AGENT_PREAMBLE:
            hits = (await self._beneath.run(_CheckedRecall(scope, request.query, wanted, _ROOM_CHARS))).hits
        else:
            hits = await self._beneath.run(_CheckedSearch(scope, request.query, wanted))
        found = [to_snippet(hit, hit.score) for hit in hits]
        chosen = [each for each in found if matches_metadata(each.metadata, request.metadata_filter)]
        return ContextBundle(tuple(chosen[: request.top_k]))

    @staticmethod
    def _candidate_count(request: QueryRequest) -> int:
        if not request.metadata_filter:
            return request.top_k
        return min(request.top_k * _LOOKED_AT_PER_PLACE, MAX_TOP_K)

    async def list(self, request: ListRequest) -> ListPage:
        verb = PageRecords(request.scope, request.metadata_filter, request.limit, request.cursor)
        page = await self._beneath.run(verb)
        return ListPage(tuple(to_snippet(record) for record in page.items), page.next_cursor)

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        if not _is_local_handle(handle):
            return None
        try:
            found = await self._beneath.run(Get(self._read_scope(scope), handle.record_id))
        except NotFound:
            return None
        return to_snippet(found) if _is_visible(found) else None

    async def profile(self, scope: Scope) -> ProfileResult:
        lines: list[str] = []
        for memory in await self._beneath.run(ReadProfile(self._read_scope(scope))):
            line = f"- {_shorten(memory.text)}"
            if sum(map(len, lines)) + len(lines) + len(line) > MAX_SUMMARY_CHARS:
                break
            lines.append(line)
        return ProfileResult("\n".join(lines) or None)

    async def explain(self, request: QueryRequest) -> TraceResult:
        wanted = SearchOptions(top_k=request.top_k)
        found = await self._beneath.run(Explain(self._read_scope(request.scope), request.query, wanted))
        return TraceResult(_to_trace(found))

    def _read_scope(self, scope: Scope) -> Scope:
        return replace(scope, **self._dropped)

    # --- extraction ---

    async def list_extraction_jobs(self, scope: Scope, cursor: str | None) -> ExtractionJobPage:
        page = await self._beneath.run(PageJobs(self._read_scope(scope), cursor))
        return ExtractionJobPage(tuple(map(_to_extraction_job, page.items)), page.next_cursor)

    async def retry_extraction_job(self, job_id: str, scope: Scope) -> CaptureResult:
        return CaptureResult(
            jobs=(_to_extraction_job(await self._beneath.run(RetryExtraction(self._read_scope(scope), job_id))),)
        )

    async def close(self) -> None:
        """Do nothing: the service owns the engine."""


def _is_local_handle(handle: RecordHandle) -> bool:
    """True if the handle is well formed and of this provider."""
    record_id = handle.record_id
    if handle.provider_key != LOCAL or not isinstance(record_id, str) or not 0 < len(record_id) <= MAX_ID_CHARS:
        return False
    return record_id.isprintable() and bool(record_id.strip())


def _to_handles(record_ids: Iterable[str]) -> tuple[RecordHandle, ...]:
    return tuple(RecordHandle(LOCAL, record_id) for record_id in record_ids)


def _capture_metadata(request: CaptureRequest) -> dict[str, Any]:
    metadata = {**request.payload.metadata, **request.metadata}
    if request.payload.mime_type is not None:
        metadata.setdefault("mime_type", request.payload.mime_type)
    return metadata


def _build_draft(request: CaptureRequest, text: str, metadata: Metadata) -> Draft:
    """Build the message: a run's or activity's text is its agent's; any other is its author's, if it names one."""
    external_id = capture_id(request.source, request.idempotency_id, text)
    if request.source.kind in _OUR_OWN_WORDS:
        agent = (None if request.hook is None else request.hook.actor_agent_id) or request.scope.agent
        return Draft(text, agent, Role.ASSISTANT, external_id=external_id, metadata=metadata)
    author = metadata.get("author") or None
    if not isinstance(author, str):
        author = None
    else:
        checked_text(author, "metadata.author", max_chars=256)
    return Draft(text, author, Role.USER, external_id=external_id, metadata=metadata)


def _job_source(request: CaptureRequest) -> SourceRef:
    """Return the source for the job's cause, with run and issue, which the conversation's scope does not keep."""
    source, scope = request.source, request.scope
    return replace(source, issue_id=source.issue_id or scope.issue, run_id=source.run_id or scope.run)


def _to_capture_result(done: StoredRecords, cause: Cause | None) -> CaptureResult:
    hook, source = (None, None) if cause is None else (cause.hook, cause.source)
    jobs = (
        ExtractionJob(
            job_id, ExtractionStatus.QUEUED, None if hook is None else hook.kind, source, submitted_at=done.at
        )
        for job_id in done.jobs
    )
    return CaptureResult(_to_handles(done.record_ids), tuple(jobs))


def _is_visible(record: Record) -> bool:
    """True if `get` may return it: not superseded, not quarantined, not on a guarded plane."""
    if isinstance(record, Message):
        return record.superseded_at is None and record.status is Status.ACCEPTED and record.plane is None
    return record.status is Status.ACCEPTED and record.plane not in GUARDED_PLANES


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LINE_CHARS else f"{plain[: _LINE_CHARS - 1]}…"


def _to_trace(found: Explanation) -> dict[str, Any]:
    """Return an explanation as numbers and ids; texts are left to `query`."""
    return {
        "query": dict(found.query),
        "embedder": found.embedder,
        "candidates": found.candidates,
        "basis": None if found.basis is None else asdict(found.basis),
        "ways": [
            {
                name: str(value) if name == "built_at" else value
                for name, value in asdict(way).items()
                if value is not None
            }
            for way in found.ways
        ],
        "hits": [
            {
                "record_id": hit.id,
                "score": hit.score,
                "parts": {part.name: {"raw": part.raw, "contribution": part.contribution} for part in hit.components},
            }
            for hit in found.hits
        ],
    }


def _to_extraction_job(job: Job) -> ExtractionJob:
    cause = job.cause or Cause()
    return ExtractionJob(
        provider_job_id=job.id,
        status=ExtractionStatus(job.status.value),
        hook_kind=None if cause.hook is None else cause.hook.kind,
        source=cause.source,
        error=job.error,
        submitted_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )
