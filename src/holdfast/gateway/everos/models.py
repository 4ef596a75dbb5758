"""What requests and answers look like under EverOS's prefix: its names, bounds and defaults.

Unknown fields are taken and left alone, as its clients expect. Types are not guessed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from holdfast.domain.scope import MAX_PART_CHARS, check_part
from holdfast.domain.times import from_micros
from holdfast.errors import InvalidScope
from holdfast.gateway.models import CHAT, MAX_MESSAGES, MAX_PAGE, MAX_TOP_K

T = TypeVar("T")

AS_MANY_AS_ALLOWED = -1
_MAX_SESSION_CHARS = 128
_MAX_NAME_CHARS = 1_000
# Numbers from here on are milliseconds; smaller ones are seconds, as EverOS reads them.
_FIRST_MS = 10**12
_LAST_MS = 253_402_300_799_999

Method = Literal["hybrid", "keyword", "vector"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill"]
SenderRole = Literal["user", "assistant", "tool"]
_OWNED_BY_USERS = ("episode", "profile")


def conversation_of(session_id: str) -> str:
    """`chat:42` and `42` are one conversation, here and on the gateway's own routes."""
    return session_id.removeprefix(CHAT)


def moment_of(timestamp: int) -> datetime:
    """A moment in milliseconds since 1970, or in seconds."""
    millis = timestamp if timestamp >= _FIRST_MS else timestamp * 1_000
    if not 0 < millis <= _LAST_MS:
        raise ValueError("must be milliseconds since 1970, such as 1780000000000")
    return from_micros(millis * 1_000)


def _timestamp(given: int) -> int:
    moment_of(given)
    return given


def problem_of(session_id: str) -> str | None:
    """Why no conversation can have this name, if so."""
    try:
        check_part("session_id", conversation_of(session_id))
    except InvalidScope as error:
        return error.problem
    return None


def _session(given: str) -> str:
    if (problem := problem_of(given)) is not None:
        raise ValueError(problem)
    return given


# Letters, digits, `_`, `.` and `-`, but neither `.` nor `..`.
ScopeId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=r"^(?:\.{0,2}[a-zA-Z0-9_-]|\.{3})[a-zA-Z0-9_.-]*$"),
]
SessionId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_MAX_SESSION_CHARS),
    AfterValidator(_session),
    Field(examples=["demo-1"]),
]
Owner = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Filters = Annotated[
    dict[str, Any],
    Field(
        description="On session_id, sender_id, timestamp, parent_type and parent_id: a value, or eq, ne, gt, gte, lt,"
        " lte, in; joined by AND and OR."
    ),
]


class Given(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Scoped(Given):
    app_id: ScopeId = "default"
    project_id: ScopeId = "default"


class ContentItem(Given):
    """A part of a message. Only text is kept; nothing that a `uri` names is ever fetched."""

    type: Annotated[str, StringConstraints(min_length=1)]
    text: str | None = None
    uri: str | None = None
    base64: str | None = None

    @model_validator(mode="after")
    def _one_payload(self) -> Self:
        if self.type == "text" and (self.text is None or self.uri is not None or self.base64 is not None):
            raise ValueError("an item of type text needs `text`, and no `uri` or `base64`")
        return self


def _items(given: Any) -> Any:
    return [{"type": "text", "text": given}] if isinstance(given, str) else given


# A text is short for one item of it. Read as such, what is wrong is named by its own place.
# One that is wrong is enough: a million of them would take many seconds to tell.
Content = Annotated[
    list[ContentItem],
    Field(fail_fast=True),
    BeforeValidator(_items, json_schema_input_type=str | list[ContentItem]),
]


class ToolFunction(Given):
    name: Annotated[str, StringConstraints(min_length=1)]
    arguments: str


class ToolCall(Given):
    id: str
    type: str = "function"
    function: ToolFunction


class MessageItem(Given):
    sender_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)]
    sender_name: Annotated[str, StringConstraints(max_length=_MAX_NAME_CHARS)] | None = None
    role: SenderRole
    timestamp: Annotated[int, Field(gt=0, le=_LAST_MS), AfterValidator(_timestamp)] = Field(
        description="When it was said, in milliseconds since 1970, UTC.", examples=[1780000000000]
    )
    content: Content
    tool_calls: Annotated[list[ToolCall], Field(fail_fast=True)] | None = None
    tool_call_id: Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARS)] | None = Field(
        default=None, description="Needed if the role is tool."
    )

    @model_validator(mode="after")
    def _answers_a_call(self) -> Self:
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message of role tool needs tool_call_id")
        return self


