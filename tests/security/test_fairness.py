"""One caller cannot take the service away from the others: slots, queues, bytes and refusals are shares."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from typing import Any

import pytest

from gateway.edge.edged import Running, request, running
from holdfast.gateway.edge import exchange, limits
from holdfast.gateway.edge.exchange import EdgeRefusal, Exchange, RefusalPace
from holdfast.gateway.edge.limits import ConcurrencyLimit

ROUNDS = int(os.environ.get("HOLDFAST_COUNT_ROUNDS", "5"))


def guarded(app: Any) -> Any:
    """A guard as that of the routes: keys that start with `uk_` are known."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        sent = dict(scope.get("headers", ())).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if sent.startswith("uk_"):
            limits.charge_to(scope, sent)
        await app(scope, receive, send)

    return guard


def occupy(started: Running, key: str, running_now: int, queued: int) -> list[Any]:
    """Fill a caller's slots, then its queue."""
    lines = []
    for number in range(running_now + queued):
        lines.append(started.line().send(request("GET", "/wait", authorization=f"Bearer {key}")))
        if number < running_now:
            assert started.app.waiting.acquire(timeout=10)
        assert started.eventually(lambda number=number: started.count("holdfast_http_requests_in_flight") == number + 1)
    return lines


@pytest.mark.parametrize("key", ["uk_greedy", "invented"])
def test_a_caller_with_a_full_queue_keeps_nobody_else_waiting(key: str) -> None:
    with running(guard=guarded, max_requests=4, max_requests_per_key=1) as started:
        lines = occupy(started, key, 1, 4)
        refused = started.ask("GET", "/", authorization=f"Bearer {key}")
        assert (refused.status, refused.json["code"]) == (503, "overloaded")
        for _ in range(10):
            assert started.ask("GET", "/", authorization="Bearer uk_other").status == 200
        started.app.go_on.set()
        assert [line.answer().status for line in lines] == [200] * 5


def test_invented_keys_share_the_slots_of_their_address() -> None:
    with running(guard=guarded, max_requests=4, max_requests_per_key=1, wait_seconds=0.05) as started:
        occupy(started, "invented-1", 1, 0)
        assert started.ask("GET", "/", authorization="Bearer invented-2").status == 503
        assert started.ask("GET", "/", authorization="Bearer uk_known").status == 200


def test_callers_take_turns() -> None:
    with running(guard=guarded, max_requests=1) as started:
        lines = occupy(started, "uk_greedy", 1, 1)
        other = started.line().send(request("POST", "/echo", b"other", authorization="Bearer uk_other"))
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 3)
        started.app.go_on.set()
        assert [line.answer().status for line in (*lines, other)] == [200] * 3
        # The one that was queued last, by a caller that had no turn yet, ran before the rest of the other's queue.
        assert started.app.seen.index(b"other") == 1


def test_a_slow_request_leaves_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.05)
    with running(guard=guarded, max_requests=8, max_requests_per_key=1) as started:
        lines = occupy(started, "uk_uploads", 1, 0)
        lines.append(started.line().send(request("GET", "/wait", authorization="Bearer uk_uploads")))
        assert started.app.waiting.acquire(timeout=10)
        third = started.line().send(request("GET", "/wait", authorization="Bearer uk_uploads"))
        # A quarter of all slots is the most of one caller, slow requests included.
        assert not started.app.waiting.acquire(timeout=0.2)
        started.app.go_on.set()
        assert [line.answer().status for line in (*lines, third)] == [200] * 3


def test_one_caller_fills_half_of_the_memory_for_bodies() -> None:
    with running(guard=guarded, max_bodies_bytes=100_000) as started:
        held = started.line().send(
            request("POST", "/echo", content_length="40001", authorization="Bearer uk_large") + bytes(40_000)
        )
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 1)
        assert started.ask("POST", "/echo", bytes(20_000), authorization="Bearer uk_large").status == 503
        assert started.ask("POST", "/echo", bytes(45_000), authorization="Bearer uk_other").status == 200
        assert held.send(b"x").answer().status == 200
        alone = started.ask("POST", "/echo", bytes(90_000), authorization="Bearer uk_large")
        assert alone.status == 200, "one body may be larger, if nothing else is held"


class Crowd:
    """Callers of a `ConcurrencyLimit`, with its promises checked at each step."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self.limit = ConcurrencyLimit(self._serve, most, most_of_one, 0.02)
        self.most, self.share = most, most_of_one
        self.running: Counter[str] = Counter()
        self.served: Counter[str] = Counter()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        who = scope["client"][0]
        self.running[who] += 1
        assert self.running.total() <= self.most
        assert self.running[who] <= self.share
        try:
            await asyncio.sleep(scope["takes"])
        finally:
            self.running[who] -= 1
        self.served[who] += 1

    async def ask(self, who: str, takes: float) -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (who, 1), "takes": takes}
        Exchange(scope)
        try:
            await self.limit(scope, None, None)  # type: ignore[arg-type]
        except EdgeRefusal:
            self.served["refused"] += 1


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_however_callers_come_and_go_the_shares_hold_and_nothing_is_left(seed: int) -> None:
    chance = random.Random(seed)
    most = chance.randint(1, 6)
    crowd = Crowd(most, chance.randint(1, most))

    async def come_and_go() -> None:
        tasks = []
        for _ in range(300):
            who = chance.choice("aaaaaaaabc")
            tasks.append(asyncio.create_task(crowd.ask(who, chance.choice([0, 0.001, 0.004]))))
            if chance.random() < 0.2:
                chance.choice(tasks).cancel()
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0.002]))
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(come_and_go())
    assert crowd.served.total() > 100
    assert (crowd.limit._running, crowd.limit._shares, crowd.limit._turns) == (0, {}, {})


def test_refusals_of_one_caller_are_spaced_out_and_those_of_others_are_not() -> None:
    now = [0.0]
    pace = RefusalPace(lambda: now[0])
    delays = [pace.delay(b"greedy") for _ in range(400)]
    assert delays[: exchange.IMMEDIATE_REFUSALS] == [0.0] * exchange.IMMEDIATE_REFUSALS
    assert delays == sorted(delays)
    assert delays[-1] == exchange.MAX_PACE_SECONDS
    assert pace.delay(b"other") == 0.0
    now[0] = 10.0
    assert pace.delay(b"greedy") == 0.0
    for number in range(exchange.MOST_PACED + 10):
        pace.delay(str(number).encode())
    assert len(pace._last) == exchange.MOST_PACED
