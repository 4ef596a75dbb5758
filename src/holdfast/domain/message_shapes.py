"""Messages in the shapes that other programs have them: texts, dictionaries, pairs, and objects.

Objects are read by their attributes, so no other package is imported: messages of LangChain, OpenAI and Anthropic,
completions and responses, dataclasses. Each becomes a draft. One message becomes several drafts if it also holds
results of tools, and none if it holds only what is not kept, such as reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Protocol

from holdfast.domain.call_errors import hint_for
from holdfast.domain.checks import Scalar
from holdfast.domain.content_parts import Content, is_item, is_result, value_of
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.times import parse_time, to_utc
from holdfast.domain.transcript import Draft, Role
from holdfast.errors import InvalidInput, InvalidText, InvalidTimestamp

Clock = Callable[[], datetime]


class HasContent(Protocol):
    @property
    def content(self) -> Any: ...


class HasText(Protocol):
    @property
    def text(self) -> Any: ...


class HasChoices(Protocol):
    """A completion of OpenAI."""

    @property
    def choices(self) -> Any: ...


class HasOutput(Protocol):
    """A response of OpenAI."""

    @property
    def output(self) -> Any: ...


class HasMessage(Protocol):
    """A choice of a completion."""

    @property
    def message(self) -> Any: ...


MessageInput = (
    str | Mapping[str, Any] | Draft | tuple[str, Any] | HasContent | HasText | HasChoices | HasOutput | HasMessage
)
Messages = MessageInput | Iterable[MessageInput]

_OWN_FIELDS = frozenset({"text", "sender", "role", "timestamp", "id", "metadata"})
_FIELDS = ("content", "id", "metadata", "name", "role", "sender", "text", "timestamp")
_TIMES = ("timestamp", "said_at", "created_at", "created")
# Fields of other programs that are read, or hold nothing that is kept.
_OTHER_FIELDS = frozenset(_FIELDS) | frozenset(_TIMES) | frozenset(
    {
        "additional_kwargs", "annotations", "artifact", "audio", "cache_control", "call_id", "choices", "container",
        "context_management", "example", "external_id", "finish_reason", "function_call", "index", "invalid_tool_calls",
        "logprobs", "message", "model", "object", "output", "parsed", "phase", "reasoning", "reasoning_content",
        "reasoning_details", "refusal", "response_metadata", "status", "stop_details", "stop_reason", "stop_sequence",
        "tool_call_id", "tool_calls", "type", "usage", "usage_metadata",
    }
)  # fmt: skip
_SIGNS = ("content", "text", "choices", "output", "message")
ROLES: Mapping[str, Role] = {
    **{role.value: role for role in Role},
    "human": Role.USER, "ai": Role.ASSISTANT, "model": Role.ASSISTANT, "developer": Role.SYSTEM,
    "function": Role.TOOL, "humanmessagechunk": Role.USER, "aimessagechunk": Role.ASSISTANT,
    "systemmessagechunk": Role.SYSTEM, "toolmessagechunk": Role.TOOL, "functionmessagechunk": Role.TOOL,
}  # fmt: skip
# A message said in the future is a mistake. Clocks and zones differ by less than this.
_AHEAD = timedelta(days=1)
_EXPECTED = (
    'a text, a dictionary with "role" and "content", a pair such as ("user", "hi"), or an object with these attributes'
)


def drafts_of(messages: Messages, clock: Clock) -> tuple[Draft, ...]:
    """Return the drafts of one message or several. The error names the message and its field."""
    found: list[Draft] = []
    index = -1
    for index, message in enumerate(_several(messages)):
        try:
            # The common shapes first.
            if isinstance(message, str):
                found.append(Draft(message))
            elif isinstance(message, Draft):
                found.append(message)
            elif type(message) is dict and "text" in message and message.keys() <= _OWN_FIELDS:
                found.append(_plain_draft(message, clock))
            else:
                found += _read_message(message, clock)
        except InvalidInput as error:
            field = f".{error.field}" if error.field else ""
            raise type(error)(f"messages[{index}]{field}", error.problem) from None
    if index >= 0 and not found:
        raise InvalidInput("messages", "hold nothing to store but reasoning or empty answers; give one with text")
    return tuple(found)


def _several(messages: Messages) -> Iterable[Any]:
    if isinstance(messages, str) or _is_message(messages) or _is_pair(messages):
        return (messages,)
    if isinstance(messages, Iterable) and not isinstance(messages, bytes | bytearray) and not _is_model(messages):
        return messages
    kind = _name_of(messages)
    if value_of(messages, "messages") is not None:
        raise InvalidInput("messages", f"got {kind}, which holds several; give its messages: add(history.messages)")
    raise InvalidInput("messages", f"expected {_EXPECTED}, or several of these; got {kind}")


def _is_message(value: object) -> bool:
    if isinstance(value, Mapping | Draft):
        return True
    if isinstance(value, type | list | bytes) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return False
    return any(hasattr(value, sign) for sign in _SIGNS) or is_item(value_of(value, "type"))


def _is_pair(value: object) -> bool:
    """True for a role and a content: two texts of a tuple are two messages, unless the first is a role."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], str) and value[0].lower() in ROLES


