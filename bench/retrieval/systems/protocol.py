"""The interface of all measured systems."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.retrieval.datasets import Record
from bench.retrieval.embedders import Vectors


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything a system may need to open.

    An empty directory, the shared vectors, and, for a system that embeds by itself, the name of its embedder: `static`,
    or `onnx:` and a model directory.
    """

    directory: Path
    vectors: Vectors
    embedder: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: the id of its record, and the text that the system would pass to a model."""

    id: str
    text: str


class System(Protocol):
    """A memory that separates scopes.

    `embeds_itself`: its times include embedding; the others receive vectors made beforehand. Sender, time and session
    are passed as metadata where the system takes them, never inside the text.
    """

    name: str
    embedder_name: str
    embeds_itself: bool

    def add(self, scope: str, records: Sequence[Record]) -> None: ...

    def search(self, scope: str, query: str, k: int) -> list[Hit]: ...

    def close(self) -> None: ...
