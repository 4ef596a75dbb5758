"""Ports of memory providers: the protocols that a provider implements, and those that run it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.domain.bindings import Binding
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
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.ports.service import Verb

T = TypeVar("T")


class Adapter(Protocol):
    """A provider opened for one binding. Required: `capture`, `upsert_records`, `query`, `list`, `get` and `forget`;
    its capabilities name the others. Returned records must match every part that is set in the scope.
    """

    @property
    def key(self) -> str:
        """Name of the provider, which is in its handles."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def capture(self, request: CaptureRequest) -> CaptureResult: ...

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult: ...

    async def query(self, request: QueryRequest) -> ContextBundle: ...

    async def list(self, request: ListRequest) -> ListPage: ...

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None: ...

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult: ...

    async def close(self) -> None: ...


class CorrectingAdapter(Adapter, Protocol):
    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult: ...


class ProfilingAdapter(Adapter, Protocol):
    async def profile(self, scope: Scope) -> ProfileResult: ...


class ExtractingAdapter(Adapter, Protocol):
    """Capability `extraction_jobs` needs `list_extraction_jobs`, `extraction_retry` needs `retry_extraction_job`."""

    async def list_extraction_jobs(self, scope: Scope, cursor: str | None) -> ExtractionJobPage: ...

    async def retry_extraction_job(self, job_id: str, scope: Scope) -> CaptureResult: ...


class ExplainingAdapter(Adapter, Protocol):
    async def explain(self, request: QueryRequest) -> TraceResult: ...


class FullAdapter(CorrectingAdapter, ProfilingAdapter, ExtractingAdapter, ExplainingAdapter, Protocol):
    """An adapter with every capability."""


class NestedCall(Protocol):
    """Nested calls of the local engine within one call: the same grant, and no audit row of their own."""

    @property
    def operation_id(self) -> OperationId:
        """Id of the call's operation, to link to it."""

    @property
    def idempotency_key(self) -> str | None:
        """Idempotency key of the call, for what it writes."""

    async def run(self, verb: Verb[T]) -> T:
        """Run one verb of the runtime. If it writes, the call's operation commits with it; so only one may write."""


class Provider(Protocol):
    """The object behind an entry point of `holdfast.providers`: opens adapters for bindings.

    `outside` if it uses anything beyond our own store: then its calls have a timeout, run in threads of their own, and
    are recorded as `unknown` before they start.
    """

    @property
    def key(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def outside(self) -> bool: ...

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of its configuration. A value marked `"secret": true` must be a reference: nothing
        else is stored there, whatever `check` accepts.
        """

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration with defaults filled in; raises `InvalidConfiguration` that names a wrong field."""

    def open(self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Adapter:
        """Open an adapter for a checked configuration. `secrets` holds its secrets by path: `key`, or `server.key`.

        `beneath` is set for a provider that is not `outside`, and valid for one call.
        """


class Secrets(Protocol):
    """Resolves references to secrets; the only place that does. Fails closed with `SecretUnavailable`."""

    def resolve(self, reference: str, field: str) -> Secret: ...

    def check(self, reference: str, field: str) -> None:
        """Raise `InvalidConfiguration` if the reference can never be resolved here. Reads nothing."""


class Providers(Protocol):
    """The installed providers."""

    def list_providers(self) -> Sequence[Provider]:
        """Return all providers, ordered by name."""

    def get(self, name: str) -> Provider:
        """Return the provider; raises `UnknownProvider` if there is none."""

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        """Raise `InvalidConfiguration`, naming the field, if a reference can never be resolved. Resolves nothing."""

    def adapter(self, binding: Binding) -> Adapter:
        """Open an adapter for a binding whose provider is `outside`, with its secrets resolved. May be slow."""


class ExternalRunner(Protocol):
    """Bulkhead: runs adapters that are `outside`, each in its own thread, so that none blocks anything else."""

    async def run(self, binding: Binding, work: Callable[[Adapter], Awaitable[T]], timeout_seconds: float) -> T:
        """Run `work` with the binding's adapter; returns or raises `ProviderError` within the timeout.

        The adapter is opened once per revision of the binding, and kept open. The response is not validated here.
        """

    async def close(self) -> None: ...
