"""A request with a wrong name is answered with the right one; no name is repeated that could be a key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from served import Gateway, Visitor

GOLDEN = Path(__file__).parent / "golden" / "did-you-mean.txt"
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))
CANARY = "uk_canary_of_a_key"
MESSAGE = {"content": "I moved to Lisbon."}
USERS: tuple[tuple[str, Any], ...] = (
    ("POST /memories/add", {"content": "x"}),
    ("POST /memories/add", {"text": "x"}),
    ("POST /memories/add", {"messages": "x", "subject": "ana"}),
    ("POST /memories/add", {"messages": "x", "conversation": "42"}),
    ("POST /memories/add", {"messages": "x", "thread_id": "42"}),
    ("POST /memories/add", {"messages": "x", "sesion_id": "chat:42"}),
    ("POST /memories/add", {"messages": "x", "project": "p"}),
    ("POST /memories/add", {"messages": "x", "colour": "red"}),
    ("POST /memories/add", {"messages": "x", CANARY: "x"}),
    ("POST /memories/add", {"messages": {"text": "x"}}),
    ("POST /memories/add", {"messages": {"content": "x", "sender": "ana"}}),
    ("POST /memories/add", {"messages": ["x", {"content": "x", "created_at": 1}]}),
    ("POST /memories/add", {"messages": {"content": "x", CANARY: "x"}}),
    ("POST /memories/search", {"q": "x"}),
    ("POST /memories/search", {"query": "x", "k": 3}),
    ("POST /memories/search", {"query": "x", "n": 3}),
    ("POST /memories/search", {"query": "x", "n_results": 3}),
    ("POST /memories/search", {"query": "x", "limit": 3, "top_k": 3}),
    ("POST /memories/search", {"query": "x", "subject": "ana"}),
    ("POST /memories/search", {"query": "x", "session_id": "chat:42"}),
    ("POST /memories/search", {"query": "x", "filter": {}}),
    ("POST /memories/search", {"query": "x", "threshold": 1}),
    ("POST /memories/recall", {"question": "x"}),
    ("POST /memories/forget", {"id": "mem_1"}),
    ("POST /resources/external", {"url": "https://example.org", "content": "x"}),
    ("GET /memories?k=3", None),
    ("GET /memories?conversation_id=42", None),
    ("GET /memories?sesion_id=42", None),
    (f"GET /memories?{CANARY}=1", None),
    ("POST /verbs/search", {"query": "x", "scope": {"space": "default", "user_id": "ana"}}),
    ("POST /verbs/search", {"query": "x", "scope": {"space": "default"}, "options": {"n": 1}}),
    ("POST /verbs/search", {"query": "x", "scope": {"company": "acme"}}),
    ("POST /verbs/remember", {"content": "x", "scope": {"space": "default"}}),
)
OPERATORS: tuple[tuple[str, Any], ...] = (
    ("POST /companies/acme/memory/query", {"query": "x", "user_id": "ana"}),
    ("POST /companies/acme/memory/query", {"query": "x", "subject": "ana"}),
    ("POST /companies/acme/memory/query", {"query": "x", "n": 3}),
    ("POST /companies/acme/memory/query", {"query": "x", "limit": 3, "top_k": 3}),
    ("POST /companies/acme/memory/records", {"records": [{"content": "x"}]}),
    ("GET /companies/acme/memory/operations?agent=builder", None),
    ("GET /companies/acme/memory/operations?top_k=3", None),
)


def test_a_wrong_name_is_answered_with_the_right_one(gateway: Gateway, visitor: Visitor) -> None:
    answers = []
    for headers, requests in ((visitor.headers, USERS), (gateway.operator, OPERATORS)):
        for route, body in requests:
            method, path = route.split()
            answer = gateway.http.request(method, path, json=body, headers=headers)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (422, "invalid_input"), route
            assert problem["detail"].startswith("{field}: {problem}".format(**problem["errors"][0])), route
            assert CANARY not in answer.text
            shown = f"{route} {json.dumps(body)}" if body else route
            answers.append(f"{shown.replace(CANARY, '<key>')}\n    {problem['detail']}\n")
    text = "".join(answers)
    if REFRESH:
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")
    assert visitor.search("x").json() == {"results": []}


def test_both_names_of_the_number_of_results_are_one_field(gateway: Gateway, visitor: Visitor) -> None:
    visitor.add("The kettle is blue.", "The kettle is red.", "The kettle is green.")
    for name in ("limit", "top_k"):
        for path in ("/memories/search", "/memories/recall"):
            found = visitor.http.post(path, json={"query": "kettle", name: 2}, headers=visitor.headers)
            assert len(found.json()["results"]) == 2, (path, name)
        body = {"query": "kettle", name: 2}
        asked = gateway.http.post("/companies/acme/memory/query", json=body, headers=gateway.operator)
        assert asked.status_code in (200, 404), asked.text
