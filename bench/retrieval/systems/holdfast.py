"""Holdfast through its public API: one subject per scope, one conversation per session.

It embeds by itself, so its times include embedding.
"""

from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby
from typing import Any

from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup


class Holdfast:
    embeds_itself = True
    _plain = False

    def __init__(self, setup: Setup) -> None:
        import holdfast

        self.name = f"Holdfast {version('holdfast')}{', plain 0.7 / 0.3' * self._plain}"
        self.embedder_name = setup.vectors.name
        weights = holdfast.Weights.plain() if self._plain else None
        self._memory: Any = holdfast.open(setup.directory / "memory.db", embedder=setup.embedder, weights=weights)

    def add(self, scope: str, records: Sequence[Record]) -> None:
        added(self._memory, scope, records)

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        return [Hit(hit.external_id, hit.text) for hit in self._memory.search(query, subject=scope, top_k=k)]

    def close(self) -> None:
        self._memory.close()


class HoldfastPlain(Holdfast):
    """The same with every part of the ranking off except vectors and words."""

    _plain = True


def added(memory: Any, scope: str, records: Sequence[Record]) -> None:
    """Add a scope's records, in order, as its sessions."""
    for session, turns in groupby(records, key=lambda record: record.session_id):
        memory.add([_message(turn) for turn in turns], subject=scope, conversation=session)


def _message(record: Record) -> dict[str, str]:
    return {
        "id": record.id,
        "text": record.text,
        "sender": record.sender,
        "role": record.role,
        "timestamp": record.timestamp,
    }
