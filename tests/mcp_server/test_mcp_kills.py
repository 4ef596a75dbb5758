"""A server that is killed between a tool call and its answer: retries with the same key have one effect."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from faults.zygote import Zygote
from mcp_lines import REVISIONS

KILLS = int(os.environ.get("HOLDFAST_TRANSPORT_KILLS", "5"))
# A write is durable without an answer, open, done but not committed, and about to be durable.
POINTS = ("commit.after", "write.before", "write.after", "commit.before")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


class OverHttp:
    """The service, and a client of it."""

    def __init__(self, zygote: Zygote, place: Path, key: str, **dying: Any) -> None:
        self.child = zygote.start("faults.gateways:serve", location=str(place), **dying)
        headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
        url = f"http://127.0.0.1:{next(self.child.lines())['port']}"
        self._http = httpx2.Client(base_url=url, headers=headers, verify=False)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._http.post("/mcp/runtime", json=request).json()
        except httpx2.TransportError as error:
            raise ConnectionError from error
        return found

    def close(self) -> None:
        self._http.close()


class OverLines:
    """A server that reads and writes lines, and a client of it."""

    def __init__(self, zygote: Zygote, place: Path, key: str, **dying: Any) -> None:
        pipes = [place.with_name(f"{name}-{next(_NUMBERS)}") for name in ("asks", "answers")]
        for pipe in pipes:
            os.mkfifo(pipe)
        asks, answers = map(str, pipes)
        self.child = zygote.start("faults.tool_servers:serve", location=str(place), asks=asks, answers=answers, **dying)
        assert next(self.child.lines())["ready"]
        self._asks, self._answers = open(asks, "w", encoding="utf-8"), open(answers, encoding="utf-8")  # noqa: SIM115
        client = {"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
        self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=self._asks, flush=True)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        print(json.dumps(request), file=self._asks, flush=True)
        line = self._answers.readline()
        if not line:
            raise ConnectionError
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self._answers.close()
        self._asks.close()


_NUMBERS = itertools.count()


def send(server: OverHttp | OverLines, number: int) -> dict[str, Any]:
    candidate = {"candidate_id": f"c-{number}", "content": f"Parcel {number} is here.", "authority": "user_asserted"}
    arguments = {"candidates": [candidate], "idempotency_key": f"key-{number}"}
    call = {"name": "memory_write_candidate", "arguments": arguments}
    answer = server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    found: dict[str, Any] = answer["result"]["structuredContent"]
    return found


@pytest.mark.parametrize("transport", [OverHttp, OverLines])
def test_a_retry_after_a_kill_has_one_effect(
    zygote: Zygote, tmp_path: Path, transport: type[OverHttp | OverLines]
) -> None:
    """Each server answers the retries for the one before it, and dies in the call after them."""
    place = tmp_path / "memory.db"
    with holdfast.open(place, embedder="fake", work=False) as memory:
        key = memory.create_user("ana").key
    statuses: Counter[str] = Counter()
    for number in range(KILLS + 1):
        point = POINTS[number % len(POINTS)]
        server = transport(zygote, place, key, die_at=point, passage=3 if number else 1)
        with closing(server):
            if number:
                first, second = (send(server, number - 1) for _ in range(2))
                durable = POINTS[(number - 1) % len(POINTS)] == POINTS[0]
                assert (first["status"], second["status"]) == ("duplicated" if durable else "accepted", "duplicated")
                assert first["report"] == second["report"]
                statuses[first["status"]] += 1
            with pytest.raises(ConnectionError):
                send(server, number)
        server.child.wait()
        assert server.child.killed
    assert set(statuses) == {"accepted", "duplicated"}
    performed = [number for number in range(KILLS + 1) if number < KILLS or POINTS[number % len(POINTS)] == POINTS[0]]
    with holdfast.open(place, embedder="fake", work=False) as memory:
        texts = [record.text for record in memory.list(subject="ana", limit=500).items]
    assert sorted(texts) == sorted(f"Parcel {number} is here." for number in performed)
