"""One run: searches and turns through the gateway and in process, two services on one PostgreSQL, and overload."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import holdfast
from bench.engine import postgres
from bench.engine.corpus import Corpus
from bench.gateway import machine
from bench.gateway.load import Ask, Outcome, as_fast_as_answered, at_a_rate
from bench.gateway.service import Service, serving, sign_up

USERS, RECORDS = 40, 100
ASKED = 200  # required searches per second of one core
CALLERS = 16
MOMENT = 1_780_000_000_000
Json = dict[str, Any]


@dataclass
class Run:
    seconds: float
    soak_seconds: float
    found: Json = field(default_factory=dict)

    def all(self) -> Json:
        place = Path(tempfile.mkdtemp(prefix="bench-gateway-"))
        try:
            self._in_process(place)
            self._one_service(place)
            self._two_services()
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return self.found

    # --- the same calls without HTTP ---

    def _in_process(self, place: Path) -> None:
        store = str(place / "library.db")
        texts, queries = Corpus(1), Corpus(2).queries(200)

        async def measure() -> None:
            async with holdfast.open_async(store) as memory:
                for user in range(USERS):
                    await memory.add(texts.texts(RECORDS), subject=f"user-{user}", conversation="one")
                self.found["search_in_process"] = await _repeated(
                    self.seconds, 1, lambda caller, turn: memory.search(
                        queries[turn % len(queries)], subject=f"user-{turn % USERS}", app=None, top_k=8
                    )
                )  # fmt: skip

                async def turn(caller: int, number: int) -> None:
                    where = {"subject": f"user-{caller}", "conversation": f"turns-{caller}"}
                    await memory.add(texts.texts(2), **where)  # type: ignore[arg-type]
                    await memory.flush(**where)  # type: ignore[arg-type]

                self.found["turns_in_process"] = await _repeated(self.seconds, CALLERS, turn)

        asyncio.run(measure())

    # --- one service on one core ---

    def _one_service(self, place: Path) -> None:
        core = last_core()
        with serving(str(place / "gateway.db"), free_port(), core=core) as service, kept_off(core):
            keys = filled(service)
            searches = _searches(keys)
            asyncio.run(self._warm(service, searches))
            best = asyncio.run(as_fast_as_answered(service.port, 4, self.seconds, _each(searches)))
            self.found["search"] = _told(best)
            self.found["turns"] = _told(
                asyncio.run(as_fast_as_answered(service.port, CALLERS, self.seconds, _turns(keys)))
            )
            self._loaded(service, searches, best.per_second)
        self.found["arithmetic"] = machine.arithmetic(core, self.seconds)

    async def _warm(self, service: Service, searches: Sequence[Ask]) -> None:
        await as_fast_as_answered(service.port, 2, 2.0, _each(searches))

    def _loaded(self, service: Service, searches: Sequence[Ask], knee: float) -> None:
        def ask(number: int) -> Ask:
            return searches[number % len(searches)]

        def steadily(seconds: float) -> Outcome:
            return asyncio.run(at_a_rate(service.port, 0.7 * knee, seconds, ask))

        # 70 % of the load that is required of one core.
        self.found["at_140"] = _told(
            asyncio.run(at_a_rate(service.port, 0.7 * ASKED, min(60.0, self.soak_seconds), ask))
        )
        steadily(min(10.0, self.soak_seconds))
        before, files = service.resident_mb, service.open_files
        self.found["at_70_percent"] = _told(steadily(self.soak_seconds))
        self.found["memory_mb"] = {"before": before, "after": service.resident_mb, "files": [files, service.open_files]}
        too_much = asyncio.run(at_a_rate(service.port, 2 * knee, self.seconds, ask, most=1_024))
        ended = time.perf_counter()
        self.found["at_200_percent"] = _told(too_much)
        while True:
            after = asyncio.run(at_a_rate(service.port, 0.7 * knee, 1.0, ask))
            if set(after.statuses) == {200} and after.p99_ms < 10 * self.found["at_70_percent"]["p99_ms"]:
                break
            if time.perf_counter() - ended > 60:
                break
        self.found["recovered_seconds"] = time.perf_counter() - ended - 1.0

    # --- two services on one PostgreSQL ---

    def _two_services(self) -> None:
        server = postgres.Server()
        try:
            self._shared(server.database("gateway"))
        finally:
            server.stop()

    def _shared(self, url: str) -> None:
        with serving(url, free_port()) as first:
            keys = filled(first)
            searches, turns = _searches(keys), _turns(keys)
            asyncio.run(self._warm(first, searches))
            with serving(url, free_port()) as second:
                asyncio.run(self._warm(second, searches))
                rounds: dict[str, list[float]] = {name: [] for name in ("one", "two", "one_turns", "two_turns")}
                for _ in range(3):
                    rounds["one"].append(asyncio.run(_together([first], self.seconds, _each(searches))))
                    rounds["two"].append(asyncio.run(_together([first, second], self.seconds, _each(searches))))
                    rounds["one_turns"].append(asyncio.run(_together([first], self.seconds, turns)))
                    rounds["two_turns"].append(asyncio.run(_together([first, second], self.seconds, turns)))
        self.found["postgres"] = {name: sorted(rates)[1] for name, rates in rounds.items()}


async def _together(services: Sequence[Service], seconds: float, turn: Callable[[int, int], Sequence[Ask]]) -> float:
    """Successful answers per second of all services; the total number of callers is fixed."""
    each = CALLERS // len(services)
    outcomes = await asyncio.gather(
        *(
            as_fast_as_answered(
                service.port, each, seconds, lambda caller, count, at=at: turn(at * each + caller, count)
            )
            for at, service in enumerate(services)
        )
    )
    wrong = [outcome.statuses for outcome in outcomes if set(outcome.statuses) != {200}]
    if wrong:
        raise RuntimeError(f"not everything was answered: {wrong}")
    return sum(outcome.per_second for outcome in outcomes)


async def _repeated(seconds: float, callers: int, work: Callable[[int, int], Any]) -> Json:
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        count = 0
        while (began := time.perf_counter()) < until:
            await work(number, count)
            count += 1
            times.append(time.perf_counter() - began)

    started = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    passed = time.perf_counter() - started
    outcome = Outcome(passed, times=times)
    outcome.statuses[200] = len(times)
    return _told(outcome)


def filled(service: Service) -> list[str]:
    """Create users with a hundred records each; return their keys."""
    keys = [sign_up(service.port, f"user-{number}") for number in range(USERS)]
    texts = Corpus(1)

    async def fill() -> None:
        def batch(caller: int, count: int) -> Sequence[Ask]:
            return [add_ask(keys[caller], f"user-{caller}", "chat:one", texts.texts(RECORDS))]

        for caller in range(USERS):
            await as_fast_as_answered(service.port, 1, 0.001, lambda _, count, at=caller: batch(at, count))

    asyncio.run(fill())
    return keys


def add_ask(key: str, user: str, session: str, texts: Sequence[str]) -> Ask:
    messages = [
        {"sender_id": user, "role": ("user", "assistant")[index % 2], "timestamp": MOMENT + index, "content": text}
        for index, text in enumerate(texts)
    ]
    return Ask.post("/memories/add", key, {"session_id": session, "messages": messages})


def _searches(keys: Sequence[str]) -> list[Ask]:
    queries = Corpus(2).queries(400)
    return [search_ask(keys[number % len(keys)], query) for number, query in enumerate(queries)]


def search_ask(key: str, query: str) -> Ask:
    return Ask.post("/memories/search", key, {"query": query, "scope": ["all_user_memory"]})


def _each(asks: Sequence[Ask]) -> Callable[[int, int], Sequence[Ask]]:
    return lambda caller, count: [asks[(caller * 101 + count) % len(asks)]]


def _turns(keys: Sequence[str]) -> Callable[[int, int], Sequence[Ask]]:
    """A turn of two messages, added and flushed. Texts are made beforehand; a number makes each unique."""
    texts = Corpus(3).texts(2_000)

    def turn(caller: int, count: int) -> Sequence[Ask]:
        key, session = keys[caller % len(keys)], f"chat:turns-{caller}"
        said = [f"{texts[(2 * count + index) % len(texts)]} {caller} {count}" for index in range(2)]
        return [
            add_ask(key, f"user-{caller}", session, said),
            Ask.post("/memories/flush", key, {"session_id": session}),
        ]

    return turn


def _told(outcome: Outcome) -> Json:
    return {
        "per_second": outcome.per_second,
        "p50_ms": outcome.p50_ms,
        "p99_ms": outcome.p99_ms,
        "statuses": dict(outcome.statuses),
        "seconds": outcome.seconds,
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def kept_off(core: int | None) -> Iterator[None]:
    """Keep the client off the service's core."""
    everywhere = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, everywhere - {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)


def last_core() -> int | None:
    cores = sorted(os.sched_getaffinity(0))
    return cores[-1] if len(cores) > 1 else None
