"""Anthropic's models, through Anthropic's SDK.

The message format differs: the system prompt is separate, user and assistant take turns, and tool results are a user's.
If a model reasoned before it called a tool, its signed reasoning must be sent back with the results: it is held in
memory for the last few calls, and passed to nobody else.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

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
from holdfast.agent.providers.sdk_model import (
    ReplyDraft,
    SdkModel,
    new_call_id,
    parse_arguments,
    text_attribute,
)
from holdfast.agent.texts import encodable

MAX_TOKENS = 8_192
"""Limit for one answer. The API requires one, and every current model accepts this number."""
_REMEMBERED = 64
_THOUGHTS = ("thinking", "redacted_thinking")
_Block = dict[str, Any]


class AnthropicModel(SdkModel):
    """Implements `ChatModel`. Without a key, none is sent."""

    provider = "anthropic"
    sdk_error = "AnthropicError"

    def _connect(self, key: str | None, **options: Any) -> Any:
        self._thought: OrderedDict[str, list[_Block]] = OrderedDict()
        # The SDK reads missing options from the environment and the disk; an empty key prevents that.
        return self._sdk.AsyncAnthropic(api_key=key or "", **options)

    async def close(self) -> None:
        self._thought.clear()
        await super().close()

    def _prepare_call(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]
    ) -> tuple[ReplyDraft, Callable[[], Awaitable[Any]]]:
        request: dict[str, Any] = {
            "model": self._model,
            "max_tokens": MAX_TOKENS,
            "messages": _turns(messages, self._thought),
            "stream": True,
            "extra_headers": self._left_out,
        }
        system = "\n\n".join(message.content for message in messages if message.role is Role.SYSTEM)
        if system.strip():
            request["system"] = encodable(system)
        if tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in tools
            ]
        elif called := dict.fromkeys(call.name for message in messages for call in message.tool_calls):
            # The API requires tools that were called before to be declared; `tool_choice` forbids further calls.
            request["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
            request["tool_choice"] = {"type": "none"}
        return _AnthropicDraft(remembered=self._thought), partial(self._client.messages.create, **request)


def _turns(messages: Sequence[ModelMessage], thought: dict[str, list[_Block]]) -> list[_Block]:
    """Convert messages to turns, a user's first. Blank texts are left out: the API refuses them."""
    turns: list[_Block] = []
    for message in messages:
        blocks = _blocks(message, thought)
        if not blocks:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [{"type": "text", "text": "(what was said before is left out)"}]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ModelMessage, thought: dict[str, list[_Block]]) -> list[_Block]:
    if message.role is Role.SYSTEM:
        return []
    if message.role is Role.TOOL:
        return [
            {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": encodable(message.content)}
        ]
    texts = [{"type": "text", "text": encodable(message.content)}] if message.content.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments)}
        for call in message.tool_calls
    ]
    first = message.tool_calls[0].id if message.tool_calls else ""
    return [*thought.get(first, ()), *texts, *calls]


@dataclass(slots=True)
class _AnthropicDraft(ReplyDraft):
    """A partial answer. Its reasoning goes to `remembered` if it calls tools."""

    remembered: OrderedDict[str, list[_Block]] = field(default_factory=OrderedDict)
    blocks: list[_Block] = field(default_factory=list)
    places: dict[int, _Block] = field(default_factory=dict)

    def take(self, event: Any) -> Iterator[ModelEvent]:
        kind = getattr(event, "type", None)
        if kind == "message_start":
            self._count(getattr(getattr(event, "message", None), "usage", None))
        elif kind == "message_delta":
            self._count(getattr(event, "usage", None))
            self.finished = bool(getattr(getattr(event, "delta", None), "stop_reason", None))
        elif kind == "content_block_start":
            yield from self._begin_block(getattr(event, "index", 0), getattr(event, "content_block", None))
        elif kind == "content_block_delta":
            yield from self._continue_block(self.places.get(getattr(event, "index", 0)), getattr(event, "delta", None))

    def _begin_block(self, index: int, block: Any) -> Iterator[ModelEvent]:
        kind = text_attribute(block, "type")
        started: _Block = {"type": kind}
        if kind == "text":
            started["text"] = ""
        elif kind == "tool_use":
            arguments = getattr(block, "input", None)
            started |= {
                "id": text_attribute(block, "id"),
                "name": text_attribute(block, "name"),
                "json": "",
                "input": arguments or {},
            }
        elif kind == "thinking":
            started |= {"thinking": "", "signature": text_attribute(block, "signature")}
        elif kind == "redacted_thinking":
            started["data"] = text_attribute(block, "data")
        self.places[index] = started
        self.blocks.append(started)
        # A block may begin with text.
        yield from self._append_text(
            started, text_attribute(block, "text") if kind == "text" else text_attribute(block, "thinking")
        )

    def _continue_block(self, block: _Block | None, delta: Any) -> Iterator[ModelEvent]:
        if block is None:
            return
        kind = text_attribute(delta, "type")
        if kind == "input_json_delta" and block["type"] == "tool_use":
            block["json"] += text_attribute(delta, "partial_json")
            self.chars += len(text_attribute(delta, "partial_json"))
        elif kind == "signature_delta" and block["type"] == "thinking":
            block["signature"] += text_attribute(delta, "signature")
        elif kind in ("text_delta", "thinking_delta"):
            yield from self._append_text(block, text_attribute(delta, kind.removesuffix("_delta")))

    def _append_text(self, block: _Block, words: str) -> Iterator[ModelEvent]:
        if not words or block["type"] not in ("text", "thinking"):
            return
        self.chars += len(words)
        block[block["type"]] += words
        yield TextPiece(words) if block["type"] == "text" else ReasoningPiece(words)

    def _count(self, usage: Any) -> None:
        """Update the usage. The counts are totals so far, not increments."""
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        counts = [count for name in names if isinstance(count := getattr(usage, name, None), int)]
        output = getattr(usage, "output_tokens", None)
        self.usage = TokenUsage(
            max(sum(counts), self.usage.input_tokens), output if isinstance(output, int) else self.usage.output_tokens
        )

    def end(self) -> Iterator[ModelEvent]:
        text = "".join(block["text"] for block in self.blocks if block["type"] == "text")
        calls = tuple(
            ToolCall(block["id"] or new_call_id(), block["name"], block["json"] or json.dumps(block["input"]))
            for block in self.blocks
            if block["type"] == "tool_use" and block["name"]
        )
        thoughts = [block for block in self.blocks if block["type"] in _THOUGHTS]
        if calls and thoughts:
            self.remembered[calls[0].id] = thoughts
            while len(self.remembered) > _REMEMBERED:
                self.remembered.popitem(last=False)
        yield Reply(text, calls, self.usage)
