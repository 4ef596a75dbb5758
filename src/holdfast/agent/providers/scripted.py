"""A model with scripted replies, for tests and demonstrations."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.agent.ports import ModelEvent, ModelMessage, Reply, TextPiece, ToolSpec
from holdfast.errors import ModelMisconfigured

Written = Reply | BaseException | Sequence[ModelEvent]
"""One scripted answer: a reply, an error, or the exact events, the last of them a reply."""
Line = Written | Callable[[Sequence[ModelMessage], Sequence[ToolSpec]], Written | Awaitable[Written]]
_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """The arguments of one call."""

    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...]


class ScriptedModel:
    """Implements `ChatModel`. Each call takes the next line of the script; `asked` has the arguments of each.

    `ended` counts the streams that have ended, whether they were read to the end or closed before.
    """

    def __init__(self, replies: Iterable[Line] = (), *, name: str = "scripted:replies") -> None:
        self.name = name
        self._lines = list(replies)
        self.asked: list[ScriptedCall] = []
        self.ended = 0
        self.closed = False

    async def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        self.asked.append(ScriptedCall(tuple(messages), tuple(tools)))
        try:
            for event in await self._events(messages, tools):
                yield event
        finally:
            self.ended += 1

    async def _events(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> Sequence[ModelEvent]:
        number = len(self.asked)
        if number > len(self._lines):
            raise ModelMisconfigured(f"the script has {len(self._lines)} replies, and this is call {number}: add one")
        line = self._lines[number - 1]
        if callable(line):
            answer = line(messages, tools)
            line = await answer if inspect.isawaitable(answer) else answer
        if isinstance(line, BaseException):
            raise line
        return [*map(TextPiece, _PIECE.findall(line.text)), line] if isinstance(line, Reply) else line

    async def close(self) -> None:
        self.closed = True
