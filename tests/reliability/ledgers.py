"""An external provider that appends its requests to a file, so they are known even if a process dies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.domain.contract import (
    Capabilities,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
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

KEY = "ledger"


class LedgerProvider:
    """Calls `meanwhile` twice during a capture: before and after the request is written to the file."""

    key = KEY
    description = "A file."
    outside = True
    capabilities = Capabilities()

    def __init__(self, meanwhile: Callable[[str], None] = lambda when: None) -> None:
        self._meanwhile = meanwhile

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"path": {"type": "string"}}}

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(config)

    def open(
        self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None
    ) -> LedgerAdapter:
        return LedgerAdapter(Path(config["path"]), self._meanwhile)


class LedgerAdapter:
    key = KEY
    capabilities = Capabilities()

    def __init__(self, path: Path, meanwhile: Callable[[str], None]) -> None:
        self._path = path
        self._meanwhile = meanwhile

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        self._meanwhile("before")
        entry = {
            "id": request.idempotency_id,
            "text": request.payload.text,
            "space": request.scope.space,
            "binding": request.binding_key,
        }
        # One small append: lines of several processes do not mix.
        with open(self._path, "ab", buffering=0) as file:  # noqa: ASYNC230 - a provider has its own thread
            file.write(json.dumps(entry).encode() + b"\n")
        self._meanwhile("after")
        return CaptureResult((RecordHandle(KEY, str(request.idempotency_id)),))

    async def upsert_records(self, request: RecordWriteRequest) -> WriteResult:
        return WriteResult()

    async def query(self, request: QueryRequest) -> ContextBundle:
        return ContextBundle()

    async def list(self, request: ListRequest) -> ListPage:
        return ListPage()

    async def get(self, handle: RecordHandle, scope: Scope) -> Snippet | None:
        return None

    async def forget(self, handles: Sequence[RecordHandle], scope: Scope) -> ForgetResult:
        return ForgetResult()

    async def close(self) -> None:
        return None


def ledger(path: Path) -> list[dict[str, Any]]:
    """The recorded requests, in order."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def installed(folder: Path) -> str:
    """Create a folder that registers the provider's entry point for processes that have it on their path."""
    about = folder / "holdfast_ledger-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast-ledger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[holdfast.providers]\nledger = ledgers:LedgerProvider\n")
    return os.pathsep.join([str(folder), str(Path(__file__).parent)])
