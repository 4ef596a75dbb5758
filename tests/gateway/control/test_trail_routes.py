"""The audit trail over HTTP: operations, metrics, jobs, hooks and their deliveries, and costs."""

from __future__ import annotations

from typing import Any

import pytest
from company import Company, fields_of

from holdfast.domain.reference_message import LABEL

RUN = {"source": {"kind": "run", "run_id": "r1"}, "payload": {"text": "I live in Porto."}}


def test_operations_are_found_by_what_they_were_for(acme: Company) -> None:
    operator = acme.operator
    source = {"kind": "issue_comment", "issue_id": "i1", "comment_id": "c1"}
    operator.post("/records", records=[{"text": "One."}], agent_id="builder", run_id="r1", source=source)
    operator.post("/records", records=[{"text": "Two."}], project_id="p1", issue_id="i1")
    operator.post("/query", 404, query="x", binding_key="none")
    kept = operator.post("/records", records=[{"text": "Three."}])

    def found(**asked: Any) -> int:
        return len(operator.get("/operations", **asked)["operations"])

    assert found(agent_id="builder") == found(run_id="r1") == found(source_kind="issue_comment") == 1
    assert found(project_id="p1") == 1
    assert found(issue_id="i1", type="record_upsert") == 2, "one in that issue, and one whose source it is"
    assert found(outcome="refused", type="query") == found(action="query") == 1
    assert found(binding_key="default", type="record_upsert") == 3
    assert found(since="2100-01-01") == found(until="2000-01-01") == 0
    first = operator.get("/operations", type="record_upsert", limit=2)
    rest = operator.get("/operations", type="record_upsert", limit=2, cursor=first["next_cursor"])
    assert len(first["operations"] + rest["operations"]) == 3
    operator.get("/operations", 422, type="query", cursor=first["next_cursor"])
    one = operator.get(f"/operations/{kept['operation_id']}")
    assert (one["type"], one["outcome"], one["record_count"]) == ("record_upsert", "succeeded", 1)
    assert one["record_ids"] == kept["record_ids"]
    assert "Three." not in str(one)
    operator.get("/operations/op_none", 404)
    metrics = operator.get("/metrics")
    assert {each["binding_key"]: each["succeeded"] for each in metrics["bindings"]}["default"] >= 3


def test_a_read_is_in_the_trail_when_its_id_is_asked_for(acme: Company) -> None:
    asked = acme.operator.post("/query", query="anything")
    assert acme.operator.get(f"/operations/{asked['operation_id']}")["type"] == "query"


def test_jobs_are_listed_cancelled_and_tried_again(acme: Company) -> None:
    operator = acme.operator
    operator.post("/capture", agent_id="builder", run_id="r1", **RUN)
    jobs = operator.get("/extraction-jobs", agent_id="builder")["jobs"]
    assert [(each["kind"], each["source"]["run_id"]) for each in jobs] == [("extract", "r1")]
    one = operator.get(f"/extraction-jobs/{jobs[0]['job_id']}")
    assert one["scope"]["agent_id"] == "builder"
    assert operator.get("/extraction-jobs", kind="deliver")["jobs"] == []
    assert operator.get("/extraction-jobs", state="stuck")["jobs"] == []
    operator.get("/extraction-jobs/job_none", 404)
    operator.post("/extraction-jobs/job_none/retry", 404)
    operator.post("/extraction-jobs/job_none/cancel", 404)
    agent = acme.somebody("agent", "builder")
    assert len(agent.get("/extraction-jobs")["jobs"]) == 1
    assert acme.somebody("agent", "tester").get("/extraction-jobs")["jobs"] == []
    agent.post(f"/extraction-jobs/{one['job_id']}/cancel", 403)


