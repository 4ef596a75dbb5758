"""Resources: recent memories, skills, one skill, one conversation. Their texts are labelled as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.results import HitKind, Record
from holdfast.domain.visible_text import one_line
from holdfast.errors import HoldfastError, NotFound
from holdfast.inputs import ScopeKwargs
from holdfast.mcp.rendering import label_lines, label_records
from holdfast.mcp.session import ToolCaller

RECENT = "holdfast://memories/recent"
SKILLS = "holdfast://skills"
CONVERSATION = "holdfast://conversation/"
SKILL = "holdfast://skill/"
_MOST = 50
_MESSAGES = 200
_TEXT = "text/plain"

_RESOURCES = [
    types.Resource(
        uri=RECENT,
        name="recent-memories",
        title="Recent memories",
        description="The newest memories.",
        mime_type=_TEXT,
    ),
    types.Resource(
        uri=SKILLS, name="skills", title="Skills", description="The procedures that were learned.", mime_type=_TEXT
    ),
]
_TEMPLATES = [
    types.ResourceTemplate(
        uri_template=CONVERSATION + "{conversation}",
        name="conversation",
        title="A conversation",
        description="The newest messages of a conversation.",
        mime_type=_TEXT,
    ),
    types.ResourceTemplate(
        uri_template=SKILL + "{record_id}",
        name="skill",
        title="A skill",
        description="One procedure, by the id that the list of skills shows.",
        mime_type=_TEXT,
    ),
]


def handlers(caller_of: Callable[[Any], ToolCaller]) -> dict[str, Any]:
    """Return the server's handlers for resources."""

    async def list_resources(_: Any, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=_RESOURCES)

    async def list_templates(_: Any, __: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=_TEMPLATES)

    async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = await _read(str(params.uri), caller_of(context))
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=_TEXT, text=text)]
        )

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
    }


async def recent_memories(caller: ToolCaller) -> str:
    """Return the newest memories, labelled as data."""
    page = await caller.memory.list(kind=HitKind.MEMORY, status=Status.ACCEPTED, limit=_MOST, **caller.where)
    return label_records(page.items, "No memories are stored yet.")


async def _skills(caller: ToolCaller) -> str:
    page = await caller.memory.list(
        kind=HitKind.MEMORY, planes=Plane.PROCEDURAL, status=Status.ACCEPTED, limit=_MOST, **caller.where
    )
    return label_records(page.items, "No skills are stored yet.")


async def _conversation(caller: ToolCaller, name: str) -> str:
    where: ScopeKwargs = {**caller.where, "conversation": name}
    found = await caller.memory.browse(kind=HitKind.MESSAGE, limit=_MESSAGES, **where)
    return label_records(reversed(found.items), "This conversation holds no messages.")


async def _skill(caller: ToolCaller, record_id: str) -> str:
    record: Record = await caller.memory.get(record_id, **caller.where)
    if (
        not isinstance(record, MemoryRecord)
        or record.plane is not Plane.PROCEDURAL
        or record.status is not Status.ACCEPTED
    ):
        raise NotFound("this record is no skill")
    # Each line is marked, so that none can pass for one outside of the skill.
    return label_lines(f"| {one_line(line)}" for line in record.text.splitlines())


_WHOLE: dict[str, Callable[[ToolCaller], Awaitable[str]]] = {RECENT: recent_memories, SKILLS: _skills}
_PARTS: dict[str, Callable[[ToolCaller, str], Awaitable[str]]] = {CONVERSATION: _conversation, SKILL: _skill}


async def _read(uri: str, caller: ToolCaller) -> str:
    try:
        if (whole := _WHOLE.get(uri)) is not None:
            return await whole(caller)
        for prefix, part in _PARTS.items():
            if uri.startswith(prefix) and len(uri) > len(prefix):
                return await part(caller, unquote(uri.removeprefix(prefix)))
    except HoldfastError as error:
        raise MCPError(types.INVALID_PARAMS, f"{type(error).__name__}: the resource cannot be read") from None
    raise MCPError(types.INVALID_PARAMS, f"there is no such resource; there are {', '.join([*_WHOLE, *_PARTS])}")
