"""Anthropic's models, through Anthropic's SDK.

The message format differs: the system prompt is separate, user and assistant take turns, and tool results are a user's.
If a model reasoned before it called a tool, its signed reasoning must be sent back with the results: it is held in
memory for the last few calls, and passed to nobody else.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

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
from holdfast.agent.providers.sdk_errors import (
    MAX_REPLY_CHARS,
    MISSING,
    RETRIES,
    SILENCE_SECONDS,
    catchable_errors,
    incomplete_answer,
    make_timeout,
    new_call_id,
    oversized_answer,
    parse_arguments,
    sendable,
    translate_error,
)
from holdfast.domain.secret import Secret
from holdfast.errors import ModelError, ModelMisconfigured

MAX_TOKENS = 8_192
"""Limit for one answer. The API requires one, and every current model accepts this number."""
_REMEMBERED = 64
_THOUGHTS = ("thinking", "redacted_thinking")
_Block = dict[str, Any]


class AnthropicModel:
    """Implements `ChatModel`. Without a key, none is sent."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: Secret | None = None,
        retries: int = RETRIES,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        """`silence_seconds` limits the wait for the first output, and for each further piece."""
        try:
            import anthropic
        except ImportError:
            raise ModelMisconfigured(MISSING.format(provider="anthropic")) from None
        self._sdk = anthropic
        self._model = model
        self._url = base_url
        # The SDK reads missing options from the environment and the disk; an empty key prevents that.
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key.revealed() if api_key else "",
            base_url=base_url,
            max_retries=retries,
            timeout=make_timeout(silence_seconds),
        )
        self._left_out = {} if api_key else {"Authorization": anthropic.Omit()}
        self._thought: OrderedDict[str, list[_Block]] = OrderedDict()

    def __repr__(self) -> str:
        return f"AnthropicModel({self._model!r}, base_url={self._url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a model holds connections and a key; do not pickle it, open it again in the other process")

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}"

    async def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        failure: ModelError | None = None
        draft = _AnthropicDraft()
        request = self._request(messages, tools)
        try:
            answer = await self._client.messages.create(**request)
            async with answer:
                async for event in answer:
                    for piece in draft.take(event):
                        yield piece
                    if draft.chars > MAX_REPLY_CHARS:
                        break
        except catchable_errors(self._sdk) as error:
            failure = translate_error(error, self._sdk, where=self._url, model=self._model, name="ANTHROPIC")
        if failure is None and draft.chars > MAX_REPLY_CHARS:
            failure = oversized_answer(self._url)
        if failure is None and not draft.finished:
            failure = incomplete_answer(self._url)
        # Raised outside `except`, so that the exception chain holds nothing of the request.
        if failure is not None:
            raise failure
        reply = draft.reply()
        self._remember(reply, draft)
        yield reply

    async def close(self) -> None:
        self._thought.clear()
        await self._client.close()

    def _request(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "max_tokens": MAX_TOKENS,
            "messages": _turns(messages, self._thought),
            "stream": True,
            "extra_headers": self._left_out,
        }
        system = "\n\n".join(message.content for message in messages if message.role is Role.SYSTEM)
        if system.strip():
            request["system"] = sendable(system)
        if tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in tools
            ]
        elif called := dict.fromkeys(call.name for message in messages for call in message.tool_calls):
            # The API requires tools that were called before to be declared; `tool_choice` forbids further calls.
            request["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
            request["tool_choice"] = {"type": "none"}
        return request

    def _remember(self, reply: Reply, draft: _AnthropicDraft) -> None:
        if not reply.tool_calls or not any(block["type"] in _THOUGHTS for block in draft.blocks):
            return
        self._thought[reply.tool_calls[0].id] = draft.thoughts
        while len(self._thought) > _REMEMBERED:
            self._thought.popitem(last=False)


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
            {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": sendable(message.content)}
        ]
    texts = [{"type": "text", "text": sendable(message.content)}] if message.content.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": parse_arguments(call.arguments)}
        for call in message.tool_calls
    ]
    first = message.tool_calls[0].id if message.tool_calls else ""
    return [*thought.get(first, ()), *texts, *calls]


@dataclass(slots=True)
class _AnthropicDraft:
    """A partial answer. The SDK does not validate what it reads, so every field is checked here."""

    blocks: list[_Block] = field(default_factory=list)
    places: dict[int, _Block] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    chars: int = 0
    finished: bool = False

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
        kind = _text(block, "type")
        started: _Block = {"type": kind}
        if kind == "text":
            started["text"] = ""
        elif kind == "tool_use":
            arguments = getattr(block, "input", None)
            started |= {"id": _text(block, "id"), "name": _text(block, "name"), "json": "", "input": arguments or {}}
        elif kind == "thinking":
            started |= {"thinking": "", "signature": _text(block, "signature")}
        elif kind == "redacted_thinking":
            started["data"] = _text(block, "data")
        self.places[index] = started
        self.blocks.append(started)
        # A block may begin with text.
        yield from self._append_text(started, _text(block, "text") if kind == "text" else _text(block, "thinking"))

    def _continue_block(self, block: _Block | None, delta: Any) -> Iterator[ModelEvent]:
        if block is None:
            return
        kind = _text(delta, "type")
        if kind == "input_json_delta" and block["type"] == "tool_use":
            block["json"] += _text(delta, "partial_json")
            self.chars += len(_text(delta, "partial_json"))
        elif kind == "signature_delta" and block["type"] == "thinking":
            block["signature"] += _text(delta, "signature")
        elif kind in ("text_delta", "thinking_delta"):
            yield from self._append_text(block, _text(delta, kind.removesuffix("_delta")))

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

    @property
    def thoughts(self) -> list[_Block]:
        return [block for block in self.blocks if block["type"] in _THOUGHTS]

    def reply(self) -> Reply:
        text = "".join(block["text"] for block in self.blocks if block["type"] == "text")
        calls = tuple(
            ToolCall(block["id"] or new_call_id(), block["name"], block["json"] or json.dumps(block["input"]))
            for block in self.blocks
            if block["type"] == "tool_use" and block["name"]
        )
        return Reply(text, calls, self.usage)


def _text(owner: Any, name: str) -> str:
    value = getattr(owner, name, None)
    return value if isinstance(value, str) else ""
