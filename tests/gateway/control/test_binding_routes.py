"""Bindings over HTTP: create, change, assign and resolve; every refusal with its status and field."""

from __future__ import annotations

from typing import Any

import pytest
from company import Company, fields_of


def test_a_company_begins_with_our_own_store(acme: Company) -> None:
    (binding,) = acme.operator.get("/bindings")["bindings"]
    assert (binding["key"], binding["provider"], binding["enabled"]) == ("default", "local", True)
    assert binding["created_at"] is None
    assert acme.operator.get("/default-binding")["binding_key"] == "default"
    found = acme.operator.get("/resolve", agent_id="builder")
    assert (found["binding_key"], found["source"]) == ("default", "company_default")
    assert found["checked"] == ["agent_override", "company_default"]
    assert found["capabilities"]["correction"] is True
    assert {each["key"] for each in acme.operator.get("/providers")["providers"]} >= {"local"}


def test_a_binding_is_made_changed_and_taken_away(acme: Company) -> None:
    operator = acme.operator
    made = operator.post("/bindings", 201, key="second", provider="local", hooks={"issue_comment_capture": True})
    assert made["hooks"]["issue_comment_capture"] is True
    assert made["hooks"]["post_run_capture"] is True
    read = operator("GET", "/bindings/second")
    assert read.headers["ETag"] == '"second.1"'
    changed = operator.patch("/bindings/second", headers={"If-Match": '"second.1"'}, enabled=False)
    assert (changed["enabled"], changed["revision"]) == (False, 2)
    late = operator.patch("/bindings/second", 412, headers={"If-Match": '"second.1"'}, enabled=True)
    assert late["code"] == "revision_conflict"
    operator.delete("/bindings/second")
    assert operator.get("/bindings/second", 404)["code"] == "binding_not_found"
    actions = [each["action"] for each in operator.get("/activity")["activity"]]
    assert actions == ["memory.binding_deleted", "memory.binding_disabled", "memory.binding_created"]
    page = operator.get("/activity", limit=2)
    assert [each["action"] for each in operator.get("/activity", cursor=page["next_cursor"])["activity"]] == actions[2:]


def test_an_agent_has_a_binding_of_its_own_until_it_has_not(acme: Company) -> None:
    operator = acme.operator
    operator.post("/bindings", 201, key="second", provider="local")
    assert operator.get("/agents/builder/binding", 404)["code"] == "not_found"
    operator.put("/agents/builder/binding", binding_key="second")
    assert operator.get("/agents/builder/binding")["binding_key"] == "second"
    assert operator.get("/resolve", agent_id="builder")["source"] == "agent_override"
    assert operator.get("/resolve", agent_id="tester")["binding_key"] == "default"
    assert [each["target_type"] for each in operator.get("/targets")["targets"]] == ["company", "agent"]
    operator.delete("/agents/builder/binding")
    operator.delete("/agents/builder/binding")
    assert operator.get("/resolve", agent_id="builder")["binding_key"] == "default"


def test_a_company_without_a_default_is_unconfigured_and_says_what_was_looked_at(acme: Company) -> None:
    operator = acme.operator
    operator.delete("/default-binding")
    assert operator.get("/default-binding", 404)["code"] == "not_found"
    found = operator.get("/resolve", agent_id="builder")
    assert (found["binding_key"], found["source"]) == (None, "unconfigured")
    refused = operator.post("/query", 404, query="x", agent_id="builder")
    assert refused["code"] == "binding_not_found"
    assert "agent_override, company_default" in refused["detail"]
    assert fields_of(refused) == ["binding_key"]
    operator.put("/default-binding", binding_key="default")
    operator.post("/query", query="x", agent_id="builder")


def test_the_same_key_makes_a_binding_once(acme: Company) -> None:
    key = {"Idempotency-Key": "k1"}
    first = acme.operator.post("/bindings", 201, headers=key, key="second", provider="local")
    again = acme.operator.post("/bindings", 201, headers=key, key="second", provider="local")
    assert first == again
    other = acme.operator.post("/bindings", 422, headers=key, key="third", provider="local")
    assert other["code"] == "idempotency_conflict"


WRONG: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("POST", "/bindings", {"key": "second", "provider": "nope"}, 422, "provider"),
    ("POST", "/bindings", {"key": "second", "provider": "local", "config": {"x": 1}}, 422, "config['…']"),
    ("POST", "/bindings", {"key": "No Key", "provider": "local"}, 422, "key"),
    ("POST", "/bindings", {"key": "k" * 65, "provider": "local"}, 422, "key"),
    ("POST", "/bindings", {"key": "second"}, 422, "provider"),
    ("POST", "/bindings", {"key": "second", "provider": "local", "hook": {}}, 422, "body"),
    ("POST", "/bindings", {"key": "default", "provider": "local"}, 409, "key"),
    ("PATCH", "/bindings/none", {"enabled": False}, 404, "binding_key"),
    ("PATCH", "/bindings/default", {}, 422, "changes"),
    ("PATCH", "/bindings/default", {"enabled": "no"}, 422, "enabled"),
    ("PUT", "/default-binding", {"binding_key": "none"}, 404, "binding_key"),
    ("PUT", "/agents/builder/binding", {"binding_key": "none"}, 404, "binding_key"),
    ("GET", "/resolve?binding_key=none", {}, 404, "binding_key"),
    ("GET", "/resolve?agent=builder", {}, 422, "agent"),
    ("GET", "/activity?limit=201", {}, 422, "limit"),
    ("GET", "/activity?cursor=x", {}, 422, "cursor"),
    ("DELETE", "/bindings/none", {}, 404, "binding_key"),
    ("GET", "/bindings/none", {}, 404, "binding_key"),
    ("POST", "/query", {"query": "x", "binding_key": "none"}, 404, "binding_key"),
]


@pytest.mark.parametrize(("method", "path", "given", "status", "field"), WRONG, ids=lambda value: str(value)[:50])
def test_what_cannot_be_done_is_told_with_its_field(
    acme: Company, method: str, path: str, given: dict[str, Any], status: int, field: str
) -> None:
    answer = acme.operator(method, path, **({"json": given} if method not in ("GET", "DELETE") else {}))
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert fields_of(answer.json()) == [field]
    assert "none" not in answer.text


def test_who_may_do_what_with_bindings(acme: Company) -> None:
    admin = acme.somebody("operator", "olga")
    auditor = acme.somebody("operator", "aude", role="auditor")
    agent = acme.somebody("agent", "builder")
    user = acme.somebody("user", "ana")
    admin.post("/bindings", 201, key="second", provider="local")
    auditor.get("/bindings")
    auditor.post("/bindings", 403, key="third", provider="local")
    for somebody in (agent, user):
        somebody.get("/bindings", 403)
        somebody.get("/activity", 403)
        somebody.post("/bindings", 403, key="third", provider="local")
        assert somebody.get("/resolve")["binding_key"] == "default"
    acme.nobody.get("/bindings", 401)
    acme.of("another", admin).get("/bindings", 403)
    acme.of("another", agent).get("/resolve", 403)
