"""Any response of a model server becomes an answer or a Holdfast error, and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spoken import Answer, speaking

from holdfast.agent.ports import ModelMessage, Reply, Role
from holdfast.agent.providers.anthropic import AnthropicModel
from holdfast.agent.providers.openai import OpenAIModel
from holdfast.errors import ModelError

WORDS = [
    "id", "index", "type", "choices", "delta", "content", "tool_calls", "function", "name", "arguments",
    "finish_reason", "usage", "prompt_tokens", "completion_tokens", "reasoning", "message", "content_block",
    "text", "thinking", "input", "signature", "partial_json", "stop_reason", "input_tokens", "output_tokens", "data",
    "error",
]  # fmt: skip
KINDS = [
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop", "error", "text", "tool_use", "thinking", "text_delta", "input_json_delta", "thinking_delta",
    "stop", "{}", "<think>",
]  # fmt: skip
leaf = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | st.sampled_from(KINDS) | st.text()
value = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
)
# Nearly valid chunks, with arbitrary values in their fields.
choice = st.fixed_dictionaries(
    {"delta": st.dictionaries(st.sampled_from(WORDS), value, max_size=4)} | {"finish_reason": leaf}
)
chunk = st.one_of(
    value,
    st.fixed_dictionaries({"choices": st.lists(choice, max_size=2)}, optional={"usage": value}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional=dict.fromkeys(("index", "message", "content_block", "delta", "usage"), value),
    ),
)


@pytest.mark.parametrize("kind", [OpenAIModel, AnthropicModel])
@settings(max_examples=60, deadline=None)
@given(chunks=st.lists(chunk, max_size=6))
def test_an_odd_answer_is_an_answer_or_an_error_of_ours(kind: Any, chunks: list[Any]) -> None:
    def event(said: Any) -> bytes:
        name = said.get("type") if isinstance(said, dict) else None
        marked = f"event: {name}\n" if name in KINDS else "event: message_delta\n"
        return f"{marked if kind is AnthropicModel else ''}data: {json.dumps(said)}\n\n".encode()

    async def talk(url: str) -> None:
        model = kind("m", base_url=url, retries=0)
        try:
            events = [each async for each in model.stream([ModelMessage(Role.USER, "Hello")], ())]
        except ModelError:
            return
        finally:
            await model.close()
        assert isinstance(events[-1], Reply)
        assert not any(isinstance(each, Reply) for each in events[:-1])
        for call in events[-1].tool_calls:
            assert isinstance(call.id, str)
            assert isinstance(call.arguments, str)

    with speaking(Answer(pieces=[event(said) for said in chunks])) as server:
        asyncio.run(talk(server.url))
