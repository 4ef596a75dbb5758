"""Providers of memory: what whoever wants to keep memory for Holdfast implements, and what the core does with it."""

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
    ForgetResult,
    JobPage,
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
    """A provider as one binding uses it: `capture`, `upsert_records`, `query`, `list`, `get` and `forget` always; the
    rest if its capabilities say so. Whatever a scope names must hold for what is returned.
    """

    @property
    def key(self) -> str:
        """The provider's name, which its handles carry."""

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
    """`list_extraction_jobs` with the capability `extraction_jobs`, the other with `extraction_retry`."""

    async def list_extraction_jobs(self, scope: Scope, cursor: str | None) -> JobPage: ...

    async def retry_extraction_job(self, job_id: str, scope: Scope) -> CaptureResult: ...


class ExplainingAdapter(Adapter, Protocol):
    async def explain(self, request: QueryRequest) -> TraceResult: ...


class Beneath(Protocol):
    """The engine beneath the gate, for one call: the same grant, and no row of its own in the audit trail."""

    @property
    def operation_id(self) -> OperationId:
        """Of the call, for what goes back to it."""

    @property
    def idempotency_key(self) -> str | None:
        """Of the call: what it writes is to happen once under it."""

    async def run(self, verb: Verb[T]) -> T:
        """One verb of the runtime. If it writes, the call's operation commits with it; so only one may write."""


class Provider(Protocol):
    """What stands behind an entry point `holdfast.providers`: makes adapters for bindings.

    `outside` says that it reaches beyond our own store: then its calls are bounded in time and run apart, and an intent
    is on record before each.
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
        """JSON Schema of its configuration. What has `"secret": true` takes a reference, never a secret: nothing else
        is stored there, whatever `check` thinks of it.
        """

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration, with defaults filled in; `InvalidConfiguration` naming the field if it cannot be used."""

    def open(self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: Beneath | None) -> Adapter:
        """For a checked configuration. `secrets` holds those that it refers to, by path: `key`, or `server.key`.

        `beneath` is there for a provider that does not reach outside, and is good for one call.
        """


class Secrets(Protocol):
    """The one place where references to secrets become secrets. Fails closed: `SecretUnavailable`."""

    def resolve(self, reference: str, field: str) -> Secret: ...

    def check(self, reference: str, field: str) -> None:
        """`InvalidConfiguration` if it can never be resolved here, whatever is set or lies there. Nothing is read."""


class Providers(Protocol):
    """Those that are installed."""

    def known(self) -> Sequence[Provider]:
        """In the order of their names."""

    def get(self, name: str) -> Provider:
        """`UnknownProvider` if there is none."""

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        """`InvalidConfiguration` naming the field if a reference in it can never be resolved. Nothing is resolved."""

    def adapter(self, binding: Binding) -> Adapter:
        """A new one for a binding whose provider reaches outside, with its secrets resolved. It may take its time."""


class Outsiders(Protocol):
    """Runs adapters that reach outside, each in a thread of its own, so that none of them holds up anything else."""

    async def ask(self, binding: Binding, work: Callable[[Adapter], Awaitable[T]], timeout_seconds: float) -> T:
        """Have the binding's adapter do it. Whatever it does, an answer or a `ProviderError` is there in time.

        It is opened once per revision of the binding, and kept open. What it answers is not looked at here.
        """

    async def close(self) -> None: ...
