"""Limits on the size of a document and the resources for reading it."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1024 * 1024
CHUNK_CHARS = 900


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one document. `memory_bytes` is address space, `wall_seconds` the lifetime of the reading process."""

    max_bytes: int = 25 * MEGABYTE
    max_characters: int = 2_000_000
    max_chunks: int = 5_000
    memory_bytes: int = 1024 * MEGABYTE
    cpu_seconds: int = 30
    wall_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")

    @property
    def max_plain_bytes(self) -> int:
        """The most bytes that `max_characters` can take in any encoding, and a mark."""
        return 4 * (self.max_characters + 1)

    @property
    def max_output_bytes(self) -> int:
        """The most bytes that `max_characters` can take as JSON in UTF-8, and a margin."""
        return 6 * self.max_characters + 16 * MEGABYTE
