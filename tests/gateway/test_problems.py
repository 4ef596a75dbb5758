"""Every refusal is a problem document: unknown routes, wrong methods, broken JSON. Every error has a status."""

from __future__ import annotations

import inspect

import pytest
from served import Gateway, Visitor, send_target

from holdfast import errors
from holdfast.gateway.problem_responses import STATUS, status_of

LEAVES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, errors.HoldfastError)]


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status(kind: type[errors.HoldfastError]) -> None:
    made = kind("field", "problem") if issubclass(kind, errors.InvalidInput) else kind("what happened")
    assert 400 <= status_of(made) < 600
    assert any(base in STATUS for base in kind.__mro__[:-3] or (kind,))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/memories/add/more", 404),
        ("PUT", "/memories/search", 405),
        ("GET", "/users/", 405),
        ("GET", "//", 404),
        ("GET", "/.", 404),
        ("GET", "/..", 404),
        ("GET", "/docs/..", 404),
        ("GET", "/%00", 404),
        ("TRACE", "/healthz", 405),
    ],
)
def test_what_is_not_there_is_a_problem_too(gateway: Gateway, method: str, path: str, status: int) -> None:
    answer = send_target(gateway.http, method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["instance"] == answer.headers["x-request-id"]


BODIES = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 422),
    "not UTF-8": (b'{"query": "\xff"}', 400),
    "deep": (b'{"filters": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "deep objects": (b'{"filters": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}", 400),
    "a list": (b"[]", 422),
    "a text": (b'"hello"', 422),
    "null": (b"null", 422),
    "a large number": (b'{"top_k": ' + b"9" * 5_000 + b"}", 400),
    "a lone surrogate": (b'{"query": "\\ud800", "scope": ["all_user_memory"]}', 422),
    "a name twice": (b'{"query": 1, "query": "x", "scope": []}', 422),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_cannot_be_read_is_a_problem(visitor: Visitor, case: str) -> None:
    body, status = BODIES[case]
    headers = {**visitor.headers, "Content-Type": "application/json"}
    answer = visitor.http.post("/memories/search", content=body, headers=headers)
    assert answer.status_code in (status, 422) if status == 400 else answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/memories", "/memories/mem_1", "/resources", "/verbs"])
@pytest.mark.parametrize("name", ["apq", "aap_id", "user_key"])
def test_an_unknown_parameter_is_refused(visitor: Visitor, path: str, name: str) -> None:
    answer = visitor.http.get(path, params={name: "x"}, headers=visitor.headers)
    assert answer.status_code == 422, answer.text
    assert [each["field"] for each in answer.json()["errors"]] == ["query"]
    assert name not in answer.json()["detail"].split()
    assert ("did you mean app_id" if name == "aap_id" and path != "/verbs" else "known are") in answer.json()["detail"]


def test_a_probe_does_not_mind_parameters(gateway: Gateway) -> None:
    assert gateway.http.get("/healthz", params={"at": "1"}).status_code == 200


@pytest.mark.parametrize("path", ["/memories/search", "/memories/add", "/users"])
def test_a_body_of_endless_fields_is_one_problem(gateway: Gateway, visitor: Visitor, path: str) -> None:
    headers = gateway.operator if path == "/users" else visitor.headers
    fields = {f"field-{number}": 1 for number in range(10_000)}
    answer = gateway.http.post(path, json=fields, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"field": "body", "problem": "has 10,000 fields; no request has more than 100"},
    ]
    within = {"session_id": "chat:one", "messages": [fields]}
    answer = gateway.http.post("/memories/add", json=within, headers=visitor.headers)
    assert [each["field"] for each in answer.json()["errors"]] == ["messages[0]"]


@pytest.mark.parametrize("sent", ["text/plain", "application/x-www-form-urlencoded", "application/xml", None])
def test_the_wrong_content_type_is_named(visitor: Visitor, sent: str | None) -> None:
    headers = {**visitor.headers, **({"Content-Type": sent} if sent else {})}
    answer = visitor.http.post("/memories/search", content=b'{"query": "x", "scope": ["resources"]}', headers=headers)
    assert answer.status_code == 415, answer.text
    assert "application/json" in answer.json()["detail"]


def test_the_service_says_how_it_is(gateway: Gateway) -> None:
    assert gateway.http.get("/healthz").json() == {"status": "ok"}
    assert gateway.http.get("/readyz").json() == {"status": "ok"}
    assert gateway.http.get("/metrics").status_code == 401
    assert "holdfast" in gateway.http.get("/metrics", headers=gateway.operator).text
