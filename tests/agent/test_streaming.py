"""Streaming: text pieces as the model writes them, tool calls as they happen, and the result last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from recorded import ADD, FLUSH, SEARCH, agent, calls, configured, recorded

from holdfast.agent.ports import ReasoningPiece, Reply, TextPiece
from holdfast.agent.result import AgentRunResult, AnswerCompleted, RunEvent, RunStatus, ToolEnded, ToolStarted
from holdfast.errors import ModelUnavailable


def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


def curated(path: Path) -> Path:
    return configured(path, {"mode": "curated"})


def test_pieces_thoughts_and_tools_come_in_order_and_the_result_is_last(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        called = calls(("add", {"left": 2, "right": 3}), text="Let me see.")
        first = [ReasoningPiece("Hm."), TextPiece("Let me see."), called]
        async with agent(curated(tmp_path), first, Reply("It is five."), tools=[add]) as running:
            return [event async for event in running.loop.stream("2 + 3?", "sums")]

    *events, result = asyncio.run(run())
    call = calls(("add", {"left": 2, "right": 3})).tool_calls[0]
    assert events == [
        ReasoningPiece("Hm."),
        TextPiece("Let me see."),
        ToolStarted(call),
        ToolEnded(call, True, "5"),
        TextPiece("It "),
        TextPiece("is "),
        TextPiece("five."),
        AnswerCompleted("It is five."),
    ]
    assert isinstance(result, AgentRunResult)
    assert (result.session_id, result.text, result.status) == ("sums", "It is five.", RunStatus.COMPLETED)


def test_a_piece_arrives_before_the_model_has_written_the_next(tmp_path: Path) -> None:
    class Waiting:
        """Write the second piece only after the first was read."""

        name = "test:waiting"

        def __init__(self) -> None:
            self.read = asyncio.Event()

        async def stream(self, messages: Any, tools: Any) -> Any:
            yield TextPiece("one ")
            await asyncio.wait_for(self.read.wait(), 30)
            yield TextPiece("two")
            yield Reply("one two")

        async def close(self) -> None: ...

    async def run() -> list[Any]:
        async with agent(curated(tmp_path)) as running:
            model = Waiting()
            object.__setattr__(running.loaded, "model", model)
            seen = []
            async for event in running.loop.stream("Count."):
                seen.append(event)
                model.read.set()
            return seen

    first, second, answered, result = asyncio.run(run())
    assert (first, second, answered) == (TextPiece("one "), TextPiece("two"), AnswerCompleted("one two"))
    assert result.text == "one two"


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_whoever_watches_a_run_is_told_the_same(kind: str, tmp_path: Path) -> None:
    async def run() -> tuple[list[RunEvent], AgentRunResult]:
        seen = list[RunEvent]()

        async def later(event: RunEvent) -> None:
            await asyncio.sleep(0)
            seen.append(event)

        async with agent(
            curated(tmp_path), calls(("add", {"left": 1, "right": 1})), Reply("Two."), tools=[add]
        ) as running:
            result = await running.loop.run("1 + 1?", watch=seen.append if kind == "plain" else later)
        return seen, result

    seen, result = asyncio.run(run())
    assert [type(event) for event in seen] == [ToolStarted, ToolEnded, TextPiece, AnswerCompleted]
    assert result.text == "Two."


def test_a_run_that_fails_ends_its_stream_with_a_result_too(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        async with agent(curated(tmp_path), ModelUnavailable("the model is away")) as running:
            return [event async for event in running.loop.stream("Hello?")]

    (result,) = asyncio.run(run())
    assert (result.status, result.error.message) == (RunStatus.FAILED, "the model is away")


def test_the_result_comes_when_the_turn_was_kept(tmp_path: Path) -> None:
    with recorded(tmp_path / "memory.db") as gateway:

        async def run() -> list[list[str]]:
            folder = configured(tmp_path / "work", {"mode": "hybrid", "gateway": gateway.config()})
            async with agent(folder, Reply("Yes.")) as running:
                return [list(gateway.journal) async for _ in running.loop.stream("Are you there?")]

        piece, answered, result = asyncio.run(run())
    assert piece == answered == [SEARCH]
    assert result == [SEARCH, ADD, FLUSH]
