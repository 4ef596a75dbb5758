"""Anthropic's models over real connections: requests, parsed responses, and errors that show no key."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from spoken import Answer, Spoken, failing, speaking

from holdfast.agent.ports import (
    ModelEvent,
    ModelMessage,
    ReasoningPiece,
    Reply,
    Role,
    TextPiece,
    TokenUsage,
    ToolCall,
    ToolSpec,
)
from holdfast.agent.providers.anthropic import AnthropicModel
from holdfast.domain.secret import Secret
from holdfast.errors import ModelMisconfigured, ModelUnavailable
from serving import whole_chain

KEY = "sk-ant-never-to-be-seen"
HELLO = [ModelMessage(Role.SYSTEM, "Be brief."), ModelMessage(Role.USER, "Hello")]
CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})


def event(kind: str, **more: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


def begun(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **more: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **more})


def text(index: int, *words: str) -> list[bytes]:
    said = [delta(index, "text_delta", text=word) for word in words]
    return [begun(index, type="text", text=""), *said, event("content_block_stop", index=index)]


def ended(reason: str = "end_turn", output_tokens: int = 7) -> list[bytes]:
    done = event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": output_tokens})
    return [done, event("message_stop")]


USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1, "output_tokens": 1}
BEGUN = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "claude", "stop_reason": None}
START = event("message_start", message=BEGUN | {"stop_sequence": None, "usage": USAGE})
PING = event("ping")


async def heard(
    server: Spoken,
    messages: Sequence[ModelMessage] = HELLO,
    tools: Sequence[ToolSpec] = (),
    model: AnthropicModel | None = None,
    **options: Any,
) -> list[ModelEvent]:
    made = model or AnthropicModel("claude", base_url=server.url, **{"retries": 0, "api_key": Secret(KEY)} | options)
    try:
        return [event async for event in made.stream(messages, tools)]
    finally:
        if model is None:
            await made.close()


def test_an_answer_is_heard_as_it_is_written_with_what_it_cost() -> None:
    with speaking(Answer(pieces=[START, PING, *text(0, "Good ", "day"), *ended()])) as server:
        events = asyncio.run(heard(server))
    assert events == [TextPiece("Good "), TextPiece("day"), Reply("Good day", (), TokenUsage(16, 7))]
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert {name: value for name, value in request.body.items() if name != "max_tokens"} == {
        "model": "claude",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        "stream": True,
    }
    assert request.body["max_tokens"] >= 4_096


def test_tools_are_offered_called_and_answered_in_one_turn_of_the_user() -> None:
    calls = [
        START, *text(0, "Let me see."),
        begun(1, type="tool_use", id="tu_1", name="clock", input={}),
        delta(1, "input_json_delta", partial_json=""), delta(1, "input_json_delta", partial_json='{"zone"'),
        delta(1, "input_json_delta", partial_json=': "x"}'), event("content_block_stop", index=1),
        begun(2, type="tool_use", id="tu_2", name="clock", input={}), event("content_block_stop", index=2),
        *ended("tool_use"),
    ]  # fmt: skip
    with speaking(Answer(pieces=calls), Answer(pieces=[START, *text(0, "Ten"), *ended()])) as server:
        called = asyncio.run(heard(server, tools=[CLOCK]))[-1]
        assert isinstance(called, Reply)
        assert called.tool_calls == (
            ToolCall("tu_1", "clock", '{"zone": "x"}'),
            ToolCall("tu_2", "clock", "{}"),
        )
        followed = [
            *HELLO,
            ModelMessage(Role.ASSISTANT, called.text, called.tool_calls),
            ModelMessage(Role.TOOL, "10:00", tool_call_id="tu_1"),
            ModelMessage(Role.TOOL, "11:00", tool_call_id="tu_2"),
            ModelMessage(Role.USER, "And?"),
        ]
        assert asyncio.run(heard(server, followed, tools=[CLOCK]))[-1] == Reply("Ten", (), TokenUsage(16, 7))
    first, second = server.bodies
    assert first["tools"] == [{"name": "clock", "description": "Tells the time.", "input_schema": CLOCK.parameters}]
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "tu_1", "name": "clock", "input": {"zone": "x"}},
                {"type": "tool_use", "id": "tu_2", "name": "clock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "tu_1", "content": "10:00"},
                {"type": "tool_result", "tool_use_id": "tu_2", "content": "11:00"},
                {"type": "text", "text": "And?"},
            ],
        },
    ]


def test_tools_that_were_called_are_declared_when_no_more_may_be() -> None:
    made = (ToolCall("1", "clock", "{}"), ToolCall("2", "map", "{}"), ToolCall("3", "clock", "{}"))
    results = [ModelMessage(Role.TOOL, "Ten", tool_call_id=call.id) for call in made]
    with speaking(Answer(pieces=[START, *text(0, "Ten"), *ended()])) as server:
        asyncio.run(heard(server, [*HELLO, ModelMessage(Role.ASSISTANT, "", made), *results]))
    (body,) = server.bodies
    assert body["tool_choice"] == {"type": "none"}
    assert body["tools"] == [{"name": name, "input_schema": {"type": "object"}} for name in ("clock", "map")]


def test_users_and_assistants_take_turns_and_the_system_stands_apart() -> None:
    said = [
        ModelMessage(Role.SYSTEM, "One."),
        ModelMessage(Role.ASSISTANT, "Earlier."),
        ModelMessage(Role.USER, "Reference"),
        ModelMessage(Role.USER, " \n"),
        ModelMessage(Role.SYSTEM, "Two."),
        ModelMessage(Role.USER, "half \ud83d"),
        ModelMessage(Role.ASSISTANT, ""),
        ModelMessage(Role.ASSISTANT, "", (ToolCall("a", "clock", "{oh"), ToolCall("b", "clock", r'{"c": "\ud83d"}'))),
    ]
    with speaking(Answer(pieces=[START, *text(0, "x"), *ended()])) as server:
        asyncio.run(heard(server, said))
    body = server.bodies[0]
    assert body["system"] == "One.\n\nTwo."
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [block["text"] for block in body["messages"][2]["content"]] == ["Reference", "half ?"]
    assert [block["input"] for block in body["messages"][3]["content"]] == [{"unreadable_arguments": "{oh"}, {"c": "?"}]


def test_what_a_model_thinks_is_told_apart_and_given_back_to_it_with_the_results_of_its_calls() -> None:
    thinking = [
        START,
        begun(0, type="thinking", thinking="", signature=""), delta(0, "thinking_delta", thinking="Hm."),
        delta(0, "signature_delta", signature="sig"), event("content_block_stop", index=0),
        begun(1, type="redacted_thinking", data="opaque"), event("content_block_stop", index=1),
        begun(2, type="tool_use", id="tu_1", name="clock", input={}), *ended("tool_use"),
    ]  # fmt: skip

    async def talk(server: Spoken) -> None:
        model = AnthropicModel("claude", base_url=server.url)
        events = await heard(server, tools=[CLOCK], model=model)
        assert events[0] == ReasoningPiece("Hm.")
        called = events[-1]
        assert isinstance(called, Reply)
        assert "Hm." not in str(called)
        asked = ModelMessage(Role.ASSISTANT, "", called.tool_calls)
        await heard(server, [*HELLO, asked, ModelMessage(Role.TOOL, "10", tool_call_id="tu_1")], [CLOCK], model)
        await model.close()

    with speaking(Answer(pieces=thinking), Answer(pieces=[START, *text(0, "Ten"), *ended()])) as server:
        asyncio.run(talk(server))
    assert server.bodies[1]["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "tool_use", "id": "tu_1", "name": "clock", "input": {}},
    ]


def test_what_is_not_known_is_passed_over() -> None:
    odd = [
        START, event("of_tomorrow", x=1), begun(0, type="holograph", text="canary"),
        delta(0, "text_delta", text="canary"), delta(9, "text_delta", text="canary"),
        begun(1, type="text", text="Well, "), delta(1, "later_delta", text="canary"),
        delta(1, "text_delta", text="yes"), delta(1, "text_delta", text=None), *ended(),
    ]  # fmt: skip
    with speaking(Answer(pieces=odd)) as server:
        assert asyncio.run(heard(server))[-1] == Reply("Well, yes", (), TokenUsage(16, 7))


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    with speaking(Answer(pieces=[START, *text(0, "Hi"), *ended()])) as server:
        assert asyncio.run(heard(server, api_key=None))[-1] == Reply("Hi", (), TokenUsage(16, 7))
    assert KEY not in str(server.requests[0])
    assert not {"authorization", "x-api-key"} & set(server.requests[0].headers)


TOO_LONG = b'{"type": "error", "error": {"type": "request_too_large", "message": "canary"}}'
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "canary"})
WRONG = [
    (failing(401), ModelMisconfigured, "check the key"),
    (failing(403), ModelMisconfigured, "check the key"),
    (failing(404), ModelMisconfigured, "claude"),
    (failing(400), ModelMisconfigured, "400"),
    (failing(413, TOO_LONG), ModelMisconfigured, "begin a new session"),
    (failing(429), ModelUnavailable, "429"),
    (failing(529), ModelUnavailable, "529"),
    (failing(503, b"<html>canary</html>"), ModelUnavailable, "503"),
    (Answer(pieces=[]), ModelUnavailable, "half way"),
    (Answer(pieces=[START, *text(0, "canary")]), ModelUnavailable, "half way"),
    (Answer(pieces=[START, *text(0, "canary")], then="cut"), ModelUnavailable, "was lost"),
    (Answer(pieces=[START, b"event: message_delta\ndata: canary\n\n"]), ModelUnavailable, "cannot be read"),
    (Answer(pieces=[START, b"event: message_delta\ndata: \xff canary\n\n"]), ModelUnavailable, "cannot be read"),
    (Answer(pieces=[START, *text(0, "x"), OVERLOADED]), ModelUnavailable, "broke off"),
]


@pytest.mark.parametrize(("answer", "kind", "says"), WRONG)
def test_what_goes_wrong_is_told_without_key_or_body(
    answer: Answer, kind: type[Exception], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with speaking(answer) as server, pytest.raises(kind, match=says) as caught:
        asyncio.run(heard(server))
    assert server.url in str(caught.value)
    assert "canary" not in f"{caught.value!r} {caught.value}"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert KEY not in whole_chain(caught.value) + caplog.text


def test_an_answer_without_an_end_is_cut_off() -> None:
    endless = [START, begun(0, type="text", text=""), *[delta(0, "text_delta", text="x" * 100_000)] * 20]
    with speaking(Answer(pieces=endless, then="hold")) as server:
        with pytest.raises(ModelUnavailable, match="answered more than"):
            asyncio.run(heard(server))
        assert server.left.wait(10)


def test_a_server_that_falls_silent_is_told() -> None:
    with speaking(Answer(pieces=[START], then="hold")) as server, pytest.raises(ModelUnavailable, match="silent"):
        asyncio.run(heard(server, silence_seconds=0.2))
    with speaking(Answer(then="mute")) as server, pytest.raises(ModelUnavailable, match="silent"):
        asyncio.run(heard(server, silence_seconds=0.2))


@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_whoever_stops_listening_ends_the_call(how: str) -> None:
    async def listen(server: Spoken) -> None:
        model = AnthropicModel("claude", base_url=server.url)
        stream: Any = model.stream(HELLO, ())
        assert await anext(stream) == TextPiece("Once ")
        if how == "closed":
            await stream.aclose()
        else:
            waiting = asyncio.create_task(anext(stream))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert await asyncio.to_thread(server.left.wait, 10), "the server was still heard out"
        await model.close()

    held = [START, begun(0, type="text", text=""), delta(0, "text_delta", text="Once ")]
    with speaking(Answer(pieces=held, then="hold")) as server:
        asyncio.run(listen(server))


def test_nothing_shows_the_key() -> None:
    model = AnthropicModel("claude", base_url="http://127.0.0.1:1", api_key=Secret(KEY))
    assert repr(model) == "AnthropicModel('claude', base_url='http://127.0.0.1:1')"
    assert model.name == "anthropic:claude"
    with pytest.raises(TypeError):
        model.__reduce__()


def test_without_its_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelMisconfigured, match=r"pip install .*\[agent\]"):
        AnthropicModel("claude", base_url="http://127.0.0.1:1")
