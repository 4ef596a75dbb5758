"""A hostile provider that the test controls: it hangs, raises, lies, or returns records that are not its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.domain.contract import (
    Capabilities,
    CaptureResult,
    ContextBundle,
    CorrectResult,
    ExtractionJobPage,
    ForgetResult,
    ListPage,
    ProfileResult,
    RecordHandle,
    Snippet,
    TraceResult,
    WriteResult,
)
from holdfast.domain.secret import Secret
from holdfast.errors import InvalidConfiguration
from holdfast.ports.provider import NestedCall

SECRET = "sk-never-to-be-seen"
EVERYTHING = Capabilities(profile=True, correction=True, extraction_jobs=True, extraction_retry=True, explanation=True)


def handle(record_id: str = "r1", provider: str = "hostile") -> RecordHandle:
    return RecordHandle(provider, record_id)


def snippet(record_id: str = "r1", words: str = "The cat sat.", **more: Any) -> Snippet:
    return Snippet(handle(record_id), words, **more)


class HostileProvider:
    """Behaves well by default. A function in `does` replaces the verb of that name and gets the verb's arguments."""

    key = "hostile"
    description = "Whatever is worst."
    outside = True

    def __init__(self) -> None:
        self.capabilities = EVERYTHING
        self.does: dict[str, Callable[..., Any]] = {}
        self.opened = 0
        self.closed = 0
        self.asked: list[tuple[str, Any]] = []
        self._stuck = threading.Event()

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"timeout_seconds": {"type": "number"}, "colour": {"type": "string"}}}

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in config:
            if name not in ("timeout_seconds", "colour"):
                raise InvalidConfiguration(f"config.{name}", "is not known")
        return {"colour": "grey", **config}

    def open(
        self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None
    ) -> HostileAdapter:
        assert beneath is None
        self.opened += 1
        if "open" in self.does:
            self.does["open"]()
        return HostileAdapter(self)

    def block(self, *_: Any) -> None:
        """Block the thread until the test is over."""
        self._stuck.wait(60)

    def let_go(self) -> None:
        self._stuck.set()


class HostileAdapter:
    key = "hostile"

    def __init__(self, provider: HostileProvider) -> None:
        self._provider = provider

    @property
    def capabilities(self) -> Any:
        told = self._provider.does.get("capabilities")
        return self._provider.capabilities if told is None else told()

    def __getattr__(self, name: str) -> Any:
        plain = ANSWERS.get(name)
        if plain is None:
            raise AttributeError(name)

        def verb(*given: Any) -> Any:
            self._provider.asked.append((name, given))
            if name in self._provider.does:
                return self._provider.does[name](*given)
            return _soon(plain(*given))

        return verb

    async def close(self) -> None:
        self._provider.closed += 1
        if "close" in self._provider.does:
            self._provider.does["close"]()


async def _soon(answer: Any) -> Any:
    return answer


def soon(answer: Any) -> Callable[..., Any]:
    """An async verb that returns this."""

    async def verb(*_: Any) -> Any:
        return answer

    return verb


def raising(error: BaseException) -> Callable[..., Any]:
    async def verb(*_: Any) -> Any:
        raise error

    return verb


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "capture": lambda request: CaptureResult((handle(),)),
    "upsert_records": lambda request: WriteResult(tuple(handle(f"r{at}") for at in range(len(request.records)))),
    "query": lambda request: ContextBundle((snippet(score=0.5),)),
    "list": lambda request: ListPage((snippet(),)),
    "get": lambda found, scope: Snippet(found, "The cat sat."),
    "forget": lambda handles, scope: ForgetResult(tuple(handles)),
    "correct": lambda found, words, scope, reason: CorrectResult(handle("r2"), found),
    "profile": lambda scope: ProfileResult("Likes cats."),
    "list_extraction_jobs": lambda scope, cursor: ExtractionJobPage(),
    "retry_extraction_job": lambda job_id, scope: CaptureResult(),
    "explain": lambda request: TraceResult({"looked_at": 1}),
}


def spread(provider: HostileProvider, names: Sequence[str], does: Callable[..., Any]) -> None:
    for name in names:
        provider.does[name] = does
