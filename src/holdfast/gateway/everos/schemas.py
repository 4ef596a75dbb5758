"""Schemas of requests and responses under EverOS's prefix, with its names, limits and defaults.

Unknown fields are ignored, as its clients expect. Types are not coerced.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from holdfast.domain.checks import MAX_QUERY_CHARS, MAX_TEXT_CHARS
from holdfast.domain.conditions import MAX_LEAVES
from holdfast.domain.external_uris import MAX_URI_CHARS
from holdfast.domain.resources import MAX_CONTENT_BYTES
from holdfast.domain.scope import MAX_PART_CHARS, check_part
from holdfast.domain.times import from_micros
from holdfast.errors import InvalidScope
from holdfast.gateway.schemas import CHAT, MAX_PAGE, MAX_TOP_K, Ignored, NoEffect
from holdfast.runtime.add import MAX_SERVED_MESSAGES

T = TypeVar("T")

AS_MANY_AS_ALLOWED = -1
_MAX_SESSION_CHARS = 128
_MAX_NAME_CHARS = 1_000
_MAX_BASE64_CHARS = -(-MAX_CONTENT_BYTES // 3) * 4
_MAX_PAGE_NUMBER = 10**30  # far beyond the last page, which is empty
# Numbers from here on are milliseconds; smaller ones are seconds, as EverOS reads them.
_FIRST_MS = 10**12
_LAST_MS = 253_402_300_799_999

Method = Literal["hybrid", "keyword", "vector"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill"]
SenderRole = Literal["user", "assistant", "tool"]
_OWNED_BY_USERS = ("episode", "profile")


def conversation_of(session_id: str) -> str:
    """The conversation of a session: `chat:42` and `42` are the same one, as on the gateway's own routes."""
    return session_id.removeprefix(CHAT)


def moment_of(timestamp: int) -> datetime:
    """Convert milliseconds or seconds since 1970."""
    millis = timestamp if timestamp >= _FIRST_MS else timestamp * 1_000
    if not 0 < millis <= _LAST_MS:
        raise ValueError("must be milliseconds since 1970, such as 1780000000000")
    return from_micros(millis * 1_000)


def format_time(moment: datetime) -> str:
    """Format in UTC, as 2026-05-28T11:30:36.125Z."""
    return (
        moment.astimezone(UTC)
        .isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
        .replace("+00:00", "Z")
    )


def _timestamp(value: int) -> int:
    moment_of(value)
    return value


def _count(top_k: int) -> int:
    if top_k == 0:
        raise ValueError("must be -1 or 1 to 100")
    return top_k


def problem_of(session_id: str) -> str | None:
    """The reason why this is not a valid conversation name, if it is not."""
    try:
        check_part("session_id", conversation_of(session_id))
    except InvalidScope as error:
        return error.problem
    return None


def _session(value: str) -> str:
    if (problem := problem_of(value)) is not None:
        raise ValueError(problem)
    return value


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
Owner = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARS)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
Share = Annotated[float, Field(ge=0, le=1)]
TopK = Annotated[
    int,
    Field(ge=AS_MANY_AS_ALLOWED, le=MAX_TOP_K, json_schema_extra={"not": {"const": 0}}),
    AfterValidator(_count),
]
PageNumber = Annotated[int, Field(ge=1, le=_MAX_PAGE_NUMBER)]
PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]
Filters = Annotated[
    dict[str, Any],
    Field(
        max_length=MAX_LEAVES,
        description="On session_id, sender_id, timestamp, parent_type and parent_id: a value, or eq, ne, gt, gte, lt,"
        " lte, in; joined by AND and OR.",
    ),
]


class EverosRequest(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="ignore", strict=True)


class EverosScopedRequest(EverosRequest):
    app_id: ScopeId = "default"
    project_id: ScopeId = "default"


class ContentItem(EverosRequest):
    """A part of a message. Only text is stored; a `uri` is never fetched."""

    type: Name
    text: Text | None = None
    uri: Annotated[str, StringConstraints(max_length=MAX_URI_CHARS)] | None = None
    base64: Annotated[str, StringConstraints(max_length=_MAX_BASE64_CHARS)] | None = None

    @model_validator(mode="after")
    def _one_payload(self) -> Self:
        if self.type == "text" and (self.text is None or self.uri is not None or self.base64 is not None):
            raise ValueError("an item of type text needs `text`, and no `uri` or `base64`")
        return self


def text_items(value: Any) -> Any:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


