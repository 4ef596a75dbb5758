"""Hook subscribers are found by entry points and do not block each other."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast.control import bulkhead, subscribers
from holdfast.control.subscribers import GROUP, HookRegistry
from holdfast.domain.contract import HookKind
from holdfast.domain.hooks import HookEvent
from holdfast.errors import InvalidInput, ProviderMisconfigured, ProviderTimeout, ProviderUnavailable
from holdfast.ports.hooks import HookHandler


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Three installed packages: one works, one fails, one subscribes under an invalid name."""
    module = ModuleType("installed_hooks")

    def good(registry: HookRegistry) -> None:
        registry.subscribe("chat-room", [HookKind.MANUAL_CAPTURE], print)

    def broken(registry: HookRegistry) -> None:
        raise RuntimeError("canary")

    def greedy(registry: HookRegistry) -> None:
        registry.subscribe("No Name", [HookKind.MANUAL_CAPTURE], print)

    for each in (good, broken, greedy):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, "installed_hooks", module)
    names = ("broken", "good", "greedy", "missing")
    return [EntryPoint(name, f"installed_hooks:{name}", GROUP) for name in names]


def test_those_that_are_installed_are_found_and_those_that_break_are_told(
    installed: list[EntryPoint], caplog: pytest.LogCaptureFixture
) -> None:
    looked: list[int] = []

    def found() -> list[EntryPoint]:
        looked.append(1)
        return installed

    registry = HookRegistry(found)
    assert not looked, "nothing is loaded before hooks are needed"
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert registry.names_for(HookKind.MANUAL_CAPTURE) == ["chat-room"]
        assert registry.names_for(HookKind.POST_RUN_CAPTURE) == []
    assert registry.handler("chat-room") is print
    assert registry.handler("somebody") is None
    assert len(looked) == 1
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert "canary" not in "".join(told)
    assert any("broken" in line and "RuntimeError" in line for line in told)


def test_a_name_is_taken_once_until_it_is_given_back() -> None:
    registry = HookRegistry(list)
    registry.subscribe("a", [HookKind.MANUAL_CAPTURE], print)
    with pytest.raises(InvalidInput, match="already"):
        registry.subscribe("a", [HookKind.POST_RUN_CAPTURE], print)
    with pytest.raises(InvalidInput, match="handler"):
        registry.subscribe("b", [HookKind.POST_RUN_CAPTURE], "print")  # type: ignore[arg-type]
    assert registry.unsubscribe("a")
    assert not registry.unsubscribe("a")
    registry.subscribe("a", [HookKind.POST_RUN_CAPTURE], print)


EVENT: Any = None  # the subscribers here ignore it


async def told(handler: HookHandler, *, times: int = 1) -> list[BaseException | None]:
    """Deliver an event to a subscriber several times, and return the outcomes."""
    registry = HookRegistry(list)
    registry.subscribe("somebody", [HookKind.MANUAL_CAPTURE], handler)
    try:
        outcomes: list[BaseException | None] = []
        for _ in range(times):
            outcomes += await asyncio.gather(registry.deliver("somebody", EVENT), return_exceptions=True)
        return outcomes
    finally:
        await registry.close()


async def _forever(_: HookEvent) -> None:
    await asyncio.Event().wait()


async def _breaks(_: HookEvent) -> None:
    raise ValueError("canary")


def _breaks_plainly(_: HookEvent) -> None:
    raise ValueError("canary")


def _stops(_: HookEvent) -> None:
    raise StopIteration("canary")


async def _exits(_: HookEvent) -> None:
    raise SystemExit("canary")


def _exits_plainly(_: HookEvent) -> None:
    raise SystemExit("canary")


def _gives_what_breaks(_: HookEvent) -> Awaitable[None]:
    return _breaks(EVENT)


def _says_one_of_ours(_: HookEvent) -> None:
    raise InvalidInput("canary", "canary")


@pytest.mark.parametrize(
    ("handler", "named"),
    [
        (_breaks, "ValueError"),
        (_breaks_plainly, "ValueError"),
        (_gives_what_breaks, "ValueError"),
        (_stops, "StopIteration"),
        (_exits, "SystemExit"),
        (_exits_plainly, "SystemExit"),
        (_says_one_of_ours, "InvalidInput"),
    ],
)
def test_whatever_a_subscriber_raises_is_a_failure_without_its_words(handler: HookHandler, named: str) -> None:
    (error,) = asyncio.run(told(handler))
    assert type(error) is ProviderUnavailable
    assert str(error) == f"the subscriber 'somebody' failed: {named}"
    assert "canary" not in f"{error!r} {error.__context__!r} {error.__cause__!r}"


