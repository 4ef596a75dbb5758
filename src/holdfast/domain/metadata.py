"""Metadata that callers attach to messages and memories: a bounded number of texts by name."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.text import checked_text
from holdfast.errors import InvalidInput

MAX_METADATA_ENTRIES = 64
MAX_METADATA_CHARS = 4_096

Metadata = Mapping[str, str]


def check_metadata(metadata: object) -> None:
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", f"expected a dictionary of texts, got {type(metadata).__name__}")
    if len(metadata) > MAX_METADATA_ENTRIES:
        raise InvalidInput("metadata", f"has {len(metadata)} entries; at most {MAX_METADATA_ENTRIES} are allowed")
    for key, value in metadata.items():
        checked_text(key, "metadata key", max_chars=MAX_METADATA_CHARS)
        if not isinstance(value, str):
            raise InvalidInput(f"metadata.{key:.40}", f"expected text, got {type(value).__name__}")
        if value.strip():
            checked_text(value, f"metadata.{key:.40}", max_chars=MAX_METADATA_CHARS)
