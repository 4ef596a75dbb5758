"""The worker: progress only grows, and a busy store does not stop the heartbeat."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.ranking import FloatArray
from holdfast.ports import Purpose
from holdfast.runtime import worker
from holdfast.search.embedders.fake import FakeEmbedder
from probes import jobs_of


class Stepping(FakeEmbedder):
    """Embeds one batch for each release by the test."""

    def __init__(self) -> None:
        super().__init__(32)
        self.steps = threading.Semaphore(0)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        await asyncio.to_thread(self.steps.acquire, True, 10)
        return await super().embed(texts, purpose)


def test_a_heartbeat_does_not_set_progress_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HEARTBEATS_PER_LEASE", 12_000)  # one every 5 ms
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder="fake") as memory:
        memory.add([f"Message {number}." for number in range(600)])
    stepping = Stepping()
    with holdfast.open(path, embedder=stepping) as memory:
        seen: list[int] = []
        for batch in (256, 512):
            stepping.steps.release()
            deadline = time.monotonic() + 10
            while not seen or seen[-1] < batch:
                seen.append(jobs_of(memory)[0].done)
                assert time.monotonic() < deadline
            # Some heartbeats later, it is unchanged.
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                seen.append(jobs_of(memory)[0].done)
        stepping.steps.release(10)
        while memory.stats().pending_vectors:
            assert time.monotonic() < deadline + 10
    assert seen == sorted(seen)
