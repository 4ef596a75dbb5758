"""Every refusal under EverOS's prefixes has EverOS's envelope; nothing is stored, and no user sees another's memory."""

from __future__ import annotations

import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import pytest
from everos_client import PREFIXES, EverosClient
from served import MOMENT, Gateway


def refused(answer: httpx2.Response, status: int, code: str) -> str:
    """Check that the response is the expected refusal, and return its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body.keys() == {"request_id", "error"}
    assert body["request_id"] == answer.headers["x-request-id"]
    error = body["error"]
    assert error.keys() == {"code", "message", "timestamp", "path"}
    assert error["code"] == code
    # The rest of an unknown path is not repeated.
    assert answer.request.url.path in (error["path"], *(f"{error['path']}{rest}" for rest in ("/delete", "/add/more")))
    assert datetime.fromisoformat(error["timestamp"]).utcoffset() is not None
    return str(error["message"])


# --- authentication ---


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["add", "flush", "search", "get"])
@pytest.mark.parametrize("key", [None, "Bearer uk_unknown", "Basic eDp5", "Bearer", "operator"])
def test_a_key_is_needed(gateway: Gateway, client: EverosClient, prefix: str, name: str, key: str | None) -> None:
    bodies: dict[str, Any] = {
        "add": {"session_id": "s", "messages": [client.said("x")]},
        "flush": {"session_id": "s"},
        "search": {"user_id": client.user_id, "query": "x"},
        "get": {"user_id": client.user_id, "memory_type": "episode"},
    }
    headers = gateway.operator if key == "operator" else {"Authorization": key} if key else {}
    answer = gateway.http.post(f"{prefix}/{name}", json=bodies[name], headers=headers)
    refused(answer, 401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_one_users_key_opens_nothing_of_anothers(gateway: Gateway, client: EverosClient) -> None:
    other = EverosClient(gateway.user("another user"))
    client.add("A canary of the first user.", session="shared name")
    for name, more in (("search", {"query": "canary"}), ("get", {"memory_type": "episode"})):
        message = refused(other.post(name, {"user_id": client.user_id, **more}), 403, "ACCESS_DENIED")
        unknown = refused(other.post(name, {"user_id": "nobody", **more}), 403, "ACCESS_DENIED")
        assert message == unknown
    filters = {"session_id": "shared name"}
    found = other.search("canary", filters=filters)
    assert (found["episodes"], found["unprocessed_messages"]) == ([], [])
    assert other.get(filters={"sender_id": client.user_id})["total_count"] == 0
    asked = {"agent_id": client.user_id, "query": "canary", "filters": filters}
    assert other.done("search", asked)["unprocessed_messages"] == []
    assert other.flush("shared name") == "no_extraction"
    assert client.flush("shared name") == "extracted"


def test_apps_and_projects_do_not_see_each_other(client: EverosClient) -> None:
    client.add("A canary.", app_id="one", project_id="two")
    assert client.found("canary") == client.listed() == client.found("canary", app_id="one") == []
    assert client.found("canary", app_id="one", project_id="two") == ["A canary."]
    assert client.get(app_id="one", project_id="three")["total_count"] == 0
    assert client.done("flush", {"session_id": "demo-1", "app_id": "one"})["status"] == "no_extraction"


def test_what_another_user_said_is_refused_whole(client: EverosClient) -> None:
    foreign = {**client.said("Said by somebody else."), "sender_id": "somebody else"}
    answer = client.post("add", {"session_id": "s", "messages": [client.said("Mine."), foreign]})
    assert "messages[1].sender_id" in refused(answer, 403, "ACCESS_DENIED")
    assert client.get()["total_count"] == 0
    client.done("add", {"session_id": "s", "messages": [{**foreign, "role": "assistant"}]})
    assert client.get()["total_count"] == 1


# --- validation ---

BAD_MESSAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no sender": ({"sender_id": ""}, "sender_id"),
    "a sender that is a number": ({"sender_id": 1}, "sender_id"),
    "the system's role": ({"role": "system"}, "role"),
    "no time": ({"timestamp": 0}, "timestamp"),
    "a negative time": ({"timestamp": -1}, "timestamp"),
    "microseconds": ({"timestamp": MOMENT * 1000}, "timestamp"),
    "seconds of a far future": ({"timestamp": 999_999_999_999}, "timestamp"),
    "a time in quotes": ({"timestamp": str(MOMENT)}, "timestamp"),
    "an ISO time": ({"timestamp": "2026-05-28T11:30:36Z"}, "timestamp"),
    "null for a content": ({"content": None}, "content"),
    "an empty content": ({"content": ""}, "messages"),
    "a blank content": ({"content": " \n"}, "messages"),
    "no items": ({"content": []}, "messages"),
    "a NUL": ({"content": "a\0b"}, "messages[0].content"),
    "a NUL in a name": ({"sender_name": "a\0b"}, "messages[0].sender_name"),
    "an item without a type": ({"content": [{"text": "x"}]}, "type"),
    "a text item without a text": ({"content": [{"type": "text"}]}, "content"),
    "a text item with a uri": ({"content": [{"type": "text", "text": "x", "uri": "file:///etc/passwd"}]}, "content"),
    "a tool without its call": ({"role": "tool", "sender_id": "t"}, "messages[0]"),
    "arguments that are no text": (
        {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}]},
        "tool_calls[0].function.arguments",
    ),
    "a call without a function": ({"tool_calls": [{"id": "1"}]}, "tool_calls[0].function"),
}


@pytest.mark.parametrize("case", BAD_MESSAGES)
def test_a_bad_message_is_refused_by_the_name_of_its_field(client: EverosClient, case: str) -> None:
    changes, named = BAD_MESSAGES[case]
    answer = client.post("add", {"session_id": "s", "messages": [{**client.said("Not to be kept."), **changes}]})
    assert named in refused(answer, 422, "INVALID_INPUT")
    assert client.get()["total_count"] == 0


ASSISTANTS = {"sender_id": "x", "role": "assistant", "timestamp": MOMENT, "content": "x"}
BAD_ADDS: dict[str, tuple[dict[str, Any], str]] = {
    "no session": ({"session_id": None}, "session_id"),
    "an empty session": ({"session_id": ""}, "session_id"),
    "a long session": ({"session_id": "s" * 129}, "session_id"),
    "a blank session": ({"session_id": "  "}, "session_id"),
    "a session of a prefix": ({"session_id": "chat:"}, "session_id"),
    "a session with a control character": ({"session_id": "a\nb"}, "session_id"),
    "no messages": ({"messages": []}, "messages"),
    "too many messages": ({"messages": [ASSISTANTS] * 501}, "messages"),
    "an app that is a path": ({"app_id": ".."}, "app_id"),
    "a project that is a path": ({"project_id": "a/b"}, "project_id"),
    "an empty app": ({"app_id": ""}, "app_id"),
    "a long project": ({"project_id": "p" * 129}, "project_id"),
}


@pytest.mark.parametrize("case", BAD_ADDS)
def test_a_bad_add_is_refused_by_the_name_of_its_field(client: EverosClient, case: str) -> None:
    changes, named = BAD_ADDS[case]
    answer = client.post("add", {"session_id": "s", "messages": [client.said("Not to be kept.")], **changes})
    assert named in refused(answer, 422, "INVALID_INPUT")
    assert client.get()["total_count"] == 0


@pytest.mark.parametrize("app_id", ["...", ".a", "..a", "a..", "a.b-c_d", "A" * 128])
def test_dots_may_stand_in_a_scopes_name(client: EverosClient, app_id: str) -> None:
    client.add("Here.", app_id=app_id)
    assert client.found("here", app_id=app_id) == ["Here."]


BAD_SEARCHES: dict[str, tuple[dict[str, Any], str]] = {
    "no owner": ({"user_id": None}, "user_id"),
    "two owners": ({"agent_id": "a"}, "agent_id"),
    "an empty owner": ({"user_id": ""}, "user_id"),
    "no query": ({"query": ""}, "query"),
    "a blank query": ({"query": " "}, "query"),
    "a query that is a list": ({"query": ["x"]}, "query"),
    "agentic": ({"method": "agentic"}, "method"),
    "top_k 0": ({"top_k": 0}, "top_k"),
    "top_k -2": ({"top_k": -2}, "top_k"),
    "top_k 101": ({"top_k": 101}, "top_k"),
    "top_k in quotes": ({"top_k": "5"}, "top_k"),
    "a radius beyond 1": ({"radius": 1.1}, "radius"),
    "a score below 0": ({"min_score": -0.1}, "min_score"),
    "filters that are a list": ({"filters": []}, "filters"),
    "an unknown filter": ({"filters": {"colour": "red"}}, "filters['…']"),
    "a reserved filter": ({"filters": {"owner_id": "x"}}, "filters.owner_id"),
    "a reserved filter within": ({"filters": {"AND": [{"app_id": "x"}]}}, "filters.AND[0].app_id"),
    "an unknown operator": ({"filters": {"timestamp": {"like": "x"}}}, "filters.timestamp['…']"),
    "an order of names": ({"filters": {"session_id": {"gt": "x"}}}, "filters.session_id.gt"),
    "a parent in an order": ({"filters": {"parent_id": {"gt": "x"}}}, "filters.parent_id.gt"),
    "a parent that is a number": ({"filters": {"parent_type": 1}}, "filters.parent_type"),
    "in without a list": ({"filters": {"session_id": {"in": "x"}}}, "filters.session_id.in"),
    "a time that is none": ({"filters": {"timestamp": "yesterday"}}, "filters.timestamp"),
    "a time that is a truth": ({"filters": {"timestamp": True}}, "filters.timestamp"),
    "OR that is an object": ({"filters": {"OR": {"session_id": "x"}}}, "filters.OR"),
}


@pytest.mark.parametrize("case", BAD_SEARCHES)
def test_a_bad_search_is_refused_by_the_name_of_its_field(client: EverosClient, case: str) -> None:
    changes, named = BAD_SEARCHES[case]
    answer = client.post("search", {"user_id": client.user_id, "query": "x", **changes})
    assert named in refused(answer, 422, "INVALID_INPUT")


BAD_GETS: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({"memory_type": None}, "memory_type"),
    "an unknown type": ({"memory_type": "dream"}, "memory_type"),
    "an agent's type": ({"memory_type": "agent_case"}, "agent_id"),
    "page 0": ({"page": 0}, "page"),
    "no page size": ({"page_size": 0}, "page_size"),
    "a large page": ({"page_size": 101}, "page_size"),
    "another order": ({"sort_by": "score"}, "sort_by"),
    "another direction": ({"sort_order": "up"}, "sort_order"),
    "an unknown filter": ({"filters": {"colour": "red"}}, "filters['…']"),
}


@pytest.mark.parametrize("case", BAD_GETS)
def test_a_bad_get_is_refused_by_the_name_of_its_field(client: EverosClient, case: str) -> None:
    changes, named = BAD_GETS[case]
    answer = client.post("get", {"user_id": client.user_id, "memory_type": "episode", **changes})
    assert named in refused(answer, 422, "INVALID_INPUT")


def test_a_refusal_repeats_nothing_that_was_sent(client: EverosClient) -> None:
    body = {"session_id": ["canary"], "messages": "canary", "app_id": {"canary": "canary"}}
    assert "canary" not in client.post("add", body).text


# --- content that is not text ---


def test_only_text_is_kept_and_nothing_is_ever_fetched(client: EverosClient) -> None:
    asked: list[str] = []

    class Trap(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    trap = HTTPServer(("127.0.0.1", 0), Trap)
    thread = threading.Thread(target=trap.serve_forever, args=(0.01,))
    thread.start()
    try:
        for kind in ("image", "audio", "doc", "pdf", "html", "email", "video"):
            for payload in (
                {"uri": f"http://127.0.0.1:{trap.server_port}/{kind}"},
                {"uri": "file:///etc/hostname"},
                {"base64": "aGVsbG8=", "ext": "png"},
                {"text": "as text"},
            ):
                items = [{"type": "text", "text": "Beside it."}, {"type": kind, **payload}]
                messages = [client.said("First."), client.said(items)]
                answer = client.post("add", {"session_id": "s", "messages": messages})
                assert "messages[1].content[1].type" in refused(answer, 415, "UNSUPPORTED_FORMAT")
    finally:
        trap.shutdown()
        thread.join()
        trap.server_close()
    assert asked == []
    assert client.get()["total_count"] == 0


# --- unknown routes ---


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "", 404, "NOT_FOUND"),
        ("POST", "/delete", 404, "NOT_FOUND"),
        ("POST", "/add/more", 404, "NOT_FOUND"),
        ("GET", "/add", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/get", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_unknown_routes_have_the_same_envelope(
    gateway: Gateway, prefix: str, method: str, path: str, status: int, code: str
) -> None:
    refused(gateway.http.request(method, f"{prefix}{path}"), status, code)


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[]", 422), (b"", 422), (b"null", 422), (b'{"a":' * 5_000, 400)]
)
def test_a_body_that_cannot_be_read_has_the_same_envelope(client: EverosClient, body: bytes, status: int) -> None:
    headers = {**client.visitor.headers, "Content-Type": "application/json"}
    answer = client.visitor.http.post(f"{client.prefix}/search", content=body, headers=headers)
    refused(answer, status, "BAD_REQUEST" if status == 400 else "INVALID_INPUT")


def test_the_wrong_content_type_has_the_same_envelope(client: EverosClient) -> None:
    headers = {**client.visitor.headers, "Content-Type": "text/plain"}
    answer = client.visitor.http.post(f"{client.prefix}/search", content=b"{}", headers=headers)
    refused(answer, 415, "UNSUPPORTED_FORMAT")


@pytest.mark.parametrize("wrong", [{"content": [1] * 1_000}, {"content": "x", "tool_calls": [1] * 1_000}])
def test_of_many_items_that_are_wrong_the_first_is_told(client: EverosClient, wrong: dict[str, Any]) -> None:
    body = {"session_id": "s", "messages": [{**client.said("x"), **wrong}]}
    said = refused(client.post("add", body), 422, "INVALID_INPUT")
    assert said.startswith(f"messages[0].{list(wrong)[-1]}[0]: ")
    assert "more)" not in said
