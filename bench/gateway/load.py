"""Load generator: requests as fast as the service answers, or at a fixed rate regardless of answers.

The client uses plain sockets on asyncio and requests written before the clock starts, so that it costs little beside
the service. At a fixed rate, latency counts from the time a request was due, so waiting for a connection is included.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as sent over the wire."""

    wire: bytes

    @classmethod
    def post(cls, path: str, key: str, body: object) -> Ask:
        return cls.of("POST", path, key, json.dumps(body).encode())

    @classmethod
    def of(cls, method: str, path: str, key: str, content: bytes = b"", media_type: str = "application/json") -> Ask:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: {media_type}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return cls(head.encode() + content)


@dataclass(slots=True)
class Outcome:
    """The result: answers per status (0: broken connection), and the time of each successful one."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)

    @property
    def good(self) -> int:
        return self.statuses[200]

    @property
    def per_second(self) -> float:
        return self.good / self.seconds

    def quantile_ms(self, share: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000 if ordered else float("nan")

    @property
    def p50_ms(self) -> float:
        return statistics.median(self.times) * 1_000 if self.times else float("nan")

    @property
    def p99_ms(self) -> float:
        return self.quantile_ms(0.99)


class Line:
    """A connection that is reopened when it breaks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, ask: Ask) -> int:
        """Send a request; return the status of the answer, or 0 if there was none."""
        return (await self.exchange(ask))[0]

    async def exchange(self, ask: Ask) -> tuple[int, bytes]:
        """Send a request; return the status and the body of the answer, or 0 and nothing if there was none."""
        try:
            if self._streams is not None and self._streams[0].at_eof():
                self.close()  # idle for too long: the service closed it
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(ask.wire)
            head = await reader.readuntil(b"\r\n\r\n")
            lowered = head.lower()
            length = int(lowered.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            content = await reader.readexactly(length)
            if b"connection: close" in lowered:
                self.close()
            return int(head[9:12]), content
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0, b""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def as_fast_as_answered(
    port: int, callers: int, seconds: float, turn: Callable[[int, int], Sequence[Ask]]
) -> Outcome:
    """Each caller sends its next request as soon as it has an answer. A turn is several requests, counted as one."""
    outcome = Outcome()
    until = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        line, count = Line(port), 0
        while (began := time.perf_counter()) < until:
            statuses = [await line.ask(ask) for ask in turn(number, count)]
            count += 1
            wrong = next((status for status in statuses if status != 200), 200)
            outcome.statuses[wrong] += 1
            if wrong == 200:
                outcome.times.append(time.perf_counter() - began)
        line.close()

    started = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    outcome.seconds = time.perf_counter() - started
    return outcome


async def at_a_rate(port: int, rate: float, seconds: float, turn: Callable[[int], Ask], most: int = 256) -> Outcome:
    """Send `rate` requests per second, evenly, whatever the answers, over at most `most` connections."""
    outcome = Outcome()
    idle = [Line(port) for _ in range(most)]
    free = asyncio.Semaphore(most)

    async def one(ask: Ask, due: float) -> None:
        async with free:
            line = idle.pop()
            status = await line.ask(ask)
            idle.append(line)
        outcome.statuses[status] += 1
        if status == 200:
            outcome.times.append(time.perf_counter() - due)

    started = time.perf_counter()
    tasks: set[asyncio.Task[None]] = set()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(turn(number), due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - started
    for line in idle:
        line.close()
    return outcome
