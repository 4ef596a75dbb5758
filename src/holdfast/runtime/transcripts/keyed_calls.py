"""Calls of a runtime's verbs with the id of their operation row; a write with an idempotency key is applied once.

The verbs themselves take no key. `KeyedWrite` stores the report of the first call, without its texts, in the commit of
the write; a repeated call gets this report. So a host that lost an answer asks again, however long ago that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from holdfast.domain.access import Grant
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, Transaction
from holdfast.runtime.requests import Core, Read, Write

P = TypeVar("P")
R = TypeVar("R")


class ReportCodec(Protocol):
    """Writes reports as JSON, and reads them."""

    def encode(self, value: object) -> bytes: ...

    def decode(self, body: bytes) -> Any: ...


@dataclass(frozen=True, slots=True)
class TracedResult(Generic[R]):
    """The report of a call. If it is `repeated`, `operation_id` is of the first call with its key."""

    report: R
    repeated: bool = False
    operation_id: OperationId | None = None


@dataclass(frozen=True, slots=True)
class TracedRead(Read[P, TracedResult[R]]):
    """A read whose answer names its operation."""

    verb: Read[P, R]

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.verb.scope

    async def prepare(self, core: Core, grant: Grant) -> P:
        return await self.verb.prepare(core, grant)

    def apply(self, reader: Reader, prepared: P) -> TracedResult[R]:
        return TracedResult(self.verb.apply(reader, prepared))

    async def finish(self, core: Core, result: TracedResult[R], operation_id: OperationId) -> TracedResult[R]:
        return TracedResult(result.report, operation_id=operation_id)

    def record_count(self, result: TracedResult[R]) -> int:
        return self.verb.record_count(result.report)

    def metered_usage(self, prepared: P) -> tuple[Any, ...]:
        return self.verb.metered_usage(prepared)


@dataclass(frozen=True, slots=True)
class KeyedWrite(Write[P, TracedResult[R]]):
    """A write whose answer names its operation. With a key it is applied once; `request_digest` is of its request."""

    verb: Write[P, R]
    codec: ReportCodec
    request_digest: str
    idempotency_key: str | None = None

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.verb.scope

    async def prepare(self, core: Core, grant: Grant) -> P:
        return await self.verb.prepare(core, grant)

    def apply(self, transaction: Transaction, prepared: P) -> TracedResult[R]:
        return TracedResult(self.verb.apply(transaction, prepared))

    async def finish(self, core: Core, result: TracedResult[R], operation_id: OperationId) -> TracedResult[R]:
        report = await self.verb.finish(core, result.report, operation_id)
        return TracedResult(report, result.repeated, operation_id)

    def record_count(self, result: TracedResult[R]) -> int:
        return self.verb.record_count(result.report)

    def digest(self) -> str:
        return self.request_digest

    def replay_state(self, result: TracedResult[R]) -> dict[str, Any]:
        return {"report": self.codec.encode(self.verb.without_text(result.report)).decode()}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> TracedResult[R]:
        stored: R = self.codec.decode(kept["report"].encode())
        return TracedResult(self.verb.with_text(transaction, stored), repeated=True)
