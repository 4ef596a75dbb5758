"""Sessions of an agent: their messages and other events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.domain.transcript import Role

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewSessionEvent:
    """An event to append to a session. Without `context_visible` it is never shown to a model, nor searched."""

    kind: str
    content: str = ""
    role: Role | None = None
    data: Json = field(default_factory=dict)
    context_visible: bool = False


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event of a session. `number` counts from 1 within the session."""

    number: int
    session_id: str
    run_id: str
    at: datetime
    kind: str
    content: str
    role: Role | None
    data: Json
    context_visible: bool


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list. `title` is the beginning of the user's first message; `messages` counts all messages."""

    id: str
    title: str
    started_at: datetime
    last_at: datetime
    messages: int


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A matching message of a session. `around` are its neighbours in order, without the message itself."""

    session_id: str
    number: int
    at: datetime
    role: Role
    text: str
    around: tuple[SessionEvent, ...] = ()
