"""The scripted model: replies in order, recorded calls, streams that end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.agent.ports import (
    ChatModel,
    ModelEvent,
    ModelMessage,
    ReasoningPiece,
    Reply,
    Role,
    TextPiece,
    ToolCall,
    ToolSpec,
)
from holdfast.agent.providers.scripted import ScriptedModel
from holdfast.errors import ModelMisconfigured, ModelUnavailable

HELLO = ModelMessage(Role.USER, "Hello")
TOOL = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {}})


async def heard(model: ChatModel, *messages: ModelMessage, tools: Sequence[ToolSpec] = ()) -> list[ModelEvent]:
    return [event async for event in model.stream(messages, tools)]


def test_it_says_what_is_written_piece_by_piece_and_remembers_what_it_was_asked() -> None:
    called = Reply("", (ToolCall("c1", "clock", "{}"),))
    model = ScriptedModel([called, Reply("It is  ten.\n"), [ReasoningPiece("hm"), TextPiece("a"), Reply("a")]])

    async def talk() -> None:
        assert await heard(model, HELLO, tools=[TOOL]) == [called]
        pieces = await heard(model, HELLO, ModelMessage(Role.TOOL, "10:00", tool_call_id="c1"))
        assert pieces == [TextPiece("It "), TextPiece("is  "), TextPiece("ten.\n"), Reply("It is  ten.\n")]
        assert (await heard(model, HELLO))[0] == ReasoningPiece("hm")
        assert [len(asked.messages) for asked in model.asked] == [1, 2, 1]
        assert model.asked[0].tools == (TOOL,)
        with pytest.raises(ModelMisconfigured, match="3 replies"):
            await heard(model, HELLO)
        await model.close()
        assert (model.ended, model.closed) == (4, True)

    asyncio.run(talk())


def test_a_line_may_be_an_error_or_made_when_it_is_asked() -> None:
    async def slow(messages: Sequence[ModelMessage], tools: Any) -> Reply:
        await asyncio.sleep(0)
        return Reply(messages[-1].content.upper())

    model = ScriptedModel([ModelUnavailable("gone"), lambda messages, _: Reply(str(len(messages))), slow])

    async def talk() -> None:
        with pytest.raises(ModelUnavailable, match="gone"):
            await heard(model, HELLO)
        assert (await heard(model, HELLO))[-1] == Reply("1")
        assert (await heard(model, HELLO))[-1] == Reply("HELLO")

    asyncio.run(talk())


def test_closing_its_stream_ends_it() -> None:
    async def talk() -> None:
        model = ScriptedModel([Reply("one two three")])
        stream: Any = model.stream([HELLO], ())
        assert await anext(stream) == TextPiece("one ")
        assert model.ended == 0
        await stream.aclose()
        assert model.ended == 1

    asyncio.run(talk())
