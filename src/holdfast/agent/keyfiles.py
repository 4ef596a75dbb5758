"""Read a key from a file of its own."""

from __future__ import annotations

from pathlib import Path

MAX_KEY_BYTES = 4_096


def key_text(path: Path) -> str:
    """Return the file's text, stripped. It may be empty, or no key. Raises `OSError` if the file cannot be read."""
    with path.open("rb") as file:
        return file.read(MAX_KEY_BYTES).decode("ascii", "replace").strip()
