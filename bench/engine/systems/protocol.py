"""The interface of all measured systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.engine.vectors import RunEmbedder

TOP_K = 10


@dataclass(frozen=True, slots=True)
class Place:
    """The storage and the embedder of a system.

    It has its own directory; `url` names its own PostgreSQL database, for systems that need one.
    """

    directory: Path
    url: str
    embedder: RunEmbedder


class System(Protocol):
    """One store with the records of many users. Reopening it finds what was added."""

    name: str
    # A note for readers of its numbers; may be empty.
    note: str

    def add(self, user: str, texts: Sequence[str]) -> None:
        """Return when the texts are stored, embedding included. One text is one record."""

    def settle(self) -> None:
        """Do what its documentation recommends after adding much and before searching."""

    def search(self, user: str, query: str) -> int:
        """Search; return the number of that user's records found, at most `TOP_K`."""

    def close(self) -> None: ...
