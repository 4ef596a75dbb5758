"""A real small model, offline: it streams answers, calls tools and uses their results, and stops when cancelled.

Tests the protocol and the loop, not the model's judgement.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from small_model import MAX_TOKENS, NAME

from gateway.served import serving
from holdfast.agent.config import AgentConfig, MemoryConfig, MemoryMode, read_config
from holdfast.agent.initialize import AgentModelChoice, GatewayChoice, initialize
from holdfast.agent.loader import EngineLoader
from holdfast.agent.loop import AgentLoop
from holdfast.agent.ports import ModelMessage, Reply, Role, TextPiece, ToolSpec
from holdfast.agent.providers import open_model
from holdfast.agent.providers.openai import OpenAIModel
from holdfast.agent.result import AgentRunResult, Layer, RunStatus
from holdfast.agent.tools import ToolBox
from holdfast.settings import Settings

SYSTEM = ModelMessage(Role.SYSTEM, "You are helpful.")
STORY = ModelMessage(Role.USER, "Tell me a very long story about a lighthouse.")
ASKED = ModelMessage(Role.USER, "What time is it in Paris?")


def clock(city: str) -> str:
    """Tells the current time in a city."""
    return {"Paris": "10:42"}.get(city, "unknown")


def specs() -> tuple[ToolSpec, ...]:
    tools = ToolBox()
    tools.register(clock)
    return tuple(tools.specs)


def slot(url: str) -> dict[str, Any]:
    """The state of the server's only slot."""
    found: list[dict[str, Any]] = httpx2.get(url.removesuffix("/v1") + "/slots").json()
    return found[0]


def test_an_answer_of_a_real_model_comes_in_pieces(small_model_url: str) -> None:
    async def talk() -> None:
        model = OpenAIModel(NAME, base_url=small_model_url)
        *pieces, reply = [event async for event in model.stream([SYSTEM, STORY], ())]
        await model.close()
        assert isinstance(reply, Reply)
        assert len(pieces) > 10
        assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == reply.text
        assert "lighthouse" in reply.text.lower()
        assert reply.usage.input_tokens > 10
        assert 10 < reply.usage.output_tokens <= MAX_TOKENS

    asyncio.run(talk())


def test_a_real_model_calls_a_tool_and_answers_with_its_result(small_model_url: str) -> None:
    async def talk() -> None:
        model = OpenAIModel(NAME, base_url=small_model_url)

        async def replied(*messages: ModelMessage) -> Reply:
            last = [event async for event in model.stream([SYSTEM, *messages], specs())][-1]
            assert isinstance(last, Reply)
            return last

        asking = await replied(ASKED)
        (call,) = asking.tool_calls
        assert (call.name, call.arguments.replace(" ", "")) == ("clock", '{"city":"Paris"}')
        result = ModelMessage(Role.TOOL, clock("Paris"), tool_call_id=call.id)
        answer = await replied(ASKED, ModelMessage(Role.ASSISTANT, asking.text, asking.tool_calls), result)
        assert not answer.tool_calls
        assert "10:42" in answer.text
        await model.close()

    asyncio.run(talk())


def test_an_agent_with_a_real_model_answers_with_what_its_tool_said(small_model_url: str, tmp_path: Path) -> None:
    config = replace(
        read_config(tmp_path, Settings()),
        provider="openai",
        model=NAME,
        base_url=small_model_url,
        memory=MemoryConfig(MemoryMode.CURATED, explicit=True),
    )

    async def run() -> None:
        model = open_model(config, Settings())
        async with await EngineLoader(config=config, settings=Settings(), model=model, tools=[clock]).load() as loaded:
            result = await AgentLoop(loaded).run(ASKED.content, "one")
            assert result.status is RunStatus.COMPLETED, result
            assert [use.name for use in result.tool_calls] == ["clock"]
            assert "10:42" in result.text
            said = [event.content for event in await loaded.sessions.events("one", visible=True)]
            assert said == [ASKED.content, result.text]
        await model.close()

    asyncio.run(run())


@pytest.mark.parametrize("mode", [MemoryMode.HYBRID, MemoryMode.MEMORY_GATEWAY])
def test_a_real_model_is_given_in_another_session_what_it_was_told_in_one(
    small_model_url: str, tmp_path: Path, mode: MemoryMode
) -> None:
    """The quick start with a gateway. The answers of so small a model differ between machines."""
    initialize(tmp_path, Settings(), AgentModelChoice("openai", NAME, small_model_url))

    async def said(prompt: str, session: str, config: AgentConfig) -> AgentRunResult:
        async with await EngineLoader(config=config, settings=Settings()).load() as loaded:
            return await AgentLoop(loaded).run(prompt, session)

    with serving(tmp_path / "served.db", open_sign_up=True) as gateway:
        initialize(tmp_path, Settings(), None, GatewayChoice(gateway.url, "ana"))
        found = read_config(tmp_path, Settings())
        config = replace(found, memory=replace(found.memory, mode=mode))
        asyncio.run(said("My dog is called Rex.", "monday", config))
        knows = asyncio.run(said("What is my dog called?", "wednesday", config))
    assert knows.status is RunStatus.COMPLETED
    assert knows.text
    # The fact that was learned from it stands in its place.
    assert "ana's dog is called Rex." in [each.text for each in knows.explained.of(Layer.GATEWAY)]


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_a_real_model_that_nobody_listens_to_any_more_stops(small_model_url: str, how: str) -> None:
    async def talk() -> None:
        model = OpenAIModel(NAME, base_url=small_model_url)
        stream: Any = model.stream([SYSTEM, STORY], ())
        for _ in range(3):
            assert isinstance(await anext(stream), TextPiece)
        assert (await asyncio.to_thread(slot, small_model_url))["is_processing"]
        if how == "closed":
            await stream.aclose()
        else:
            waiting = asyncio.create_task(anext(stream))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        until = time.monotonic() + 30
        while (found := await asyncio.to_thread(slot, small_model_url))["is_processing"]:
            assert time.monotonic() < until, "it goes on"
            await asyncio.sleep(0.05)
        # The tokens of the prompt plus those generated so far.
        assert found["n_prompt_tokens"] < MAX_TOKENS
        await model.close()

    asyncio.run(talk())
