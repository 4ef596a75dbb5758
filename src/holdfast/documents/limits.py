"""How large a document may be, and how much reading one may cost."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1024 * 1024
CHUNK_CHARS = 900


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory_bytes` is address space, `wall_seconds` the whole life of the process that reads."""

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
    def max_output_bytes(self) -> int:
        """What that many characters can take at most as JSON in UTF-8, and a little for the rest."""
        return 6 * self.max_characters + 16 * MEGABYTE
