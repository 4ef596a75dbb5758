"""Models with OpenAI's protocol, over real connections: requests, parsed responses, and errors that show no key."""

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
from holdfast.agent.providers.openai import OpenAIModel
from holdfast.domain.secret import Secret
from holdfast.errors import ModelMisconfigured, ModelUnavailable
from serving import whole_chain

KEY = "sk-never-to-be-seen"
HELLO = [ModelMessage(Role.SYSTEM, "Be brief."), ModelMessage(Role.USER, "Hello")]
CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})
DONE = b"data: [DONE]\n\n"


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    said = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def calling(index: int | None = 0, **function: Any) -> dict[str, Any]:
    call_id = function.pop("id", None)
    made: dict[str, Any] = {"type": "function", "function": function}
    return {"tool_calls": [made | ({"id": call_id} if call_id else {}) | ({} if index is None else {"index": index})]}


STOP = chunk({}, "stop")
USED = chunk(usage={"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15})


async def heard(
    server: Spoken, messages: Sequence[ModelMessage] = HELLO, tools: Sequence[ToolSpec] = (), **options: Any
) -> list[ModelEvent]:
    model = OpenAIModel("qwen3", base_url=f"{server.url}/v1", **{"retries": 0, "api_key": Secret(KEY)} | options)
    try:
        return [event async for event in model.stream(messages, tools)]
    finally:
        await model.close()


def reply(*pieces: bytes, **options: Any) -> Reply:
    with speaking(Answer(pieces=pieces)) as server:
        last = asyncio.run(heard(server, **options))[-1]
    assert isinstance(last, Reply)
    return last


# --- requests and responses -----------------------------------------------------------------------------------------


def test_an_answer_is_heard_as_it_is_written_with_what_it_cost() -> None:
    told = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Good "}), chunk({"content": "day"})]
    with speaking(Answer(pieces=[*told, STOP, USED, DONE])) as server:
        events = asyncio.run(heard(server))
    assert events == [TextPiece("Good "), TextPiece("day"), Reply("Good day", (), TokenUsage(12, 3))]
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "qwen3",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_tool_is_offered_called_and_answered() -> None:
    parts = [
        calling(id="call_9", name="clock", arguments=""),
        calling(arguments='{"zo'),
        calling(arguments='ne": "x"}'),
    ]
    pieces = [*map(chunk, parts), chunk({}, "tool_calls"), DONE]
    with speaking(Answer(pieces=pieces), Answer(pieces=[chunk({"content": "Ten"}), STOP, DONE])) as server:
        (called,) = asyncio.run(heard(server, tools=[CLOCK]))
        assert called == Reply("", (ToolCall("call_9", "clock", '{"zone": "x"}'),))
        asked = ModelMessage(Role.ASSISTANT, "", called.tool_calls)
        results = [*HELLO, asked, ModelMessage(Role.TOOL, "10:00", tool_call_id="call_9")]
        assert asyncio.run(heard(server, results, tools=[CLOCK]))[-1] == Reply("Ten")
    first, second = server.bodies
    function = {"name": "clock", "description": "Tells the time.", "parameters": CLOCK.parameters}
    assert first["tools"] == [{"type": "function", "function": function}]
    assert second["messages"][2:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call_9", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "x"}'}}
            ],
        },
        {"role": "tool", "content": "10:00", "tool_call_id": "call_9"},
    ]


