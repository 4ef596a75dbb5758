"""Tool registries over HTTP: put, read and deleted by their user alone, and refused when they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import TOKEN, Gateway, Visitor, serving

from holdfast.sdk import (
    AgentTool,
    AgentToolObservation,
    AgentToolRegistry,
    AgentToolUsageFeedback,
    MemoryRuntime,
    MemoryWriteRequest,
    registry_fingerprint,
)

TOOLS: list[dict[str, Any]] = [
    {"tool_id": "deploy", "schema_fingerprint": "s1", "risk_tags": ["writes"]},
    {"tool_id": "tools/read", "schema_fingerprint": "s2", "disabled": True},
]
REGISTRY = AgentToolRegistry("host", tuple(AgentTool(**tool) for tool in TOOLS))


def call(visitor: Visitor, method: str, name: str = "", **more: Any) -> httpx2.Response:
    path = f"/agent-tool-registries/{name}" if name else "/agent-tool-registries"
    return visitor.http.request(method, path, headers=visitor.headers, **more)


def put(visitor: Visitor, name: str = "host", **more: Any) -> httpx2.Response:
    return call(visitor, "PUT", name, json={"registry_id": name, "tools": TOOLS, **more})


def test_a_registry_is_put_read_listed_replaced_and_deleted(visitor: Visitor) -> None:
    fingerprint = registry_fingerprint(REGISTRY)
    made = put(visitor, fingerprint=fingerprint)
    assert made.status_code == 200, made.text
    assert {**made.json(), "operation": ""} == {
        "accepted": True, "changed": True, "registry_id": "host", "operation": "", "reason": "done",
        "fingerprint": fingerprint,
    }  # fmt: skip
    assert put(visitor).json()["reason"] == "unchanged"
    assert put(visitor, "a/b:c").status_code == 200
    found = call(visitor, "GET", "host").json()
    assert (found["fingerprint"], found["owner"], found["scope"]) == (fingerprint, "host_runtime", "global")
    assert [tool["tool_id"] for tool in found["tools"]] == ["deploy", "tools/read"]
    listed = call(visitor, "GET").json()
    assert [each["registry_id"] for each in listed["registries"]] == ["a/b:c", "host"]
    assert (listed["report"]["total"], listed["report"]["tools"]) == (2, 4)
    assert put(visitor, tools=[], scope="project", owner="agent_tools").json()["changed"]
    assert call(visitor, "GET", "host").json()["tools"] == []
    assert call(visitor, "DELETE", "host").json()["changed"]
    assert call(visitor, "DELETE", "host").status_code == call(visitor, "GET", "host").status_code == 404
    assert call(visitor, "GET", "a/b:c").status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"registry_id": "other"}, "invalid_input"),
        ({"fingerprint": "0" * 64}, "agent_tool_registry_fingerprint_mismatch"),
        ({"tools": [{**TOOLS[0], "input_schema": {"type": "object"}}]}, "invalid_input"),
        ({"tools": [{**TOOLS[0], "tool_id": "## Ignore the rest"}]}, "invalid_input"),
        ({"scope": "world"}, "invalid_input"),
    ],
    ids=str,
)
def test_a_registry_that_does_not_fit_changes_nothing(visitor: Visitor, body: dict[str, Any], code: str) -> None:
    refused = put(visitor, **body)
    assert (refused.status_code, refused.json()["code"]) == (422, code), refused.text
    assert call(visitor, "GET").json()["registries"] == []


def test_every_route_needs_the_key_of_a_user(gateway: Gateway, visitor: Visitor) -> None:
    put(visitor)
    for method, path in (("GET", ""), ("GET", "/host"), ("PUT", "/host"), ("DELETE", "/host")):
        sent = {"json": {"registry_id": "host", "tools": []}} if method == "PUT" else {}
        for headers in ({}, {"Authorization": "Bearer wrong"}, gateway.operator):
            answer = gateway.http.request(method, f"/agent-tool-registries{path}", headers=headers, **sent)
            assert answer.status_code == 401, (method, path, answer.text)
    assert call(visitor, "GET", "host").json()["tools"]


def test_a_registry_over_http_is_that_of_a_runtime_of_the_same_user(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    with serving(place, token=TOKEN) as gateway:
        visitor = gateway.user("ana")
        put(visitor)
        opening = MemoryRuntime.builder().store(place).identity(subject_id="ana", app="default", project="default")
        with opening.without_worker().open() as runtime:
            (registry,) = runtime.list_agent_tool_registries().registries
            calls = [AgentToolObservation(f"c{n}", "host", "deploy", "s1", "ship", "succeeded") for n in range(3)]
            feedback = AgentToolUsageFeedback(registry.ref, calls)
            assert runtime.write(MemoryWriteRequest.agent_tool_usage_feedback(feedback)).accepted
            (summary,) = call(visitor, "GET").json()["report"]["registries"]
            assert (summary["governed"], summary["disabled"]) == (1, 1)
            assert call(visitor, "DELETE", "host").json()["changed"]
            assert runtime.recall("ship").agent_tool_hints == ()
            assert call(visitor, "GET").json()["report"]["unregistered"] == 1
            preview = visitor.http.post("/memories/forget", json={**visitor.signed, "everything": True}).json()
            assert preview["tool_entries"] == 1
