"""Errors over HTTP if a binding cannot be used: they name the binding and a remedy, and contain no secret."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from company import Company, fields_of

CANARY = "canary-4a7e"


def bound(acme: Company, **config: Any) -> None:
    given = {"user_id": "holdfast", "timeout_seconds": 5, **config}
    acme.operator.post("/bindings", 201, key="ext", provider="gateway", config=given)
    acme.operator.put("/default-binding", binding_key="ext")


def closed_url() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_provider_that_cannot_be_reached_is_named_with_what_to_do_and_its_operation(acme: Company) -> None:
    url = closed_url()
    bound(acme, url=url)
    agent = acme.somebody("agent", "planner")
    problem = agent.post("/query", 502, query="cats")
    assert problem["code"] == "provider_unavailable"
    assert problem["detail"].startswith("the binding 'ext' (gateway) cannot be used: the service ")
    assert "`holdfast provider check gateway --config … --connect`" in problem["detail"]
    assert url not in problem["detail"]
    found = acme.operator.get(f"/operations/{problem['operation_id']}")
    assert (found["outcome"], found["error_code"], found["binding_key"]) == ("failed", "provider_unavailable", "ext")


def test_a_wrong_path_in_an_address_says_what_the_service_answered(acme: Company) -> None:
    bound(acme, url=f"{acme.gateway.url}/nowhere")
    problem = acme.operator.post("/query", 502, query="cats", agent_id="planner")
    assert "the binding 'ext' (gateway)" in problem["detail"]
    assert "(status 404)" in problem["detail"]


def test_a_secret_that_cannot_be_resolved_is_the_providers_problem_and_names_binding_and_field(
    acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_EMPTY", "")
    bound(acme, url=closed_url(), user_key="env://HOLDFAST_SECRET_EMPTY")
    problem = acme.operator.post("/query", 502, query="cats", agent_id="planner")
    assert problem["code"] == "secret_unavailable"
    assert problem["detail"].startswith("the binding 'ext' (gateway) cannot be used: config.user_key: ")
    assert "set it where Holdfast runs" in problem["detail"]
    found = acme.operator.get(f"/operations/{problem['operation_id']}")
    assert (found["outcome"], found["error_code"]) == ("failed", "secret_unavailable")


def test_a_secret_that_is_none_is_not_told(acme: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_SPACED", f"{CANARY} {CANARY}")
    bound(acme, url=closed_url(), user_key="env://HOLDFAST_SECRET_SPACED")
    answer = acme.operator("POST", "/query", json={"query": "cats", "agent_id": "planner"})
    assert answer.status_code == 502
    assert CANARY not in answer.text


def test_a_refusal_tells_its_operation_too(acme: Company) -> None:
    agent = acme.somebody("agent", "planner")
    problem = agent.post("/query", 403, query="cats", agent_id="other")
    found = acme.operator.get(f"/operations/{problem['operation_id']}")
    assert (found["outcome"], found["error_code"]) == ("refused", "access_denied")


def test_a_reference_that_can_never_be_resolved_is_refused_when_it_is_bound_and_when_it_is_changed(
    acme: Company,
) -> None:
    config = {"url": closed_url(), "user_id": "holdfast", "user_key": "env://HOME"}
    problem = acme.operator.post("/bindings", 422, key="ext", provider="gateway", config=config)
    assert problem["code"] == "invalid_configuration"
    assert fields_of(problem) == ["config.user_key"]
    assert "HOLDFAST_SECRET_" in problem["detail"]
    bound(acme, url=closed_url())
    assert fields_of(acme.operator.patch("/bindings/ext", 422, config=config)) == ["config.user_key"]