class AddInput(Scoped):
    session_id: SessionId
    messages: Annotated[list[MessageItem], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    defer_extraction: bool = Field(default=False, description="Taken; extraction always waits for a flush.")


class FlushInput(Scoped):
    session_id: SessionId


class Owned(Scoped):
    """Exactly one of `user_id`, which is the key's user, and `agent_id`."""

    user_id: Owner | None = None
    agent_id: Owner | None = None

    @model_validator(mode="after")
    def _one_owner(self) -> Self:
        if (self.user_id is None) == (self.agent_id is None):
            raise ValueError("give exactly one of user_id and agent_id")
        return self


class SearchInput(Owned):
    """`include_profile` and `enable_llm_rerank` are taken from clients that send them; they change nothing."""

    query: Annotated[str, StringConstraints(min_length=1)]
    method: Method = "hybrid"
    top_k: Annotated[int, Field(ge=AS_MANY_AS_ALLOWED, le=MAX_TOP_K, json_schema_extra={"not": {"const": 0}})] = (
        AS_MANY_AS_ALLOWED
    )
    radius: Share | None = None
    min_score: Share | None = None
    include_profile: bool = False
    enable_llm_rerank: bool = False
    filters: Filters | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.top_k == 0:
            raise ValueError("top_k must be -1 or 1 to 100")
        return self


class GetInput(Owned):
    memory_type: MemoryType
    page: Annotated[int, Field(ge=1)] = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 20
    sort_by: Literal["timestamp", "updated_at"] = "timestamp"
    sort_order: Literal["asc", "desc"] = "desc"
    filters: Filters | None = None

    @model_validator(mode="after")
    def _of_that_owner(self) -> Self:
        if (self.memory_type in _OWNED_BY_USERS) != (self.user_id is not None):
            needed = "user_id" if self.memory_type in _OWNED_BY_USERS else "agent_id"
            raise ValueError(f"memory_type {self.memory_type} needs {needed}")
        return self


# --- answers ---


class Told(BaseModel):
    """A part of an answer's body."""

    model_config = ConfigDict(extra="forbid")


class Envelope(Told, Generic[T]):
    request_id: str
    data: T


class AddData(Told):
    message_count: int
    status: Literal["accumulated"]


class FlushData(Told):
    status: Literal["extracted", "no_extraction"]


class Episode(Told):
    """A message or a memory. `user_id` is null for what the whole space shares."""

    id: str
    user_id: str | None
    app_id: str
    project_id: str
    session_id: str
    timestamp: str
    sender_ids: list[str]
    summary: str
    subject: str
    episode: str
    type: Literal["Conversation"] = "Conversation"


class AtomicFact(Told):
    id: str
    content: str
    score: float


class FoundEpisode(Episode):
    score: float
    atomic_facts: list[AtomicFact]


class UnprocessedMessage(Told):
    id: str
    app_id: str
    project_id: str
    session_id: str
    sender_id: str
    sender_name: str | None
    role: str
    content: str
    timestamp: str
    tool_calls: list[dict[str, Any]] | None
    tool_call_id: str | None


class SearchData(Told):
    """No profiles, agent cases or agent skills are kept: those lists are there, and empty."""

    episodes: list[FoundEpisode] = []
    profiles: list[dict[str, Any]] = []
    agent_cases: list[dict[str, Any]] = []
    agent_skills: list[dict[str, Any]] = []
    unprocessed_messages: list[UnprocessedMessage] = []


class GetData(Told):
    """`total_count` is of all pages, `count` of this one."""

    episodes: list[Episode] = []
    profiles: list[dict[str, Any]] = []
    agent_cases: list[dict[str, Any]] = []
    agent_skills: list[dict[str, Any]] = []
    total_count: int = 0
    count: int = 0
