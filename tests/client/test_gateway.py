"""The gateway's client: exactly the contract's payloads, each write sent once, and errors that show no secrets."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import pickle
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import BlockingGatewayClient, Category, ChatMessage, GatewayClient, GatewayError, GatewayHit
from holdfast.errors import ConfigurationError, InvalidInput, StoreClosed
from serving import HANG, HANG_UP, USER_KEY, answering, http, served, whole_chain

KEY = "uk_never-to-be-seen"
TURN = [
    ChatMessage("ana", "user", 1780000000000, "I moved to Lisbon. hunter2"),
    ChatMessage("beaver", "assistant", 1780000001000, "Noted."),
]


def client(url: str, **options: Any) -> GatewayClient:
    return GatewayClient(url, "ana", KEY, **options)


def body_of(request: bytes) -> Any:
    return json.loads(request.partition(b"\r\n\r\n")[2])


def line_of(request: bytes) -> str:
    return request.partition(b"\r\n")[0].decode()


def answered(told: Any) -> bytes:
    return http(200, json.dumps(told).encode())


def call(operation: str, gateway: GatewayClient) -> Any:
    return {
        "search": lambda: gateway.search("c1", "Where? hunter2"),
        "add": lambda: gateway.add("c1", TURN),
        "flush": lambda: gateway.flush("c1"),
    }[operation]()


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset proxy variables: a proxy would answer in the gateway's place."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


OPERATIONS = pytest.mark.parametrize("operation", ["search", "add", "flush"])


# --- the contract ---------------------------------------------------------------------------------------------------


def test_a_turn_is_added_flushed_and_found_at_a_real_gateway(tmp_path: Path) -> None:
    async def turn(url: str) -> tuple[GatewayHit, ...]:
        async with GatewayClient(url, "ana", USER_KEY) as gateway:
            assert (await gateway.add("42", TURN)).message_count == 2
            assert (await gateway.flush("42")).status == "extracted"
            with pytest.raises(GatewayError) as refused:
                await GatewayClient(url, "ben", USER_KEY).search("42", "Lisbon")
            assert (refused.value.status, refused.value.category) == (401, Category.UNAUTHORIZED)
            return await gateway.search("42", "Where did I move to?", scope=["current_chat"])

    with served(str(tmp_path / "memory.db")) as server:
        found = asyncio.run(turn(server.url))
    assert {(each.text, each.session_id, each.source_scope) for each in found} >= {
        ("I moved to Lisbon. hunter2", "chat:42", "current_chat")
    }


@pytest.mark.seed("000.client.1", "001.client.1")
def test_search_sends_exactly_the_contracts_payload() -> None:
    with answering(answered({"results": []})) as (url, asked), BlockingGatewayClient(client(url)) as gateway:
        assert gateway.search("c1", "Where does Ana live?", scope=["current_chat", "resources"]) == ()
    assert line_of(asked[0]) == "POST /memories/search HTTP/1.1"
    assert body_of(asked[0]) == {
        "user_id": "ana", "user_key": KEY, "conversation_id": "c1", "query": "Where does Ana live?",
        "scope": ["current_chat", "resources"], "top_k": 8, "app_id": "default", "project_id": "default",
    }  # fmt: skip
    assert b"authorization" not in asked[0].lower()


@pytest.mark.seed("000.client.1", "001.client.1")
def test_add_and_flush_send_exactly_the_contracts_payloads() -> None:
    told = {"session_id": "chat:c1", "status": "accumulated", "message_count": 2, "stored": 2}
    with answering(answered(told)) as (url, asked):
        with BlockingGatewayClient(client(url, app_id="app", project_id="p")) as gateway:
            added, flushed = gateway.add("c1", TURN), gateway.flush("c1")
    assert [line_of(request) for request in asked] == ["POST /memories/add HTTP/1.1", "POST /memories/flush HTTP/1.1"]
    who = {"user_id": "ana", "user_key": KEY, "session_id": "chat:c1", "app_id": "app", "project_id": "p"}
    messages = [
        {"sender_id": "ana", "role": "user", "timestamp": 1780000000000, "content": "I moved to Lisbon. hunter2"},
        {"sender_id": "beaver", "role": "assistant", "timestamp": 1780000001000, "content": "Noted."},
    ]
    assert body_of(asked[0]) == {**who, "messages": messages}
    assert body_of(asked[1]) == who
    assert (added.status, added.message_count, added.raw["stored"]) == ("accumulated", 2, 2)
    assert flushed.session_id == "chat:c1"


def test_what_else_a_search_can_ask_is_sent_only_if_it_is_given() -> None:
    with answering(answered({"results": []})) as (url, asked), BlockingGatewayClient(client(url)) as gateway:
        gateway.search("c1", "q", scope="all_user_memory", top_k=100, method="vector", radius=0.5, filters={"a": 1})
    sent = body_of(asked[0])
    assert (sent["scope"], sent["top_k"]) == (["all_user_memory"], 100)
    assert (sent["method"], sent["radius"], sent["filters"]) == ("vector", 0.5, {"a": 1})


def test_results_have_six_fields_and_the_raw_one_apart() -> None:
    whole = {
        "id": "msg_1", "session_id": "chat:c1", "text": "Lisbon.", "score": 0.5, "source_scope": "current_chat",
        "resource_uri": None, "raw": {"hunter2": 1}, "new": "field",
    }  # fmt: skip
    odd = {"id": 5, "text": ["x"], "score": "high", "raw": 7}
    with answering(answered({"results": [whole, odd, {"score": 1}]})) as (url, _):
        with BlockingGatewayClient(client(url)) as gateway:
            first, second, third = gateway.search("c1", "q")
    assert first == GatewayHit("msg_1", "chat:c1", "Lisbon.", 0.5, "current_chat", None, {"hunter2": 1})
    assert "hunter2" not in repr(first)
    assert second == GatewayHit(None, None, None, None, None, None)
    assert (third.score, type(third.score)) == (1.0, float)


# --- errors ---------------------------------------------------------------------------------------------------------

HTML = b"<html>hunter2</html>"
WRONG: dict[str, tuple[bytes, int | None, Category]] = {
    "hung up": (HANG_UP, None, Category.LOST),
    "silence": (HANG, None, Category.LOST),
    "no HTTP": (b"hunter2\r\n", None, Category.LOST),
    "401": (http(401, b'{"code":"unauthenticated","detail":"hunter2"}'), 401, Category.UNAUTHORIZED),
    "403": (http(403, HTML), 403, Category.UNAUTHORIZED),
    "404": (http(404, HTML), 404, Category.REFUSED),
    "422": (http(422, HTML), 422, Category.REFUSED),
    "429": (http(429, HTML), 429, Category.LIMITED),
    "500": (http(500, HTML), 500, Category.FAILED),
    "502": (http(502, HTML), 502, Category.FAILED),
    "redirect": (http(302, more="Location: http://127.0.0.1:1/\r\n"), 302, Category.REFUSED),
    "html": (http(200, HTML), 200, Category.MALFORMED),
    "a list": (http(200, b'["hunter2"]'), 200, Category.MALFORMED),
    "deep": (http(200, b"[" * 100_000), 200, Category.MALFORMED),
    "no text": (http(200, b"\xff"), 200, Category.MALFORMED),
    "nothing": (http(200), 200, Category.MALFORMED),
    "no content": (b"HTTP/1.1 204 X\r\n\r\n", 204, Category.MALFORMED),
    "too much": (http(200, b" " * 2_000_000 + b"{}"), 200, Category.MALFORMED),
    "too much of a failure": (http(500, b" " * 2_000_001), 500, Category.FAILED),
    "too many parts": (http(200, b'{"results": [' + b"[]," * 100_001 + b"[]]}"), 200, Category.MALFORMED),
}


@pytest.mark.seed("000.client.3", "001.client.3", "000.client.4", "001.client.4")
@OPERATIONS
@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_told_by_operation_path_status_and_category_alone(name: str, operation: str) -> None:
    reply, status, category = WRONG[name]

    async def attempt(url: str) -> None:
        async with client(url, timeout_seconds=0.5 if reply == HANG else 20.0) as gateway:
            await call(operation, gateway)

    with answering(reply) as (url, asked), pytest.raises(GatewayError) as failure:
        asyncio.run(attempt(url))
    error = failure.value
    assert (error.operation, error.path, error.status, error.category) == (
        operation, f"/memories/{operation}", status, category,
    )  # fmt: skip
    assert len(asked) == 1, "nothing is sent twice unless it was asked for"
    assert (error.__cause__, error.__context__) == (None, None)
    shown = whole_chain(error)
    assert KEY not in shown
    assert "hunter2" not in f"{error}{error!r}{error.args}{vars(error)}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.seed("000.client.3", "001.client.3")
@pytest.mark.parametrize("told", [{}, {"results": None}, {"results": {}}, {"results": [5]}, {"results": ["x"]}])
def test_results_that_are_none_are_malformed(told: Any) -> None:
    with answering(answered(told)) as (url, _), BlockingGatewayClient(client(url)) as gateway:
        with pytest.raises(GatewayError) as failure:
            gateway.search("c1", "q")
    assert failure.value.category is Category.MALFORMED


@pytest.mark.seed("000.client.3", "001.client.3")
@OPERATIONS
def test_where_nothing_was_sent_it_is_told_so(operation: str) -> None:
    with answering(HANG_UP) as (url, _):
        pass

    async def attempt() -> None:
        async with client(url) as gateway:
            await call(operation, gateway)

    with pytest.raises(GatewayError) as failure:
        asyncio.run(attempt())
    assert (failure.value.category, failure.value.status) == (Category.UNREACHABLE, None)


@pytest.mark.seed("000.client.2", "001.client.2")
@OPERATIONS
@pytest.mark.parametrize("dawdling", ["silence", "a byte now and then"])
def test_the_configured_timeout_is_applied_to_the_whole_call(operation: str, dawdling: str) -> None:
    """Single bytes that arrive in time do not extend the deadline. The slow server runs for much longer than that."""
    ended = threading.Event()

    def dawdle(connection: socket.socket) -> None:
        head = b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n"
        for byte in head + b" " * 3_000:
            if ended.wait(0.01):
                break
            with contextlib.suppress(OSError):
                connection.sendall(bytes([byte]) if dawdling != "silence" else b"")

    async def attempt(url: str) -> None:
        async with client(url, timeout_seconds=0.5) as gateway:
            await call(operation, gateway)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=lambda: dawdle(listening.accept()[0]), daemon=True)
        server.start()
        began = time.monotonic()
        with pytest.raises(GatewayError) as failure:
            asyncio.run(attempt(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        took = time.monotonic() - began
        ended.set()
        server.join(10)
    assert failure.value.category is Category.LOST
    assert 0.4 < took < 10, "the server would go on for half a minute"


@pytest.mark.parametrize("operation", ["add", "flush"])
def test_writes_are_never_repeated(operation: str) -> None:
    with answering(HANG_UP, answered({})) as (url, asked):

        async def attempt() -> None:
            async with client(url, retries=5) as gateway:
                await call(operation, gateway)

        with pytest.raises(GatewayError):
            asyncio.run(attempt())
        assert len(asked) == 1


def test_a_search_is_repeated_only_as_often_as_was_asked_for() -> None:
    with answering(HANG_UP, http(503), answered({"results": []})) as (url, asked):
        with BlockingGatewayClient(client(url, retries=2, timeout_seconds=30)) as gateway:
            assert gateway.search("c1", "q") == ()
        assert len(asked) == 3
    with answering(http(503)) as (url, asked), BlockingGatewayClient(client(url, retries=1)) as gateway:
        with pytest.raises(GatewayError):
            gateway.search("c1", "q")
        assert len(asked) == 2
    with answering(http(401)) as (url, asked), BlockingGatewayClient(client(url, retries=3)) as gateway:
        with pytest.raises(GatewayError):
            gateway.search("c1", "q")
        assert len(asked) == 1, "what would be refused again is not asked again"


def test_any_status_of_success_with_an_object_is_an_answer() -> None:
    with answering(http(202, b'{"status": "queued"}')) as (url, _), BlockingGatewayClient(client(url)) as gateway:
        assert gateway.add("c1", TURN).status == "queued"


def test_an_answer_just_within_bounds_is_read_whole() -> None:
    told = json.dumps({"results": [{"text": "x" * 1_900_000}]}).encode()
    with answering(http(200, told)) as (url, _), BlockingGatewayClient(client(url)) as gateway:
        [found] = gateway.search("c1", "q")
    assert len(found.text or "") == 1_900_000


def test_no_more_results_are_taken_than_were_asked_for() -> None:
    with answering(answered({"results": [{"id": str(number)} for number in range(9)] + [5]})) as (url, _):
        with BlockingGatewayClient(client(url)) as gateway:
            assert [found.id for found in gateway.search("c1", "q", top_k=3)] == ["0", "1", "2"]


@pytest.mark.parametrize("score", [10**400, float("nan"), float("inf"), "high", True, None])
def test_a_score_that_is_no_number_is_none(score: Any) -> None:
    with answering(answered({"results": [{"id": "x", "score": score}]})) as (url, _):
        with BlockingGatewayClient(client(url)) as gateway:
            assert gateway.search("c1", "q") == (GatewayHit("x", None, None, None, None, None),)


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "xn--", ".", "\u2024invalid", "gateway.invalid"])
def test_a_host_that_cannot_be_is_told_as_unreachable(host: str) -> None:
    with BlockingGatewayClient(client(f"http://{host}:8010")) as gateway, pytest.raises(GatewayError) as failure:
        gateway.flush("c1")
    assert failure.value.category is Category.UNREACHABLE


# --- configuration --------------------------------------------------------------------------------------------------

VARIABLES = {
    "MEMORY_GATEWAY_BASE_URL": "http://127.0.0.1:8010/",
    "MEMORY_GATEWAY_USER_ID": "ana",
    "MEMORY_GATEWAY_USER_KEY": KEY,
    "MEMORY_GATEWAY_TIMEOUT_SECONDS": "2.5",
}


def test_it_is_set_up_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    gateway = GatewayClient.from_env()
    assert repr(gateway) == "GatewayClient('http://127.0.0.1:8010', 'ana')"
    assert gateway._line.timeout_seconds == 2.5
    with BlockingGatewayClient.from_env() as blocking:
        assert repr(blocking) == "BlockingGatewayClient('http://127.0.0.1:8010', 'ana')"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY_GATEWAY_BASE_URL", None), ("MEMORY_GATEWAY_USER_ID", None), ("MEMORY_GATEWAY_USER_KEY", None),
        ("MEMORY_GATEWAY_USER_KEY", ""), ("MEMORY_GATEWAY_TIMEOUT_SECONDS", "hunter2"),
        ("MEMORY_GATEWAY_TIMEOUT_SECONDS", "0"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_there_is_told_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    for known, good in VARIABLES.items():
        monkeypatch.setenv(known, good)
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as refused:
        GatewayClient.from_env()
    shown = f"{refused.value!r}{refused.value.__context__!r}"
    assert KEY not in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("base_url", "127.0.0.1:8010"), ("base_url", f"http://x:{KEY}@h"), ("base_url", None), ("user_id", ""),
        ("user_id", 5), ("user_key", ""), ("user_key", None), ("user_key", "a b"), ("app_id", " "), ("project_id", ""),
        ("timeout_seconds", 0), ("timeout_seconds", "5"), ("retries", -1), ("retries", True), ("retries", 11),
    ],
)  # fmt: skip
def test_what_it_is_given_wrongly_is_refused_by_name(option: str, value: Any) -> None:
    given = {"base_url": "http://h", "user_id": "ana", "user_key": KEY, option: value}
    with pytest.raises(InvalidInput) as refused:
        GatewayClient(**given)
    assert refused.value.field == option
    assert KEY not in f"{refused.value!r}{refused.value.__context__!r}"


@pytest.mark.parametrize(
    ("field", "attempt"),
    [
        ("scope", lambda gateway: gateway.search("c", "q", scope=[])),
        ("scope", lambda gateway: gateway.search("c", "q", scope=["elsewhere"])),
        ("scope", lambda gateway: gateway.search("c", "q", scope="elsewhere")),
        ("top_k", lambda gateway: gateway.search("c", "q", top_k=0)),
        ("top_k", lambda gateway: gateway.search("c", "q", top_k=101)),
        ("conversation_id", lambda gateway: gateway.search("", "q")),
        ("conversation_id", lambda gateway: gateway.flush(" ")),
        ("messages", lambda gateway: gateway.add("c", [])),
        ("messages", lambda gateway: gateway.add("c", [{"content": "x"}])),
        ("messages[1].timestamp", lambda gateway: gateway.add("c", TURN[::-1])),
        ("timestamp", lambda gateway: gateway.add("c", [ChatMessage("a", "user", 0, "x")])),
        ("content", lambda gateway: gateway.add("c", [ChatMessage("a", "user", 1, " ")])),
        ("request", lambda gateway: gateway.search("c", "q", radius=float("nan"))),
        ("request", lambda gateway: gateway.search("c", object())),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_and_nothing_is_sent(field: str, attempt: Any) -> None:
    with answering(answered({"results": []})) as (url, asked), BlockingGatewayClient(client(url)) as gateway:
        with pytest.raises(InvalidInput) as refused:
            attempt(gateway)
        assert (refused.value.field, asked) == (field, [])
    assert KEY not in whole_chain(refused.value)


@pytest.mark.seed("000.client.4", "001.client.4")
def test_the_key_is_in_no_representation_log_or_pickle(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with answering(answered({"results": []})) as (url, _), BlockingGatewayClient(client(url)) as gateway:
        gateway.search("c1", "q")
        held: list[object] = [gateway, gateway._client, vars(gateway), vars(gateway._client)]
        assert KEY not in repr(held)
        for each in (gateway, gateway._client):
            with pytest.raises(TypeError):
                pickle.dumps(each)
    assert KEY not in caplog.text


def test_closing_twice_is_closing_once_and_ends_its_thread() -> None:
    before = set(threading.enumerate())
    gateway = BlockingGatewayClient(client("http://127.0.0.1:1"))
    gateway.close()
    gateway.close()
    with pytest.raises(StoreClosed):
        gateway.flush("c1")
    assert [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("holdfast")] == []


def test_the_blocking_face_has_every_call_with_the_same_signature() -> None:
    for name in ("search", "add", "flush", "from_env", "close"):
        asynchronous, blocking = getattr(GatewayClient, name), getattr(BlockingGatewayClient, name)
        assert inspect.signature(asynchronous) == inspect.signature(blocking).replace(
            return_annotation=inspect.signature(asynchronous).return_annotation
        )
    public = {name for name in vars(GatewayClient) if not name.startswith("_")}
    assert public == {name for name in vars(BlockingGatewayClient) if not name.startswith("_")}
