"""A service that is killed between a request and its answer: retries with the same key have one effect."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from faults.zygote import Child, Zygote
from holdfast.app import open_engine
from holdfast.domain.access import storewide_grant
from holdfast.domain.events import EventKind
from holdfast.settings import Settings
from over_http import rows_of

KILLS = int(os.environ.get("HOLDFAST_TRANSPORT_KILLS", "5"))
# A write is open, done but not committed, about to be durable, and durable without an answer.
POINTS = ("commit.after", "write.before", "write.after", "commit.before")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


def started(zygote: Zygote, place: Path, **dying: Any) -> tuple[Child, httpx2.Client]:
    child = zygote.start("faults.gateways:serve", location=str(place), **dying)
    return child, httpx2.Client(base_url=f"http://127.0.0.1:{next(child.lines())['port']}", verify=False)


def request_of(number: int) -> tuple[str, dict[str, Any]]:
    """A request that has another effect each time it is performed: a turn, or a review, which leaves an event."""
    if number % 2:
        return "/memory/transcripts/lifecycle?chat_id=chat", {"transition": "review", "reason": f"number {number}"}
    said = {"turn_id": f"turn-{number}", "messages": [{"text": f"Number {number} was said."}]}
    turn = {**said, "conversation": {"chat_id": "chat"}}
    return "/memory/transcripts/commit", {"turn": turn}


def test_a_retry_after_a_kill_has_one_effect(zygote: Zygote, tmp_path: Path) -> None:
    """Each service answers the retries for the one before it, and dies in the request after them."""
    place = tmp_path / "memory.db"
    with holdfast.open(place, embedder="fake", work=False) as memory:
        key = memory.create_user("ana").key
    statuses: Counter[str] = Counter()
    for number in range(KILLS + 1):
        service, http = started(zygote, place, die_at=POINTS[number % len(POINTS)], passage=3 if number else 1)
        with http:
            http.headers["authorization"] = f"Bearer {key}"
            if number:
                answers = [send(http, number - 1) for _ in range(2)]
                first = "duplicated" if POINTS[(number - 1) % len(POINTS)] == "commit.after" else "accepted"
                assert [each["status"] for each in answers] == [first, "duplicated"]
                assert answers[0]["report"] == answers[1]["report"]
                statuses[first] += 1
            with pytest.raises(httpx2.TransportError):
                send(http, number)
        service.wait()
        assert service.killed
    assert set(statuses) == {"accepted", "duplicated"}
    effects = asyncio.run(count_effects(place))
    # The last request was never retried: its effect is there if it was durable.
    performed = [number for number in range(KILLS + 1) if number < KILLS or POINTS[number % len(POINTS)] == POINTS[0]]
    assert effects == {
        "turns": sum(number % 2 == 0 for number in performed),
        "reviews": sum(number % 2 for number in performed),
    }


def send(http: httpx2.Client, number: int) -> dict[str, Any]:
    path, body = request_of(number)
    answer: dict[str, Any] = http.post(path, json=body, headers={"x-idempotency-key": f"key-{number}"}).json()
    return answer


async def count_effects(place: Path) -> dict[str, int]:
    engine = await open_engine(str(place), Settings(), embedder="fake", work=False)
    try:
        rows = await rows_of(engine)
        events = await engine._core.store.read(storewide_grant(), lambda reader: reader.events.page(100_000))
        committed = sum(row.record_count for row in rows if row.action == "commit_transcript")
        return {"turns": committed, "reviews": sum(each.kind is EventKind.OPERATOR for each in events)}
    finally:
        await engine.close()