def test_arguments_that_are_no_json_and_half_characters_are_sent_as_something_that_is() -> None:
    calls = tuple(ToolCall(str(n), "clock", text) for n, text in enumerate(["{oh", "[1]", "", r'{"a": "\ud83d"}']))
    with speaking(Answer(pieces=[STOP, DONE])) as server:
        said = ModelMessage(Role.ASSISTANT, "half \ud83d", calls)
        asyncio.run(heard(server, [*HELLO, said]))
    sent = server.bodies[0]["messages"][2]
    assert sent["content"] == "half ?"
    assert [json.loads(call["function"]["arguments"]) for call in sent["tool_calls"]] == [
        {"unreadable_arguments": "{oh"},
        {"unreadable_arguments": "[1]"},
        {},
        {"a": "?"},
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_what_a_model_thinks_aloud_is_told_apart_from_what_it_says(field: str) -> None:
    pieces = [chunk({field: "Hm. "}), chunk({field: "Well."}), chunk({"content": "Yes"}), STOP, DONE]
    with speaking(Answer(pieces=pieces)) as server:
        events = asyncio.run(heard(server))
    assert events == [ReasoningPiece("Hm. "), ReasoningPiece("Well."), TextPiece("Yes"), Reply("Yes")]


@pytest.mark.parametrize(
    ("written", "thought", "said"),
    [
        ("<think>Hm. Well.</think>\n\nYes <b>indeed</b>", "Hm. Well.", "Yes <b>indeed</b>"),
        ("\n<think>\n</think>Yes", "\n", "Yes"),
        ("<think>a < b </thin k></think>  Yes", "a < b </thin k>", "Yes"),
        ("<think>never ends </th", "never ends </th", ""),
        ("<thinking> is a word", "", "<thinking> is a word"),
        ("No <think>here</think>", "", "No <think>here</think>"),
        ("<thi", "", "<thi"),
        ("  \n", "", "  \n"),
    ],
)
def test_thoughts_that_a_server_leaves_in_the_text_are_told_apart_too(written: str, thought: str, said: str) -> None:
    for size in (1, 3, 100):
        pieces = [chunk({"content": written[at : at + size]}) for at in range(0, len(written), size)]
        with speaking(Answer(pieces=[*pieces, STOP, DONE])) as server:
            *events, last = asyncio.run(heard(server))
        assert last == Reply(said)
        assert "".join(each.text for each in events if isinstance(each, ReasoningPiece)) == thought
        assert "".join(each.text for each in events if isinstance(each, TextPiece)) == said


def test_several_calls_are_told_apart_however_a_server_marks_them() -> None:
    """By index; by id at one index; whole calls at one index without ids; whole calls without either."""
    done = chunk({}, "tool_calls")
    a, b = '{"n": 1}', '{"n": 2}'
    interleaved = [
        calling(0, id="x", name="one"), calling(1, id="y", name="two"), calling(0, arguments=a[:4]),
        calling(1, arguments=b), calling(0, arguments=a[4:]),
    ]  # fmt: skip
    for parts in (
        interleaved,
        [calling(0, id="x", name="one", arguments=a), calling(0, id="y", name="two", arguments=b)],
        [calling(0, name="one", arguments=a), calling(0, name="two", arguments=b)],
        [calling(None, name="one", arguments=a), calling(None, name="two", arguments=b)],
        [calling(0, id="same", name="one", arguments=a), calling(1, id="same", name="two", arguments=b)],
        [calling(0, name="one", arguments={"n": 1}), calling(1, name="two", arguments={"n": 2})],
        [{"tool_calls": [calling(at, name=name, arguments=said)["tool_calls"][0] for at, name, said in
                         ((0, "one", a), (1, "two", b))]}],
        [calling(0, name="one", arguments=a[:3]), calling(0, name="one", arguments=a[3:]),
         calling(1, name="two", arguments=b)],
    ):  # fmt: skip
        calls = reply(*map(chunk, parts), done, DONE).tool_calls
        assert [(call.name, call.arguments) for call in calls] == [("one", a), ("two", b)], parts
        assert all(call.id for call in calls)
        assert len({call.id for call in calls}) == 2, parts


def test_what_a_server_leaves_out_is_made_up_for() -> None:
    bare = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: {"choices": [{"finish_reason": "stop"}]}\n\n'
    assert reply(bare) == Reply("Hi")
    odd = [b'data: {"choices": null}\n\n', b'data: {"choices": [{"delta": null}]}\n\n', chunk({"content": 7})]
    assert reply(b": a comment\n\n", *odd, bare, DONE) == Reply("Hi")
    assert reply(chunk({"content": "Hi"}, "stop", usage={"prompt_tokens": None}), DONE) == Reply("Hi")
    (call,) = reply(chunk(calling(name="clock")), chunk({}, "stop"), DONE).tool_calls
    assert (call.name, call.arguments) == ("clock", "{}")
    assert call.id.startswith("call_")
    assert reply(chunk({"refusal": "I would rather not."}), STOP, DONE).text == "I would rather not."
    assert reply(chunk({"content": "\r\nZürich 🙂\u2028"}), STOP, DONE).text == "\r\nZürich 🙂\u2028"


def test_characters_that_are_split_between_two_packets_arrive_whole() -> None:
    whole = chunk({"content": "x"}).replace(b'"x"', '"Zürich 🙂"'.encode()) + STOP + DONE
    assert reply(*[whole[at : at + 1] for at in range(len(whole))]).text == "Zürich 🙂"


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with speaking(Answer(pieces=[STOP, DONE])) as server:
        asyncio.run(heard(server, api_key=None))
    assert "authorization" not in server.requests[0].headers
    assert KEY not in str(server.requests[0])


# --- errors ---------------------------------------------------------------------------------------------------------

WRONG = [
    (failing(401), ModelMisconfigured, "check the key"),
    (failing(403), ModelMisconfigured, "check the key"),
    (failing(404), ModelMisconfigured, "qwen3"),
    (failing(400), ModelMisconfigured, "400"),
    (failing(400, b'{"error": {"code": "context_length_exceeded"}}'), ModelMisconfigured, "begin a new session"),
    (failing(413), ModelMisconfigured, "begin a new session"),
    (failing(429), ModelUnavailable, "429"),
    (failing(500), ModelUnavailable, "500"),
    (failing(503, b"<html>canary</html>"), ModelUnavailable, "503"),
    (Answer(pieces=[]), ModelUnavailable, "half way"),
    (Answer(pieces=[b'{"choices": [{}]}'], media_type="application/json"), ModelUnavailable, "half way"),
    (Answer(pieces=[chunk({"content": "canary"}), DONE]), ModelUnavailable, "half way"),
    (Answer(pieces=[chunk({"content": "canary"})], then="cut"), ModelUnavailable, "was lost"),
    (Answer(pieces=[b"data: canary\n\n"]), ModelUnavailable, "cannot be read"),
    (Answer(pieces=[b"data: " + b"[" * 100_000 + b"\n\n"]), ModelUnavailable, "cannot be read"),
    (Answer(pieces=[b"data: \xff\xfe canary\n\n"]), ModelUnavailable, "cannot be read"),
    (Answer(pieces=[chunk({}), b'data: {"error": {"message": "canary"}}\n\n']), ModelUnavailable, "broke off"),
]  # fmt: skip


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


def test_a_server_that_is_not_there_is_told() -> None:
    with speaking() as server:
        pass
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        asyncio.run(heard(server))


def test_what_fails_for_a_passing_reason_before_a_word_is_asked_again() -> None:
    good = Answer(pieces=[chunk({"content": "Hi"}), STOP, DONE])
    with speaking(failing(503), good) as server:
        assert asyncio.run(heard(server, retries=1))[-1] == Reply("Hi")
    with speaking(Answer(pieces=[chunk({"content": "Hi"})], then="cut"), good) as server:
        with pytest.raises(ModelUnavailable):
            asyncio.run(heard(server, retries=1))
    assert len(server.requests) == 1, "what was heard is not asked for again"
    with speaking(failing(401), good) as server, pytest.raises(ModelMisconfigured):
        asyncio.run(heard(server, retries=1))


def test_an_answer_without_an_end_is_cut_off() -> None:
    endless = [chunk({"content": "x" * 100_000})] * 20
    with speaking(Answer(pieces=endless, then="hold")) as server:
        with pytest.raises(ModelUnavailable, match="answered more than"):
            asyncio.run(heard(server))
        assert server.left.wait(10)


def test_a_server_that_falls_silent_is_told() -> None:
    with (
        speaking(Answer(pieces=[chunk({"content": "x"})], then="hold")) as server,
        pytest.raises(ModelUnavailable, match="silent"),
    ):
        asyncio.run(heard(server, silence_seconds=0.2))
    with speaking(Answer(then="mute")) as server, pytest.raises(ModelUnavailable, match="silent"):
        asyncio.run(heard(server, silence_seconds=0.2))


@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_whoever_stops_listening_ends_the_call(how: str) -> None:
    async def listen(server: Spoken) -> None:
        model = OpenAIModel("qwen3", base_url=server.url)
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

    with speaking(Answer(pieces=[chunk({"content": "Once "})], then="hold")) as server:
        asyncio.run(listen(server))


def test_nothing_shows_the_key() -> None:
    model = OpenAIModel("qwen3", base_url="http://127.0.0.1:1/v1", api_key=Secret(KEY))
    assert repr(model) == "OpenAIModel('qwen3', base_url='http://127.0.0.1:1/v1')"
    assert model.name == "openai:qwen3"
    with pytest.raises(TypeError):
        model.__reduce__()


def test_without_its_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelMisconfigured, match=r"pip install .*\[agent\]"):
        OpenAIModel("qwen3", base_url="http://127.0.0.1:1/v1")
