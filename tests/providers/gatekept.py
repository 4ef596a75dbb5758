"""A provider as the control plane's callers use it: each operation is a verb, performed as an operator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.app import Engine
from holdfast.control.bindings import CreateBinding
from holdfast.control.memory import (
    Capture,
    CorrectRecord,
    ExplainQuery,
    ForgetProviderRecords,
    GetRecord,
    ListProviderJobs,
    ListRecords,
    Query,
    ReadProviderProfile,
    RetryProviderJob,
    UpsertRecords,
)
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.contract import (
    Capabilities,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ExtractionJobPage,
    ForgetResult,
    ListPage,
    ListRequest,
    ProfileResult,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    TraceResult,
    WriteResult,
)
from holdfast.domain.scope import Scope
from holdfast.errors import BindingExists, InvalidInput, NotFound


class Gatekept:
    """Implements `ports.provider.Adapter`. Each company gets a binding to the provider with its first call."""

    def __init__(self, engine: Engine, key: str, capabilities: Capabilities, config: Mapping[str, Any]) -> None:
        self.engine = engine
        self.key = key
        self.capabilities = capabilities
        self._config = config
        self._bound: set[str] = set()
        self._binding_one = asyncio.Lock()

    async def _do(self, verb: Any) -> Any:
        space = verb.scope.space
        async with self._binding_one:
            if self.key != "local" and space not in self._bound:
                with contextlib.suppress(BindingExists):
                    await self._perform(CreateBinding(Scope(space=space), "bound", self.key, self._config))
                self._bound.add(space)
        return (await self._perform(verb)).result

    async def _perform(self, verb: Any) -> Any:
        return await self.engine.perform(LOCAL_OPERATOR, verb.action, lambda: verb, space=verb.scope.space)

    @property
    def _binding(self) -> str | None:
        return None if self.key == "local" else "bound"

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        again = request.idempotency_id
        found: CaptureResult = await self._do(
            Capture(
                request.scope,
                request.source,
                request.payload,
                self._binding,
                request.hook,
                request.mode,
                request.metadata,
                again,
            )
        )
        return found

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        found: WriteResult = await self._do(
            UpsertRecords(request.scope, request.records, request.source, self._binding, request.idempotency_id)
        )
        return found

    async def query(self, request: QueryRequest) -> ContextBundle:
        asked = (request.scope, request.query, request.top_k, request.intent, request.metadata_filter, self._binding)
        found: ContextBundle = await self._do(Query(*asked))
        return found

    async def list(self, request: ListRequest) -> ListPage:
        asked = (request.scope, request.cursor, request.limit, request.metadata_filter, self._binding)
        found: ListPage = await self._do(ListRecords(*asked))
        return found

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        try:
            found: Snippet = await self._do(GetRecord(scope, handle, self._binding))
        except (NotFound, InvalidInput):
            return None
        return found

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        # Another provider's handle is refused before any call.
        own = tuple(handle for handle in handles if handle.provider_key == self.key)
        foreign = tuple(handle for handle in handles if handle.provider_key != self.key)
        if not own:
            return ForgetResult((), foreign)
        try:
            found: ForgetResult = await self._do(ForgetProviderRecords(scope, own, self._binding))
        except InvalidInput:
            return ForgetResult((), tuple(handles))
        return ForgetResult(found.forgotten, (*found.missing, *foreign))

    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult:
        found: CorrectResult = await self._do(CorrectRecord(scope, handle, text, reason, self._binding))
        return found

    async def profile(self, scope: Scope) -> ProfileResult:
        found: ProfileResult = await self._do(ReadProviderProfile(scope, self._binding))
        return found

    async def explain(self, request: QueryRequest) -> TraceResult:
        found: TraceResult = await self._do(
            ExplainQuery(request.scope, request.query, request.top_k, binding_key=self._binding)
        )
        return found

    async def list_extraction_jobs(self, scope: Scope, cursor: str | None) -> ExtractionJobPage:
        found: ExtractionJobPage = await self._do(ListProviderJobs(scope, cursor, self._binding))
        return found

    async def retry_extraction_job(self, job_id: str, scope: Scope) -> CaptureResult:
        found: CaptureResult = await self._do(RetryProviderJob(scope, job_id, self._binding))
        return found

    async def close(self) -> None:
        await self.engine.close()
