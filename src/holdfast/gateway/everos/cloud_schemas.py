"""Schemas of requests and responses of EverOS's cloud, as its Python package sends and reads them.

Unknown fields are refused, and types are not coerced.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from holdfast.control.schemas import RequestModel
from holdfast.domain.contract import MAX_OBJECT_FIELDS
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.gateway.everos.schemas import (
    AS_MANY_AS_ALLOWED,
    ContentItem,
    Episode,
    EverosResponse,
    EverosToolCall,
    Filters,
    MessageItem,
    Method,
    Name,
    PageNumber,
    PageSize,
    Query,
    SenderId,
    SessionId,
    Share,
    Text,
    Timestamp,
    ToolCallId,
    ToolFunction,
    TopK,
    text_items,
)
from holdfast.gateway.schemas import Id, Ignored, NoEffect, ignored_fields
from holdfast.runtime.add import MAX_SERVED_MESSAGES

UserId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PART_CHARS),
    Field(description="The user of the key, or one that the key reaches.", examples=["ana"]),
]
Facts = Annotated[dict[Name, Any], Field(max_length=MAX_OBJECT_FIELDS)]
MemoryKind = Literal["episodic_memory", "profile", "agent_case", "agent_skill"]
SearchedKind = Literal["episodic_memory", "profile", "raw_message", "agent_memory"]
_OF_FILES = ("ext", "extras", "name", "source", "source_info")


def _example(body: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [body]})


class CloudContentItem(ContentItem, RequestModel):
    """A part of a message. Only text is stored; a `uri` is never fetched."""

    ext: Name | None = Field(default=None, description="Has no effect; the response names it as ignored.")
    extras: Facts | None = Field(default=None, description="Has no effect; the response names it as ignored.")
    name: Name | None = Field(default=None, description="Has no effect; the response names it as ignored.")
    source: Name | None = Field(default=None, description="Has no effect; the response names it as ignored.")
    source_info: Facts | None = Field(default=None, description="Has no effect; the response names it as ignored.")


CloudContent = Annotated[
    list[CloudContentItem],
    Field(max_length=MAX_SERVED_MESSAGES, fail_fast=True),
    BeforeValidator(
        text_items,
        json_schema_input_type=Text | Annotated[list[CloudContentItem], Field(max_length=MAX_SERVED_MESSAGES)],
    ),
]


class CloudToolFunction(ToolFunction, RequestModel):
    """A function that was called."""


class CloudToolCall(EverosToolCall, RequestModel):
    """A call of a tool by the assistant."""

    function: CloudToolFunction


class CloudMessage(RequestModel):
    """A message between a user and an assistant."""

    sender_id: SenderId | None = Field(default=None, description="By default the user, or the role of another sender.")
    role: Literal["user", "assistant"]
    timestamp: Timestamp
    content: CloudContent


class TrajectoryMessage(RequestModel):
    """A message of an agent's work, with calls of tools and their results."""

    sender_id: SenderId | None = Field(default=None, description="By default the user, or the role of another sender.")
    role: Literal["user", "assistant", "tool"]
    timestamp: Timestamp
    content: CloudContent | None = Field(default=None, description="May be missing beside tool_calls.")
    tool_calls: Annotated[list[CloudToolCall], Field(max_length=MAX_SERVED_MESSAGES, fail_fast=True)] | None = None
    tool_call_id: ToolCallId | None = Field(default=None, description="Required if the role is tool.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message of role tool needs tool_call_id")
        if self.tool_calls and self.role != "assistant":
            raise ValueError("only a message of role assistant has tool_calls")
        if self.content is None and not self.tool_calls:
            raise ValueError("a message needs content, or tool_calls")
        return self


def to_item(message: CloudMessage | TrajectoryMessage, user: str) -> MessageItem:
    """Convert to a message of EverOS's own service. `user` is the sender of a user's message that names none."""
    return MessageItem.model_construct(
        sender_id=message.sender_id or (user if message.role == "user" else message.role),
        role=message.role,
        timestamp=message.timestamp,
        content=message.content or [],
        tool_calls=getattr(message, "tool_calls", None),
        tool_call_id=getattr(message, "tool_call_id", None),
    )


class CloudOwnedRequest(RequestModel):
    """A request about one conversation of a user; without `session_id`, about the one named `default`."""

    user_id: UserId
    session_id: SessionId | None = None


class CloudAddRequest(CloudOwnedRequest):
    messages: Annotated[list[CloudMessage], Field(min_length=1, max_length=MAX_SERVED_MESSAGES, fail_fast=True)]
    async_mode: NoEffect


