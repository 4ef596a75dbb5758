"""A pipeline of statements and results over one connection.

It uses libpq's pipeline mode directly: a result is awaited only when it is read, so a transaction of ten statements
takes two or three round trips instead of ten. Each statement is prepared once per connection. Parameters are sent
without a type, for the server to infer, so that an occasional NULL does not make a different statement; results are
binary. Waiting is done on the socket, so that other threads can run.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

from holdfast.stores.postgres.parameters import encode_parameters

_MOST_PREPARED = 1_000
_FINE = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})


@lru_cache(maxsize=2_000)
def number_placeholders(statement: str) -> bytes:
    """Replace each `?` with PostgreSQL's placeholders: $1, $2, …"""
    first, *rest = statement.split("?")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))).encode()


class StatementResult:
    """The result of a statement. Reading it waits for it, and raises its error."""

    __slots__ = ("_next", "_result", "_wire", "prepares")

    def __init__(self, wire: StatementPipeline, prepares: str | None = None) -> None:
        self.prepares = prepares
        self._wire = wire
        self._result: PGresult | None = None
        self._next = 0

    def set_result(self, result: PGresult) -> None:
        self._result = result

    def _wait_for_result(self) -> PGresult:
        if self._result is None:
            self._wire.receive(self)
        assert self._result is not None
        return self._result

    @property
    def rowcount(self) -> int:
        return int(self._wait_for_result().command_tuples or 0)

    @property
    def tag(self) -> bytes:
        """The server's command tag, such as COMMIT."""
        return self._wait_for_result().command_status or b""

    def fetchone(self) -> Any:
        found = self._rows(self._next, self._next + 1)
        self._next += 1
        return found[0] if found else None

    def fetchall(self) -> list[Any]:
        return self._rows(self._next, None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    def _rows(self, start: int, end: int | None) -> list[Any]:
        result = self._wait_for_result()
        last = result.ntuples if end is None else min(end, result.ntuples)
        return self._wire.load_rows(result, start, last) if start < last else []


# A live server sends something by then, whatever it is working on.
SILENCE_SECONDS = 300.0


class StatementPipeline:
    """One connection in pipeline mode, between `enter` and `leave`. Used by one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._libpq = connection.pgconn
        self._loader = Transformer(connection)
        self._prepared: dict[str, bytes] = {}
        self._expected: deque[StatementResult] = deque()
        self._error: psycopg.Error | None = None
        self.open = False
        self._reading, self._both = select.poll(), select.poll()
        self._reading.register(self._libpq.socket, select.POLLIN)
        self._both.register(self._libpq.socket, select.POLLIN | select.POLLOUT)

    # --- sending ---

    def enter(self) -> None:
        self._error = None
        self._expected.clear()
        self._libpq.enter_pipeline_mode()
        self.open = True

    def send(self, statement: str, values: Sequence[Any] = ()) -> StatementResult:
        """Send a statement; its result is read later, or never."""
        name = self._prepared.get(statement)
        if name is None and len(self._prepared) < _MOST_PREPARED:
            name = self._prepared[statement] = b"h%d" % len(self._prepared)
            self._libpq.send_prepare(name, number_placeholders(statement))
            self._expected.append(StatementResult(self, prepares=statement))
        parameters, formats = encode_parameters(values)
        if name is None:
            self._libpq.send_query_params(
                number_placeholders(statement), parameters, param_formats=formats, result_format=Format.BINARY
            )
        else:
            self._libpq.send_query_prepared(name, parameters, formats, result_format=Format.BINARY)
        answer = StatementResult(self)
        self._expected.append(answer)
        return answer

    def push(self) -> None:
        """Flush sent statements, and make the server flush its results."""
        self._libpq.send_flush_request()
        self._flush()

    # --- receiving ---

    def receive(self, last: StatementResult) -> None:
        """Receive results up to this one; raise the first error among them."""
        if self._error is not None:
            raise self._error
        self.push()
        while self._expected:
            answer = self._expected.popleft()
            self._receive_one(answer)
            if self._error is not None:
                raise self._error
            if answer is last:
                return
        raise psycopg.OperationalError("the connection was lost")

    def leave(self) -> None:
        """Receive all outstanding results, and end the pipeline; raise the first error, if none was raised yet."""
        raised, self.open = self._error, False
        self._libpq.pipeline_sync()
        self._flush()
        while self._expected:
            self._receive_one(self._expected.popleft())
        while (result := self._result()) is None or result.status != ExecStatus.PIPELINE_SYNC:
            pass
        self._libpq.exit_pipeline_mode()
        if self._error is not None and raised is None:
            raise self._error

    def _receive_one(self, answer: StatementResult) -> None:
        """Receive one statement's result, and its end marker."""
        result = self._result()
        if result is None:
            raise psycopg.OperationalError("the server's results are out of step")
        if result.status in _FINE:
            answer.set_result(result)
        else:
            if answer.prepares is not None:
                del self._prepared[answer.prepares]
            if result.status != ExecStatus.PIPELINE_ABORTED and self._error is None:
                self._error = errors.error_from_result(result, self._connection.info.encoding)
        if self._result() is not None:
            raise psycopg.OperationalError("the server's results are out of step")

    def _result(self) -> PGresult | None:
        libpq = self._libpq
        while libpq.is_busy():
            _wait(self._reading)
            libpq.consume_input()
            self._check()
        result = libpq.get_result()
        if result is None:
            self._check()
        return result

    def _flush(self) -> None:
        # Read while sending: the server stops reading while its output is not consumed.
        while self._libpq.flush():
            for _, event in _wait(self._both):
                if event & ~select.POLLOUT:
                    self._libpq.consume_input()

    def _check(self) -> None:
        if self._libpq.status == ConnStatus.BAD:
            self._expected.clear()
            raise psycopg.OperationalError(f"the connection was lost: {self._libpq.get_error_message()}")

    def load_rows(self, result: PGresult, start: int, end: int) -> list[Any]:
        self._loader.set_pgresult(result)
        return self._loader.load_rows(start, end, tuple)


def _wait(poll: select.poll) -> list[tuple[int, int]]:
    found = poll.poll(SILENCE_SECONDS * 1000)
    if not found:
        raise psycopg.OperationalError(f"the server sent nothing for {SILENCE_SECONDS:g} seconds")
    return found
