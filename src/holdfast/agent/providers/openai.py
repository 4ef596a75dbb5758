"""Any server with OpenAI's chat completions API, through OpenAI's SDK: OpenAI, Ollama, vLLM, llama.cpp.

Servers differ in small ways, and missing parts are filled in: ids and indexes of tool calls, usage. Reasoning comes in
one of two fields that OpenAI itself does not have, or within the text.
"""

from __future__ import annotations

import json
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
from holdfast.agent.providers.reasoning import ReasoningSplitter
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

_REASONING = ("reasoning_content", "reasoning")


class OpenAIModel:
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
            import openai
        except ImportError:
            raise ModelMisconfigured(MISSING.format(provider="openai")) from None
        self._sdk = openai
        self._model = model
        self._url = base_url
        # The SDK requires a key; without one, each request tells it to omit the header. It reads missing options from
        # the environment: an admin key from there must not go to this address.
        self._client = openai.AsyncOpenAI(
            api_key=api_key.revealed() if api_key else "none",
            admin_api_key="",
            base_url=base_url,
            max_retries=retries,
            timeout=make_timeout(silence_seconds),
        )

        self._left_out = {} if api_key else {"Authorization": openai.Omit()}

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, base_url={self._url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a model holds connections and a key; do not pickle it, open it again in the other process")

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    async def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        failure: ModelError | None = None
        draft = _OpenAIDraft()
        request = self._request(messages, tools)
        try:
            answer = await self._client.chat.completions.create(**request)
            async with answer:
                async for chunk in answer:
                    for piece in draft.take(chunk):
                        yield piece
                    if draft.chars > MAX_REPLY_CHARS:
                        break
        except catchable_errors(self._sdk) as error:
            failure = translate_error(error, self._sdk, where=self._url, model=self._model, name="OPENAI")
        if failure is None and draft.chars > MAX_REPLY_CHARS:
            failure = oversized_answer(self._url)
        if failure is None and not draft.finished:
            failure = incomplete_answer(self._url)
        # Raised outside `except`, so that the exception chain holds nothing of the request.
        if failure is not None:
            raise failure
        for piece in draft.end():
            yield piece

    async def close(self) -> None:
        await self._client.close()

    def _request(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> dict[str, Any]:
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
        return request


def _message(message: ModelMessage) -> dict[str, Any]:
    # Always a text, even if empty: templates of small models print a null.
    payload: dict[str, Any] = {"role": str(message.role), "content": sendable(message.content)}
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
class _OpenAIDraft:
    """A partial answer. The SDK does not validate what it reads, so every field is checked here."""

    texts: list[str] = field(default_factory=list)
    thoughts: ReasoningSplitter = field(default_factory=ReasoningSplitter)
    calls: list[_Call] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    chars: int = 0
    finished: bool = False

    def take(self, chunk: Any) -> Iterator[ModelEvent]:
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self.usage = TokenUsage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        for choice in _list_attribute(chunk, "choices")[:1]:
            delta = getattr(choice, "delta", None)
            for name in _REASONING:
                if thought := _text(delta, name):
                    self.chars += len(thought)
                    yield ReasoningPiece(thought)
                    break
            if text := _text(delta, "content") or _text(delta, "refusal"):
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
        index, call_id, name = getattr(part, "index", None), _text(part, "id"), _text(function, "name")
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


def _text(owner: Any, name: str) -> str:
    value = getattr(owner, name, None)
    return value if isinstance(value, str) else ""


def _list_attribute(owner: Any, name: str) -> list[Any]:
    value = getattr(owner, name, None)
    return value if isinstance(value, list) else []


def _count(owner: Any, name: str) -> int:
    value = getattr(owner, name, None)
    return value if isinstance(value, int) and value > 0 else 0
