"""Whoever has no known key gets no body read: every route that needs a key refuses before the body arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.edge.edged import Line, request
from gateway.served import MOMENT, Gateway, serving, table
from holdfast.gateway import authentication
from holdfast.gateway.authentication import RULE, UNVERIFIED_BYTES, AccessRule, find_key
from holdfast.gateway.edge import exchange

LARGE = 4 * 1024 * 1024
KEYED = {AccessRule.USER, AccessRule.KNOWN, AccessRule.COMPANY}
WITH_BODIES = sorted(
    (method, route.path.replace("{", "").replace("}", "").replace(":path", ""))
    for route in table()
    for method in route.methods
    if method in ("POST", "PUT", "PATCH") and AccessRule(route.openapi_extra[RULE]) in KEYED
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place: Path = tmp_path_factory.mktemp("checks") / "memory.db"
    with pytest.MonkeyPatch.context() as patch, serving(place, work=False, rate_per_minute=0) as found:
        patch.setattr(exchange, "REFUSALS_PER_SECOND", 1_000_000)
        yield found


def started(gateway: Gateway, method: str, path: str, body: bytes, **headers: str) -> Line:
    """Announce a large body, and send only its start."""
    form = "multipart/form-data; boundary=b"
    media_type = form if path == "/resources" else "application/json"
    line = Line(int(gateway.url.rpartition(":")[2]))
    return line.send(request(method, path, content_length=str(LARGE), content_type=media_type, **headers) + body)


def test_no_route_reads_the_body_of_an_unknown_key(gateway: Gateway) -> None:
    assert len(WITH_BODIES) > 80
    for method, path in WITH_BODIES:
        line = started(gateway, method, path, b'{"', authorization="Bearer uk_unknown")
        answer = line.answer()
        assert answer.status == 401, (method, path, answer.body)
        assert answer.headers["connection"] == "close"
        assert answer.headers["www-authenticate"] == 'Bearer realm="holdfast"'
        line.socket.close()


def test_without_any_key_little_of_a_body_is_read(gateway: Gateway) -> None:
    for method, path in [*WITH_BODIES, ("POST", "/users")]:
        line = started(gateway, method, path, bytes(UNVERIFIED_BYTES + 1))
        answer = line.answer()
        assert answer.status in (401, 413), (method, path, answer.body)
        if answer.status == 413:
            assert "Authorization: Bearer" in answer.json["detail"]
        line.socket.close()


def _add(visitor: Any, **fields: Any) -> bytes:
    texts = ["tea " * 2_500] * 8
    messages = [
        {"sender_id": "ana", "role": "user", "timestamp": MOMENT + number, "content": text}
        for number, text in enumerate(texts)
    ]
    return json.dumps({**fields, "session_id": "chat:1", "messages": messages}).encode()


def test_a_large_body_passes_if_a_known_key_begins_it(gateway: Gateway) -> None:
    ana = gateway.user("ana of large bodies")
    signed = {"user_id": ana.user_id, "user_key": ana.key}
    json_type = {"Content-Type": "application/json"}
    early, unsigned = _add(ana, **signed), _add(ana)
    late = unsigned[:-1] + b", " + json.dumps(signed).encode()[1:]
    sent = [gateway.http.post("/memories/add", content=body, headers=json_type) for body in (early, late)]
    assert [answer.status_code for answer in sent] == [200, 413], sent[0].text
    assert gateway.http.post("/memories/add", content=unsigned, headers={**json_type, **ana.headers}).status_code == 200
    assert ana.upload(b"Tea at four.\n" * 10_000).status_code == 201
    wrong = gateway.http.post("/memories/add", content=_add(ana, user_key="uk_wrong"), headers=json_type)
    assert wrong.status_code == 401


def test_a_large_upload_passes_if_the_key_comes_before_the_file(gateway: Gateway) -> None:
    ana = gateway.user("ana of late keys")
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    user, key, file = (
        part % (b"user_id", b"", ana.user_id.encode()),
        part % (b"user_key", b"", ana.key.encode()),
        part % (b"file", b'; filename="a.txt"', b"Tea at five.\n" * 10_000),
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    for parts, status in (((user, key, file), 201), ((file, user, key), 413)):
        answer = gateway.http.post("/resources", content=b"".join((*parts, b"--b--\r\n")), headers=headers)
        assert answer.status_code == status, answer.text


def test_a_key_that_is_revoked_while_its_body_arrives_is_refused(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "_VERIFIED_SECONDS", 0.0)
    ben = gateway.user("ben")
    body = json.dumps({"query": "tea", "scope": ["all_user_memory"]}).encode()
    head = {"authorization": f"Bearer {ben.key}", "content_type": "application/json"}
    line = Line(int(gateway.url.rpartition(":")[2]))
    line.send(request("POST", "/memories/search", content_length=str(len(body)), **head) + body[:5])
    assert gateway.http.delete("/users/ben", headers=gateway.operator).status_code == 200
    assert line.send(body[5:]).answer().status == 401


@pytest.mark.parametrize(
    ("start", "key"),
    [
        (b'{"user_id": "ana", "user_key": "uk_1", "mess', "uk_1"),
        (b'{"user_key":"uk_1"}', "uk_1"),
        (b'{"text": "\\"user_key\\": \\"uk_2\\"", "user_key" :\n"uk_1"}', "uk_1"),
        (b'{"user_key": "uk_\\u0031"}', None),
        (b'{"user_key": 1, "user_key": "uk_1"}', None),
        (b'--b\r\nContent-Disposition: form-data; name="user_key"\r\n\r\nuk_1\r\n--b', "uk_1"),
        (b'--b\r\nContent-Disposition: form-data; name="user_key"\r\nX: y\r\n\r\nuk_1\r\n', "uk_1"),
        (b'--b\r\nContent-Disposition: form-data; name="user_key"\r\n\r\nuk_', None),
        (b'"user_key"' * 6_000, None),
        (b"", None),
    ],
)
def test_a_key_is_found_at_the_start_of_a_body(start: bytes, key: str | None) -> None:
    assert find_key(start) == key
