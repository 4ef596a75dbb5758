"""Any server with OpenAI's chat completions API, through OpenAI's SDK: OpenAI, Ollama, vLLM, llama.cpp.

Servers differ in small ways, and missing parts are filled in: ids and indexes of tool calls, usage. Reasoning comes in
one of two fields that OpenAI itself does not have, or within the text.
"""

from __future__ import annotations

import json
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
from holdfast.agent.providers.reasoning import ReasoningSplitter
from holdfast.agent.providers.sdk_model import (
    ReplyDraft,
    SdkModel,
    new_call_id,
    parse_arguments,
    text_attribute,
)
from holdfast.agent.texts import encodable

_REASONING = ("reasoning_content", "reasoning")


class OpenAIModel(SdkModel):
    """Implements `ChatModel`. Without a key, none is sent."""

    provider = "openai"
    sdk_error = "OpenAIError"

    def _connect(self, key: str | None, **options: Any) -> Any:
        # The SDK requires a key; without one, each request tells it to omit the header. It reads missing options from
        # the environment: an admin key from there must not go to this address.
        return self._sdk.AsyncOpenAI(api_key=key or "none", admin_api_key="", **options)

    def _prepare_call(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]
    ) -> tuple[ReplyDraft, Callable[[], Awaitable[Any]]]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [_message(message) for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "extra_headers": self._left_out,
        }
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in tools
            ]
        return _OpenAIDraft(), partial(self._client.chat.completions.create, **request)


def _message(message: ModelMessage) -> dict[str, Any]:
    # Always a text, even if empty: templates of small models print a null.
    payload: dict[str, Any] = {"role": str(message.role), "content": encodable(message.content)}
    if message.role is Role.TOOL:
        payload["tool_call_id"] = message.tool_call_id or ""
    if message.tool_calls:
        payload["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(parse_arguments(call.arguments))},
            }
            for call in message.tool_calls
        ]
    return payload


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def is_complete(self) -> bool:
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class _OpenAIDraft(ReplyDraft):
    texts: list[str] = field(default_factory=list)
    thoughts: ReasoningSplitter = field(default_factory=ReasoningSplitter)
    calls: list[_Call] = field(default_factory=list)

    def take(self, event: Any) -> Iterator[ModelEvent]:
        usage = getattr(event, "usage", None)
        if usage is not None:
            self.usage = TokenUsage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        for choice in _list_attribute(event, "choices")[:1]:
            delta = getattr(choice, "delta", None)
            for name in _REASONING:
                if thought := text_attribute(delta, name):
                    self.chars += len(thought)
                    yield ReasoningPiece(thought)
                    break
            if text := text_attribute(delta, "content") or text_attribute(delta, "refusal"):
                self.chars += len(text)
                yield from self._collect_text(self.thoughts.take(text))
            for part in _list_attribute(delta, "tool_calls"):
                self._add(part)
            self.finished = self.finished or bool(getattr(choice, "finish_reason", None))

    def end(self) -> Iterator[ModelEvent]:
        yield from self._collect_text(self.thoughts.end())
        yield self._reply()

    def _collect_text(self, pieces: Iterator[TextPiece | ReasoningPiece]) -> Iterator[ModelEvent]:
        for piece in pieces:
            if isinstance(piece, TextPiece):
                self.texts.append(piece.text)
            yield piece

    def _add(self, part: Any) -> None:
        function = getattr(part, "function", None)
        index, call_id, name = (
            getattr(part, "index", None),
            text_attribute(part, "id"),
            text_attribute(function, "name"),
        )
        call = self._find_call(index if isinstance(index, int) else None, call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = getattr(function, "arguments", None)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        call.arguments += text
        self.chars += len(text)

    def _find_call(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call that a part belongs to; a new one if it fits no open call."""
        same = [call for call in self.calls if call.index == index] if index is not None else self.calls
        found = same[-1] if same else None
        if found is not None and call_id and found.id:
            another = call_id != found.id
        else:
            # Some servers give every call the same index, or none, and no id; each call then comes complete.
            another = found is not None and bool(name and found.name) and (index is None or found.is_complete)
        if found is None or another:
            found = _Call(index)
            self.calls.append(found)
        return found

    def _reply(self) -> Reply:
        used: set[str] = set()
        calls = []
        for call in self.calls:
            if not call.name:
                continue
            call_id = call.id if call.id and call.id not in used else new_call_id()
            used.add(call_id)
            calls.append(ToolCall(call_id, call.name, call.arguments or "{}"))
        return Reply("".join(self.texts), tuple(calls), self.usage)


def _list_attribute(owner: Any, name: str) -> list[Any]:
    value = getattr(owner, name, None)
    return value if isinstance(value, list) else []


def _count(owner: Any, name: str) -> int:
    value = getattr(owner, name, None)
    return value if isinstance(value, int) and value > 0 else 0
