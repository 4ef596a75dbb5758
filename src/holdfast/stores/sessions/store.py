"""Sessions in one file that several processes may share: WAL, full sync, one commit per append.

SQL runs in two threads of its own, one that writes and one that reads, and never on an event loop. Deleting a session
leaves no byte of it: the index is merged, which drops words that were only marked as deleted; the file is vacuumed,
because SQLite leaves copies of moved rows in unused parts of pages; and the log is truncated. This pending work is
committed with the deletion, so that a crash in between, or a concurrent reader, only delays it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from holdfast.domain.checks import MAX_QUERY_CHARS
from holdfast.domain.scope import check_part
from holdfast.domain.sessions import NewSessionEvent, SessionEvent, SessionHit, SessionSummary
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.transcript import Role
from holdfast.domain.visible_text import one_line
from holdfast.errors import InvalidInput, StoreClosed
from holdfast.stores.sessions.full_text import build_queries, index_text
from holdfast.stores.sessions.schema import open_file
from holdfast.stores.sqlite.busy_retry import committing, retry_while_busy
from holdfast.stores.sqlite.connection import connect
from holdfast.stores.sqlite.errors import translating

T = TypeVar("T")
BUSY_SECONDS = 15.0
TITLE_CHARS = 80
AROUND = 2
SCRUB_SECONDS = 1.0
_SCRUB_STEP = 0.01
_SAID = (Role.USER, Role.ASSISTANT)
_COLUMNS = "e.number, s.name, e.run, e.at, e.kind, e.content, e.role, e.data, e.visible"
_EVENTS = f"SELECT {_COLUMNS} FROM events e JOIN sessions s ON s.id = e.session"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
log = logging.getLogger("holdfast.store")


class SqliteSessions:
    """Implements the agent's session port. `stop_words` are word lists, one per language, that a search may skip."""

    def __init__(
        self,
        location: str,
        *,
        busy_seconds: float = BUSY_SECONDS,
        stop_words: Sequence[Collection[str]] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.location = location
        self._busy_seconds = busy_seconds
        self._stop_words = stop_words
        self._now = now
        with translating(location):
            self._writing = open_file(location, busy_seconds)
            self._reading = connect(location, busy_seconds)
            self._reading.execute("PRAGMA query_only = ON")
        self._lock = threading.Lock()
        self._closed = False
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="holdfast-sessions-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="holdfast-sessions-reader")
        if self._needs_scrub():
            self._submit(self._writer, self._scrub)

    async def append(self, session_id: str, run_id: str, events: Sequence[NewSessionEvent]) -> tuple[SessionEvent, ...]:
        check_part("session_id", session_id)
        check_part("run_id", run_id)
        written = [_serialize_event(event) for event in events]
        return await self._do(self._writer, lambda: self._append(session_id, run_id, written)) if written else ()

    async def events(
        self, session_id: str, *, visible: bool = False, last: int | None = None
    ) -> tuple[SessionEvent, ...]:
        condition = f"s.name = ?{' AND e.visible' if visible else ''}"
        count = -1 if last is None else max(0, last)
        values = (_storable(session_id), count)
        return await self._do(self._reader, lambda: self._read(condition, "e.number DESC LIMIT ?", values)[::-1])

    async def sessions(self, limit: int = 50, *, before: datetime | None = None) -> tuple[SessionSummary, ...]:
        condition, values = ("", ()) if before is None else ("WHERE last_at < ?", (to_micros(before),))
        statement = (
            f"SELECT name, title, started_at, last_at, messages FROM sessions {condition}"
            " ORDER BY last_at DESC, id DESC LIMIT ?"
        )
        rows = await self._do(
            self._reader, lambda: self._reading.execute(statement, (*values, max(0, limit))).fetchall()
        )
        return tuple(
            SessionSummary(name, title, from_micros(started), from_micros(last), messages)
            for name, title, started, last, messages in rows
        )

    async def search(self, query: str, *, without: str | None = None, limit: int = 5) -> tuple[SessionHit, ...]:
        excluded = None if without is None else _storable(without)
        for terms in build_queries(_storable(query[:MAX_QUERY_CHARS]), self._stop_words) if limit > 0 else ():
            if hits := await self._do(self._reader, partial(self._search, terms, excluded, limit)):
                return hits
        return ()

    async def delete(self, session_id: str) -> bool:
        return await self._do(self._writer, lambda: self._delete(_storable(session_id)))

    async def close(self) -> None:
        """Finish accepted work, then close. Idempotent."""
        with self._lock:
            ended = [] if self._closed else [self._reader.submit(self._reading.close), self._writer.submit(self._end)]
            self._closed = True
        for each in ended:
            await asyncio.wrap_future(each)
        self._reader.shutdown()
        self._writer.shutdown()

    # --- threads ---

    async def _do(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        # Submitted work is completed, even if the caller no longer waits.
        return await asyncio.wrap_future(self._submit(threads, work))

    def _submit(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
        def run() -> T:
            with translating(self.location):
                return work()

        with self._lock:
            if self._closed:
                raise StoreClosed("these sessions are closed; open them again")
            return threads.submit(run)

    def _end(self) -> None:
        if self._needs_scrub():
            self._scrub()
        self._writing.close()

    def _commit(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with committing(self._writing, self._busy_seconds):
            return work(self._writing)

    # --- work of the threads ---

    def _append(
        self, session_id: str, run_id: str, events: Sequence[tuple[NewSessionEvent, str]]
    ) -> tuple[SessionEvent, ...]:
        def work(db: sqlite3.Connection) -> tuple[SessionEvent, ...]:
            now = to_micros(self._now())
            db.execute(
                "INSERT INTO sessions (name, title, started_at, last_at, messages, events) VALUES (?, '', ?, ?, 0, 0)"
                " ON CONFLICT (name) DO NOTHING",
                (session_id, now, now),
            )
            session, title, last, count, messages = db.execute(
                "SELECT id, title, last_at, events, messages FROM sessions WHERE name = ?", (session_id,)
            ).fetchone()
            # A clock that was set back must not put an answer before its question.
            at = max(now, last)
            for number, (event, data) in enumerate(events, count + 1):
                row = (session, number, run_id, at, event.kind, event.content, event.role, data, event.context_visible)
                event_id = db.execute(
                    "INSERT INTO events (session, number, run, at, kind, content, role, data, visible)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                ).lastrowid
                if event.context_visible and event.role in _SAID:
                    db.execute("INSERT INTO said (rowid, words) VALUES (?, ?)", (event_id, index_text(event.content)))
                    messages += 1
                    if not title and event.role is Role.USER:
                        title = _title(event.content)
            db.execute(
                "UPDATE sessions SET title = ?, last_at = ?, messages = ?, events = ? WHERE id = ?",
                (title, at, messages, count + len(events), session),
            )
            return tuple(
                SessionEvent(number, session_id, run_id, from_micros(at), event.kind, event.content, event.role,
                      json.loads(data), event.context_visible)
                for number, (event, data) in enumerate(events, count + 1)
            )  # fmt: skip

        return self._commit(work)

    def _read(self, condition: str, order: str, values: Sequence[object]) -> tuple[SessionEvent, ...]:
        rows = self._reading.execute(f"{_EVENTS} WHERE {condition} ORDER BY {order}", values)
        return tuple(
            SessionEvent(number, name, run, from_micros(at), kind, content, None if role is None else Role(role),
                  json.loads(data), bool(visible))
            for number, name, run, at, kind, content, role, data, visible in rows
        )  # fmt: skip

    def _search(self, terms: str, without: str | None, limit: int) -> tuple[SessionHit, ...]:
        # One read transaction, so that a hit cannot be deleted before it is read.
        self._reading.execute("BEGIN")
        try:
            best: dict[int, int] = {}
            for session, number in self._reading.execute(
                "SELECT e.session, e.number FROM said JOIN events e ON e.id = said.rowid"
                " WHERE said MATCH ? AND e.session IS NOT (SELECT id FROM sessions WHERE name = ?)"
                " ORDER BY said.rank, e.id DESC",
                (terms, without),
            ):
                if best.setdefault(session, number) == number and len(best) == limit:
                    break
            return tuple(self._hit(session, number) for session, number in best.items())
        finally:
            self._reading.execute("ROLLBACK")

    def _hit(self, session: int, number: int) -> SessionHit:
        is_message = "e.session = ? AND e.visible AND e.role IN ('user', 'assistant') AND e.number"
        (found,) = self._read(f"{is_message} = ?", "e.number", (session, number))
        before = self._read(f"{is_message} < ?", f"e.number DESC LIMIT {AROUND}", (session, number))[::-1]
        after = self._read(f"{is_message} > ?", f"e.number LIMIT {AROUND}", (session, number))
        assert found.role is not None
        return SessionHit(found.session_id, number, found.at, found.role, found.content, (*before, *after))

    def _delete(self, session_id: str) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            found = db.execute("SELECT id FROM sessions WHERE name = ?", (session_id,)).fetchone()
            if found is None:
                return False
            db.execute("DELETE FROM said WHERE rowid IN (SELECT id FROM events WHERE session = ?)", found)
            db.execute("DELETE FROM events WHERE session = ?", found)
            db.execute("DELETE FROM sessions WHERE id = ?", found)
            db.execute("INSERT INTO meta (key, value) VALUES ('scrub', '1') ON CONFLICT (key) DO NOTHING")
            return True

        if not self._commit(work):
            return False
        self._scrub()
        return True

    def _needs_scrub(self) -> bool:
        with translating(self.location):
            return self._writing.execute("SELECT 1 FROM meta WHERE key = 'scrub'").fetchone() is not None

    def _scrub(self) -> None:
        """Remove deleted text from the index, the file and the log; later, if other connections prevent it now."""
        try:
            self._commit(lambda db: db.execute("INSERT INTO said (said) VALUES ('optimize')"))
            retry_while_busy(lambda: self._writing.execute("VACUUM"), self._busy_seconds)
        except sqlite3.OperationalError as error:
            # The session is deleted all the same; its bytes go once there is disk space and no other writer.
            log.warning("%s: deleted sessions are not overwritten yet (%s)", self.location, error)
            return
        deadline = time.monotonic() + SCRUB_SECONDS
        while self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() >= deadline:
                log.warning("%s is in use; its log will be truncated later", self.location)
                return
            time.sleep(_SCRUB_STEP)
        self._commit(lambda db: db.execute("DELETE FROM meta WHERE key = 'scrub'"))


def _serialize_event(event: NewSessionEvent) -> tuple[NewSessionEvent, str]:
    """Return the event as it is stored, and its data as JSON."""
    try:
        data = json.dumps(dict(event.data), allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidInput("data", f"of a {event.kind!r} event cannot be written as JSON") from None
    return NewSessionEvent(event.kind, _storable(event.content), event.role, event.data, event.context_visible), data


def _storable(text: str) -> str:
    """Replace lone surrogates: a model may write them, SQLite cannot store them, and a refusal would leave a gap."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _title(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
