"""A model behind an OpenAI-compatible endpoint: the curator that asks it, and its answers as HTTP bytes."""

from __future__ import annotations

import json
from typing import Any

from holdfast.extract.chat_completions import MAX_TOKENS, ChatCompletions
from holdfast.extract.model_curator import ModelCurator
from serving import http


def chat_curator(
    model: str, *, base_url: str, timeout_seconds: float = 120.0, max_tokens: int = MAX_TOKENS, **options: Any
) -> ModelCurator:
    """A curator that asks a model behind an OpenAI-compatible endpoint, perhaps with an `api_key`."""
    key = options.pop("api_key", None)
    asked = ChatCompletions(
        model, base_url=base_url, api_key=key, timeout_seconds=timeout_seconds, max_tokens=max_tokens
    )
    return ModelCurator(asked, **options)


def completion(content: Any, **more: Any) -> bytes:
    """A completion with `content` as its text, as JSON unless it is a string."""
    text = content if isinstance(content, str) else json.dumps(content)
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}], "usage": usage, **more}
    return http(200, json.dumps(body).encode())


def memories(*listed: Any) -> dict[str, Any]:
    return {"memories": list(listed)}
