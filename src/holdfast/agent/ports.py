"""What the agent's loop needs from outside: a model to speak with, and a place to keep its sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from holdfast.domain.sessions import Event, Json, NewEvent, SessionHit, SessionSummary
from holdfast.domain.transcript import Role

__all__ = [
    "ChatModel", "Event", "Json", "ModelEvent", "ModelMessage", "NewEvent", "ReasoningPiece", "Reply", "Role",
    "SessionHit", "SessionSummary", "Sessions", "TextPiece", "ToolCall", "ToolSpec", "Usage",
]  # fmt: skip


# --- models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants done. `arguments` is the JSON that it wrote, which may be none."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message to or from a model. Only an assistant's has `tool_calls`; only a tool's has `tool_call_id`."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, where the model counts them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """A piece of what the model thinks aloud. It is shown to whoever watches, and kept nowhere."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole answer, when it is written: its text, and what is to be done before the next."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


ModelEvent = TextPiece | ReasoningPiece | Reply


class ChatModel(Protocol):
    """A model that chats. What goes wrong is `ModelUnavailable` or `ModelMisconfigured`."""

    @property
    def name(self) -> str:
        """The provider and the model, such as `openai:qwen3`."""

    def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        """Pieces as they come; a `Reply` is the last event, exactly once. Closing the iterator ends the call."""

    async def close(self) -> None: ...


# --- sessions --------------------------------------------------------------------------------------------------------


class Sessions(Protocol):
    """The agent's sessions: what was said, and what happened beside it. Whatever returns is durable."""

    async def append(self, session_id: str, run_id: str, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        """All of them or none, in one commit; a session that is not there yet begins with them."""

    async def events(self, session_id: str, *, visible: bool = False, last: int | None = None) -> tuple[Event, ...]:
        """In order; only those `context_visible` if asked, and only the `last` so many."""

    async def sessions(self, limit: int = 50, *, before: datetime | None = None) -> tuple[SessionSummary, ...]:
        """The latest first."""

    async def search(self, query: str, *, without: str | None = None, limit: int = 5) -> tuple[SessionHit, ...]:
        """Full text over what was said, best first, at most one hit per session; the session `without` left out."""

    async def delete(self, session_id: str) -> bool:
        """Forget it, text and all; whether it was there."""

    async def close(self) -> None: ...