def test_a_hook_is_captured_once_and_its_delivery_is_on_record(acme: Company) -> None:
    operator = acme.operator
    emitted = operator.post("/hooks/post_run_capture", hook_id="h1", agent_id="builder", run_id="r1", **RUN)
    (delivery,) = emitted["deliveries"]
    assert (delivery["to"], delivery["status"], emitted["repeated"]) == ("binding:default", "delivered", False)
    assert operator.post("/hooks/post_run_capture", hook_id="h1", agent_id="builder", run_id="r1", **RUN)["repeated"]
    other = {**RUN, "payload": {"text": "I live in Lisbon."}}
    refused = operator.post("/hooks/post_run_capture", 422, hook_id="h1", agent_id="builder", run_id="r1", **other)
    assert refused["code"] == "idempotency_conflict"
    assert len(operator.get("/records", agent_id="builder")["records"]) == 1
    comment = {"source": {"kind": "issue_comment", "comment_id": "c1"}, "payload": {"text": "Looks good."}}
    (skipped,) = operator.post("/hooks/issue_comment_capture", hook_id="h2", **comment)["deliveries"]
    assert (skipped["status"], skipped["reason"]) == ("skipped", "hook_disabled")
    assert operator.get(f"/deliveries/{skipped['delivery_id']}") == skipped
    listed = operator.get("/deliveries", status="skipped", kind="issue_comment_capture")["deliveries"]
    assert [each["delivery_id"] for each in listed] == [skipped["delivery_id"]]
    operator.post(f"/deliveries/{skipped['delivery_id']}/retry", 409)
    operator.post(f"/deliveries/{skipped['delivery_id']}/drop", 409)
    operator.get("/deliveries/dlv_none", 404)
    operator.post("/deliveries/dlv_none/retry", 404)
    operator.post("/deliveries/dlv_none/drop", 404)


def test_a_run_is_given_what_it_should_know(acme: Company) -> None:
    acme.operator.post("/records", records=[{"text": "Releases go out on Tuesdays."}], agent_id="builder")
    agent = acme.somebody("agent", "builder")
    given = agent.post("/hydrate", query="When are releases?", run_id="r2")
    assert given["preamble"].splitlines()[0] == LABEL
    assert "Releases go out on Tuesdays." in given["preamble"]
    assert (given["reason"], given["binding_key"]) == (None, "default")
    nothing = acme.somebody("agent", "tester").post("/hydrate", query="When are releases?")
    assert (nothing["preamble"], nothing["reason"]) == ("", "nothing_found")
    acme.operator.patch("/bindings/default", hooks={"pre_run_hydrate": False})
    assert agent.post("/hydrate", query="When are releases?")["reason"] == "hook_disabled"
    metrics = acme.operator.get("/metrics")
    assert metrics["recalls"] >= 2


def test_fees_and_prices_are_kept_and_summed_up(acme: Company) -> None:
    operator = acme.operator
    fee = {"kind": "subscription", "description": "November", "amount_micros": 19_900_000, "provider": "mem0"}
    key = {"Idempotency-Key": "k1"}
    made = operator.post("/costs/finance", 201, headers=key, **fee)
    assert operator.post("/costs/finance", 201, headers=key, **fee) == made
    assert [each["finance_event_id"] for each in operator.get("/costs/finance")["events"]] == [made["finance_event_id"]]
    summary = operator.get("/costs/summary", by="provider")
    assert [(each["name"], each["amount_micros"]) for each in summary["fees"]] == [("mem0", 19_900_000)]
    assert (summary["by"], summary["metered"], operator.get("/costs/events")["events"]) == ("provider", [], [])
    price = operator.put("/costs/prices", provider="mem0", input_micros=150_000)
    assert price["model"] == "*"
    assert operator.get("/costs/prices")["prices"] == [price]
    operator.delete("/costs/prices", provider="mem0")
    operator.delete("/costs/prices", 404, provider="mem0")
    actions = [each["action"] for each in operator.get("/activity")["activity"]]
    assert actions == ["memory.price_removed", "memory.price_set", "memory.finance_added"]


def test_tools_are_told_and_called(acme: Company) -> None:
    agent = acme.somebody("agent", "builder")
    told = {each["name"]: each for each in agent.get("/tools")["tools"]}
    assert told["memory.forget"]["destroys"] is True
    (noted,) = agent.post("/tools/memory.note", text="The build runs on two cores.")["record_ids"]
    found = agent.post("/tools/memory.search", query="cores")
    assert [each["record_id"] for each in found["snippets"]] == [noted]
    assert agent.post("/tools/memory.forget", 403, record_ids=[noted])["code"] == "access_denied"
    assert fields_of(agent.post("/tools/memory.search", 422, query="x", topk=3)) == ["topk"]
    assert agent.post("/tools/memory.erase", 404)["code"] == "not_found"
    assert agent.post("/tools/memory.jobs")["jobs"] == []
    acme.nobody.get("/tools", 401)


WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("GET", "/operations?type=gossip", {}, "type"),
    ("GET", "/operations?since=yesterday", {}, "since"),
    ("GET", "/operations?limit=201", {}, "limit"),
    ("GET", "/operations?binding_key=No%20Key", {}, "binding_key"),
    ("GET", "/operations?agent=builder", {}, "agent"),
    ("GET", "/metrics?until=never", {}, "until"),
    ("GET", "/extraction-jobs?state=lost", {}, "state"),
    ("GET", "/extraction-jobs?kind=gossip", {}, "kind[0]"),
    ("GET", "/extraction-jobs?run_id=%20", {}, "run_id"),
    ("GET", "/deliveries?status=lost", {}, "status"),
    ("POST", "/hooks/after_lunch", {"hook_id": "h", **RUN}, "kind"),
    ("POST", "/hooks/pre_run_hydrate", {"hook_id": "h", **RUN}, "kind"),
    ("POST", "/hooks/post_run_capture", RUN, "hook_id"),
    ("POST", "/hooks/post_run_capture", {"hook_id": "h", **RUN, "triggered_at": "noon"}, "triggered_at"),
    ("POST", "/hydrate", {"query": "x" * 4_001}, "query"),
    ("POST", "/hydrate", {"query": "x", "budget_ms": 49}, "budget_ms"),
    ("POST", "/hydrate", {"query": "x", "max_chars": 1}, "max_chars"),
    ("GET", "/costs/summary?by=mood", {}, "by"),
    ("POST", "/costs/finance", {"kind": "gift", "description": "x", "amount_micros": 1}, "kind"),
    ("POST", "/costs/finance", {"kind": "other", "description": "x", "amount_micros": 1.5}, "amount_micros"),
    (
        "POST",
        "/costs/finance",
        {"kind": "other", "description": "x", "amount_micros": 1, "currency": "usd"},
        "currency",
    ),
    ("PUT", "/costs/prices", {"provider": "x", "input_micros": -1}, "input_micros"),
    ("PUT", "/costs/prices", {"model": "x"}, "provider"),
    ("DELETE", "/costs/prices", {}, "provider"),
    ("POST", "/credentials", {"kind": "device", "id": "x"}, "kind"),
    ("POST", "/credentials", {"kind": "agent", "id": "x", "role": "admin"}, "role"),
    ("POST", "/credentials", {"kind": "user", "id": "x", "subjects": ["ana"]}, "subjects"),
]


@pytest.mark.parametrize(("method", "path", "given", "field"), WRONG, ids=lambda value: str(value)[:50])
def test_what_cannot_be_used_is_refused_by_its_field(
    acme: Company, method: str, path: str, given: dict[str, Any], field: str
) -> None:
    answer = acme.operator(method, path, **({"json": given} if method in ("POST", "PUT") else {}))
    assert answer.status_code == 422, answer.text
    assert fields_of(answer.json())[0] == field


def test_only_operators_look_after_it(acme: Company) -> None:
    agent, auditor = acme.somebody("agent", "builder"), acme.somebody("operator", "aude", role="auditor")
    for path in ("/operations", "/metrics", "/deliveries", "/costs/summary", "/costs/events", "/costs/prices"):
        agent.get(path, 403)
        auditor.get(path)
    agent.get("/credentials", 403)
    auditor.get("/credentials")
    auditor.post("/costs/finance", 403, kind="other", description="x", amount_micros=1)
    auditor.post("/query", 403, query="what memory says")
    auditor.post("/credentials", 403, kind="agent", id="x")


def test_a_credential_is_made_rotated_listed_and_revoked(acme: Company) -> None:
    operator = acme.operator
    made = operator("POST", "/credentials", json={"kind": "agent", "id": "builder", "subjects": ["ana"]})
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    first = made.json()
    assert first["key"].startswith("ak_")
    assert first["credential"]["role"] == "member"
    assert operator.post("/credentials", 409, kind="agent", id="builder")["code"] == "user_exists"
    second = operator.post("/credentials/agent/builder/rotate", role="curator")
    assert second["key"] != first["key"]
    (listed,) = operator.get("/credentials", kind="agent")["credentials"]
    assert (listed["id"], listed["role"], listed["subjects"]) == ("builder", "curator", ["ana"])
    assert first["key"] not in str(operator.get("/credentials", kind="agent"))
    assert operator.delete("/credentials/agent/builder", 200)["revoked_at"] is not None
    operator.delete("/credentials/agent/nobody", 404)
    operator.post("/credentials/agent/nobody/rotate", 404)