def _is_model(value: object) -> bool:
    """True for an object of pydantic. It can be iterated, but over its fields."""
    return hasattr(type(value), "model_fields")


def _plain_draft(message: Mapping[str, Any], clock: Clock) -> Draft:
    timestamp = message.get("timestamp")
    return Draft(
        text=message["text"],
        sender=message.get("sender"),
        role=role_from(message["role"]) if "role" in message else Role.USER,
        said_at=None if timestamp is None else _said_at(timestamp, "timestamp", clock),
        external_id=message.get("id"),
        metadata=_metadata_from(message.get("metadata")),
    )


def role_from(value: object) -> Role:
    """Parse the role of a message, in the words of any of these programs."""
    plain = value.value if isinstance(value, Enum) else value
    found = ROLES.get(plain.lower()) if isinstance(plain, str) else None
    if found is None:
        raise InvalidInput("role", f"there is no {value!r:.60}; use one of {', '.join(Role)}")
    return found


def _metadata_from(value: object) -> dict[str, Scalar]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary, got {type(value).__name__}")
    return dict(value)


def _said_at(value: object, field: str, clock: Clock) -> datetime:
    """Parse the time of a message. One without a zone must not be in the future: it is then a mistake."""
    moment = parse_time(value, field)
    if moment.utcoffset() is not None:
        return to_utc(moment, field)
    moment, present = moment.replace(tzinfo=UTC), clock()
    if moment - present > _AHEAD:
        raise InvalidTimestamp(
            field,
            f"is {(moment - present).days:,} days after now ({present:%Y-%m-%d}), read as UTC; correct the year or the"
            " unit, or give the time a zone if it is meant",
        )
    return moment


# --- the shapes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Envelope:
    """A message, with the role and the time that the object around it gives, such as a completion."""

    message: Any
    role: Role | None = None
    at: tuple[str, object] | None = None


def _read_message(message: object, clock: Clock) -> list[Draft]:
    if isinstance(message, tuple) and not _is_message(message):
        message = _from_pair(message)
    if not _is_message(message):
        raise InvalidInput("", f"expected {_EXPECTED}; got {_name_of(message)}")
    if isinstance(message, MemoryRecord):
        raise InvalidInput("", "is a memory, not a message; use remember for it")
    found = _inside(message)
    if isinstance(found.message, Mapping):
        _check_names(found.message)
    return _drafts(found, clock)


