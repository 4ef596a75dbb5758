"""Answers of a model behind an OpenAI-compatible endpoint, as HTTP bytes."""

from __future__ import annotations

import json
from typing import Any

from serving import http


def completion(content: Any, **more: Any) -> bytes:
    """A completion with `content` as its text, as JSON unless it is a string."""
    text = content if isinstance(content, str) else json.dumps(content)
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}], "usage": usage, **more}
    return http(200, json.dumps(body).encode())


def memories(*listed: Any) -> dict[str, Any]:
    return {"memories": list(listed)}
