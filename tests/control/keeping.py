"""An external provider that keeps records in memory and finds them by their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.contract import (
    Capabilities,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ForgetResult,
    ListPage,
    ListRequest,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    WriteResult,
)
from holdfast.domain.scope import Scope
from holdfast.domain.secret import Secret
from holdfast.ports.provider import NestedCall


class KeepingProvider:
    key = "keeping"
    description = "A list."
    outside = True
    capabilities = Capabilities(correction=True)

    def __init__(self, *, telling: bool = True) -> None:
        self.telling = telling  # if True, its snippets name their scope
        self.kept: dict[str, Snippet] = {}
        self.asked: list[str] = []

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {}}

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return config

    def open(
        self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None
    ) -> KeepingProvider:
        return self

    def _keep(self, text: str, scope: Scope, metadata: Mapping[str, Any]) -> RecordHandle:
        handle = RecordHandle(self.key, f"k{len(self.kept) + 1}")
        self.kept[handle.record_id] = Snippet(
            handle, text, scope=scope if self.telling else None, metadata=dict(metadata)
        )
        return handle

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        self.asked.append("capture")
        assert request.payload.text is not None
        return CaptureResult((self._keep(request.payload.text, request.scope, request.payload.metadata),))

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        self.asked.append("upsert_records")
        return WriteResult(tuple(self._keep(each.text, request.scope, each.metadata) for each in request.records))

    async def query(self, request: QueryRequest) -> ContextBundle:
        self.asked.append("query")
        words = set(request.query.lower().split())
        found = [each for each in self.kept.values() if words & set(each.text.lower().strip(".").split())]
        return ContextBundle(tuple(found[: request.top_k]))

    async def list(self, request: ListRequest) -> ListPage:
        self.asked.append("list")
        start = int(request.cursor or 0)
        items = list(self.kept.values())[start : start + request.limit]
        more = start + request.limit < len(self.kept)
        return ListPage(tuple(items), str(start + request.limit) if more else None)

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        self.asked.append("get")
        return self.kept.get(handle.record_id)

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        self.asked.append("forget")
        gone = tuple(each for each in handles if self.kept.pop(each.record_id, None) is not None)
        return ForgetResult(gone, tuple(each for each in handles if each not in gone))

    async def correct(self, handle: RecordHandle, text: str, scope: Scope, reason: str | None) -> CorrectResult:
        self.asked.append("correct")
        del self.kept[handle.record_id]
        return CorrectResult(self._keep(text, scope, {}), handle)

    async def close(self) -> None:
        """Nothing to close."""
