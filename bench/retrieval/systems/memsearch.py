"""memsearch: markdown files as the source of truth, Milvus Lite as index, hybrid search. One collection per scope.

Each record is a section in a file per session, as memsearch's plugins write them.
"""

import asyncio
import re
from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby
from typing import Any

from bench import peers
from bench.retrieval.datasets import Record
from bench.retrieval.systems.protocol import Hit, Setup

_SECTION = re.compile(r"### [^\n]*\n<!-- (?P<id>.*?) -->\n(?P<text>.*)", re.DOTALL)


class MemSearch:
    embeds_itself = False

    def __init__(self, setup: Setup) -> None:
        self.name = f"memsearch {version('memsearch')}"
        self.embedder_name = setup.vectors.name
        self._setup = setup
        self._scopes: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()

    def add(self, scope: str, records: Sequence[Record]) -> None:
        number = len(self._scopes)
        memory = self._scopes[scope] = peers.memsearch(self._setup.directory, self._setup.vectors, f"scope_{number}")
        folder = self._setup.directory / "memory" / str(number)
        folder.mkdir(parents=True)
        for position, (_, turns) in enumerate(groupby(records, key=lambda record: record.session_id)):
            file = folder / f"{position}.md"
            file.write_text("".join(_section(turn) for turn in turns), encoding="utf-8")
            self._loop.run_until_complete(memory.index_file(file))

    def search(self, scope: str, query: str, k: int) -> list[Hit]:
        found = self._loop.run_until_complete(self._scopes[scope].search(query, top_k=k))
        return [_hit(item["content"]) for item in found]

    def close(self) -> None:
        for memory in self._scopes.values():
            memory.close()
        self._loop.close()


def _section(record: Record) -> str:
    return peers.memsearch_note(record.text, record.timestamp[11:16] or "note", record.id)


def _hit(content: str) -> Hit:
    section = _SECTION.fullmatch(content)
    assert section is not None, content
    return Hit(section["id"], section["text"])
