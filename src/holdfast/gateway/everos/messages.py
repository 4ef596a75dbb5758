"""Converts EverOS messages to drafts, and back.

A draft's text contains the text items, one per line, then every tool call as `name(arguments)`, so that a search finds
calls too. Fields that only an EverOS client reads again (sender name, id of the answered call, raw tool calls) become
metadata; calls that are too long for metadata are in the text only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException

from holdfast.domain.checks import MAX_METADATA_CHARS
from holdfast.domain.transcript import Draft, Message, Role
from holdfast.errors import AccessDenied, InvalidInput
from holdfast.gateway.everos.schemas import EverosToolCall, MessageItem, UnprocessedMessage, format_time, moment_of

_NAME, _CALLS, _ANSWERS, _SAID = "sender_name", "tool_calls", "tool_call_id", "content_chars"


def drafts_of(messages: Sequence[MessageItem], user_id: str | None) -> list[Draft]:
    """Convert all messages, or raise for all of them. Messages without text are skipped.

    Messages with role user must be from this user; without one, from anybody.
    """
    drafts: list[Draft] = []
    for index, message in enumerate(messages):
        if message.role == "user" and user_id not in (None, message.sender_id):
            raise AccessDenied(
                f"messages[{index}].sender_id: is not the user of this key; send that user's id, or the other"
                " user's key"
            )
        content, calls = _text_content(message, index), message.tool_calls or []
        text = "\n".join(part for part in (content, *map(_format_call, calls)) if part.strip())
        if text:
            drafts.append(_to_draft(index, message, text, _metadata(message, content, calls)))
    if not drafts:
        raise InvalidInput("messages", "all messages are empty; send at least one with content")
    return drafts


def _text_content(message: MessageItem, index: int) -> str:
    for place, item in enumerate(message.content):
        if item.type != "text":
            raise HTTPException(
                415,
                f"messages[{index}].content[{place}].type: only text is supported here; send files to POST /resources,"
                " which accepts text, Markdown, HTML, PDF and DOCX",
            )
    return "\n".join(item.text or "" for item in message.content)


def _format_call(call: EverosToolCall) -> str:
    return f"{call.function.name}({call.function.arguments})"


def _metadata(message: MessageItem, content: str, calls: Sequence[EverosToolCall]) -> dict[str, str]:
    metadata: dict[str, str] = {}
    if message.sender_name is not None and message.sender_name.strip():
        metadata[_NAME] = message.sender_name
    if message.tool_call_id is not None:
        metadata[_ANSWERS] = message.tool_call_id
    if calls:
        metadata[_SAID] = str(len(content) if content.strip() else 0)
        sent = json.dumps([call.model_dump() for call in calls], ensure_ascii=False, separators=(",", ":"))
        if len(sent) <= MAX_METADATA_CHARS:
            metadata[_CALLS] = sent
    return metadata


def _to_draft(index: int, message: MessageItem, text: str, metadata: dict[str, str]) -> Draft:
    try:
        return Draft(
            text=text,
            sender=message.sender_id,
            role=Role(message.role),
            said_at=moment_of(message.timestamp),
            external_id=_answer_id(message, text),
            metadata=metadata,
        )
    except InvalidInput as error:
        field = error.field.removeprefix("metadata['").removesuffix("']")
        raise type(error)(f"messages[{index}].{_FIELDS.get(field, field)}", error.problem) from None


_FIELDS = {"text": "content", "sender": "sender_id"}


def _answer_id(message: MessageItem, text: str) -> str | None:
    """An id that includes the call: two tools may return the same text at once, and neither is a retry of the other."""
    if message.tool_call_id is None:
        return None
    parts = [message.tool_call_id, message.sender_id, message.timestamp, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def to_unprocessed_message(message: Message, session_id: str) -> UnprocessedMessage:
    """Convert a message that no flush has sealed yet back to its original form."""
    # Other callers may have used the same names for anything.
    noted = {name: value for name, value in message.metadata.items() if isinstance(value, str)}
    size = noted.get(_SAID)
    return UnprocessedMessage(
        id=message.id,
        app_id=message.scope.app or "",
        project_id=message.scope.project or "",
        session_id=session_id,
        sender_id=message.sender or "",
        sender_name=noted.get(_NAME),
        role=message.role,
        content=message.text if size is None or not size.isdecimal() else message.text[: int(size)],
        timestamp=format_time(message.said_at),
        tool_calls=_calls(noted.get(_CALLS)),
        tool_call_id=noted.get(_ANSWERS),
    )


def _calls(stored: str | None) -> list[dict[str, Any]] | None:
    """Parse stored tool calls, or return None for anything else."""
    try:
        calls = json.loads(stored or "null")
    except (ValueError, RecursionError):
        return None
    return calls if isinstance(calls, list) and all(isinstance(call, dict) for call in calls) else None
