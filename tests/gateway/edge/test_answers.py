"""Every response has a request id, errors are plain, and the edge passes on unchanged all that it does not refuse."""

from __future__ import annotations

import re

import pytest
from edged import Running, request, running
from fastapi import FastAPI, Request, Response, UploadFile

from holdfast.gateway.edge import limits
from holdfast.gateway.edge.problem_json import problem_response


def test_a_request_id_is_made_and_answered(plain: Running) -> None:
    first, second = plain.ask("GET", "/"), plain.ask("GET", "/")
    assert re.fullmatch(r"[0-9a-f]{32}", first.headers["x-request-id"])
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize("given", ["req-1", "A.b_c~9", "x" * 100])
def test_a_sane_request_id_is_taken(plain: Running, given: str) -> None:
    assert plain.ask("GET", "/", x_request_id=given).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["two words", "x" * 101, '"quoted"', "a,b", "<script>", "ü", "a/b:c"])
def test_an_insane_one_is_replaced(plain: Running, given: str) -> None:
    answered = plain.ask("GET", "/", x_request_id=given).headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{32}", answered)


def test_a_refusal_has_it_too_in_headers_and_body(plain: Running) -> None:
    answer = plain.ask("GET", "/", host="elsewhere", x_request_id="mine")
    assert (answer.headers["x-request-id"], answer.json["instance"]) == ("mine", "mine")


def test_under_the_paths_of_everos_a_refusal_has_its_envelope(plain: Running) -> None:
    answer = plain.ask("POST", "/api/v2/memory/add", b"x", content_encoding="gzip", x_request_id="mine")
    assert answer.headers["content-type"] == "application/json"
    assert (answer.json["request_id"], answer.json["error"]["code"]) == ("mine", "UNSUPPORTED_FORMAT")


def test_answers_are_not_kept_by_caches_nor_guessed_at(plain: Running) -> None:
    answer = plain.ask("GET", "/")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert "server" not in answer.headers


def test_what_a_route_says_about_caching_stays() -> None:
    async def caching(scope: object, receive: object, send: object) -> None:
        headers = [(b"content-length", b"0"), (b"cache-control", b"private, max-age=5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body"})  # type: ignore[operator]

    with running(caching) as started:
        assert started.ask("GET", "/").headers["cache-control"] == "private, max-age=5"


def test_an_error_is_a_plain_500_that_tells_nothing(plain: Running) -> None:
    answer = plain.ask("POST", "/fail", b"canary-body", x_request_id="which")
    assert (answer.status, answer.json["code"]) == (500, "internal_error")
    assert b"canary" not in answer.body
    assert "which" in answer.json["detail"]
    assert plain.eventually(lambda: len(plain.logged) == 2)
    failure, line = plain.logged
    assert (failure["level"], failure["id"], failure["error"]) == ("error", "which", "ValueError")
    assert any(place.endswith("_fail") for place in failure["frames"])
    assert (line["status"], line["error"]) == (500, "ValueError")
    assert "canary" not in plain.log.getvalue()


def test_an_error_after_the_start_cuts_the_answer_short(plain: Running) -> None:
    line = plain.line().send(request("POST", "/cut", b"x"))
    with pytest.raises(ConnectionError):
        line.answer()
    assert plain.eventually(lambda: any(entry.get("cut") for entry in plain.logged))
    assert "canary" not in plain.log.getvalue()
    assert plain.ask("GET", "/").status == 200


def test_an_error_that_a_framework_answered_and_raised_again_is_not_answered_twice() -> None:
    async def both(scope: object, receive: object, send: object) -> None:
        await problem_response(scope, send, 500, "own", "its own words")  # type: ignore[arg-type]
        raise ValueError("again")

    with running(both) as started:
        line = started.line()
        assert line.ask("GET", "/").json["code"] == "own"
        assert line.ask("GET", "/").json["code"] == "own"


def test_head_has_no_body(plain: Running) -> None:
    line = plain.line().send(request("HEAD", "/", host="elsewhere"))
    head = b""
    while b"\r\n\r\n" not in head:
        head += line.socket.recv(65536)
    assert head.startswith(b"HTTP/1.1 421")
    assert head.endswith(b"\r\n\r\n")


def test_connections_are_kept_after_refusals_that_allow_it(plain: Running) -> None:
    line = plain.line()
    assert line.ask("GET", "/", host="elsewhere").status == 421
    assert line.ask("GET", "/").status == 200


def test_the_app_is_started_and_stopped() -> None:
    with running() as started:
        assert started.app.was_started
        assert not started.app.was_stopped
    assert started.app.was_stopped


def test_an_upgrade_to_something_else_is_not_made(plain: Running) -> None:
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec_websocket_key": "eA==",
        "sec_websocket_version": "13",
    }
    assert plain.ask("GET", "/", **headers).status == 200


def test_what_was_accepted_is_finished_before_it_stops() -> None:
    with running(shutdown_seconds=15) as started:
        line = started.line().send(request("GET", "/wait"))
        assert started.app.waiting.acquire(timeout=10)
        started.server.should_exit = True
        assert started.eventually(lambda: not started.server.servers[0].is_serving())
        started.app.go_on.set()
        assert line.answer().body == b"waited"
        assert line.is_closed()


def framed() -> FastAPI:
    """A framework that turns an error while it reads a body into its own response."""
    app = FastAPI()

    @app.post("/json")
    async def take(body: dict[str, str]) -> int:
        return len(body)

    @app.post("/resources")
    async def upload(file: UploadFile) -> int:
        return len(await file.read())

    @app.post("/keyed")
    async def keyed(request: Request) -> None:
        limits.charge_to(request.scope, "uk_one")

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> Response:
        raise AssertionError("a refusal is none of these") from error

    return app


def test_a_route_that_charges_a_key_need_not_know_of_refusals() -> None:
    with running(framed(), rate_per_minute=1) as started:
        assert [started.ask("POST", "/keyed").status for _ in range(2)] == [200, 429]
        assert started.eventually(lambda: len(started.logged) == 2)
        assert {entry["event"] for entry in started.logged} == {"request"}


@pytest.mark.parametrize(
    ("path", "media_type"), [("/json", "application/json"), ("/resources", "multipart/form-data; boundary=b")]
)
def test_a_refusal_is_not_hidden_by_what_a_framework_makes_of_it(path: str, media_type: str) -> None:
    begun = (
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n' if path == "/resources" else b'{"'
    )
    with running(framed(), body_seconds=0.05, max_body_bytes=2000, max_upload_bytes=2000) as started:
        slow = started.line().send(request("POST", path, content_type=media_type, content_length="1000") + begun)
        answer = slow.answer()
        assert (answer.status, answer.json["code"]) == (408, "body_too_slow")
    with running(framed(), max_body_bytes=2000, max_upload_bytes=2000) as started:
        line = started.line().send(request("POST", path, content_type=media_type, transfer_encoding="chunked"))
        line.send(b"%x\r\n%b\r\n" % (len(begun), begun))
        for _ in range(2000 // 0x100 + limits.FRAMING_BYTES // 0x100 + 2):
            line.send(b"100\r\n" + b"x" * 0x100 + b"\r\n")
        answer = line.answer()
        assert (answer.status, answer.json["code"]) == (413, "body_too_large")
        assert started.eventually(lambda: bool(started.logged))
        assert {entry["level"] for entry in started.logged} == {"info"}
