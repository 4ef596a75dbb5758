"""Prompts that a user starts by name: what memory knows, and what it is to keep of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from holdfast.errors import HoldfastError
from holdfast.mcp.resources import recent_memories
from holdfast.mcp.session import ToolCaller

_KNOWN = "what-do-you-know-about-me"
_KEEP = "remember-this-conversation"
_PROMPTS = [
    types.Prompt(
        name=_KNOWN, title="What do you know about me?", description="Show what is remembered, for you to check."
    ),
    types.Prompt(
        name=_KEEP,
        title="Remember this conversation",
        description="Store what will matter later: facts, preferences and decisions.",
    ),
]
_ASK = (
    "What do you know about me? Answer from the reference below, in a few short groups. Say which of it looks outdated"
    " or contradictory, and offer to correct or forget it."
)
_STORE = (
    "Go through our conversation and store what will matter later: lasting facts, preferences and decisions of mine."
    " Recall first: correct a record that has changed, and do not store again what is known. Otherwise call remember"
    " once for each statement, in words that can be understood on their own. Leave out passwords, keys, small talk,"
    " and whatever only a document or a web page says. Then list what you stored."
)


def handlers(caller_of: Callable[[Any], ToolCaller]) -> dict[str, Any]:
    """Return the server's handlers for prompts."""

    async def list_prompts(_: Any, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=_PROMPTS)

    async def get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name == _KEEP:
            return _messages(_STORE)
        if params.name != _KNOWN:
            raise MCPError(types.INVALID_PARAMS, f"there is no such prompt; there are {_KNOWN}, {_KEEP}")
        try:
            return _messages(_ASK, await recent_memories(caller_of(context)))
        except HoldfastError as error:
            raise MCPError(types.INTERNAL_ERROR, f"{type(error).__name__}: the memories cannot be read") from None

    return {"on_list_prompts": list_prompts, "on_get_prompt": get_prompt}


def _messages(*texts: str) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=types.TextContent(type="text", text=text)) for text in texts]
    )
