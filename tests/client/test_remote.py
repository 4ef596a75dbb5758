"""A memory behind a server: the same interface, and errors that say whether a retry is safe."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors, open_async
from holdfast.client.remote import to_error
from holdfast.client.transport import HttpReply
from holdfast.domain.secret import Secret
from holdfast.errors import (
    AccessDenied,
    HoldfastError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
    Unauthenticated,
)
from holdfast.testing.full_repr import full_repr
from holdfast.wire import GREETING, VERBS, Greeting
from serving import ANA, HANG, HANG_UP, OPERATOR_KEY, USER_KEY, Served, answering, http, served, whole_chain

SECRET = "uk_never-to-be-seen"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(str(tmp_path_factory.mktemp("served") / "memory.db")) as found:
        yield found


# --- callers --------------------------------------------------------------------------------------------------------


def test_three_lines_are_enough_for_a_user(server: Served) -> None:
    memory = holdfast.open(server.url, key=USER_KEY)
    memory.add("I moved to Lisbon last week.")
    hits = memory.search("Where does Ana live?")
    assert [(hit.text, hit.scope.subject) for hit in hits] == [("I moved to Lisbon last week.", "ana")]
    memory.close()


def test_a_user_reaches_nobody_else(server: Served) -> None:
    with holdfast.open(server.url, key=USER_KEY) as ana:
        for attempt in (
            lambda: ana.search("anything", subject="ben"),
            lambda: ana.add("x", subject="ben"),
            lambda: ana.stats(space="*"),
            lambda: ana.stats(space="tenant"),
            ana.verify,
            ana.drain,
        ):
            with pytest.raises(AccessDenied):
                attempt()
        assert ana.list(subject=None) == ana.list(subject="ana")


def test_a_user_of_another_space_works_there(server: Served) -> None:
    with holdfast.open(server.url, key="uk_of-ben-in-the-tests") as ben:
        added = ben.add("Mine.")
        assert ben.get(str(added.message_ids[0])).scope == holdfast.Scope(
            space="tenant", subject="ben", conversation="default"
        )


def test_a_user_forgets_a_conversation_and_never_everything_by_leaving_something_out(server: Served) -> None:
    with holdfast.open(server.url, key=USER_KEY) as ana:
        ana.add("Kept.", conversation="kept")
        ana.add("Gone.", conversation="gone")
        with pytest.raises(InvalidInput, match="has no target"):
            ana.forget()
        assert ana.forget(conversation="gone").messages == 1
        assert [item.text for item in ana.list(conversation="kept").items] == ["Kept."]


def test_an_operators_token_is_the_embedded_operator(server: Served) -> None:
    with holdfast.open(server.url, key=OPERATOR_KEY, space="shop") as operator:
        operator.add("Shared by all.")
        assert operator.list().items[0].scope == holdfast.Scope(space="shop", conversation="default")
        assert operator.stats(space="*").messages >= 1
        assert operator.verify().ok


def test_the_key_comes_from_the_settings_if_none_is_given(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unauthenticated):
        holdfast.open(server.url)
    monkeypatch.setenv("HOLDFAST_KEY", USER_KEY)
    with holdfast.open(server.url) as memory:
        memory.add("By the setting.", conversation="setting")
        assert memory.list(conversation="setting").items[0].scope.subject == "ana"


def test_errors_of_the_server_are_what_they_are_in_process(server: Served) -> None:
    with holdfast.open(server.url, key=OPERATOR_KEY) as memory:
        with pytest.raises(NotFound, match="there is no memory or message '…'"):
            memory.get("mem_0")
        made = memory.remember("One.")
        with pytest.raises(errors.RevisionConflict, match="is at revision 1, not 5"):
            memory.correct(made.id, "Two.", expected_revision=5)
        with pytest.raises(errors.InvalidCursor) as wrong:
            memory.list(cursor=memory.list(limit=1).next_cursor, kind="memory", limit=1)
        assert wrong.value.field == "cursor"


def test_what_cannot_be_made_is_refused_before_anything_is_sent() -> None:
    with answering(greeting()) as (url, asked):
        with holdfast.open(url, key=SECRET) as memory:
            before = len(asked)
            with pytest.raises(errors.InvalidText):
                memory.add("")
            assert len(asked) == before


# --- opening --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("embedder", "static"), ("weights", holdfast.Weights()), ("work", False), ("work", True),
        ("actor", ANA),
    ],
)  # fmt: skip
def test_options_that_are_the_servers_to_decide_are_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match="decided by the server") as refusal:
        open_async("http://127.0.0.1:1", **{option: value})
    assert refusal.value.field == option


@pytest.mark.parametrize("option", ["clock", "new_ids"])
def test_a_clock_and_ids_are_the_servers_too(option: str, server: Served) -> None:
    given = server.engine._core.clock if option == "clock" else server.engine._core.ids
    with pytest.raises(InvalidInput, match=f"{option}: is decided by the server"):
        open_async("http://127.0.0.1:1", **{option: given})


@pytest.mark.parametrize("options", [{"key": SECRET}, {"timeout_seconds": 5.0}, {"sending": print}])
def test_a_file_takes_neither_key_nor_deadline_nor_listener(tmp_path: Path, options: Any) -> None:
    with pytest.raises(InvalidInput, match="server's memory") as refusal:
        holdfast.open(tmp_path / "m.db", **options)
    assert SECRET not in str(refusal.value)
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize("key", ["", "  ", "a b", "a\n", "é", "\ud800", 5, b"x", ["x"], "x\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_async("http://127.0.0.1:1", key=key)
    assert refusal.value.field == "key"
    assert not isinstance(key, str) or len(key) < 3 or key not in str(refusal.value)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", True, 10**9])
def test_a_deadline_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_async("http://127.0.0.1:1", timeout_seconds=seconds)
    assert refusal.value.field == "timeout_seconds"


@pytest.mark.parametrize(
    "url",
    [
        "http://", "http:///x", f"http://me:{SECRET}@host", f"http://{SECRET}@host", f"http://host/?key={SECRET}",
        f"http://host/#{SECRET}", "http://host:99999", "http://host:port", "http://[::1", "http:127.0.0.1:8010",
        "https:/127.0.0.1", "http://ho st", "http://host\n",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused_without_what_is_secret_in_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_async(url)
    assert refusal.value.field == "location"
    assert SECRET not in f"{refusal.value!r}{refusal.value.__context__!r}"


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_a_slash_at_the_end_of_an_address_changes_nothing(server: Served, ending: str) -> None:
    with holdfast.open(server.url.replace("http", "HTTP") + ending, key=USER_KEY) as memory:
        assert memory.stats().partitions >= 0


def test_a_copy_does_not_go_over_http(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="http:// is not a store"):
        holdfast.copy("http://127.0.0.1:1", tmp_path / "m.db")


# --- invalid answers ------------------------------------------------------------------------------------------------


def greeting(verbs: tuple[str, ...] = tuple(VERBS)) -> bytes:
    return http(200, GREETING.encode(Greeting("0", ANA, verbs)))


HTML = b"<html><body>hunter2 Bad Gateway</body></html>"
PROBLEM = b'{"type":"x","title":"x","status":%d,"detail":"too many at once","code":"%s"}'
# The response; the error of a read; the error of a write.
ODD: dict[str, tuple[bytes, type[HoldfastError], type[HoldfastError]]] = {
    "nothing": (HANG_UP, StoreUnavailable, OutcomeUnknown),
    "no HTTP": (b"220 smtp.example.org ESMTP\r\n", StoreUnavailable, OutcomeUnknown),
    "cut head": (b"HTTP/1.1 200 OK\r\nContent-Le", StoreUnavailable, OutcomeUnknown),
    "cut body": (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", StoreUnavailable, OutcomeUnknown),
    "silence": (HANG, StoreUnavailable, OutcomeUnknown),
    "proxy 502": (http(502, HTML, "text/html"), StoreUnavailable, OutcomeUnknown),
    "proxy 503": (http(503, HTML, "text/html"), StoreUnavailable, OutcomeUnknown),
    "proxy 504": (http(504, HTML, "text/html"), StoreUnavailable, OutcomeUnknown),
    "our 503": (
        http(503, PROBLEM % (503, b"overloaded"), "application/problem+json"),
        StoreUnavailable,
        StoreUnavailable,
    ),
    "our 500": (http(500, PROBLEM % (500, b"internal"), "application/problem+json"), StoreError, OutcomeUnknown),
    "bare 500": (http(500), StoreError, OutcomeUnknown),
    "html 200": (http(200, HTML, "text/html"), StoreUnusable, OutcomeUnknown),
    "garbage 200": (http(200, b"\xff\x00{"), StoreUnusable, OutcomeUnknown),
    "another answer": (http(200, b'{"hunter2": 1}'), StoreUnusable, OutcomeUnknown),
    "no body": (http(200), StoreUnusable, OutcomeUnknown),
    "401": (http(401, HTML, "text/html"), Unauthenticated, Unauthenticated),
    "403": (http(403, HTML, "text/html"), AccessDenied, AccessDenied),
    "404": (http(404, HTML, "text/html"), StoreUnusable, StoreUnusable),
    "405": (http(405), StoreUnusable, StoreUnusable),
    "408": (http(408), StoreUnavailable, StoreUnavailable),
    "413": (http(413, HTML, "text/html"), InvalidInput, InvalidInput),
    "429": (http(429, HTML, "text/html", "Retry-After: 7\r\n"), StoreBusy, StoreBusy),
    "redirect": (http(302, more="Location: http://127.0.0.1:1/\r\n"), StoreUnusable, StoreUnusable),
    "closing": (http(503, b'{"code":"store_closed","message":"closed"}'), StoreUnavailable, StoreUnavailable),
    "busy": (http(503, b'{"code":"store_busy","message":"busy"}'), StoreBusy, StoreBusy),
}


def call_of(memory: holdfast.Memory, *, writes: bool, **options: Any) -> None:
    if writes:
        memory.add("Something hunter2.", **options)
    else:
        memory.search("something hunter2")


@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
@pytest.mark.parametrize("name", ODD)
def test_an_answer_that_is_none_is_told_by_what_may_have_come_of_the_call(name: str, writes: bool) -> None:
    reply, of_read, of_write = ODD[name]
    with answering(greeting(), reply) as (url, asked):
        with holdfast.open(url, key=SECRET, timeout_seconds=0.5 if reply == HANG else 20.0) as memory:
            with pytest.raises(HoldfastError) as failure:
                call_of(memory, writes=writes)
        assert type(failure.value) is (of_write if writes else of_read), failure.value
        assert len(asked) == 2, "nothing is ever sent twice"
    shown = whole_chain(failure.value)
    assert "hunter2" not in str(failure.value)
    assert SECRET not in shown
    if isinstance(failure.value, OutcomeUnknown):
        assert "it is not known whether it was done" in str(failure.value)
        assert "idempotency_key" in str(failure.value)


def test_who_gave_a_key_is_told_to_use_it_again() -> None:
    with answering(greeting(), HANG_UP) as (url, _):
        with holdfast.open(url, key=SECRET) as memory:
            with pytest.raises(OutcomeUnknown, match="call again with the same idempotency_key"):
                call_of(memory, writes=True, idempotency_key="k")
            with pytest.raises(OutcomeUnknown, match="look before you repeat it"):
                call_of(memory, writes=True)


@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_where_nothing_was_sent_trying_again_is_safe(writes: bool) -> None:
    with answering(greeting()) as (url, _):
        memory = holdfast.open(url, key=SECRET)
    with memory, pytest.raises(StoreUnavailable, match="cannot be reached; nothing was done"):
        call_of(memory, writes=writes)


def test_when_to_try_again_is_told() -> None:
    with answering(greeting(), ODD["429"][0]) as (url, _), holdfast.open(url, key=SECRET) as memory:
        with pytest.raises(StoreBusy, match="try again in 7 s"):
            memory.search("x")


def test_what_the_server_itself_says_is_passed_on() -> None:
    with answering(greeting(), ODD["our 503"][0]) as (url, _), holdfast.open(url, key=SECRET) as memory:
        with pytest.raises(StoreUnavailable, match="too many at once"):
            memory.search("x")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (http(404, HTML, "text/html"), StoreUnusable),
        (http(404, b'{"code":"not_found","message":"no such route"}'), StoreUnusable),
        (http(200, HTML, "text/html"), StoreUnusable),
        (http(401, b'{"code":"unauthenticated","message":"not known"}'), Unauthenticated),
        (HANG_UP, StoreUnavailable),
        (HANG, StoreUnavailable),
    ],
)
def test_a_server_that_is_none_cannot_be_opened(reply: bytes, expected: type[HoldfastError]) -> None:
    before = set(threading.enumerate())
    with answering(reply) as (url, _), pytest.raises(expected) as failure:
        holdfast.open(url, key=SECRET, timeout_seconds=0.5)
    assert SECRET not in whole_chain(failure.value)
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("holdfast")]
    assert left == []


def test_a_server_that_is_not_there_cannot_be_opened() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        holdfast.open(f"http://127.0.0.1:{port}", key=SECRET)


def test_a_verb_that_an_older_server_does_not_know_is_told_so() -> None:
    with answering(greeting(verbs=("search",))) as (url, _), holdfast.open(url, key=SECRET) as memory:
        with pytest.raises(StoreUnusable, match="cannot add; update it"):
            memory.add("x")


def test_a_server_that_speaks_no_tls_is_told_so() -> None:
    with answering(b"HTTP/1.1 400 X\r\n\r\n") as (url, _):
        with pytest.raises(StoreUnavailable, match="TLS"):
            holdfast.open(url.replace("http://", "https://"), key=SECRET, timeout_seconds=20.0)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with holdfast.open(server.url, key=USER_KEY) as memory:
        assert memory.stats().partitions >= 0


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 452), *range(500, 512), 599])
@pytest.mark.parametrize("writes", [False, True])
def test_every_status_is_an_error_of_ours(status: int, writes: bool) -> None:
    for body in (b"", HTML, b"{}", b'{"code":5}', b"\xff"):
        for media_type in ("text/html", "application/problem+json"):
            found = to_error("http://x", HttpReply(status, media_type, body), writes=writes, hint="hint")
            assert isinstance(found, HoldfastError)
            assert "hunter2" not in full_repr(found)
            assert not (writes and status >= 500) or isinstance(found, OutcomeUnknown)


# --- the key stays secret -------------------------------------------------------------------------------------------


def test_the_key_is_in_no_representation_log_or_pickle(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    opening = open_async(server.url, key=USER_KEY)
    memory = holdfast.open(server.url, key=USER_KEY)
    memory.add("x")
    held: list[object] = [
        opening, opening._options, opening._key, memory, memory._behind, memory._behind._service,
        memory._behind._service._line, vars(memory._behind), vars(memory._behind._service),
        vars(memory._behind._service._line),
    ]  # fmt: skip
    assert USER_KEY not in repr(held) + str(held)
    assert caplog.records, "the libraries below do log"
    assert USER_KEY not in caplog.text + repr([vars(record) for record in caplog.records])
    for each in (opening, memory._behind._service, memory._behind._service._line, opening._key, Secret(USER_KEY)):
        with pytest.raises(TypeError):
            pickle.dumps(each)
    memory.close()


# --- loops, threads, processes --------------------------------------------------------------------------------------


def test_one_memory_serves_one_event_loop_after_another(server: Served) -> None:
    async def opened() -> holdfast.AsyncMemory:
        return await open_async(server.url, key=OPERATOR_KEY, space="loops")

    memory = asyncio.run(opened())

    async def use(number: int) -> int:
        await memory.add(f"Loop {number}.")
        return (await memory.stats()).messages

    assert [asyncio.run(use(number)) for number in range(3)] == [1, 2, 3]
    assert len(memory._service._line._pools) == 1, "those of loops that have ended are let go"
    asyncio.run(memory.close())


def test_one_memory_serves_loops_in_several_threads_at_once(server: Served) -> None:
    memory = asyncio.run(_opened(server.url, "threads"))

    def work(number: int) -> int:
        async def use() -> int:
            return sum([(await memory.add(f"{number}.{step}")).stored for step in range(5)])

        return asyncio.run(use())

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(6))) == [5] * 6

    async def counted() -> int:
        found = (await memory.stats()).messages
        await memory.close()
        return found

    assert asyncio.run(counted()) == 30


async def _opened(url: str, space: str) -> holdfast.AsyncMemory:
    return await open_async(url, key=OPERATOR_KEY, space=space)


def test_many_calls_at_once_go_over_pooled_connections(server: Served) -> None:
    async def work() -> int:
        async with open_async(server.url, key=OPERATOR_KEY, space="pooled") as memory:
            await asyncio.gather(*(memory.add(f"Message {number}.") for number in range(150)))
            return (await memory.stats()).messages

    assert asyncio.run(work()) == 150


def test_closing_waits_for_what_is_under_way_and_lets_nobody_in_any_more(server: Served) -> None:
    async def work() -> list[object]:
        memory = await open_async(server.url, key=OPERATOR_KEY, space="closing")
        under_way = [asyncio.create_task(memory.add(f"Message {number}.")) for number in range(20)]
        await asyncio.sleep(0)
        await memory.close()
        with pytest.raises(StoreClosed, match="closed"):
            await memory.search("x")
        await memory.close()
        return list(await asyncio.gather(*under_way))

    assert [added.stored for added in asyncio.run(work())] == [1] * 20


def test_a_cancelled_call_leaves_the_memory_usable(server: Served) -> None:
    async def work() -> int:
        async with open_async(server.url, key=OPERATOR_KEY, space="cancelled") as memory:
            for _ in range(20):
                call = asyncio.create_task(memory.search("x"))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            return (await memory.stats()).messages

    assert asyncio.run(work()) == 0


def _in_child(memory: holdfast.AsyncMemory, results: Any) -> None:
    async def use() -> int:
        await memory.add("From the child.")
        return (await memory.stats()).messages

    results.put(asyncio.run(use()))


def test_a_fork_uses_connections_of_its_own(server: Served) -> None:
    context = multiprocessing.get_context("fork")

    async def work() -> tuple[int, int]:
        memory = await open_async(server.url, key=OPERATOR_KEY, space="forked")
        await memory.add("From the parent.")
        results = context.SimpleQueue()
        child = context.Process(target=_forked, args=(memory, results))
        child.start()
        seen = await asyncio.to_thread(results.get)
        await asyncio.to_thread(child.join, 30)
        there = (await memory.stats()).messages
        await memory.close()
        return seen, there

    assert asyncio.run(work()) == (2, 2)


def _forked(memory: holdfast.AsyncMemory, results: Any) -> None:
    # The parent's loop was running at the fork; this process has none.
    asyncio._set_running_loop(None)
    _in_child(memory, results)
    os._exit(0)


def test_the_blocking_face_says_that_it_was_opened_before_the_fork(server: Served) -> None:
    memory = holdfast.open(server.url, key=USER_KEY)
    results = multiprocessing.get_context("fork").SimpleQueue()

    def ask() -> None:
        try:
            memory.search("x")
        except StoreClosed as error:
            results.put(str(error))
        os._exit(0)

    child = multiprocessing.get_context("fork").Process(target=ask)
    child.start()
    assert "forked" in results.get()
    child.join(30)
    memory.close()


def test_a_program_that_ends_without_closing_ends_quietly(server: Served) -> None:
    program = "import sys, holdfast; holdfast.open(sys.argv[1], key=sys.argv[2]).add('Still here.')"
    done = subprocess.run(
        [sys.executable, "-c", program, server.url, USER_KEY], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_who_speaks_to_no_server_loads_nothing_for_it() -> None:
    rest = ("fastapi", "starlette", "uvicorn", "httpx2", "holdfast.wire")
    opened = "import sys, holdfast; holdfast.open(':memory:', embedder='fake').close()"
    program = f"{opened}; print([name for name in {rest} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_who_listens_hears_of_every_byte_as_it_goes_out(server: Served) -> None:
    heard: list[tuple[int, int]] = []
    content = b"Herons eat fish. " * 20_000
    with holdfast.open(server.url, key=OPERATOR_KEY, sending=lambda done, total: heard.append((done, total))) as memory:
        assert heard == []  # the greeting has no body
        resource = memory.add_resource(content, name="h.txt", subject="ana").resource
    assert resource.bytes == len(content)
    (total,) = {total for _, total in heard}
    assert total > len(content)
    assert len(heard) > 2
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    assert heard[-1] == (total, total)


def test_a_key_that_is_none_is_no_key(server: Served) -> None:
    with pytest.raises(Unauthenticated, match="no key was sent"):
        holdfast.open(server.url, key=None)
