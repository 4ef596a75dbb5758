"""Blocking APIs in programs whose main thread ends before their other threads. Each test runs a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import holdfast

LATE = """
import atexit, concurrent.futures.thread, threading, time
from concurrent.futures import ThreadPoolExecutor
import holdfast

def late(work):
    def run():
        threading.main_thread().join()
        work()
    threading.Thread(target=run).start()

def open_it():
    return holdfast.open(place, embedder="fake")
"""
USED = """
def use():
    for at in range(3):
        memory.add(f"The zebra sleeps {at}.", subject="ana")
        print(len(memory.search("zebra", subject="ana")))
    memory.flush(subject="ana")
    print(memory.stats(subject="ana").pending_vectors)
"""


def run(place: Path, program: str) -> list[str]:
    code = f"place = {str(place)!r}\n{LATE}{program}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def kept(place: Path) -> int:
    with holdfast.open(place, embedder="fake", work=False) as memory:
        assert memory.verify().ok
        return memory.stats(subject="ana").messages


def searches(place: Path) -> int:
    """The number of searches with an operation row, which no caller waits for."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(place)) as database:
        (count,) = database.execute("SELECT count(*) FROM operations WHERE action = 'search'").fetchone()
    return int(count)


def test_a_memory_works_until_the_last_thread_has_ended(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    assert run(place, USED + "memory = open_it()\nlate(use)") == ["1", "2", "3", "0"]
    assert (kept(place), searches(place)) == (3, 3)


def test_what_a_pool_was_given_before_the_main_thread_ended_is_done(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    program = """
memory = open_it()
def wait_and_use():
    while not concurrent.futures.thread._shutdown:  # Python waits for it now, and for its pools
        time.sleep(0.001)
    use()
ThreadPoolExecutor(1).submit(wait_and_use)
"""
    assert run(place, USED + program) == ["1", "2", "3", "0"]
    assert (kept(place), searches(place)) == (3, 3)


def test_a_memory_can_be_opened_again_by_a_thread_that_is_late(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    program = (
        USED + "open_it().close()\ndef again():\n    global memory\n    with open_it() as memory: use()\nlate(again)"
    )
    assert run(place, program) == ["1", "2", "3", "0"]
    assert (kept(place), searches(place)) == (3, 3)


def test_who_is_too_late_to_open_the_first_one_is_told_what_to_do(tmp_path: Path) -> None:
    program = """
import threading, holdfast
def first():
    threading.main_thread().join()
    try:
        holdfast.open(place)
    except holdfast.errors.StoreClosed as error:
        print(error)
threading.Thread(target=first).start()
"""
    code = f"place = {str(tmp_path / 'memory.db')!r}\n{program}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "join the thread that needs one" in ran.stdout


def test_a_memory_is_closed_also_where_no_thread_can_be_started_any_more(tmp_path: Path) -> None:
    """Newer Pythons start no thread at the end of a program."""
    place = tmp_path / "memory.db"
    refused = """
def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")
memory = open_it()
atexit.register(setattr, threading.Thread, "start", refuse)
late(use)
"""
    assert run(place, USED + refused) == ["1", "2", "3", "0"]
    assert (kept(place), searches(place)) == (3, 3)


def test_a_thread_that_is_no_daemon_is_waited_for_and_a_daemon_is_not(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    program = """
memory = open_it()
ready = threading.Event()
def wait_for_ever():
    memory.add("I wait.", subject="ana")
    ready.set()
    threading.Event().wait()
threading.Thread(target=wait_for_ever, daemon=True).start()
ready.wait()
"""
    assert run(place, program) == []
    assert kept(place) == 1
