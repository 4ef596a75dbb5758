"""memsearch: markdown files, one per user, as the source of truth; Milvus Lite as index. An add appends and indexes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from importlib.metadata import version
from typing import Any

from bench import peers
from bench.engine.systems.protocol import TOP_K, Place


class MemSearch:
    note = "never syncs; markdown files, Milvus Lite"

    def __init__(self, place: Place) -> None:
        self.name = f"memsearch {version('memsearch')}"
        self._folder = place.directory / "memory"
        self._threads = threading.local()
        self._memory: Any = peers.memsearch(place.directory, place.embedder, "memories")

    def add(self, user: str, texts: Sequence[str]) -> None:
        file = self._folder / user / "notes.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as notes:
            notes.writelines(peers.memsearch_note(text, "10:00") for text in texts)
        self._run(self._memory.index_file(file))

    def settle(self) -> None:
        """Nothing to do."""

    def search(self, user: str, query: str) -> int:
        # Use the file: the folder prefix of user-1 also matches user-10.
        prefix = self._folder / user / "notes.md"
        return len(self._run(self._memory.search(query, top_k=TOP_K, source_prefix=prefix)))

    def close(self) -> None:
        self._memory.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run on an event loop kept per thread: creating one per call would be counted against memsearch."""
        if not hasattr(self._threads, "runner"):
            self._threads.runner = asyncio.Runner()
        return self._threads.runner.run(work)
