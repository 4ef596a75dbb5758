"""EverOS's messages as drafts of ours, and back.

A message's text holds all that was said: its text items, a line each, then every tool call as `name(arguments)`, so
that a search finds calls too. What only an EverOS client reads again (the sender's name, which call a tool answers, the
calls as they were sent) is metadata; calls that are too long for that are in the text alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException

from holdfast.domain.metadata import MAX_METADATA_CHARS
from holdfast.domain.transcript import Draft, Message, Role
from holdfast.errors import AccessDenied, InvalidInput
from holdfast.gateway.everos.models import MessageItem, ToolCall, UnprocessedMessage, moment_of
from holdfast.gateway.everos.times import told

_NAME, _CALLS, _ANSWERS, _SAID = "sender_name", "tool_calls", "tool_call_id", "content_chars"


def drafts_of(messages: Sequence[MessageItem], user_id: str) -> list[Draft]:
    """What is to be kept, or a refusal of all of it. A message that says nothing leaves nothing to keep."""
    drafts: list[Draft] = []
    for index, message in enumerate(messages):
        if message.role == "user" and message.sender_id != user_id:
            raise AccessDenied(
                f"messages[{index}].sender_id: what a user says is kept for the user whose key this is; give that"
                " user's id, or the other user's key"
            )
        said, calls = _said(message, index), message.tool_calls or []
        text = "\n".join(part for part in (said, *map(_called, calls)) if part.strip())
        if text:
            drafts.append(_placed(index, message, text, _metadata(message, said, calls)))
    if not drafts:
        raise InvalidInput("messages", "none of them says anything; give at least one a content")
    return drafts


def _said(message: MessageItem, index: int) -> str:
    for place, item in enumerate(message.content):
        if item.type != "text":
            raise HTTPException(
                415,
                f"messages[{index}].content[{place}].type: only text is kept here; send files to POST /resources,"
                " which reads text, Markdown, HTML, PDF and DOCX",
            )
    return "\n".join(item.text or "" for item in message.content)


def _called(call: ToolCall) -> str:
    return f"{call.function.name}({call.function.arguments})"


def _metadata(message: MessageItem, said: str, calls: Sequence[ToolCall]) -> dict[str, str]:
    found: dict[str, str] = {}
    if message.sender_name is not None and message.sender_name.strip():
        found[_NAME] = message.sender_name
    if message.tool_call_id is not None:
        found[_ANSWERS] = message.tool_call_id
    if calls:
        found[_SAID] = str(len(said) if said.strip() else 0)
        sent = json.dumps([call.model_dump() for call in calls], ensure_ascii=False, separators=(",", ":"))
        if len(sent) <= MAX_METADATA_CHARS:
            found[_CALLS] = sent
    return found


def _placed(index: int, message: MessageItem, text: str, metadata: dict[str, str]) -> Draft:
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
        field = error.field.removeprefix("metadata.")
        raise type(error)(f"messages[{index}].{_FIELDS.get(field, field)}", error.problem) from None


_FIELDS = {"text": "content", "sender": "sender_id"}


def _answer_id(message: MessageItem, text: str) -> str | None:
    """Two tools may answer the same at the same moment: that one is no retry of the other."""
    if message.tool_call_id is None:
        return None
    parts = [message.tool_call_id, message.sender_id, message.timestamp, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def unprocessed(message: Message, session_id: str) -> UnprocessedMessage:
    """A message that no flush has sealed yet, as it was sent."""
    metadata = message.metadata
    said = metadata.get(_SAID)
    return UnprocessedMessage(
        id=message.id,
        app_id=message.scope.app or "",
        project_id=message.scope.project or "",
        session_id=session_id,
        sender_id=message.sender or "",
        sender_name=metadata.get(_NAME),
        role=message.role,
        content=message.text if said is None or not said.isdecimal() else message.text[: int(said)],
        timestamp=told(message.said_at),
        tool_calls=_calls(metadata.get(_CALLS)),
        tool_call_id=metadata.get(_ANSWERS),
    )


def _calls(kept: str | None) -> list[dict[str, Any]] | None:
    """Metadata of other callers may have the same name, and be anything."""
    try:
        found = json.loads(kept or "null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(call, dict) for call in found) else None
