"""The single writer: waiting callers, wake-ups, requests that fail alone, and requests that are never begun."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openers import EVERYTHING

from holdfast import failpoints
from holdfast.domain.access import LOCAL_OPERATOR, Action
from holdfast.domain.ids import OperationId
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.loops import run_sync
from holdfast.ports import Transaction
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.writer_queue import PendingResult
from holdfast.testing.fakes import FixedClock

PATIENCE = 30.0


@contextmanager
def occupied(store: SqliteStore) -> Iterator[None]:
    """Keep the writer busy within the block, so that new requests are queued."""
    busy, free = threading.Event(), threading.Event()

    def work(transaction: Transaction) -> None:
        busy.set()
        assert free.wait(PATIENCE)

    thread = threading.Thread(target=lambda: run_sync(store.write(EVERYTHING, work)))
    thread.start()
    assert busy.wait(PATIENCE)
    try:
        yield
    finally:
        free.set()
        thread.join()


def fact(name: str) -> Callable[[Transaction], str]:
    def work(transaction: Transaction) -> str:
        transaction.maintenance.put_fact(name, "there")
        return name

    return work


def failing(name: str) -> Callable[[Transaction], str]:
    def work(transaction: Transaction) -> str:
        transaction.maintenance.put_fact(name, "there")
        raise ValueError(name)

    return work


def known(store: SqliteStore, *names: str) -> list[str]:
    """The stored ones among these facts; read without an event loop."""
    return [name for name in names if run_sync(store.read(EVERYTHING, lambda r, n=name: r.maintenance.fact(n)))]


def operation(name: str) -> Operation:
    return Operation(
        OperationId(name), LOCAL_OPERATOR, Action.SEARCH, Scope(), Outcome.SUCCEEDED, None, 0, FixedClock().now(), 1
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "memory.db"))
    yield opened
    asyncio.run(opened.close())


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts wake-ups from other threads."""

    woken = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self.woken += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def test_all_that_one_commit_answers_on_a_loop_is_told_in_one_wake_up(store: SqliteStore) -> None:
    async def many() -> list[str]:
        with occupied(store):
            tasks = [asyncio.create_task(store.write(EVERYTHING, fact(f"f{number}"))) for number in range(50)]
            await asyncio.sleep(0)
        return await asyncio.gather(*tasks)

    loop = CountingLoop()
    try:
        assert loop.run_until_complete(many()) == [f"f{number}" for number in range(50)]
        assert loop.woken == 1
    finally:
        loop.close()


def test_loops_and_threads_that_wait_for_one_commit_all_get_their_own_answer(store: SqliteStore) -> None:
    answers: dict[str, object] = {}
    queued = threading.Barrier(5)

    def blocking(name: str) -> None:
        queued.wait(PATIENCE)
        answers[name] = run_sync(store.write(EVERYTHING, fact(name)))

    def looping(name: str) -> None:
        async def both() -> list[str | BaseException]:
            queued.wait(PATIENCE)
            return await asyncio.gather(
                store.write(EVERYTHING, fact(name)), store.write(EVERYTHING, failing("bad")), return_exceptions=True
            )

        good, bad = asyncio.run(both())
        answers[name] = good if repr(bad) == "ValueError('bad')" else bad

    with occupied(store):
        threads = [
            threading.Thread(target=target, args=(f"{target.__name__} {number}",))
            for target in (blocking, looping)
            for number in range(2)
        ]
        for thread in threads:
            thread.start()
        queued.wait(PATIENCE)
    for thread in threads:
        thread.join()
    names = ["blocking 0", "blocking 1", "looping 0", "looping 1"]
    assert answers == {name: name for name in names}
    assert known(store, *names, "bad") == names


def test_many_who_write_at_once_share_commits(store: SqliteStore) -> None:
    reached: Counter[str] = Counter()

    def slow_disk(point: str) -> None:
        reached[point] += 1
        if point == "commit.before":
            time.sleep(0.005)

    def write(thread: int) -> list[str]:
        return [run_sync(store.write(EVERYTHING, fact(f"{thread}.{number}"))) for number in range(10)]

    failpoints.arm(slow_disk)
    try:
        with ThreadPoolExecutor(8) as threads:
            answers = [name for names in threads.map(write, range(8)) for name in names]
    finally:
        failpoints.arm(None)
    assert known(store, *answers) == answers
    assert len(answers) == 80
    assert reached["commit.after"] < 40


