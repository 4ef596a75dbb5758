"""Two services on one PostgreSQL database: each sees the other's writes at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from served import MOMENT, Visitor

from faults.zygote import Zygote

WRITERS, ROUNDS = 8, 10


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote.opened() as opened:
        yield opened


@pytest.fixture
def both(zygote: Zygote, postgres_url: str) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """Clients of two services that start at the same time on an empty database."""
    children = [zygote.start("faults.gateways:serve", location=postgres_url) for _ in range(2)]
    ports = [int(next(child.lines())["port"]) for child in children]
    first, second = (httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) for port in ports)
    with first, second:
        yield first, second
    for child in children:
        child.kill()
        child.wait()


def test_what_one_was_told_the_other_knows_at_once(both: tuple[httpx2.Client, httpx2.Client]) -> None:
    first, second = both
    key = first.post("/users", json={"user_id": "ana"}).json()["user_key"]
    here, there = Visitor(first, "ana", key), Visitor(second, "ana", key)
    for number in range(20):
        writer, reader = (here, there) if number % 2 else (there, here)
        added = writer.add(f"The lantern number {number}.", at=MOMENT + number)
        assert added.status_code == 200, added.text
        assert f"The lantern number {number}." in reader.texts("lantern", top_k=100)
    message = here.add("Soon gone.", at=MOMENT + 100).json()["message_ids"][0]
    assert second.delete(f"/memories/{message}", headers=there.headers).status_code == 200
    assert first.get(f"/memories/{message}", headers=here.headers).status_code == 404
    again = {"Idempotency-Key": "once"}
    one, two = here.add("Once.", at=MOMENT + 200, headers=again), there.add("Once.", at=MOMENT + 200, headers=again)
    assert one.json()["message_ids"] == two.json()["message_ids"]


def test_no_update_is_lost_between_them(both: tuple[httpx2.Client, httpx2.Client]) -> None:
    first, second = both
    key = first.post("/users", json={"user_id": "ana"}).json()["user_key"]
    here = Visitor(first, "ana", key)
    message = here.add("0").json()["message_ids"][0]
    memory = first.patch(f"/memories/{message}", json={"text": "0"}, headers=here.headers).json()["id"]
    together = threading.Barrier(WRITERS)

    def count(number: int) -> None:
        client = both[number % 2]
        together.wait()
        for _ in range(ROUNDS):
            while True:
                found = client.get(f"/memories/{memory}", headers=here.headers)
                guarded = {**here.headers, "If-Match": found.headers["etag"]}
                changed = client.patch(
                    f"/memories/{memory}", json={"text": str(int(found.json()["text"]) + 1)}, headers=guarded
                )
                if changed.status_code == 200:
                    break
                assert changed.status_code == 412, changed.text

    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(count, number) for number in range(WRITERS)]:
            done.result()
    assert second.get(f"/memories/{memory}", headers=here.headers).json()["text"] == str(WRITERS * ROUNDS)
