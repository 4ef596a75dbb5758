"""Schemas of requests and responses, except those under EverOS's prefix.

Unknown fields are refused by name, and types are not coerced: a number in quotes is not a number.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    create_model,
)

from holdfast.control.schemas import RequestModel, ResponseModel, request_field
from holdfast.domain.arguments import alternate_names, arguments_of
from holdfast.domain.checks import (
    LEAST_WHOLE,
    MAX_METADATA_CHARS,
    MAX_METADATA_ENTRIES,
    MAX_QUERY_CHARS,
    MAX_TEXT_CHARS,
    MOST_WHOLE,
    Scalar,
)
from holdfast.domain.conditions import MAX_LEAVES
from holdfast.domain.external_uris import MAX_URI_CHARS
from holdfast.domain.forgetting import MAX_FORGET_IDS
from holdfast.domain.memory import Plane
from holdfast.domain.resources import MAX_CONTENT_BYTES
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.domain.search import SearchOptions
from holdfast.domain.transcript import DEFAULT_CONVERSATION
from holdfast.runtime.add import MAX_SERVED_MESSAGES
from holdfast.runtime.recall import RecallMemory

CHAT = "chat:"
RESOURCE = "resource:"
DEFAULT_SESSION = f"{CHAT}{DEFAULT_CONVERSATION}"
MAX_TOP_K = 100
MAX_PAGE = 100
# Epoch milliseconds of 1973 to 5138: seconds and microseconds of our time fall outside.
_FIRST_MS, _LAST_MS = 10**11, 10**14
_MILLIS: dict[str, Any] = {"minimum": _FIRST_MS, "exclusiveMaximum": _LAST_MS}

ScopeName = Literal["current_chat", "resources", "all_user_memory"]
Method = Literal["hybrid", "keyword", "vector"]
SenderRole = Literal["user", "assistant", "tool", "system"]


def milliseconds(value: int) -> int:
    if 0 < value < _FIRST_MS:
        raise ValueError("looks like seconds; send milliseconds since 1970, such as 1780000000000")
    if not 0 < value < _LAST_MS:
        raise ValueError("must be milliseconds since 1970, such as 1780000000000")
    return value


def chat_session(value: str) -> str:
    if not value.startswith(CHAT) or not value[len(CHAT) :].strip():
        raise ValueError("must be `chat:` and the conversation, such as chat:42")
    return value


def bare_conversation(value: str) -> str:
    if value.startswith(CHAT):
        raise ValueError(f"must be the conversation without `{CHAT}`")
    return value


def known_session(value: str) -> str:
    if value.startswith(RESOURCE):
        return value
    try:
        return chat_session(value)
    except ValueError:
        raise ValueError("must be `chat:` and the conversation, or `resource:`, the user and the resource") from None


Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)]
Millis = Annotated[int, AfterValidator(milliseconds), Field(examples=[1780000000000], json_schema_extra=_MILLIS)]
ChatSession = Annotated[
    str,
    StringConstraints(max_length=MAX_PART_CHARS + len(CHAT)),
    AfterValidator(chat_session),
    Field(examples=["chat:42"]),
]
# A time in ISO 8601, from a datetime.
Time = Annotated[str, BeforeValidator(datetime.isoformat)]
Session = Annotated[str, StringConstraints(max_length=2 * MAX_PART_CHARS), AfterValidator(known_session)]

UserKey = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS)]
Planes = Annotated[list[Annotated[Plane, Field(strict=False)]], Field(max_length=len(Plane))]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Scopes = Annotated[list[ScopeName], Field(min_length=1, max_length=3)]


class SignedRequest(RequestModel):
    """The user and the user's key; the key may be in the Authorization header instead."""

    user_id: Name | None = Field(default=None, description="Required if the key is in the body.")
    user_key: UserKey | None = Field(default=None, description="Or `Authorization: Bearer uk_…`.")
    app_id: Name = "default"
    project_id: Name = "default"


# Accepted from clients of EverOS. A response names those that the request had.
_NO_EFFECT = ("async_mode", "defer_extraction", "enable_llm_rerank", "include_original_data", "include_profile")
NoEffect = Annotated[bool | None, Field(default=None, description="Has no effect; the response names it as ignored.")]
Ignored = Annotated[
    list[str],
    Field(
        default=[],
        exclude_if=lambda names: not names,
        description="Fields of the request that have no effect, if it has any.",
    ),
]


def ignored_fields(body: BaseModel) -> list[str]:
    """The fields of a request that have no effect."""
    fields = vars(body)
    return [name for name in _NO_EFFECT if fields.get(name) is not None]


# --- users ---


class CreateUserRequest(RequestModel):
    user_id: Name
    user_key: UserKey | None = Field(default=None, description="The current key of an existing user.")


class UserKeyResponse(ResponseModel):
    """`user_key` is returned once, when it is created."""

    user_id: str
    user_key: str | None = None


