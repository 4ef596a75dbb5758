"""`kill -9` of the service under load: every acknowledged write is there after a restart."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import holdfast
from faults.gateways import Acknowledged, Callers
from faults.zygote import Child, Zygote

KILLS = int(os.environ.get("HOLDFAST_GATEWAY_KILLS", "30"))
KILLS_PER_STORE = 15


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


def started(zygote: Zygote, place: Path) -> tuple[Child, int]:
    child = zygote.start("faults.gateways:serve", location=str(place))
    return child, int(next(child.lines())["port"])


@pytest.mark.parametrize("seed", range(-(-KILLS // KILLS_PER_STORE)))
def test_what_a_killed_service_acknowledged_is_there(zygote: Zygote, tmp_path: Path, seed: int) -> None:
    chance, acknowledged, key = random.Random(seed), Acknowledged(), ""
    place = tmp_path / "memory.db"
    for kill in range(KILLS_PER_STORE):
        service, port = started(zygote, place)
        if not key:
            made = httpx2.post(f"http://127.0.0.1:{port}/users", json={"user_id": "ana"})
            key = made.json()["user_key"]
        callers = Callers(port, key, 4, f"kill {kill}", acknowledged)
        callers.began.wait(30)
        # Kill it between the first response and a few dozen of them.
        chance_of_more = chance.random() * 0.15
        callers._threads[0].join(chance_of_more)
        service.kill()
        service.wait()
        callers.join()
    assert acknowledged.turns >= KILLS_PER_STORE
    with holdfast.open(place, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        stored: dict[str, str] = {}
        cursor: str | None = None
        while True:
            page = memory.list(subject="ana", kind="message", limit=1_000, cursor=cursor)
            stored |= {record.id: record.text for record in page.items}
            cursor = page.next_cursor
            if cursor is None:
                break
    missing = acknowledged.texts.keys() - stored.keys()
    assert not missing, f"{len(missing)} of {len(acknowledged.texts)} acknowledged messages are gone"
    assert {record_id: stored[record_id] for record_id in acknowledged.texts} == acknowledged.texts
    # Turns are atomic: of each stored turn, acknowledged or not, both messages are there.
    assert len(stored) % 2 == 0
