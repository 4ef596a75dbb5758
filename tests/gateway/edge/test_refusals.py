"""The format of the edge's refusals."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest

from holdfast.gateway.edge.problem_json import is_everos, problem_response


def answered(path: str, method: str = "POST") -> tuple[dict[str, Any], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "holdfast.request_id": "r-1"}
    asyncio.run(problem_response(scope, send, 429, "rate_limited", "too many", [(b"retry-after", b"3")]))
    return sent[0], sent[1]["body"]


def test_it_is_a_problem_document() -> None:
    start, body = answered("/memories/add")
    headers = dict(start["headers"])
    assert (start["status"], headers[b"content-type"]) == (429, b"application/problem+json")
    assert (headers[b"retry-after"], int(headers[b"content-length"])) == (b"3", len(body))
    assert json.loads(body) == {
        "type": "urn:holdfast:problem:rate_limited",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "too many",
        "code": "rate_limited",
        "instance": "r-1",
    }


@pytest.mark.parametrize("prefix", ["/api/v1/memory", "/api/v2/memory", "/api/v1/memories"])
def test_under_the_paths_of_everos_it_has_its_envelope(prefix: str) -> None:
    start, body = answered(f"{prefix}/add")
    told = json.loads(body)
    assert dict(start["headers"])[b"content-type"] == b"application/json"
    assert (told["request_id"], told["error"]["code"], told["error"]["path"]) == (
        "r-1",
        "RATE_LIMITED",
        f"{prefix}/add",
    )
    assert datetime.fromisoformat(told["error"]["timestamp"]).tzinfo is not None


def test_a_path_that_only_begins_like_one_is_none_of_them() -> None:
    assert not is_everos("/api/v1/memoryless")
    assert not is_everos("/api/v3/memory/add")
    assert not is_everos("/api/v1/groupsies")


@pytest.mark.parametrize("noun", ["groups", "senders", "settings", "tasks"])
def test_a_name_in_a_path_of_everos_is_not_repeated(noun: str) -> None:
    assert json.loads(answered(f"/api/v1/{noun}/secret")[1])["error"]["path"] == f"/api/v1/{noun}"


def test_an_answer_to_head_has_no_body() -> None:
    start, body = answered("/memories", "HEAD")
    assert body == b""
    assert int(dict(start["headers"])[b"content-length"]) > 0


def test_a_path_that_is_no_unicode_can_be_told() -> None:
    _, body = answered("/api/v2/memory/\udcff")
    assert json.loads(body)["error"]["path"] == "/api/v2/memory"
