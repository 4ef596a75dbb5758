"""The blocking and the async interface of the library: opening, sharing and closing."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from holdfast import AsyncMemory, Memory, open_async
from holdfast.errors import HoldfastError, StoreClosed
from probes import trail_of


def methods(of: type) -> dict[str, object]:
    return {name: found for name, found in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_the_blocking_face_has_every_method_with_the_same_signature() -> None:
    blocking, core = methods(Memory), methods(AsyncMemory)
    assert set(blocking) == set(core)
    for name in core:
        assert inspect.signature(blocking[name]) == inspect.signature(core[name]), name  # type: ignore[arg-type]
        assert inspect.iscoroutinefunction(core[name]), name
        assert inspect.getdoc(blocking[name]) == inspect.getdoc(core[name]), name
        assert inspect.getdoc(core[name]), name


def test_the_three_lines_of_the_readme_work(tmp_path: Path) -> None:
    memory = holdfast.open(tmp_path / "memory.db")
    memory.add("I moved to Lisbon last week.", subject="ana")
    hits = memory.search("Where does Ana live?", subject="ana")
    assert [hit.text for hit in hits] == ["I moved to Lisbon last week."]
    assert hits[0].evidence[0].text == hits[0].text
    memory.close()


def test_a_memory_shows_its_place_and_its_embedder_and_no_key(tmp_path: Path, memory: Memory, reached_by: str) -> None:
    path = str(tmp_path / "here.db")
    with holdfast.open(path, embedder="fake", work=False) as opened:
        assert repr(opened) == f"Memory({path!r}, embedder='fake')"
        assert repr(opened._behind) == f"AsyncMemory({path!r}, embedder='fake')"
    assert repr(opened) == f"Memory({path!r}, embedder='fake')"  # closed
    shown = repr(memory)
    assert shown.startswith("Memory('")
    # The passwords and keys of the tests' servers.
    assert "s3cret" not in shown
    assert ("://" in shown) is (reached_by != "sqlite")


def test_both_faces_give_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder="fake", work=False) as memory:
        memory.add(["The cat sat.", "A dog ran."], subject="ana")
        made = memory.remember("The cat is grey.", subject="ana")
        blocking = [
            memory.search("cat"), memory.explain("cat"), memory.recall("cat"), memory.list(), memory.get(made.id),
            memory.history(made.id), memory.stats(), memory.forget_preview(subject="ana"),
        ]  # fmt: skip

    async def asynchronous() -> list[object]:
        async with open_async(path, embedder="fake", work=False) as memory:
            return [
                await memory.search("cat"), await memory.explain("cat"), await memory.recall("cat"),
                await memory.list(), await memory.get(made.id), await memory.history(made.id), await memory.stats(),
                await memory.forget_preview(subject="ana"),
            ]  # fmt: skip

    assert asyncio.run(asynchronous()) == blocking


def test_an_opening_can_be_awaited_and_its_memory_used_in_a_with() -> None:
    async def use() -> int:
        memory = await open_async(":memory:", embedder="fake")
        async with memory:
            await memory.add("One.")
            return (await memory.stats()).messages

    assert asyncio.run(use()) == 1


def test_a_memory_in_memory_is_the_same_and_its_own() -> None:
    with holdfast.open(":memory:", embedder="fake") as one, holdfast.open(":memory:", embedder="fake") as other:
        one.add("The cat sat.")
        assert [hit.text for hit in one.search("cat")] == ["The cat sat."]
        assert one.verify().ok
        assert other.list().items == ()


@pytest.mark.parametrize("location", ["file", ":memory:"])
def test_closing_twice_is_closing_once(tmp_path: Path, location: str) -> None:
    memory = holdfast.open(tmp_path / "m.db" if location == "file" else location, embedder="fake")
    memory.close()
    memory.close()
    with memory:
        pass


CALLS = {
    "add": ("One.",), "flush": (), "search": ("one",), "explain": ("one",), "recall": ("one",), "get": ("mem_1",),
    "list": (), "browse": (), "history": ("mem_1",), "remember": ("One.",), "correct": ("mem_1", "Two."),
    "revert": ("mem_1", 1), "forget": ("mem_1",), "forget_preview": ("mem_1",), "jobs": (), "events": (), "stats": (),
    "verify": (), "rebuild": (),
    "drain": (), "create_user": ("ana",), "rotate_user": ("ana",), "revoke_user": ("ana",), "users": (),
    "add_resource": ("One.",), "resources": (), "resource": ("r_1",), "delete_resource": ("r_1",),
}  # fmt: skip


@pytest.mark.parametrize("verb", CALLS)
def test_every_verb_says_that_the_memory_was_closed(tmp_path: Path, verb: str) -> None:
    memory = holdfast.open(tmp_path / "m.db", embedder="fake")
    memory.close()
    with pytest.raises(StoreClosed, match="closed"):
        getattr(memory, verb)(*CALLS[verb])

    async def closed() -> None:
        opened = await open_async(tmp_path / "m.db", embedder="fake")
        await opened.close()
        with pytest.raises(StoreClosed, match="closed"):
            await getattr(opened, verb)(*CALLS[verb])
        await opened.close()

    asyncio.run(closed())


def test_every_verb_was_tried_on_a_closed_memory() -> None:
    assert set(CALLS) == set(methods(AsyncMemory)) - {"close"}


def test_many_threads_share_one_memory(memory: Memory) -> None:
    def work(number: int) -> int:
        memory.add(f"Thread {number} was here.", subject=f"s{number % 4}")
        return len(memory.search("thread was here", subject=f"s{number % 4}", top_k=100))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(64)))
    assert memory.stats().messages == 64
    assert max(found) == 16
    assert memory.verify().ok


def test_many_threads_open_one_file_at_once(tmp_path: Path) -> None:
    path, gate = tmp_path / "m.db", threading.Barrier(6)

    def work(number: int) -> int:
        gate.wait(timeout=30)
        with holdfast.open(path, embedder="fake") as memory:
            return memory.add(f"Opener {number}.").stored

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(6))) == [1] * 6
    with holdfast.open(path, embedder="fake") as memory:
        assert memory.stats().messages == 6
        assert memory.verify().ok


def test_a_call_under_way_when_another_thread_closes_gets_an_answer(tmp_path: Path) -> None:
    """It succeeds or reports that the memory was closed; it never hangs."""
    for _ in range(5):
        memory = holdfast.open(tmp_path / "m.db", embedder="fake")
        memory.add("The cat sat.", conversation=str(threading.get_ident()))
        started = threading.Barrier(5)
        with ThreadPoolExecutor(4) as threads:
            under_way = [threads.submit(keep_searching, memory, started) for _ in range(4)]
            started.wait(timeout=30)
            memory.close()
            outcomes = [outcome for searching in under_way for outcome in searching.result(timeout=30)]
        assert len(outcomes) == 200
        assert set(outcomes) <= {"found", "closed"}


def keep_searching(memory: Memory, started: threading.Barrier) -> list[str]:
    started.wait(timeout=30)
    outcomes = []
    for _ in range(50):
        try:
            outcomes.append("found" if memory.search("cat") else "lost")
        except StoreClosed:
            outcomes.append("closed")
    return outcomes


def test_a_program_that_ends_without_closing_ends_quietly_and_loses_nothing(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, holdfast
        memory = holdfast.open(sys.argv[1], embedder="fake")
        memory.add("Still here.")
        memory.search("still")
        holdfast.open(sys.argv[1], embedder="fake").list()  # nobody holds this one
        """
    )
    path = tmp_path / "m.db"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    with holdfast.open(path, embedder="fake") as memory:
        assert [row.action for row in trail_of(memory)] == ["add", "search", "list"]
        assert [record.text for record in memory.list().items] == ["Still here."]


def test_closing_ends_every_thread_of_the_memory(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with holdfast.open(tmp_path / "m.db", embedder="fake") as memory:
        memory.add("One.")
        memory.search("one")
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("holdfast")]
    assert left == []


def test_a_memory_that_could_not_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(HoldfastError):
        holdfast.open(tmp_path, embedder="fake")
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("holdfast")]
    assert left == []


def test_a_memory_works_in_the_space_that_it_was_opened_for(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with holdfast.open(path, embedder="fake", space="tenant") as memory:
        memory.add("The cat sat.")
        assert memory.list().items[0].scope.space == "tenant"
    with holdfast.open(path, embedder="fake") as memory:
        assert memory.list().items == ()
        assert len(memory.list(space="tenant").items) == 1
