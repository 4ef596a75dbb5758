"""The agent reports its tools and calls to a runtime: no argument, no result, and never at the cost of an answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from recorded import calls, configured

from holdfast.agent.loader import EngineLoader
from holdfast.agent.loop import AgentLoop
from holdfast.agent.ports import Reply
from holdfast.agent.providers.scripted import ScriptedModel
from holdfast.agent.tool_reports import REGISTRY, ToolReports
from holdfast.sdk import AsyncMemoryRuntime
from holdfast.settings import Settings

CANARY = "zanzibarquay"


def ship(place: str) -> str:
    """Ship to a place."""
    if place == "nowhere":
        raise ValueError(place)
    return f"{CANARY} is live in {place}"


@contextlib.asynccontextmanager
async def reporting(folder: Path, *replies: Any) -> AsyncIterator[tuple[AgentLoop, AsyncMemoryRuntime]]:
    configured(folder, {"mode": "curated"})
    async with AsyncMemoryRuntime.open(folder / "tools.db", agent="main") as runtime:
        loader = EngineLoader(
            folder, settings=Settings(), model=ScriptedModel(replies), tools=[ship], tool_reports=ToolReports(runtime)
        )
        async with await loader.load() as loaded:
            yield AgentLoop(loaded), runtime


def test_calls_become_hints_without_arguments_and_results(tmp_path: Path) -> None:
    async def run() -> None:
        replies = [
            calls(("ship", {"place": f"{CANARY} dock"}), ("ship", {"place": "nowhere"}), ("no_such_tool", {})),
            Reply("Shipped."),
            calls(("ship", {"place": "Porto"}), ("memory", {"action": "add", "target": "user", "content": "Ships."})),
            Reply("Again."),
        ]
        async with reporting(tmp_path, *replies) as (loop, runtime):
            for answer in ("Shipped.", "Again."):
                assert (await loop.run("Ship it.")).text == answer
            registry = await runtime.get_agent_tool_registry(REGISTRY)
            assert {"ship", "memory", "session_search"} <= set(registry.by_id)
            (hint,) = (await runtime.recall("ship")).agent_tool_hints
            assert (hint.tool_id, hint.success_count, hint.call_count, hint.task_signature) == ("ship", 2, 3, "chat")
            assert hint.reason == "2 of 3 calls succeeded for chat"

    asyncio.run(run())
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("tools.db*"))
    assert CANARY.encode() not in stored


def test_a_runtime_that_fails_costs_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with reporting(tmp_path, calls(("ship", {"place": "Porto"})), Reply("Shipped.")) as (loop, runtime):
            await runtime.close()
            assert (await loop.run("Ship it.")).text == "Shipped."

    asyncio.run(run())
    assert "could not be reported: store_closed" in caplog.text
