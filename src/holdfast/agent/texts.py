"""Small functions on texts that come from models, gateways and files."""

from __future__ import annotations

import json
from typing import Any


def encodable(text: str) -> str:
    """Replace lone surrogates, which cannot be sent or stored."""
    return text.encode("utf-8", "replace").decode()


def shorten(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object; anything else is an empty one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