class TrajectoryAddRequest(CloudOwnedRequest):
    model_config = _example(
        {
            "user_id": "ana",
            "messages": [{"role": "user", "timestamp": 1780000000000, "content": "Restart the printer."}],
        }
    )

    messages: Annotated[list[TrajectoryMessage], Field(min_length=1, max_length=MAX_SERVED_MESSAGES, fail_fast=True)]
    async_mode: NoEffect


def ignored_in(body: CloudAddRequest | TrajectoryAddRequest) -> list[str]:
    """The fields of an add that have no effect, also those of its items."""
    items = [item for message in body.messages for item in message.content or ()]
    unused = [name for name in _OF_FILES if any(getattr(item, name) is not None for item in items)]
    return [*ignored_fields(body), *(f"messages.content.{name}" for name in unused)]


class CloudFlushRequest(CloudOwnedRequest):
    """Seal a conversation."""


class CloudGetRequest(RequestModel):
    model_config = _example({"filters": {"user_id": "ana"}, "memory_type": "episodic_memory"})

    filters: Filters
    memory_type: MemoryKind
    page: PageNumber = 1
    page_size: PageSize = 20
    rank_by: Literal["timestamp", "updated_at"] = "timestamp"
    rank_order: Literal["asc", "desc"] = "desc"


class CloudSearchRequest(RequestModel):
    model_config = _example({"filters": {"user_id": "ana"}, "query": "Where does Ana live?"})

    filters: Filters
    query: Query
    include_original_data: NoEffect
    memory_types: Annotated[list[SearchedKind], Field(min_length=1, max_length=4)] = Field(default=["episodic_memory"])
    method: Method = "hybrid"
    radius: Share | None = None
    top_k: TopK = AS_MANY_AS_ALLOWED


class CloudDeleteRequest(RequestModel):
    """Send `memory_id`, or `user_id` with or without `session_id`. Deletion is permanent."""

    model_config = _example({"user_id": "ana", "session_id": "demo-1"})

    memory_id: Id | None = None
    user_id: UserId | None = None
    session_id: Annotated[str, StringConstraints(max_length=MAX_PART_CHARS)] | None = None
    sender_id: Annotated[str, StringConstraints(max_length=MAX_PART_CHARS)] | None = Field(
        default=None, description="Not supported."
    )
    group_id: Annotated[str, StringConstraints(max_length=MAX_PART_CHARS)] | None = Field(
        default=None, description="Not supported; null and an empty text match all memories."
    )


# --- answers ---


class CloudAddData(EverosResponse):
    message: str
    message_count: int
    status: Literal["accumulated"]
    task_id: str | None
    ignored: Ignored


class CloudFlushData(EverosResponse):
    message: str
    status: Literal["extracted", "no_extraction"]


class CloudTaskData(EverosResponse):
    task_id: str
    status: Literal["success"]


class CloudEpisode(Episode):
    """A message or a memory."""

    participants: list[str]
    group_id: None = None


class CloudFact(EverosResponse):
    id: str
    atomic_fact: str
    score: float


class FoundCloudEpisode(CloudEpisode):
    score: float
    atomic_facts: list[CloudFact]


class AgentCase(EverosResponse):
    """A message of an agent's work."""

    id: str
    user_id: str | None
    session_id: str
    task_intent: str
    approach: str
    timestamp: str


class FoundAgentCase(AgentCase):
    score: float


class ProceduralSkill(EverosResponse):
    """A procedural memory."""

    id: str
    user_id: str | None
    name: str
    description: str
    content: str


class FoundProceduralSkill(ProceduralSkill):
    score: float


class AgentMemoryData(EverosResponse):
    cases: list[FoundAgentCase] = Field(default_factory=list)
    skills: list[FoundProceduralSkill] = Field(default_factory=list)


class RawMessage(EverosResponse):
    """A message that no flush has sealed yet."""

    id: str
    request_id: str
    message_id: str
    sender_id: str
    sender_name: str | None
    session_id: str
    content_items: list[dict[str, str]]
    timestamp: str
    created_at: str
    updated_at: str


class SearchedQuery(EverosResponse):
    text: str
    method: str
    filters_applied: dict[str, Any]


class CloudSearchData(EverosResponse):
    query: SearchedQuery
    episodes: list[FoundCloudEpisode] = Field(default_factory=list)
    profiles: list[dict[str, Any]] = Field(default_factory=list)
    agent_memory: AgentMemoryData = AgentMemoryData()
    raw_messages: list[RawMessage] = Field(default_factory=list)
    ignored: Ignored


class CloudGetData(EverosResponse):
    """`total_count` counts all pages, `count` this one."""

    episodes: list[CloudEpisode] = Field(default_factory=list)
    profiles: list[dict[str, Any]] = Field(default_factory=list)
    agent_cases: list[AgentCase] = Field(default_factory=list)
    agent_skills: list[ProceduralSkill] = Field(default_factory=list)
    total_count: int = 0
    count: int = 0
    ignored: Ignored
