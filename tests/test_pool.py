"""Threads that take work until they are shut down."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import CancelledError, wait

import pytest

from holdfast.loops import ThreadPool

PATIENCE_SECONDS = 10


def test_what_is_submitted_is_answered_or_raised() -> None:
    with ThreadPool(2, "test") as pool:
        assert pool.submit(divmod, 7, 2).result(PATIENCE_SECONDS) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 7, 0).result(PATIENCE_SECONDS)
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]


def test_there_are_never_more_threads_than_allowed_and_no_more_than_needed() -> None:
    names: set[str] = set()
    with ThreadPool(3, "few") as pool:
        for _ in range(5):
            pool.submit(lambda: names.add(threading.current_thread().name)).result(PATIENCE_SECONDS)
        assert names == {"few_0"}
        barrier = threading.Barrier(3)
        together = [pool.submit(barrier.wait, PATIENCE_SECONDS) for _ in range(6)]
        assert not wait(together, PATIENCE_SECONDS).not_done
    assert len(pool._bench.started) == 3
    assert not any(thread.is_alive() for thread in pool._bench.started)


def test_who_shuts_it_down_waits_for_what_was_submitted() -> None:
    pool, done, go = ThreadPool(1, "test"), [], threading.Event()
    first = pool.submit(go.wait, PATIENCE_SECONDS)
    for at in range(10):
        pool.submit(done.append, at)
    threading.Timer(0.01, go.set).start()
    pool.shutdown()
    assert first.result(0)
    assert done == list(range(10))
    with pytest.raises(RuntimeError):
        pool.submit(abs, 1)
    pool.shutdown()


def test_nobody_has_to_wait_for_longer_than_he_likes() -> None:
    pool, go = ThreadPool(1, "test"), threading.Event()
    pool.submit(go.wait, PATIENCE_SECONDS)
    pool.shutdown(wait=False)
    pool.join(0.01)
    assert pool._bench.started[0].is_alive()
    go.set()
    pool.join()
    assert not pool._bench.started[0].is_alive()


def test_what_was_not_begun_can_be_cancelled() -> None:
    pool, go, begun = ThreadPool(1, "test"), threading.Event(), threading.Event()
    first = pool.submit(lambda: (begun.set(), go.wait(PATIENCE_SECONDS)))
    begun.wait(PATIENCE_SECONDS)
    one, other = pool.submit(abs, -1), pool.submit(abs, -2)
    assert one.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
    go.set()
    pool.shutdown()
    assert first.done()
    with pytest.raises(CancelledError):
        other.result(PATIENCE_SECONDS)


def test_a_pool_that_nobody_holds_leaves_no_threads_behind() -> None:
    pool = ThreadPool(2, "left")
    pool.submit(abs, -1).result(PATIENCE_SECONDS)
    (thread,) = pool._bench.started
    del pool
    gc.collect()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_an_event_loop_takes_it_for_its_own() -> None:
    async def ask() -> str:
        asyncio.get_running_loop().set_default_executor(ThreadPool(1, "aside"))
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(ask()) == "aside_0"


def test_many_threads_submit_at_once() -> None:
    with ThreadPool(4, "test") as pool:
        answers: list[int] = []

        def ask(start: int) -> None:
            answers.extend(pool.submit(abs, -at).result(PATIENCE_SECONDS) for at in range(start, start + 200))

        threads = [threading.Thread(target=ask, args=(at * 200,)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == list(range(1600))
