"""`python -m bench.gateway.fairness`: how much one caller slows another, as ratios to the quiet service in one run.

The service has a core of its own. The load and the measured user are processes of their own on the other cores, so that
a busy client is not taken for a slow service. Quiet and loaded rounds alternate, so a slow minute of the machine
affects both. The user sends at a fixed pace, which stays under the rate limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.engine.corpus import Corpus
from bench.gateway.load import Ask, Line, Outcome, as_fast_as_answered
from bench.gateway.run import Json, add_ask, free_port, kept_off, last_core, search_ask
from bench.gateway.service import Service, serving, sign_up

RESULTS = Path(__file__).parents[1] / "results" / "fairness.json"
CONNECTIONS, UPLOADS, UNKNOWN = 256, 12, 8
LARGE = 4 * 1024 * 1024
RECORDS = 100
PACE = 0.025  # seconds between two searches of the measured user
DOCUMENT_PACE = 0.5
_ELEMENTS = 150_000  # of a document that takes seconds to read
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(slots=True)
class Rounds:
    """The outcomes of one scenario, quiet and loaded."""

    quiet: Outcome = field(default_factory=Outcome)
    loaded: Outcome = field(default_factory=Outcome)
    load: Counter[int] = field(default_factory=Counter)

    def told(self) -> Json:
        return {
            "quiet_p50_ms": self.quiet.p50_ms,
            "quiet_p95_ms": self.quiet.quantile_ms(0.95),
            "p50_ratio": self.loaded.p50_ms / self.quiet.p50_ms,
            "p95_ratio": self.loaded.quantile_ms(0.95) / self.quiet.quantile_ms(0.95),
            "statuses": dict(self.loaded.statuses),
            "load_statuses": dict(self.load),
        }


def upload_ask(key: str, name: str, media_type: str, content: bytes) -> Ask:
    """An upload of one document, as multipart."""
    boundary = b"-----holdfast-bench"
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {media_type}\r\n\r\n'
    body = b"--" + boundary + b"\r\n" + head.encode() + content + b"\r\n--" + boundary + b"--\r\n"
    start = (
        f"POST /resources HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: multipart/form-data; boundary={boundary.decode()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return Ask(start.encode() + body)


def _page(number: int, elements: int) -> bytes:
    """A page with little text, and elements that take time to parse."""
    return f"<html><body><p>Report {number}.</p>{'<i>.</i>' * elements}</body></html>".encode()


async def paced(port: int, seconds: float, pace: float, turn: Callable[[int], Ask]) -> Outcome:
    """One request after the other, each when it is due, or as soon as the one before is answered."""
    outcome, line = Outcome(), Line(port)
    started = time.perf_counter()
    number = 0
    while (begun := time.perf_counter()) < started + seconds:
        status = await line.ask(turn(number))
        outcome.statuses[status] += 1
        if status in (200, 201):
            outcome.times.append(time.perf_counter() - begun)
        number += 1
        await asyncio.sleep(max(0.0, started + number * pace - time.perf_counter()))
    line.close()
    outcome.seconds = time.perf_counter() - started
    return outcome


# --- the load, in a process of its own --------------------------------------------------------------------------------


def _flood(port: int, key: str, seconds: float) -> Outcome:
    asks = [search_ask(key, query) for query in Corpus(3).queries(200)]
    return asyncio.run(
        as_fast_as_answered(port, CONNECTIONS, seconds, lambda caller, count: [asks[(caller * 7 + count) % len(asks)]])
    )


def _flood_unknown(port: int, key: str, seconds: float) -> Outcome:
    ask = add_ask("uk_unknown", "ben", "chat:one", ["tea " * (LARGE // 2_000)] * 450)
    return asyncio.run(as_fast_as_answered(port, UNKNOWN, seconds, lambda caller, count: [ask]))


def _flood_uploads(port: int, key: str, seconds: float) -> Outcome:
    def turn(caller: int, count: int) -> Sequence[Ask]:
        number = int(time.time() * 1000) % 10**8 * 100 + caller
        return [upload_ask(key, f"{number}.html", "text/html", _page(number, _ELEMENTS))]

    return asyncio.run(as_fast_as_answered(port, UPLOADS, seconds, turn))


def _run_load(load: Callable[[int, str, float], Outcome], answer: Connection, *given: Any) -> None:
    answer.send(load(*given).statuses)


# --- one run ----------------------------------------------------------------------------------------------------------


@dataclass
class Fairness:
    service: Service
    seconds: float
    rounds: int
    keys: dict[str, str] = field(default_factory=dict)
    queries: Sequence[str] = field(default_factory=lambda: Corpus(2).queries(200))

    def prepare(self) -> None:
        texts = Corpus(1)
        for user in ("ana", "ben"):
            self.keys[user] = sign_up(self.service.port, user)
            ask = add_ask(self.keys[user], user, "chat:one", texts.texts(RECORDS))
            asyncio.run(as_fast_as_answered(self.service.port, 1, 0.001, lambda *_, ask=ask: [ask]))
        asyncio.run(paced(self.service.port, 2.0, 0.01, self._search))

    def _search(self, number: int) -> Ask:
        return search_ask(self.keys["ana"], self.queries[number % len(self.queries)])

    def _document(self, number: int) -> Ask:
        at = time.time_ns() % 10**12
        return upload_ask(self.keys["ana"], f"{at}.html", "text/html", _page(at, 20))

    def compare(
        self, load: Callable[[int, str, float], Outcome], *, documents: bool = False
    ) -> tuple[Json, Json | None]:
        """Measure searches, and documents where asked, without the load and with it."""
        searches, uploads = Rounds(), Rounds()
        for _ in range(self.rounds):
            self._measure(searches.quiet, uploads.quiet if documents else None)
            answer, sent = _SPAWN.Pipe(duplex=False)
            given = (load, sent, self.service.port, self.keys["ben"], self.seconds + 3.0)
            process = _SPAWN.Process(target=_run_load, args=given)
            process.start()
            time.sleep(2.5)  # until all connections are busy
            self._measure(searches.loaded, uploads.loaded if documents else None)
            searches.load += answer.recv()
            process.join()
        return searches.told(), uploads.told() if documents else None

    def _measure(self, searches: Outcome, documents: Outcome | None) -> None:
        async def both() -> None:
            port = self.service.port
            waiting = [paced(port, self.seconds, PACE, self._search)]
            if documents is not None:
                waiting.append(paced(port, self.seconds, DOCUMENT_PACE, self._document))
            for total, found in zip((searches, documents), await asyncio.gather(*waiting), strict=False):
                assert total is not None
                total.times += found.times
                total.statuses += found.statuses

        asyncio.run(both())


def measure(seconds: float, rounds: int, chosen: Sequence[str]) -> Json:
    found: Json = {}
    for limit, rate in (("without_rate_limit", 0), ("with_rate_limit", 6_000)):
        with tempfile.TemporaryDirectory(prefix="bench-fairness-") as folder:
            core, settings = last_core(), {"HOLDFAST_RATE_PER_MINUTE": str(rate)}
            with serving(f"{folder}/memory.db", free_port(), core=core, settings=settings) as service, kept_off(core):
                run = Fairness(service, seconds, rounds)
                run.prepare()
                if "connections" in chosen:
                    found[f"connections_{limit}"] = run.compare(_flood)[0]
                if rate == 0 and "unknown" in chosen:
                    found["unknown_key"] = run.compare(_flood_unknown)[0]
                if rate == 0 and "uploads" in chosen:
                    found["uploads"], found["documents"] = run.compare(_flood_uploads, documents=True)
    return found


def table(found: Json) -> str:
    rows = [
        (f"{CONNECTIONS} connections of one key, without a rate limit", "connections_without_rate_limit", "5", "10"),
        (f"{CONNECTIONS} connections of one key, with the rate limit", "connections_with_rate_limit", "5", "10"),
        (f"{UNKNOWN} connections with an unknown key and 4 MB each", "unknown_key", "2", ""),
        (f"{UPLOADS} uploads of one key: another's searches", "uploads", "5", "10"),
        (f"{UPLOADS} uploads of one key: another's documents", "documents", "", ""),
    ]
    lines = ["| load | quiet p50 ms | p50 ÷ quiet | at most | p95 ÷ quiet | at most | answers |", "|" + " --- |" * 7]
    for label, name, median, tail in rows:
        if (each := found.get(name)) is not None:
            figures = f"{each['quiet_p50_ms']:.1f} | {each['p50_ratio']:.2f} | {median} | {each['p95_ratio']:.2f}"
            lines.append(f"| {label} | {figures} | {tail} | {each['statuses']} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway.fairness", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3, help="quiet and loaded, of each load")
    parser.add_argument("--loads", nargs="*", default=["connections", "unknown", "uploads"])
    given = parser.parse_args()
    found = measure(given.seconds, given.rounds, given.loads)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
