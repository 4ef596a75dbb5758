"""Ports of the agent's loop: a chat model, and a store for its sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from holdfast.domain.sessions import Json, NewSessionEvent, SessionEvent, SessionHit, SessionSummary
from holdfast.domain.transcript import Role

__all__ = [
    "ChatModel",
    "Json",
    "ModelEvent",
    "ModelMessage",
    "NewSessionEvent",
    "ReasoningPiece",
    "Reply",
    "Role",
    "SessionEvent",
    "SessionHit",
    "SessionStore",
    "SessionSummary",
    "TextPiece",
    "TokenUsage",
    "ToolCall",
    "ToolSpec",
]  # fmt: skip


# --- models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. `arguments` is the JSON that it wrote, which may be invalid."""

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
    """A tool as described to a model; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts, where the model reports them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer, as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """A piece of the model's reasoning. It is passed to watchers, and stored nowhere."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The complete answer: its text, and the tools to call before the next one."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)


ModelEvent = TextPiece | ReasoningPiece | Reply


class ChatModel(Protocol):
    """A chat model. Its errors are `ModelUnavailable` and `ModelMisconfigured`."""

    @property
    def name(self) -> str:
        """The provider and the model, such as `openai:qwen3`."""

    def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        """Yield pieces as they come, then one reply as the last event. Closing the iterator ends the call."""

    async def close(self) -> None: ...


# --- sessions --------------------------------------------------------------------------------------------------------


class SessionStore(Protocol):
    """The agent's sessions: messages and hidden events. A write is durable when it returns."""

    async def append(self, session_id: str, run_id: str, events: Sequence[NewSessionEvent]) -> tuple[SessionEvent, ...]:
        """Append all events or none, in one commit. Creates the session if it does not exist."""

    async def events(
        self, session_id: str, *, visible: bool = False, last: int | None = None
    ) -> tuple[SessionEvent, ...]:
        """Return events in order: with `visible`, only those `context_visible`; with `last`, only the latest."""

    async def sessions(self, limit: int = 50, *, before: datetime | None = None) -> tuple[SessionSummary, ...]:
        """List sessions, the latest first."""

    async def search(self, query: str, *, without: str | None = None, limit: int = 5) -> tuple[SessionHit, ...]:
        """Search messages by full text, best first, at most one hit per session, none from the session `without`."""

    async def delete(self, session_id: str) -> bool:
        """Delete a session with its text; return whether it existed."""

    async def close(self) -> None: ...