# A string is short for one text item. Converting it first makes errors name the right location.
# `fail_fast`: reporting a million errors would take many seconds.
Content = Annotated[
    list[ContentItem],
    Field(max_length=MAX_SERVED_MESSAGES, fail_fast=True),
    BeforeValidator(
        text_items,
        json_schema_input_type=Text | Annotated[list[ContentItem], Field(max_length=MAX_SERVED_MESSAGES)],
    ),
]


class ToolFunction(EverosRequest):
    name: Name
    arguments: Text


class EverosToolCall(EverosRequest):
    id: Annotated[str, StringConstraints(max_length=_MAX_NAME_CHARS)]
    type: Annotated[str, StringConstraints(max_length=_MAX_NAME_CHARS)] = "function"
    function: ToolFunction


SenderId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)]
Timestamp = Annotated[
    int,
    Field(
        gt=0,
        le=_LAST_MS,
        description="When the message was said, in milliseconds since 1970, UTC.",
        examples=[1780000000000],
    ),
    AfterValidator(_timestamp),
]
ToolCallId = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_NAME_CHARS)]


class MessageItem(EverosRequest):
    sender_id: SenderId
    sender_name: Annotated[str, StringConstraints(max_length=_MAX_NAME_CHARS)] | None = None
    role: SenderRole
    timestamp: Timestamp
    content: Content
    tool_calls: Annotated[list[EverosToolCall], Field(max_length=MAX_SERVED_MESSAGES, fail_fast=True)] | None = None
    tool_call_id: ToolCallId | None = Field(default=None, description="Required if the role is tool.")

    @model_validator(mode="after")
    def _answers_a_call(self) -> Self:
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message of role tool needs tool_call_id")
        return self


class AddInput(EverosScopedRequest):
    session_id: SessionId
    messages: Annotated[list[MessageItem], Field(min_length=1, max_length=MAX_SERVED_MESSAGES, fail_fast=True)]
    defer_extraction: NoEffect


class FlushInput(EverosScopedRequest):
    session_id: SessionId


class OwnedRequest(EverosScopedRequest):
    """Send exactly one of `user_id`, which must be the key's user, and `agent_id`."""

    user_id: Owner | None = None
    agent_id: Owner | None = None

    @model_validator(mode="after")
    def _one_owner(self) -> Self:
        if (self.user_id is None) == (self.agent_id is None):
            raise ValueError("send exactly one of user_id and agent_id")
        return self


class SearchInput(OwnedRequest):
    """A search in the memory of one owner."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "ana", "query": "Where does Ana live?"}]})

    query: Query
    method: Method = "hybrid"
    top_k: TopK = AS_MANY_AS_ALLOWED
    radius: Share | None = None
    min_score: Share | None = None
    include_profile: NoEffect
    enable_llm_rerank: NoEffect
    filters: Filters | None = None


class GetInput(OwnedRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "ana", "memory_type": "episode"}]})

    memory_type: MemoryType
    page: PageNumber = 1
    page_size: PageSize = 20
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


class EverosResponse(BaseModel):
    """A part of a response's body."""

    model_config = ConfigDict(extra="forbid")


class Envelope(EverosResponse, Generic[T]):
    request_id: str
    data: T


class AddData(EverosResponse):
    message_count: int
    status: Literal["accumulated"]
    ignored: Ignored


class FlushData(EverosResponse):
    status: Literal["extracted", "no_extraction"]


class Episode(EverosResponse):
    """A message or a memory. `user_id` is null for records shared by the whole space."""

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


class AtomicFact(EverosResponse):
    id: str
    content: str
    score: float


class FoundEpisode(Episode):
    score: float
    atomic_facts: list[AtomicFact]


class UnprocessedMessage(EverosResponse):
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


class SearchData(EverosResponse):
    """Profiles, agent cases and agent skills are not supported: those lists are empty."""

    episodes: list[FoundEpisode] = []
    profiles: list[dict[str, Any]] = []
    agent_cases: list[dict[str, Any]] = []
    agent_skills: list[dict[str, Any]] = []
    unprocessed_messages: list[UnprocessedMessage] = []
    ignored: Ignored


class GetData(EverosResponse):
    """`total_count` counts all pages, `count` this one."""

    episodes: list[Episode] = []
    profiles: list[dict[str, Any]] = []
    agent_cases: list[dict[str, Any]] = []
    agent_skills: list[dict[str, Any]] = []
    total_count: int = 0
    count: int = 0