def test_requests_that_fail_among_others_leave_nothing_and_spoil_nothing(store: SqliteStore) -> None:
    async def together(*works: Callable[[Transaction], str]) -> list[str]:
        """Write all in one commit: they are queued while the writer's thread is held."""
        busy, free = threading.Event(), threading.Event()

        def hold(transaction: Transaction) -> None:
            busy.set()
            assert free.wait(PATIENCE)

        held = asyncio.create_task(store.write(EVERYTHING, hold))
        await asyncio.to_thread(busy.wait, PATIENCE)
        waiting = [asyncio.create_task(store.write(EVERYTHING, work)) for work in works]
        await asyncio.sleep(0)
        free.set()
        await held
        return [str(answer) for answer in await asyncio.gather(*waiting, return_exceptions=True)]

    # The writer of the second round has met a failure; that of the third has met none since.
    commits: Counter[str] = Counter()
    failpoints.arm(lambda point: commits.update([point]))
    try:
        for number, failures in enumerate(({1, 2}, set[int](), set[int](), {3})):
            names = [f"{number}.{each}" for each in range(4)]
            works = [(failing if each in failures else fact)(name) for each, name in enumerate(names)]
            assert asyncio.run(together(*works)) == names
            assert commits["commit.after"] == 2 * (number + 1)  # one of the request that held the writer, one of these
            assert known(store, *names) == [name for each, name in enumerate(names) if each not in failures]
    finally:
        failpoints.arm(None)


def test_a_request_that_fails_alone_leaves_nothing_and_the_audit_rows_of_others_stay(
    store: SqliteStore, tmp_path: Path
) -> None:
    for number in range(3):
        run_sync(store.audit(operation(f"op_{number}")))
        with pytest.raises(ValueError, match="alone"):
            run_sync(store.write(EVERYTHING, failing("alone")))
    run_sync(store.write(EVERYTHING, lambda transaction: None))
    rows = run_sync(store.read(EVERYTHING, lambda reader: reader.operations.page()))
    assert sorted(row.id for row in rows) == ["op_0", "op_1", "op_2"]
    assert known(store, "alone") == []


def test_a_request_that_was_cancelled_before_it_began_is_not_carried_out(store: SqliteStore) -> None:
    async def cancelled() -> None:
        with occupied(store):
            task = asyncio.create_task(store.write(EVERYTHING, fact("unwanted")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    assert known(store, "unwanted") == []


def test_a_loop_that_was_closed_meanwhile_does_not_stop_the_writer(store: SqliteStore) -> None:
    loop = asyncio.new_event_loop()
    with occupied(store):
        task = loop.create_task(store.write(EVERYTHING, fact("orphaned")))
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    assert run_sync(store.write(EVERYTHING, fact("after"))) == "after"
    assert known(store, "orphaned", "after") == ["orphaned", "after"]
    assert not task.done()
    task.get_coro().close()
    task._log_destroy_pending = False


def where(seen: list[str]) -> Callable[[Transaction], None]:
    return lambda transaction: seen.append(threading.current_thread().name)


def test_a_lone_caller_commits_in_its_own_thread_and_a_loop_never_does(store: SqliteStore) -> None:
    seen: list[str] = []
    run_sync(store.write(EVERYTHING, where(seen)))
    asyncio.run(store.write(EVERYTHING, where(seen)))
    with occupied(store):
        thread = threading.Thread(target=lambda: run_sync(store.write(EVERYTHING, where(seen))), name="late")
        thread.start()
        wait_until(lambda: waiting(thread))
    thread.join(PATIENCE)
    assert seen == [threading.main_thread().name, "holdfast-writer", "holdfast-writer"]


def waiting(thread: threading.Thread) -> bool:
    """True if the thread has submitted a request and waits for the answer."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code is PendingResult._wait.__code__


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_interrupts_within_a_caller_s_own_commit_leave_the_store_usable(store: SqliteStore) -> None:
    """Signals at random times, handled like Ctrl-C: between any two steps of the interpreter."""
    chance, interrupts, acknowledged = random.Random(5), 0, []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(2_000):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3))
                run_sync(store.write(EVERYTHING, fact(f"f{number}")))
                signal.setitimer(signal.ITIMER_REAL, 0)
                acknowledged.append(f"f{number}")
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 20
    assert run_sync(store.write(EVERYTHING, fact("after"))) == "after"
    assert known(store, *acknowledged, "after") == [*acknowledged, "after"]