class UserResponse(ResponseModel):
    user_id: str = Field(validation_alias="id")
    created_at: Time
    rotated_at: Time | None
    revoked_at: Time | None


class UserListResponse(ResponseModel):
    users: list[UserResponse] = Field(validation_alias="items")
    next_cursor: str | None


# --- conversations ---


MetadataName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_METADATA_CHARS)]
MetadataText = Annotated[str, StringConstraints(max_length=MAX_METADATA_CHARS)]
# The engine checks the numbers.
_WHOLE: dict[str, Any] = {"minimum": LEAST_WHOLE, "maximum": MOST_WHOLE}
MetadataValue = (
    MetadataText
    | Annotated[StrictInt, Field(json_schema_extra=_WHOLE)]
    | Annotated[StrictFloat, Field(json_schema_extra={"format": "double"})]
    | StrictBool
    | None
)


def _no_parts(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError("is a list of parts; send their text")
    return value


class MessageRequest(RequestModel):
    sender_id: Name | None = Field(default=None, description="For role user, by default the user of the key.")
    role: SenderRole = "user"
    timestamp: Millis | None = Field(
        default=None, description="When the message was said, in milliseconds since 1970, UTC; by default now."
    )
    content: Annotated[Text, BeforeValidator(_no_parts)]
    metadata: Annotated[dict[MetadataName, MetadataValue], Field(max_length=MAX_METADATA_ENTRIES)] | None = Field(
        default=None,
        description="Texts, numbers, true, false or null by name, stored with the message and returned with it.",
    )


def _as_message(value: Any) -> Any:
    return {"content": value} if isinstance(value, str) else value


def _as_messages(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


# A text is short for a message of the user. Converting it first makes errors name the right location.
AnyMessage = Annotated[MessageRequest, BeforeValidator(_as_message, json_schema_input_type=Text | MessageRequest)]
_MANY: dict[str, Any] = {"min_length": 1, "max_length": MAX_SERVED_MESSAGES}
Messages = Annotated[
    list[AnyMessage],
    Field(**_MANY, fail_fast=True),
    BeforeValidator(
        _as_messages,
        json_schema_input_type=Text | MessageRequest | Annotated[list[Text | MessageRequest], Field(**_MANY)],
    ),
]


class AddMessagesRequest(SignedRequest):
    session_id: ChatSession = DEFAULT_SESSION
    messages: Messages = Field(
        description="One message or several. A text is a message of the user, said now.",
        examples=["I moved to Lisbon last week."],
    )
    defer_extraction: NoEffect


class SkippedMessageResponse(ResponseModel):
    index: int
    reason: str
    id: str | None = Field(validation_alias="message_id")


class AddMessagesResponse(ResponseModel):
    """`message_ids` has one id per message sent; null for one that was forgotten before and is not stored again."""

    session_id: str
    message_count: int
    status: Literal["accumulated"]
    message_ids: list[str | None]
    stored: int
    skipped: list[SkippedMessageResponse]
    replayed: bool
    ignored: Ignored


class FlushRequest(SignedRequest):
    session_id: ChatSession = DEFAULT_SESSION


class FlushResponse(ResponseModel):
    session_id: str
    status: Literal["extracted", "no_extraction"]
    message_count: int


# Options of a search that the route declares itself, or has by another name: `scope` and `filters`.
_OWN_OPTIONS = ("top_k", "kind", "planes", "source", "quarantined", "method", "radius", "condition")
_options: dict[str, Any] = {
    each.name: request_field(each) for each in arguments_of(SearchOptions) if each.name not in _OWN_OPTIONS
}
SEARCH_OPTIONS = tuple(_options)
_OptionsRequest: Any = create_model("SearchOptionsRequest", __base__=SignedRequest, **_options)


class SearchRequest(_OptionsRequest):  # type: ignore[misc]
    """Only `query` is required."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]
    conversation_id: Annotated[Name, AfterValidator(bare_conversation)] | None = None
    scope: Scopes | None = Field(
        default=None,
        description="Where to search. By default current_chat and resources if conversation_id is sent, else"
        " all_user_memory.",
    )
    method: Method = "hybrid"
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = Field(
        default=8, validation_alias=AliasChoices("top_k", *alternate_names("top_k"))
    )
    radius: Annotated[float, Field(ge=0, le=1, strict=False)] | None = Field(
        default=None, description="The minimum semantic similarity, from 0 to 1."
    )
    filters: Annotated[dict[str, Any], Field(max_length=MAX_LEAVES)] | None = Field(
        default=None,
        description="On session_id, sender_id and timestamp: a value, or eq, ne, gt, gte, lt, lte, in; AND, OR.",
    )
    planes: Planes | None = Field(default=None, description="Only memories of these planes.")
    include_profile: NoEffect
    enable_llm_rerank: NoEffect


class SearchResultResponse(ResponseModel):
    id: str
    session_id: str | None
    text: str
    score: float
    source_scope: ScopeName
    resource_uri: str | None
    raw: dict[str, Any]


class SearchResponse(ResponseModel):
    results: list[SearchResultResponse]
    ignored: Ignored


_budgets: dict[str, Any] = {
    each.name: request_field(each)
    for each in arguments_of(RecallMemory)
    if each.name in ("budget_chars", "budget_tokens")
}
_searched: dict[str, Any] = {
    name: (field.annotation, field)
    for name, field in SearchRequest.model_fields.items()
    if name not in SignedRequest.model_fields
}
RecallRequest: Any = create_model(
    "RecallRequest",
    __base__=SignedRequest,
    __doc__="A search whose result is one message for a model, within its budget in characters or tokens.",
    **{
        **_searched,
        **_budgets,
        "scope": (Scopes, Field(default=["all_user_memory"])),
        "min_score": (
            Annotated[float, Field(ge=0, le=1, strict=False)] | None,
            Field(default=None, description="The floor of relevance, from 0 (all) to 1; by default the engine's."),
        ),
    },
)


class RecallResponse(SearchResponse):
    """`message` and `results` are empty if nothing bears on the query; `reason` says why. `omitted` counts the rest."""

    message: str
    reason: str | None
    omitted: dict[str, int]


# --- memories ---


class MemoryResponse(ResponseModel):
    """A message or a memory. Its id and revision make its ETag."""

    id: str
    kind: Literal["message", "memory"]
    session_id: str | None
    text: str
    revision: int
    sender_id: str | None
    role: str | None
    timestamp: int
    recorded_at: Time
    plane: str | None
    trust: str | None
    status: str | None
    valid_from: Time | None
    valid_until: Time | None
    superseded_at: Time | None
    reason: str | None
    resource_uri: str | None
    evidence: list[str]
    contradicts: list[str]
    app_id: str | None
    project_id: str | None
    metadata: dict[str, Scalar]


class MemoryListResponse(ResponseModel):
    memories: list[MemoryResponse]
    next_cursor: str | None


class HistoryResponse(ResponseModel):
    revisions: list[MemoryResponse]


class ForgetRequest(SignedRequest):
    """Send exactly one of `ids`, `session_id` and `everything`. Without `token`, the call is a preview."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"session_id": DEFAULT_SESSION}]})

    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_FORGET_IDS)] | None = None
    session_id: Session | None = None
    everything: bool = Field(default=False, description="All of this user's memory in this app and project.")
    token: Id | None = None


