"""Each limit of the edge stops a client that exceeds it, and lets the others through."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from edged import Line, Running, request, running

from holdfast.gateway.edge import limits
from holdfast.gateway.edge.exchange import EdgeRefusal, Exchange

KEY = "uk_canary-key-that-nobody-may-see"
MB = 1024 * 1024


def reasons(started: Running) -> set[str]:
    found = started.metrics.registry.collect()
    return {
        sample.labels["reason"]
        for family in found
        if family.name == "holdfast_http_rejected"
        for sample in family.samples
    }


# --- bodies ---------------------------------------------------------------------------------------------------------


def test_ten_gigabytes_are_refused_when_they_are_announced(plain: Running) -> None:
    line = plain.line().send(request("POST", "/echo", content_length=str(10 * 1024 * MB)))
    answer = line.answer()
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")
    assert line.is_closed()
    assert plain.app.seen == []


def test_whoever_sends_it_all_before_listening_still_gets_the_answer(plain: Running) -> None:
    body = bytes(5 * MB)
    answer = plain.ask("POST", "/echo", body)
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")


def test_chunks_without_end_are_given_up_at_the_limit(plain: Running) -> None:
    line = plain.line().send(request("POST", "/echo", transfer_encoding="chunked"))
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    for _ in range(4 * MB // 0x10000 + 1):
        line.send(chunk)
    answer = line.answer()
    assert (answer.status, answer.json["code"]) == (413, "body_too_large")
    assert plain.app.seen == []


def test_a_body_at_the_limit_passes(plain: Running) -> None:
    assert plain.ask("POST", "/echo", bytes(4 * MB)).body == str(4 * MB).encode()


def test_an_upload_may_be_larger_and_other_paths_may_not() -> None:
    with running(max_body_bytes=2000, max_upload_bytes=200_000) as started:
        most = 200_000 + limits.FRAMING_BYTES
        assert started.ask("POST", "/resources", bytes(most)).status == 200
        assert started.ask("POST", "/resources", bytes(most + 1)).status == 413
        assert started.ask("POST", "/verbs/add_resource", bytes(most + 60_000)).status == 200
        assert started.ask("POST", "/resources/external", bytes(2001)).status == 413


def test_all_bodies_together_are_bounded() -> None:
    with running(max_bodies_bytes=100_000) as started:
        first = started.line().send(request("POST", "/echo", content_length="90001") + bytes(90_000))
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 1)
        answer = started.ask("POST", "/echo", bytes(20_000))
        assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (503, "overloaded", "1")
        assert first.send(b"x").answer().status == 200
        assert started.ask("POST", "/echo", bytes(20_000)).status == 200


def test_a_slow_body_is_given_up() -> None:
    with running(body_seconds=0.2) as started:
        line = started.line().send(request("POST", "/echo", content_length="100") + b"a few")
        answer = line.answer()
        assert (answer.status, answer.json["code"]) == (408, "body_too_slow")
        assert answer.headers["connection"] == "close"
        assert line.is_closed()
        assert started.app.seen == []


def test_a_body_that_is_there_may_be_answered_slowly() -> None:
    with running(body_seconds=0.05) as started:
        line = started.line().send(request("POST", "/wait", b"all of it"))
        assert started.app.waiting.acquire(timeout=10)
        threading.Timer(0.2, started.app.go_on.set).start()
        assert line.answer().body == b"waited"


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "identity, gzip", "made-up"])
def test_a_compressed_body_is_refused_unread(plain: Running, encoding: str) -> None:
    answer = plain.ask("POST", "/echo", b"\x1f\x8b" + bytes(100), content_encoding=encoding)
    assert (answer.status, answer.json["code"]) == (415, "unsupported_encoding")
    assert answer.headers["accept-encoding"] == "identity"
    assert plain.app.seen == []


def test_identity_is_no_compression(plain: Running) -> None:
    assert plain.ask("POST", "/echo", b"abc", content_encoding="identity").body == b"3"


def test_a_client_that_goes_away_in_its_body_is_no_error_of_ours(plain: Running) -> None:
    line = plain.line().send(request("POST", "/echo", content_length="100") + b"half")
    assert plain.eventually(lambda: plain.count("holdfast_http_requests_in_flight") == 1)
    line.socket.close()
    assert plain.app.disconnected.wait(10)
    assert plain.eventually(lambda: bool(plain.logged))
    assert (plain.logged[-1]["status"], plain.logged[-1]["level"]) == (499, "info")


def test_a_body_that_no_route_wants_does_not_spoil_the_next_request(plain: Running) -> None:
    line = plain.line()
    assert line.ask("POST", "/early", b"unread" * 1000).status == 401
    assert line.ask("POST", "/echo", b"next").body == b"4"


def test_it_asks_for_a_body_only_if_it_will_take_it(plain: Running) -> None:
    line = plain.line().send(request("POST", "/echo", content_length="5", expect="100-continue"))
    assert line.answer().status == 100
    assert line.send(b"abcde").answer().body == b"5"
    refused = plain.line().send(request("POST", "/echo", content_length=str(100 * MB), expect="100-continue"))
    assert refused.answer().status == 413


# --- hosts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8010", "127.0.0.1:1", "[::1]:8010", "localhost."])
def test_its_own_names_are_let_in(plain: Running, host: str) -> None:
    assert plain.ask("GET", "/", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "memory"])
def test_other_names_are_not(plain: Running, host: str) -> None:
    for _ in range(2):
        answer = plain.ask("GET", "/", host=host)
        assert (answer.status, answer.json["code"]) == (421, "unknown_host")
        assert host not in answer.body.decode()


@pytest.mark.parametrize("host", ["", "a b", "localhost:port", "user@localhost", "local host", "[::1", "localhost:8:9"])
def test_what_is_no_name_is_refused(plain: Running, host: str) -> None:
    answer = plain.ask("GET", "/", host=host)
    assert (answer.status, answer.json["code"]) == (400, "invalid_host")


def test_two_names_are_one_too_many(plain: Running) -> None:
    line = plain.line().send("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")
    assert line.answer().status == 400


def test_allowed_names_are_let_in() -> None:
    with running(allowed_hosts=("memory.example.org", "*.internal"), public_url="https://public.example") as started:
        for host in ("memory.example.org", "a.internal:80", "b.a.internal", "public.example"):
            assert started.ask("GET", "/", host=host).status == 200
        for host in ("x.memory.example.org", "internal", "xinternal"):
            assert started.ask("GET", "/", host=host).status == 421
    with running(allowed_hosts=("*",)) as started:
        assert started.ask("GET", "/", host="anything.example").status == 200


def test_a_probe_may_use_any_name(plain: Running) -> None:
    assert plain.ask("GET", "/healthz", host="10.1.2.3:8010").status == 200


# --- rates ----------------------------------------------------------------------------------------------------------


async def knowing(scope: Any, receive: Any, send: Any) -> None:
    """Charge keys that start with `uk_`, as the routes charge valid keys."""
    given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    if (key := given.removeprefix("Bearer").strip()).startswith("uk_"):
        limits.charge_to(scope, key)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


def test_a_key_has_so_many_requests_at_once_and_no_more() -> None:
    with running(knowing, rate_per_minute=6) as started:
        line = started.line()
        answers = [line.ask("GET", "/", authorization=f"Bearer {KEY}") for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert answers[0].headers["ratelimit-policy"] == '"requests";q=3;w=30'
        assert answers[0].headers["ratelimit"] == '"requests";r=2;t=10'
        assert answers[3].headers["ratelimit"].startswith('"requests";r=0;t=')
        assert 1 <= int(answers[3].headers["retry-after"]) <= 10
        assert answers[3].json["code"] == "rate_limited"
        assert started.ask("GET", "/", authorization="Bearer uk_another").status == 200


def test_invented_keys_count_for_their_address() -> None:
    with running(knowing, rate_per_minute=6) as started:
        line = started.line()
        assert line.ask("GET", "/", authorization="Bearer uk_known").status == 200
        statuses = [line.ask("GET", "/", authorization=f"Bearer invented-{i}").status for i in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        # A retried invented key is refused as well; a valid key still works.
        assert line.ask("GET", "/", authorization="Bearer invented-0").status == 429
        assert line.ask("GET", "/", authorization="Bearer uk_known").status == 200


def test_a_key_counts_as_one_however_it_is_written() -> None:
    with running(knowing, rate_per_minute=6) as started:
        line = started.line()
        plain = request("GET", "/", authorization="Bearer uk_one")
        ways = [plain.replace(b"uk_one", way) for way in (b"uk_one", b"uk_one\xa0", b"\xa0uk_one", b"uk_one\x85")]
        assert [line.send(way).answer().status for way in ways] == [200, 200, 200, 429]


def test_a_probe_is_never_limited_and_zero_is_no_limit() -> None:
    with running(rate_per_minute=1) as started:
        line = started.line()
        assert [line.ask("GET", "/readyz").status for _ in range(5)] == [200] * 5
    with running(rate_per_minute=0) as started:
        line = started.line()
        answers = [line.ask("GET", "/") for _ in range(50)]
        assert {answer.status for answer in answers} == {200}
        assert "ratelimit" not in answers[0].headers


def test_a_key_in_the_body_is_charged_instead_of_the_address() -> None:
    async def keyed(scope: object, receive: object, send: object) -> None:
        limits.charge_to(scope, KEY)  # type: ignore[arg-type]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})  # type: ignore[operator]
        await send({"type": "http.response.body"})  # type: ignore[operator]

    with running(keyed, rate_per_minute=4) as started:
        line = started.line()
        answers = [line.ask("POST", "/memories/add") for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[2].json["code"] == "rate_limited"


def test_callers_behind_a_trusted_proxy_are_told_apart_and_others_cannot_pretend() -> None:
    with running(rate_per_minute=1, trusted_proxies=("127.0.0.0/8",)) as started:
        statuses = [started.ask("GET", "/", x_forwarded_for=f"192.0.2.{n}").status for n in (1, 2, 1)]
        assert statuses == [200, 200, 429]
    with running(rate_per_minute=1, trusted_proxies=("10.0.0.1",)) as started:
        statuses = [started.ask("GET", "/", x_forwarded_for=f"192.0.2.{n}").status for n in (1, 2)]
        assert statuses == [200, 429]


def test_a_burst_is_less_than_the_requests_of_a_minute() -> None:
    bursts = {rate: limits.burst_of(rate) for rate in range(1, 10_000)}
    assert all(1 <= burst <= max(1, rate // 2) for rate, burst in bursts.items())
    assert [bursts[rate] for rate in (1, 6, 60, 6_000)] == [1, 3, 10, 600]


def test_a_bucket_fills_evenly_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 10)
    now = [0.0]
    limiter = limits.RateLimiter(None, 60, lambda: now[0])  # type: ignore[arg-type]

    def ask(address: str) -> bool:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (address, 1)}
        try:
            limiter._charge(Exchange(scope))
        except EdgeRefusal:
            return False
        return True

    assert sum(ask("a") for _ in range(100)) == 10
    now[0] = 1.0
    assert [ask("a"), ask("a")] == [True, False]
    now[0] = 1000.0
    assert sum(ask("a") for _ in range(100)) == 10
    for number in range(50):
        ask(str(number))
    assert len(limiter._buckets) == 10


# --- overload -------------------------------------------------------------------------------------------------------


def test_what_is_too_much_is_told_so_at_once_and_the_rest_is_done() -> None:
    with running(max_requests=2, wait_seconds=30.0) as started:
        working = [started.line().send(request("POST", "/wait", b"x")) for _ in range(2)]
        for _ in working:
            assert started.app.waiting.acquire(timeout=10)
        queued = [started.line().send(request("POST", "/wait", b"x")) for _ in range(2)]
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 4)
        refused = started.ask("GET", "/")
        assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
        assert started.ask("GET", "/healthz").status == 200
        assert started.ask("GET", "/metrics").status == 200
        started.app.go_on.set()
        assert [line.answer().status for line in (*working, *queued)] == [200] * 4
        assert started.ask("GET", "/").status == 200


def test_whoever_waits_too_long_is_told_to_come_back() -> None:
    with running(max_requests=1, wait_seconds=0.05) as started:
        working = started.line().send(request("GET", "/wait"))
        assert started.app.waiting.acquire(timeout=10)
        assert started.ask("GET", "/").status == 503
        assert started.ask("POST", "/echo", b"x").status == 503
        started.app.go_on.set()
        assert working.answer().status == 200
        assert started.ask("GET", "/").status == 200
        assert started.app.seen.count(b"x") == 0


def test_whoever_waits_and_goes_away_leaves_no_gap() -> None:
    with running(max_requests=1, wait_seconds=30.0) as started:
        working = started.line().send(request("GET", "/wait"))
        assert started.app.waiting.acquire(timeout=10)
        gone = started.line().send(request("GET", "/echo"))
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 2)
        gone.socket.close()
        started.app.go_on.set()
        assert working.answer().status == 200
        assert [started.ask("GET", "/").status for _ in range(3)] == [200] * 3


def test_slow_bodies_keep_nobody_out() -> None:
    with running(max_requests=2, wait_seconds=0.05) as started:
        slow = [started.line().send(request("POST", "/echo", content_length="10") + b"x") for _ in range(8)]
        assert started.eventually(lambda: started.count("holdfast_http_requests_in_flight") == 8)
        assert started.ask("GET", "/").status == 200
        assert started.ask("POST", "/echo", b"quick").body == b"5"
        assert slow[0].send(bytes(9)).answer().body == b"10"


# --- invalid HTTP, and connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_problem_too(plain: Running, sent: bytes) -> None:
    line = plain.line().send(sent)
    answer = line.answer()
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json["code"] == "invalid_http"
    assert line.is_closed()


def test_endless_headers_are_given_up(plain: Running) -> None:
    line = plain.line().send("GET / HTTP/1.1\r\nHost: localhost\r\n")
    with contextlib.suppress(ConnectionError):
        for _ in range(1_000):
            line.send(f"X-Filler: {'x' * 1000}\r\n")
    assert plain.eventually(lambda: "headers_too_large" in reasons(plain))


def test_an_endless_first_line_is_given_up(plain: Running) -> None:
    line = plain.line().send("GET /")
    with contextlib.suppress(ConnectionError):
        for _ in range(1_000):
            line.send("x" * 1000)
    assert plain.eventually(lambda: "headers_too_large" in reasons(plain))


def test_slow_headers_are_given_up() -> None:
    with running(header_seconds=0.2) as started:
        line = started.line().send("GET / HTTP/1.1\r\nHost: local")
        answer = line.answer()
        assert (answer.status, answer.json["code"]) == (408, "headers_too_slow")
        assert line.is_closed()


def test_slow_headers_of_a_later_request_are_given_up_too() -> None:
    with running(header_seconds=0.2) as started:
        line = started.line()
        assert line.ask("GET", "/").status == 200
        assert line.send("GET / HTTP/1.1\r\n").answer().status == 408


def test_a_connection_that_says_nothing_is_closed() -> None:
    with running(header_seconds=0.2) as started:
        assert started.line().is_closed()
        assert started.eventually(lambda: "connection_unused" in reasons(started))


def test_an_idle_connection_is_closed_also_when_it_fidgets() -> None:
    with running(idle_seconds=1, header_seconds=0.5) as started:
        quiet, fidgeting = started.line(), started.line()
        assert quiet.ask("GET", "/").status == 200
        assert fidgeting.ask("GET", "/").status == 200
        fidgeting.send("\r\n")
        assert quiet.is_closed()
        assert fidgeting.is_closed()


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.gateway.connection_limits.STALLED_SECONDS", 0.3)
    with running(max_requests=1) as started:
        started.line().send(request("GET", "/big"))
        assert started.eventually(lambda: "answer_not_read" in reasons(started))
        assert started.eventually(lambda: started.ask("GET", "/").status == 200)


def test_a_body_that_nobody_wants_does_not_come_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.gateway.connection_limits.STALLED_SECONDS", 0.3)
    with running() as started:
        line = started.line().send(request("POST", "/early", content_length="1000") + b"x")
        assert line.answer().status == 401
        line.send(b"more")
        assert line.is_closed()
        assert started.eventually(lambda: "body_unwanted" in reasons(started))


def test_there_are_only_so_many_connections() -> None:
    with running(max_connections=2) as started:
        kept = [started.line(), started.line()]
        assert [line.ask("GET", "/").status for line in kept] == [200, 200]
        third = started.line()
        answer = third.answer()
        assert (answer.status, answer.json["code"]) == (503, "too_many_connections")
        kept[0].socket.close()
        assert started.eventually(lambda: len(started.server.server_state.connections) == 1)
        assert started.ask("GET", "/").status == 200


def test_pipelined_requests_are_answered_in_order(plain: Running) -> None:
    line = plain.line()
    line.send(b"".join(request("POST", "/echo", bytes(size)) for size in (1, 20, 300)))
    assert [line.answer().body for _ in range(3)] == [b"1", b"20", b"300"]


def test_a_flood_of_pipelined_requests_is_cut_off(plain: Running) -> None:
    line: Line = plain.line().send(request("GET", "/wait") + request("GET", "/") * 500)
    assert line.is_closed()
    assert plain.eventually(lambda: "too_many_pipelined" in reasons(plain))
    assert plain.ask("GET", "/").status == 200
