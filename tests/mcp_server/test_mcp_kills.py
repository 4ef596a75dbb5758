"""A service that is killed between a tool call and its answer: retries with the same key have one effect."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from faults.zygote import Zygote

KILLS = int(os.environ.get("HOLDFAST_TRANSPORT_KILLS", "5"))
# A write is durable without an answer, open, done but not committed, and about to be durable.
POINTS = ("commit.after", "write.before", "write.after", "commit.before")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


def send(http: httpx2.Client, number: int) -> dict[str, Any]:
    candidate = {"candidate_id": f"c-{number}", "content": f"Parcel {number} is here.", "authority": "user_asserted"}
    arguments = {"candidates": [candidate], "idempotency_key": f"key-{number}"}
    call = {"name": "memory_write_candidate", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    found: dict[str, Any] = http.post("/mcp/runtime", json=body).json()["result"]["structuredContent"]
    return found


def test_a_retry_after_a_kill_has_one_effect(zygote: Zygote, tmp_path: Path) -> None:
    """Each service answers the retries for the one before it, and dies in the call after them."""
    place = tmp_path / "memory.db"
    with holdfast.open(place, embedder="fake", work=False) as memory:
        key = memory.create_user("ana").key
    statuses: Counter[str] = Counter()
    for number in range(KILLS + 1):
        point = POINTS[number % len(POINTS)]
        child = zygote.start("faults.gateways:serve", location=str(place), die_at=point, passage=3 if number else 1)
        headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
        url = f"http://127.0.0.1:{next(child.lines())['port']}"
        with httpx2.Client(base_url=url, headers=headers, verify=False) as http:
            if number:
                first, second = (send(http, number - 1) for _ in range(2))
                durable = POINTS[(number - 1) % len(POINTS)] == POINTS[0]
                assert (first["status"], second["status"]) == ("duplicated" if durable else "accepted", "duplicated")
                assert first["report"] == second["report"]
                statuses[first["status"]] += 1
            with pytest.raises(httpx2.TransportError):
                send(http, number)
        child.wait()
        assert child.killed
    assert set(statuses) == {"accepted", "duplicated"}
    performed = [number for number in range(KILLS + 1) if number < KILLS or POINTS[number % len(POINTS)] == POINTS[0]]
    with holdfast.open(place, embedder="fake", work=False) as memory:
        texts = [record.text for record in memory.list(subject="ana", limit=500).items]
    assert sorted(texts) == sorted(f"Parcel {number} is here." for number in performed)
