"""Messages in every shape that other programs have them, from the real packages, and the wrong ones.

Each shape is stored once, with its role, text and time, on each store and over HTTP.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import anthropic.types
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response

from holdfast import Draft, Memory, Role
from holdfast.errors import DuplicateId, HoldfastError, InvalidTimestamp

MOMENT = datetime(2026, 5, 28, 20, 26, 40, tzinfo=UTC)
SECONDS = 1_780_000_000
DATA = "aGVyb24="  # must never be stored
Expected = tuple[str, str]  # role and text


@dataclass
class Note:
    role: str
    content: object
    name: str | None = None
    created_at: object = None


Row = namedtuple("Row", "role text")

COMPLETION = ChatCompletion.model_validate(
    {
        "id": "chatcmpl-1", "object": "chat.completion", "created": SECONDS, "model": "m",
        "choices": [
            {
                "index": 0, "finish_reason": "stop", "logprobs": None,
                "message": {"role": "assistant", "content": "Porto is north.", "refusal": None},
            }
        ],
    }
)  # fmt: skip
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
CALLED = 'weather({"city": "Porto"})'
RESPONSE = Response.model_validate(
    {
        "id": "resp_1", "object": "response", "created_at": SECONDS, "model": "m", "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [],
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "It is sunny.", "annotations": []}],
            },
            {
                "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather",
                "arguments": '{"city": "Porto"}',
            },
        ],
    }
)  # fmt: skip
ANTHROPIC = anthropic.types.Message.model_validate(
    {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            {"type": "thinking", "thinking": "A city?", "signature": "s"},
            {"type": "text", "text": "I will "}, {"type": "text", "text": "look."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Porto"}},
        ],
    }
)  # fmt: skip
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
ASSISTANT, USER, TOOL, SYSTEM = "assistant", "user", "tool", "system"

# Messages as a caller gives them, and what is stored of each.
SHAPES: dict[str, tuple[Any, Sequence[Expected]]] = {
    "a text": ("Hi.", [(USER, "Hi.")]),
    "a dictionary": ({"role": "user", "content": "Hi."}, [(USER, "Hi.")]),
    "our dictionary": ({"role": "system", "text": "Be kind."}, [(SYSTEM, "Be kind.")]),
    "text and content that agree": ({"text": "Hi.", "content": "Hi."}, [(USER, "Hi.")]),
    "a draft": (Draft("Hi.", role=Role.TOOL), [(TOOL, "Hi.")]),
    "one pair": (("user", "Hi."), [(USER, "Hi.")]),
    "pairs": (
        [("human", "Hi."), ("ai", "Hello."), ("developer", "Be kind.")],
        [(USER, "Hi."), (ASSISTANT, "Hello."), (SYSTEM, "Be kind.")],
    ),
    "two texts": (("Hi.", "Are you there?"), [(USER, "Hi."), (USER, "Are you there?")]),
    "a dataclass": (Note("ai", "Hello."), [(ASSISTANT, "Hello.")]),
    "a named tuple": (Row("user", "Hi."), [(USER, "Hi.")]),
    "any object": (SimpleNamespace(role="model", text="Hello.", id=5), [(ASSISTANT, "Hello.")]),
    "parts of OpenAI": (
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                IMAGE,
                {"type": "image_url", "image_url": {"url": "https://x.org/cat"}},
                {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
                {"type": "file", "file": {"filename": "plan.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}},
            ],
        },
        [(USER, "Look:\n[image: image/png]\n[image: https://x.org/cat]\n[audio: wav]\n[file: plan.pdf]")],
    ),
    "parts of a response's input": (
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "image_url": "https://x.org/cat"},
                {"type": "input_file", "file_id": "file-1"},
            ],
        },
        [(USER, "Look:\n[image: https://x.org/cat]\n[file: file-1]")],
    ),
    "a message of OpenAI": (COMPLETION.choices[0].message, [(ASSISTANT, "Porto is north.")]),
    "a choice": (COMPLETION.choices[0], [(ASSISTANT, "Porto is north.")]),
    "a completion": (COMPLETION, [(ASSISTANT, "Porto is north.")]),
    "a dump of a completion": (COMPLETION.model_dump(), [(ASSISTANT, "Porto is north.")]),
    "a history of OpenAI with calls": (
        [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "Weather?", "name": "ana"},
            ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL]}),
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
            {"role": "tool", "tool_call_id": "call_2", "content": ""},
            {"role": "assistant", "content": None, "refusal": "I cannot say."},
        ],
        [(SYSTEM, "Be kind."), (USER, "Weather?"), (ASSISTANT, CALLED), (TOOL, "Sunny."), (ASSISTANT, "I cannot say.")],
    ),
    "a response": (RESPONSE, [(ASSISTANT, f"It is sunny.\n{CALLED}")]),
    "a dump of a response": (RESPONSE.model_dump(), [(ASSISTANT, f"It is sunny.\n{CALLED}")]),
    "items of a response": (
        [*RESPONSE.output, {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."}],
        [(ASSISTANT, "It is sunny."), (ASSISTANT, CALLED), (TOOL, "Sunny.")],
    ),
    "a message of Anthropic": (ANTHROPIC, [(ASSISTANT, f"I will look.\n{CALLED}")]),
    "a history of Anthropic": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": DATA}},
                    {
                        "type": "document",
                        "title": "Plan",
                        "source": {"type": "text", "media_type": "text/plain", "data": DATA},
                    },
                    {"type": "text", "text": "Weather?"},
                ],
            },
            {"role": "assistant", "content": ANTHROPIC.content},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Sunny."}]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "Warm."},
                    {"type": "text", "text": "And tomorrow?"},
                ],
            },
            {"role": "assistant", "content": []},
        ],
        [
            (USER, "[image: image/jpeg]\n[file: Plan]\nWeather?"),
            (ASSISTANT, f"I will look.\n{CALLED}"),
            # What a tool says is not the user's own word.
            (TOOL, "Sunny."),
            (TOOL, "Warm."),
            (USER, "And tomorrow?"),
        ],
    ),
    "messages of LangChain": (
        [
            SystemMessage("Be kind."),
            HumanMessage("Hi."),
            HumanMessage(
                [{"type": "text", "text": "See."}, {"type": "image", "base64": DATA, "mime_type": "image/png"}]
            ),
            AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Porto"}, "id": "c1"}], id="run-1"),
            AIMessage(
                [
                    {"type": "text", "text": "So:"},
                    {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Porto"}},
                ],
                tool_calls=[{"name": "weather", "args": {"city": "Porto"}, "id": "c2"}],
            ),
            ToolMessage("Sunny.", tool_call_id="c1"),
            FunctionMessage("Warm.", name="weather"),
            ChatMessage("Hello.", role="assistant"),
            AIMessageChunk("It ") + AIMessageChunk("is."),
        ],
        [
            (SYSTEM, "Be kind."),
            (USER, "Hi."),
            (USER, "See.\n[image: image/png]"),
            (ASSISTANT, CALLED),
            (ASSISTANT, f"So:\n{CALLED}"),
            (TOOL, "Sunny."),
            (TOOL, "Warm."),
            (ASSISTANT, "Hello."),
            (ASSISTANT, "It is."),
        ],
    ),
    "one message of LangChain": (HumanMessage("Hi."), [(USER, "Hi.")]),
    "dumps of LangChain": (
        messages_to_dict([HumanMessage("Hi."), AIMessage("Hello.")]),
        [(USER, "Hi."), (ASSISTANT, "Hello.")],
    ),
    "a mixture": (
        ["Hi.", ("ai", "Hello."), {"text": "Ho."}, HumanMessage("Hey."), COMPLETION, Note("user", "Ha.")],
        [
            (USER, "Hi."),
            (ASSISTANT, "Hello."),
            (USER, "Ho."),
            (USER, "Hey."),
            (ASSISTANT, "Porto is north."),
            (USER, "Ha."),
        ],
    ),
}


def test_every_shape_is_stored_once_with_its_role_and_text(memory: Memory) -> None:
    for number, (name, (messages, expected)) in enumerate(SHAPES.items()):
        place = {"subject": "ana", "conversation": f"talk {number}"}
        added = memory.add(messages, **place)
        stored = [memory.get(str(message_id)) for message_id in added.message_ids]
        assert [(each.role, each.text) for each in stored] == list(expected), name
        assert added.stored == len(expected), name
        assert DATA not in json.dumps([[each.text, dict(each.metadata)] for each in stored]), name


def test_times_are_taken_in_every_form(memory: Memory) -> None:
    forms: list[Any] = [
        MOMENT, MOMENT.replace(tzinfo=None), MOMENT.astimezone(timezone(timedelta(hours=-7))), "2026-05-28T20:26:40Z",
        "2026-05-28 20:26:40", SECONDS, float(SECONDS), str(SECONDS), SECONDS * 1_000, str(SECONDS * 1_000),
    ]  # fmt: skip
    messages = [{"role": "user", "content": f"Form {number}.", "timestamp": at} for number, at in enumerate(forms)]
    messages += [Note("user", "Made.", created_at=SECONDS), COMPLETION, RESPONSE, Draft("Drafted.", said_at=MOMENT)]
    stored = [memory.get(str(found)) for found in memory.add(messages).message_ids]
    assert [each.said_at for each in stored] == [MOMENT] * len(messages)
    (of_a_day,) = memory.add({"text": "On a day.", "timestamp": date(2026, 5, 28)}).message_ids
    assert memory.get(str(of_a_day)).said_at == datetime(2026, 5, 28, tzinfo=UTC)
    for start in (MOMENT, SECONDS, SECONDS * 1_000, "2026-05-28T20:26:40"):
        assert "On a day." not in {hit.text for hit in memory.search("day form", said_from=start, top_k=50)}
    assert "On a day." in {hit.text for hit in memory.search("day form", said_from=date(2026, 5, 28), top_k=50)}


def test_a_time_without_a_zone_lies_at_most_a_day_ahead(memory: Memory) -> None:
    ahead = datetime.now(UTC) + timedelta(days=400)
    soon = datetime.now(UTC) + timedelta(hours=20)
    for wrong in (ahead.replace(tzinfo=None), ahead.date(), f"{ahead:%Y-%m-%d}", ahead.timestamp()):
        with pytest.raises(InvalidTimestamp, match=r"^messages\[1\].timestamp: is (399|400) days after now") as refused:
            memory.add(["Fine.", {"role": "user", "content": "x", "timestamp": wrong}])
        assert "give the time a zone if it is meant" in str(refused.value)
    assert memory.stats().messages == 0
    for meant in (soon.replace(tzinfo=None), ahead):
        (found,) = memory.add({"role": "user", "content": "x", "timestamp": meant}).message_ids
        assert memory.get(str(found)).said_at == meant.replace(tzinfo=UTC)


def test_names_calls_and_references_are_kept_with_a_message(memory: Memory) -> None:
    summary = HumanMessage("Summary.", additional_kwargs={"lc_source": "summarization"})
    added = memory.add(
        [
            {"role": "user", "content": "Hi.", "name": "Ana"},
            {"role": "user", "content": [IMAGE, IMAGE], "metadata": {"image": 1, "mood": None}},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny.", "name": "weather"},
            {"role": "user", "id": "a", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Warm."}
            ]},
            summary, HumanMessage("Mine."),
        ],
        subject="ana",
    )  # fmt: skip
    stored = [memory.get(str(found)) for found in added.message_ids]
    assert [(each.sender, each.external_id, dict(each.metadata)) for each in stored] == [
        ("Ana", None, {}),
        ("ana", None, {"image": 1, "image_2": "image/png", "mood": None}),
        ("weather", None, {"tool_call_id": "call_1"}),
        (None, "a/toolu_1", {"tool_call_id": "toolu_1"}),
        # Written in the user's place by the framework: not the user's own words.
        ("summarization", None, {}),
        ("ana", None, {}),
    ]


def test_a_history_with_ids_or_times_is_stored_once(memory: Memory) -> None:
    history = [HumanMessage("Weather?", id="h1"), AIMessage("Sunny.", id="run-1"), COMPLETION, ANTHROPIC, RESPONSE]
    first = memory.add(history)
    again = memory.add([*history, HumanMessage("Thanks.", id="h2")])
    assert (first.stored, again.stored, again.message_ids[:5]) == (5, 1, first.message_ids)
    # Some servers count completions up to a thousand: their ids are no ids of ours.
    other = COMPLETION.model_copy(update={"created": SECONDS + 5})
    assert memory.add(other).stored == 1
    with pytest.raises(DuplicateId, match="another text or sender"):
        memory.add(AIMessage("Rainy.", id="run-1"))
    assert [memory.add(HumanMessage("No id.")).stored, memory.add(HumanMessage("No id.")).stored] == [1, 1]
    # The messages of one memory can be added to another.
    copied = memory.add([memory.get(str(found)) for found in first.message_ids], conversation="copy")
    assert memory.get(str(copied.message_ids[2])).said_at == MOMENT


WRONG: dict[str, tuple[Any, str, str]] = {
    "neither text nor content": (
        {"role": "user"},
        "messages[0]",
        "has neither text nor content, but role; give it one of them",
    ),
    "nothing at all": ({"role": "assistant", "content": None}, "messages[0]", "neither text nor content"),
    "empty": ({"role": "user", "content": " "}, "messages[0].content", "is empty; give it some text"),
    "no parts": ({"role": "user", "content": []}, "messages[0].content", "is empty; give it some text"),
    "only reasoning": ([*RESPONSE.output[:1]], "messages", "hold nothing to store but reasoning"),
    "both": ({"text": "a", "content": "b"}, "messages[0]", "they differ; give one of them"),
    "an unknown part": (
        [{"text": "a"}, {"role": "user", "content": ["b", {"type": "hologram"}]}],
        "messages[1].content[1].type",
        "'hologram' is no part that can be read; known are text, image",
    ),
    "a part without a type": (
        {"content": [{"x": 1}]},
        "messages[0].content[0]",
        "expected a text or a part with a type",
    ),
    "an image without an address": ({"content": [{"type": "image_url"}]}, "messages[0].content[0]", "give one of them"),
    "a text that is none": (
        {"content": [{"type": "text", "text": 5}]},
        "messages[0].content[0].text",
        "expected text, got int",
    ),
    "bytes": (
        {"role": "user", "content": b"hi"},
        "messages[0].content",
        "expected a text or a list of parts, got bytes",
    ),
    "a nameless call": (
        {"role": "assistant", "content": "", "tool_calls": [CALL, {"id": "x"}]},
        "messages[0].tool_calls[1]",
        "give its name",
    ),
    "a role": ({"role": "boss", "content": "x"}, "messages[0].role", "there is no 'boss'; use one of user, assistant"),
    "a role in a pair": ([("user", "a"), ("boss", "x")], "messages[1].role", "there is no 'boss'"),
    "a role of LangChain": (ChatMessage("x", role="boss"), "messages[0].role", "there is no 'boss'"),
    "three values": (("user", "hi", "x"), "messages[0]", "has 3 values; a pair is a role and a text"),
    "a list in a list": ([["user", "hi"]], "messages[0]", 'a pair such as ("user", "hi")'),
    "an unknown class": ([object()], "messages[0]", "got object"),
    "a class": (HumanMessage, "messages", "got the class HumanMessage"),
    "several choices": (
        {**COMPLETION.model_dump(), "choices": COMPLETION.model_dump()["choices"] * 2},
        "messages[0].choices",
        "has 2 choices; give the message of one",
    ),
    "a chunk": (
        {"choices": [{"delta": {"content": "x"}}], "created": SECONDS},
        "messages[0].choices[0]",
        "has no message",
    ),
    "a state": ({"messages": [HumanMessage("x")]}, "messages[0]", "holds several messages; give the list itself"),
    "a holder": (SimpleNamespace(messages=[HumanMessage("x")]), "messages", "give its messages"),
    "a typing mistake": (
        {"content": "x", "timestmp": 5},
        "messages[0]",
        "'timestmp'; other data belongs in metadata; did you mean timestamp?",
    ),
    "a synonym": ({"content": "x", "author": "ana"}, "messages[0]", "did you mean sender?"),
    "a wrong time": ({"content": "x", "timestamp": 5}, "messages[0].timestamp", "is too small for seconds since 1970"),
    "nested metadata": (
        {"content": "x", "metadata": {"a": {}}},
        "messages[0].metadata['a']",
        "expected a text, a number",
    ),
    "no number": (
        {"content": "x", "metadata": {"a": float("nan")}},
        "messages[0].metadata['a']",
        "not a finite number",
    ),
    "a NUL": (HumanMessage("a\0b"), "messages[0].content", "holds a NUL character at position 1"),
}


def test_a_message_that_cannot_be_read_is_refused_by_name_and_nothing_is_stored(memory: Memory) -> None:
    for name, (messages, field, problem) in WRONG.items():
        with pytest.raises(HoldfastError) as refused:
            memory.add(messages)
        assert refused.value.field == field, name
        assert problem in str(refused.value), name
        assert len(str(refused.value)) < 400, name
    memory.add("Sound.")
    assert memory.stats().messages == 1
    with pytest.raises(HoldfastError, match="is a memory, not a message; use remember for it"):
        memory.add(memory.remember("Ana is calm."))