def _name_of(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _from_pair(pair: tuple[Any, ...]) -> Mapping[str, Any]:
    if len(pair) != 2:
        raise InvalidInput("", f'has {len(pair)} values; a pair is a role and a text, such as ("user", "hi")')
    role, content = pair
    return {"role": role_from(role), "content": content}


def _inside(message: Any) -> _Envelope:
    """Find the message in what holds it: a choice, a completion, a response, a dump of LangChain."""
    kind = value_of(message, "type")
    if (
        not _has(message, "content")
        and not _has(message, "text")
        and isinstance(data := value_of(message, "data"), Mapping)
    ):
        return _Envelope({"type": kind, **data})
    if (choices := value_of(message, "choices")) is not None:
        return _Envelope(_only_choice(choices), Role.ASSISTANT, _time_of(message))
    if value_of(message, "role") is None:
        if (inner := value_of(message, "message")) is not None and value_of(message, "content") is None:
            return _Envelope(inner, Role.ASSISTANT, _time_of(message))
        if is_item(kind):
            role = Role.TOOL if is_result(kind) else Role.ASSISTANT
            named = {name: value_of(message, name) for name in ("id", "call_id") if role is Role.TOOL or name == "id"}
            return _Envelope({"role": role, "content": [message], **named})
        if isinstance(output := value_of(message, "output"), list):
            return _Envelope(
                {"content": output, "metadata": value_of(message, "metadata")}, Role.ASSISTANT, _time_of(message)
            )
    return _Envelope(message)


def _only_choice(choices: object) -> Any:
    if not isinstance(choices, list | tuple) or len(choices) != 1:
        count = len(choices) if isinstance(choices, list | tuple) else 0
        raise InvalidInput("choices", f"has {count} choices; give the message of one, such as choices[0].message")
    found = value_of(choices[0], "message")
    if found is None:
        raise InvalidInput("choices[0]", "has no message; the chunks of a stream are not messages: add the whole one")
    return found


def _time_of(message: object) -> tuple[str, object] | None:
    """Return a message's time and the name of its field. Some servers write 0 for none."""
    for name in _TIMES:
        if (value := value_of(message, name)) is not None and not (value == 0 and name.startswith("created")):
            return name, value
    return None


def _check_names(message: Mapping[Any, Any]) -> None:
    """Refuse names that no program uses: a mistyped time or sender must not be lost."""
    for name in message:
        if name in _OTHER_FIELDS or message[name] is None:
            continue
        if name == "messages":
            raise InvalidInput("", "holds several messages; give the list itself: add(state['messages'])")
        hint = hint_for(str(name), _FIELDS)
        raise InvalidInput("", f"has an unknown field {str(name)!r:.60}; other data belongs in metadata; {hint}")


def _drafts(found: _Envelope, clock: Clock) -> list[Draft]:
    """Return a draft for each result of a tool in the message, and one for the rest."""
    message = found.message
    role = _role_of(message, found.role)
    named, given = _content_of(message)
    content = Content(joined=role is Role.ASSISTANT, keeps_results=role is Role.TOOL)
    content.read(given, named)
    _read_spoken(content, message)
    _read_calls(content, message)
    at = found.at or _time_of(message)
    said_at = None if at is None else _said_at(at[1], at[0], clock)
    external_id = _id_of(message)
    drafts = []
    for place, result in enumerate(content.results):
        result_id = external_id and f"{external_id}/{result.call_id or place}"
        metadata = _result_metadata(result.call_id, result.content)
        if text := result.content.text:
            drafts.append(Draft(text, None, Role.TOOL, said_at, result_id, metadata))
    if text := content.text:
        try:
            drafts.append(Draft(text, _sender_of(message), role, said_at, external_id, _metadata_of(message, content)))
        except InvalidInput as error:
            raise type(error)(named if error.field == "text" else error.field, error.problem) from None
    elif not (content.left_out or content.results):
        _check_empty(message, role, named, given)
    return drafts


def _role_of(message: object, outer: Role | None) -> Role:
    role = value_of(message, "role")
    if role is None and not _has(message, "role"):
        # The messages of LangChain have their role as type.
        kind = value_of(message, "type")
        role = kind if isinstance(kind, str) and kind.lower() in ROLES else outer or Role.USER
    return role_from(role)


def _has(message: object, name: str) -> bool:
    return name in message if isinstance(message, Mapping) else hasattr(message, name)


def _content_of(message: object) -> tuple[str, object]:
    """Return what a message says, and the name of the field: `text` and `content` are one."""
    content, text = value_of(message, "content"), value_of(message, "text")
    if not isinstance(message, Mapping) and (
        callable(text) or isinstance(getattr(type(message), "text", None), property)
    ):
        # LangChain's messages have a property of this name, made from their content.
        text = None if _has(message, "content") else text
    if content is not None and text is not None and content != text:
        raise InvalidInput("", "has text and content, and they differ; give one of them")
    return ("text", text) if content is None and text is not None else ("content", content)


def _read_spoken(content: Content, message: object) -> None:
    """Read what a model said outside its content: a refusal, or the words of a recording."""
    if isinstance(refusal := value_of(message, "refusal"), str):
        content.say(refusal)
    if isinstance(spoken := value_of(value_of(message, "audio"), "transcript"), str):
        content.refer("audio", str(value_of(value_of(message, "audio"), "id") or "spoken"))
        content.say(spoken)


def _read_calls(content: Content, message: object) -> None:
    extra = value_of(message, "additional_kwargs")
    calls = value_of(message, "tool_calls") or value_of(extra, "tool_calls") or []
    if not isinstance(calls, list | tuple):
        raise InvalidInput("tool_calls", f"expected a list, got {type(calls).__name__}")
    for index, call in enumerate(calls):
        inner = value_of(call, "function") or value_of(call, "custom") or call
        arguments = (value_of(inner, name) for name in ("arguments", "args", "input"))
        known = next((each for each in arguments if each is not None), None)
        content.call(value_of(call, "id"), value_of(inner, "name"), known, f"tool_calls[{index}]")
    if (call := value_of(message, "function_call") or value_of(extra, "function_call")) is not None:
        content.call(None, value_of(call, "name"), value_of(call, "arguments"), "function_call")


def _check_empty(message: object, role: Role, named: str, content: object) -> None:
    """Refuse a message that says nothing. Models and tools send empty answers, which are left out."""
    if content is None:
        came = [str(name) for name in message] if isinstance(message, Mapping) else [type(message).__name__]
        raise InvalidInput("", f"has neither text nor content, but {', '.join(came) or 'nothing'}; give it one of them")
    if named == "text" or role not in (Role.ASSISTANT, Role.TOOL):
        raise InvalidText(named, "is empty; give it some text")


def _sender_of(message: object) -> Any:
    """Return the sender, or the name. LangChain marks what its own parts wrote in the user's place."""
    if (sender := value_of(message, "sender")) is not None:
        return sender
    return value_of(message, "name") or value_of(value_of(message, "additional_kwargs"), "lc_source") or None


def _id_of(message: object) -> Any:
    """Return the id of a message. A record of a memory has its own id and, of the caller's, an external one."""
    external = value_of(message, "external_id")
    found = value_of(message, "id") if external is None else external
    if isinstance(message, Mapping):
        return found
    return str(found) if type(found) is int else found or None


def _metadata_of(message: object, content: Content) -> dict[str, Scalar]:
    given = value_of(message, "metadata")
    if not isinstance(message, Mapping) and not isinstance(given, Mapping):
        given = None  # of another meaning, such as the metadata of a table
    call_id = value_of(message, "tool_call_id") or value_of(message, "call_id")
    return {**_result_metadata(call_id, content), **_metadata_from(given)}


def _result_metadata(call_id: object, content: Content) -> dict[str, Scalar]:
    noted: dict[str, Scalar] = {**content.references}
    if isinstance(call_id, str) and call_id:
        noted["tool_call_id"] = call_id
    return noted
