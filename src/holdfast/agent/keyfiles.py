"""A key in a file of its own: how it is read, wherever one is named."""

from __future__ import annotations

from pathlib import Path

MAX_KEY_BYTES = 4_096


def key_text(path: Path) -> str:
    """What the file holds, without blanks around it; an `OSError` if it cannot be read. It may be empty, or no key."""
    with path.open("rb") as file:
        return file.read(MAX_KEY_BYTES).decode("ascii", "replace").strip()