class OutsideMemoryResponse(ResponseModel):
    """A binding to an external provider. What was sent there remains until it is removed there."""

    binding: str
    provider: str


class RetainedBackupResponse(ResponseModel):
    """A backup of the store that still holds what was forgotten: the name of its file, and when it was made."""

    id: str
    name: str
    made_at: Time


class ForgetReceiptResponse(ResponseModel):
    """The receipt of a forget. `scrubbed` is false while a job still has to remove the bytes from the files.

    `deliveries` of hooks lost their payloads. `remaining_outside` names the memories that the forget did not reach,
    `backups` the known backups that still hold what was forgotten.
    """

    operation_id: str
    messages: int
    memories: int
    revisions: int
    resources: int
    tombstones: int
    remaining: int
    scrubbed: bool
    forgotten_at: Time
    deliveries: int = 0
    tool_entries: int = 0
    remaining_outside: list[OutsideMemoryResponse] = Field(default=[])
    backups: list[RetainedBackupResponse] = Field(default=[])


class ForgetResponse(ResponseModel):
    """A preview has a `token`: repeat the request with it to forget. A completed forget has a `receipt`."""

    token: str | None = None
    messages: int
    memories: int
    derived: int = 0
    weakened: int = 0
    resources: int
    ids: list[str] = Field(default=[])
    truncated: bool = False
    deliveries: int = 0
    tool_entries: int = 0
    remaining_outside: list[OutsideMemoryResponse] = Field(default=[])
    receipt: ForgetReceiptResponse | None = None


# --- resources ---


class ResourceResponse(ResponseModel):
    resource_id: str
    session_id: str
    uri: str
    name: str
    media_type: str
    sha256: str
    bytes: int
    chunks: int
    recorded_at: Time
    status: Literal["extracted"] = "extracted"
    reused: bool = False


class ResourceListResponse(ResponseModel):
    resources: list[ResourceResponse]
    next_cursor: str | None


class UploadRequest(SignedRequest):
    """A multipart form with a file."""

    # Every field of a form is text.
    model_config = ConfigDict(extra="forbid", strict=False)

    file: UploadFile = Field(description="Text, Markdown, HTML, PDF or DOCX.")


class ExternalResourceRequest(SignedRequest):
    """A document stored elsewhere. The request contains its text: nothing is ever fetched."""

    uri: Annotated[str, StringConstraints(min_length=1, max_length=MAX_URI_CHARS)]
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_BYTES)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"


class HealthResponse(ResponseModel):
    status: Literal["ok"]