def test_a_subscriber_that_takes_for_ever_is_waited_for_no_longer_than_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscribers, "TOLD_WITHIN_SECONDS", 0.05)
    (error,) = asyncio.run(told(_forever))
    assert type(error) is ProviderTimeout
    assert "the subscriber 'somebody'" in str(error)


def test_nobody_of_that_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderMisconfigured, match="no subscriber 'somebody' is installed"):
        asyncio.run(HookRegistry(list).deliver("somebody", EVENT))


def test_one_that_never_comes_back_is_told_nothing_more_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "TOLD_WITHIN_SECONDS", 0.05)
    called: list[int] = []
    let_go, back = threading.Event(), threading.Semaphore(0)

    def blocks(_: HookEvent) -> None:
        called.append(1)
        let_go.wait()
        back.release()

    async def lives() -> None:
        registry = HookRegistry(list)
        registry.subscribe("stuck", [HookKind.MANUAL_CAPTURE], blocks)
        for _ in range(bulkhead.MAX_LOST):
            with pytest.raises(ProviderTimeout):
                await registry.deliver("stuck", EVENT)
        with pytest.raises(ProviderUnavailable, match="has 4 calls that hang"):
            await registry.deliver("stuck", EVENT)
        assert len(called) == bulkhead.MAX_LOST
        let_go.set()
        for _ in range(bulkhead.MAX_LOST):
            assert await asyncio.to_thread(back.acquire, timeout=30)
        monkeypatch.setattr(subscribers, "TOLD_WITHIN_SECONDS", 30)
        for _ in range(3_000):
            try:
                await registry.deliver("stuck", EVENT)
                break
            except ProviderUnavailable:  # its threads have responded and are about to end
                await asyncio.sleep(0.01)
        assert len(called) == bulkhead.MAX_LOST + 1
        await registry.close()

    asyncio.run(lives())


def test_what_blocks_is_told_of_several_events_at_once() -> None:
    together = threading.Barrier(4)

    async def lives() -> None:
        registry = HookRegistry(list)
        registry.subscribe("slow", [HookKind.MANUAL_CAPTURE], lambda _: (together.wait(30), None)[1])
        await asyncio.gather(*(registry.deliver("slow", EVENT) for _ in range(4)))
        await registry.close()

    asyncio.run(lives())


def test_what_is_asynchronous_stays_on_one_loop_which_is_not_the_services() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def hear(_: HookEvent) -> None:
        loops.append(asyncio.get_running_loop())

    async def lives() -> asyncio.AbstractEventLoop:
        assert await told(hear, times=3) == [None, None, None]
        return asyncio.get_running_loop()

    assert asyncio.run(lives()) not in loops
    assert len(loops) == 3
    assert len(set(loops)) == 1


_A_PROCESS = """
import asyncio, sys, time
from holdfast.app import open_engine
from holdfast.control import subscribers
from holdfast.control.hooks import EmitHook
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.contract import HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.scope import Scope
from holdfast.settings import Settings

subscribers.TOLD_WITHIN_SECONDS = 0.2

def plain(event):
    time.sleep(3_600)

async def asynchronous(event):
    time.sleep(3_600)

async def main():
    engine = await open_engine("memory.db", Settings(), embedder="fake", work=False)
    engine.hooks.subscribe("stuck", [HookKind.POST_RUN_CAPTURE], globals()[sys.argv[1]])
    scope, source = Scope(space="acme", agent="bot"), SourceRef(SourceKind.RUN, "acme", run_id="r1")
    hook = EmitHook(scope, HookKind.POST_RUN_CAPTURE, "run:r1", source, SourcePayload(text="We chose Lisbon."))
    await engine.perform(LOCAL_OPERATOR, hook.action, lambda: hook, space="acme")
    await engine.crew.drain()
    print("failed:", engine.crew.failures, flush=True)
    await engine.close()

asyncio.run(main())
print("ended", flush=True)
"""


@pytest.mark.parametrize("handler", ["plain", "asynchronous"])
def test_a_process_ends_although_a_subscriber_hangs_for_an_hour(tmp_path: Path, handler: str) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", _A_PROCESS, handler],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,  # a twelfth of the time it hangs
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["failed: 1", "ended"]
