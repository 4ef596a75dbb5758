"""Messages: ordered turns with attribution. Evidence, not yet truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from holdfast.domain.arguments import MetadataArgument, text_rule
from holdfast.domain.checks import MAX_TEXT_CHARS, Metadata, check_enum, check_metadata, checked_text
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.memory import Plane, Status
from holdfast.domain.presentable import Presentable
from holdfast.domain.scope import Scope
from holdfast.domain.times import checked_time

DEFAULT_CONVERSATION = "default"
MAX_EXTERNAL_ID_CHARS = 256
MAX_SENDER_CHARS = 256


class Role(StrEnum):
    """The role of a message's sender in the conversation."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to add."""

    text: Annotated[str, text_rule(MAX_TEXT_CHARS)]
    sender: Annotated[str, text_rule(MAX_SENDER_CHARS)] | None = None
    role: Role = Role.USER
    said_at: datetime | None = None
    external_id: Annotated[str, text_rule(MAX_EXTERNAL_ID_CHARS)] | None = None
    metadata: MetadataArgument = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_text(self.text, "text")
        if self.sender is not None:
            checked_text(self.sender, "sender", max_chars=MAX_SENDER_CHARS)
        if self.external_id is not None:
            checked_text(self.external_id, "id", max_chars=MAX_EXTERNAL_ID_CHARS)
        check_enum(self.role, Role, "role")
        if self.said_at is not None:
            object.__setattr__(self, "said_at", checked_time(self.said_at, "timestamp"))
        check_metadata(self.metadata)


@dataclass(frozen=True, slots=True)
class Message(Presentable):
    """A stored message. `position` counts within its conversation, from 0.

    With `superseded_at`, a memory replaced it at that time: it is kept, but no longer searched. It has the status of
    its turn, and a plane only if its authority is private.
    """

    _summary: ClassVar[tuple[str, ...]] = ("text", "sender", "role", "id")
    _columns: ClassVar[tuple[str, ...]] = ("text", "sender", "role", "said_at", "id")

    id: MessageId
    turn_id: TurnId
    scope: Scope
    position: int
    text: str
    sender: str | None
    role: Role
    said_at: datetime
    recorded_at: datetime
    external_id: str | None
    source: str | None
    metadata: Metadata
    superseded_at: datetime | None = None
    status: Status = Status.ACCEPTED
    plane: Plane | None = None

    @property
    def revision(self) -> int:
        """Always 1: messages are never rewritten."""
        return 1
