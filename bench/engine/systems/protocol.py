"""The one small interface behind which every measured system stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.engine.vectors import RunEmbedder

TOP_K = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where a system keeps its content, and what embeds for it.

    The directory is its own; `url` names a PostgreSQL database of its own, for those that need one.
    """

    directory: Path
    url: str
    embedder: RunEmbedder


class System(Protocol):
    """One store of many users' records. Opening it where it was closed finds what was added."""

    name: str
    # What is to be known when reading its numbers; empty if nothing.
    note: str

    def add(self, user: str, texts: Sequence[str]) -> None:
        """Return when the texts are kept, embedding included. One text is one record."""

    def settle(self) -> None:
        """What its documentation says to do after adding much and before searching."""

    def search(self, user: str, query: str) -> int:
        """How many of that user's records came, of at most `TOP_K`."""

    def close(self) -> None: ...
