"""An agent's sessions: what was said in them, and what happened beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.domain.transcript import Role

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewEvent:
    """Something that happened in a session. What is not `context_visible` is never shown to a model, nor searched."""

    kind: str
    content: str = ""
    role: Role | None = None
    data: Json = field(default_factory=dict)
    context_visible: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """`number` counts from 1 within the session."""

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
    """`title` is the beginning of the first thing that the user said; `messages` counts what was said."""

    id: str
    title: str
    started_at: datetime
    last_at: datetime
    messages: int


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A message of a session that matches, with what was said around it (without the message itself), in order."""

    session_id: str
    number: int
    at: datetime
    role: Role
    text: str
    around: tuple[Event, ...] = ()
