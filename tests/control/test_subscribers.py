"""Who subscribes to hooks: found by entry points, and none of them in the way of another."""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from holdfast.control import subscribers
from holdfast.control.subscribers import GROUP, HookRegistry, tell
from holdfast.domain.contract import HookKind
from holdfast.errors import InvalidInput, ProviderTimeout, ProviderUnavailable


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Three packages beside us: one that works, one that breaks, one that asks for what cannot be."""
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
        assert registry.of(HookKind.MANUAL_CAPTURE) == ["chat-room"]
        assert registry.of(HookKind.POST_RUN_CAPTURE) == []
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


def test_a_subscriber_that_takes_for_ever_or_breaks_is_a_failure_without_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscribers, "TOLD_WITHIN_SECONDS", 0.05)

    async def forever(_: Any) -> None:
        await asyncio.Event().wait()

    def breaks(_: Any) -> None:
        raise ValueError("canary")

    event: Any = None
    with pytest.raises(ProviderTimeout):
        asyncio.run(tell("slow", forever, event))
    with pytest.raises(ProviderUnavailable, match="ValueError") as told:
        asyncio.run(tell("broken", breaks, event))
    assert "canary" not in f"{told.value!r} {told.value.__context__!r} {told.value.__cause__!r}"
