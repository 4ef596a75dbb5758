"""The adapter under test, with the calls that the suite makes and the time it waits for results."""

from __future__ import annotations

import asyncio
import functools
import inspect
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from holdfast.domain.contract import (
    CaptureMode,
    CaptureRequest,
    CaptureResult,
    ContextBundle,
    Intent,
    ListPage,
    ListRequest,
    NewRecord,
    QueryRequest,
    RecordHandle,
    RecordWriteRequest,
    Snippet,
    SourceKind,
    SourcePayload,
    SourceRef,
    WriteResult,
)
from holdfast.domain.scope import Scope
from holdfast.errors import CapabilityUnavailable
from holdfast.ports.provider import Adapter

T = TypeVar("T")

# Opens the adapter under test; called again, it opens another one on the same memory.
AdapterFactory = Callable[[], Awaitable[Adapter]]
BINDING = "under-test"
_LOOK_AGAIN_SECONDS = 0.05
_MOST_PAGES = 1_000


def run_on_adapter(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on a new adapter, and close it. The fixture supplies a factory; the test gets a trial."""

    @functools.wraps(test)
    def run(self: Any, adapters: AdapterFactory, **given: object) -> None:
        async def whole() -> None:
            adapter = await adapters()
            try:
                await test(self, Trial(adapter, adapters, self.visible_within_seconds), **given)
            finally:
                await adapter.close()

        asyncio.run(whole())

    # pytest looks up fixtures by parameter name: it must see `adapters` where the test has `trial`.
    run.__signature__ = _signature(test)  # type: ignore[attr-defined]
    return run


def _signature(test: Callable[..., Any]) -> inspect.Signature:
    known = inspect.signature(test)
    mine, _, *others = known.parameters.values()
    adapters = inspect.Parameter("adapters", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return known.replace(parameters=[mine, adapters, *others])


class Trial:
    """One adapter, in a space that only this test uses."""

    def __init__(self, adapter: Adapter, open_another: AdapterFactory, patience_seconds: float) -> None:
        self.adapter = adapter
        self.open_another = open_another
        self.space = f"company-{uuid.uuid4().hex[:12]}"
        self._patience_seconds = patience_seconds

    def scope(self, **parts: str | None) -> Scope:
        """A scope of this space's agent `ana`, changed by `parts`."""
        fields: dict[str, Any] = {"space": self.space, "agent": "ana", **parts}
        return Scope(**fields)

    def source(self, **names: str) -> SourceRef:
        return SourceRef(SourceKind.MANUAL_NOTE, self.space, **names)

    # --- calls ---

    async def write(
        self,
        *records: str | NewRecord,
        scope: Scope | None = None,
        source: SourceRef | None = None,
        idempotency_id: str | None = None,
    ) -> WriteResult:
        made = tuple(NewRecord(each) if isinstance(each, str) else each for each in records)
        request = RecordWriteRequest(BINDING, scope or self.scope(), made, source, idempotency_id)
        return await self.adapter.upsert_records(request)

    async def note(self, text: str, scope: Scope | None = None, **metadata: Any) -> RecordHandle:
        """Write one record, and wait until it can be read."""
        scope = scope or self.scope()
        done = await self.write(NewRecord(text, metadata=metadata), scope=scope)
        assert len(done.records) == 1, f"one record was written, but {len(done.records)} handles were returned"
        await self.eventually(lambda: self.adapter.get(done.records[0], scope), lambda found: found is not None)
        return done.records[0]

    async def capture(
        self,
        text: str,
        scope: Scope | None = None,
        mode: CaptureMode = CaptureMode.RESIDUE,
        idempotency_id: str | None = None,
        source: SourceRef | None = None,
    ) -> CaptureResult:
        return await self.adapter.capture(
            CaptureRequest(
                binding_key=BINDING,
                scope=scope or self.scope(),
                source=source or self.source(),
                payload=SourcePayload(text=text),
                mode=mode,
                idempotency_id=idempotency_id,
            )
        )

    async def query(
        self,
        query: str,
        scope: Scope | None = None,
        top_k: int = 25,
        intent: Intent = Intent.ANSWER,
        metadata_filter: Mapping[str, Any] | None = None,
    ) -> ContextBundle:
        request = QueryRequest(BINDING, scope or self.scope(), query, top_k, intent, metadata_filter or {})
        return await self.adapter.query(request)

    async def page(
        self,
        scope: Scope | None = None,
        cursor: str | None = None,
        limit: int = 50,
        metadata_filter: Mapping[str, Any] | None = None,
    ) -> ListPage:
        return await self.adapter.list(
            ListRequest(BINDING, scope or self.scope(), cursor, limit, metadata_filter or {})
        )

    async def list_all(self, scope: Scope | None = None, limit: int = 50) -> list[Snippet]:
        """List all records, page by page."""
        found: list[Snippet] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self.page(scope, cursor, limit)
            assert len(page.items) <= limit, f"a page of {limit} held {len(page.items)}"
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise AssertionError(f"{_MOST_PAGES} pages were not the end of the list")

    # --- results ---

    async def find_texts(self, query: str, scope: Scope | None = None) -> list[str]:
        return [snippet.text for snippet in (await self.query(query, scope)).snippets]

    async def texts(self, scope: Scope | None = None) -> list[str]:
        return [snippet.text for snippet in await self.list_all(scope)]

    async def text_of(self, handle: RecordHandle, scope: Scope | None = None) -> str | None:
        found = await self.adapter.get(handle, scope or self.scope())
        return None if found is None else found.text

    async def eventually(self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
        """Poll `look` until its result is as wanted, for at most `visible_within_seconds`; return the result."""
        until = asyncio.get_running_loop().time() + self._patience_seconds
        while True:
            result = await look()
            if wanted(result):
                return result
            late = asyncio.get_running_loop().time() >= until
            assert not late, f"not within {self._patience_seconds:g} s; last result: {result!r:.400}"
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def check_unsupported(self, name: str, *arguments: Any) -> None:
        """Check that a method outside the capabilities is missing or raises `CapabilityUnavailable`."""
        method = getattr(self.adapter, name, None)
        if method is None:
            return
        try:
            await method(*arguments)
        except CapabilityUnavailable:
            return
        raise AssertionError(f"{name} answers, but the capabilities do not declare it")


def holds(word: str) -> Callable[[Iterable[str]], bool]:
    """A predicate: true if any text contains the word."""
    return lambda texts: any(word in text for text in texts)
