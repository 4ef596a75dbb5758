"""The one small interface behind which every measured system stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.retrieval.datasets import Record
from bench.retrieval.embedders import Vectors


@dataclass(frozen=True, slots=True)
class Setup:
    """What a system may need to open.

    An empty directory of its own, the shared vectors, and, for a system that embeds itself, which embedder that is:
    `static`, or `onnx:` and a model directory.
    """

    directory: Path
    vectors: Vectors
    embedder: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: the id of the record behind it, and the text that the system would hand to a model."""

    id: str
    text: str


class System(Protocol):
    """A memory that keeps scopes apart.

    `embeds_itself` says that its times contain the embedding; the others are given vectors that are already made.
    Sender, time and session go in as metadata where the system takes them, never inside the text.
    """

    name: str
    embedder_name: str
    embeds_itself: bool

    def add(self, scope: str, records: Sequence[Record]) -> None: ...

    def search(self, scope: str, query: str, k: int) -> list[Hit]: ...

    def close(self) -> None: ...
