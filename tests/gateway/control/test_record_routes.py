"""Memory through the control plane, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from company import Company, fields_of

from holdfast.domain.contract import MAX_CURSOR_CHARS


def test_a_record_is_kept_found_read_corrected_and_forgotten(acme: Company) -> None:
    operator = acme.operator
    source = {"kind": "issue_comment", "issue_id": "i1", "comment_id": "c1"}
    kept = operator.post(
        "/records", records=[{"text": "Releases go out on Tuesdays."}], source=source, agent_id="builder"
    )
    (record_id,) = kept["record_ids"]
    found = operator.post("/query", query="When are releases?", agent_id="builder")
    (snippet,) = found["snippets"]
    assert (snippet["record_id"], snippet["text"]) == (record_id, "Releases go out on Tuesdays.")
    assert (snippet["source"]["kind"], snippet["source"]["comment_id"]) == ("issue_comment", "c1")
    assert (found["binding_key"], found["provider_key"], found["dropped"]) == ("default", "local", 0)
    shown = operator.get(f"/records/{record_id}", agent_id="builder")
    assert shown["record"]["scope"]["agent_id"] == "builder"
    right = {"text": "Releases go out on Thursdays.", "reason": "Ana said so", "agent_id": "builder"}
    corrected = operator.post(f"/records/{record_id}/correct", **right)
    listed = operator.get("/records", agent_id="builder")
    assert [each["text"] for each in listed["records"]] == ["Releases go out on Thursdays."]
    gone = operator.post("/forget", record_ids=[corrected["record_id"], "mem_none"], agent_id="builder")
    assert (gone["forgotten"], gone["missing"]) == ([corrected["record_id"]], ["mem_none"])
    assert operator.get("/records", agent_id="builder")["records"] == []
    assert operator.get(f"/records/{record_id}", 404, agent_id="builder")["code"] == "not_found"


def test_what_happened_is_captured_once_under_one_key(acme: Company) -> None:
    given: dict[str, Any] = {
        "source": {"kind": "run", "run_id": "r1"},
        "payload": {"text": "I live in Porto.", "object": {"status": "done"}},
        "agent_id": "builder",
        "run_id": "r1",
    }
    key = {"Idempotency-Key": "k1"}
    first = acme.operator.post("/capture", headers=key, **given)
    again = acme.operator.post("/capture", headers=key, **given)
    assert first["record_ids"] == again["record_ids"]
    for other in (
        {"payload": {"text": "I live in Lisbon."}},
        {"payload": {"text": "I live in Porto.", "object": {"status": "failed"}}},
        {"source": {"kind": "run", "run_id": "r2"}},
        {"metadata": {"mood": "good"}},
        {"mode": "capture_record"},
        {"run_id": "r2"},
    ):
        refused = acme.operator.post("/capture", 422, headers=key, **{**given, **other})
        assert refused["code"] == "idempotency_conflict", other
    assert len(acme.operator.get("/records", agent_id="builder")["records"]) == 1


def test_a_key_that_was_used_for_another_call_is_refused_alike_by_every_route(acme: Company) -> None:
    operator, key = acme.operator, {"Idempotency-Key": "k1"}
    captured = {"source": {"kind": "run", "run_id": "r1"}, "payload": {"text": "I live in Porto."}}
    (record_id,) = operator.post("/records", headers=key, records=[{"text": "Tea."}])["record_ids"]
    others: list[tuple[str, dict[str, Any]]] = [
        ("/records", {"records": [{"text": "Tea.", "metadata": {"mood": "good"}}]}),
        ("/records", {"records": [{"text": "Tea."}], "source": captured["source"]}),
        ("/capture", captured),
        ("/capture", {**captured, "mode": "capture_record"}),
        (f"/records/{record_id}/correct", {"text": "Coffee."}),
        ("/forget", {"record_ids": [record_id]}),
    ]
    for path, given in others:
        assert operator.post(path, 422, headers=key, **given)["code"] == "idempotency_conflict", path
    assert [each["text"] for each in operator.get("/records")["records"]] == ["Tea."]


def test_records_are_kept_once_under_one_key(acme: Company) -> None:
    key, given = {"Idempotency-Key": "k1"}, {"records": [{"text": "Releases go out on Tuesdays."}]}
    first = acme.operator.post("/records", headers=key, **given)
    assert acme.operator.post("/records", headers=key, **given)["record_ids"] == first["record_ids"]
    assert len(acme.operator.get("/records")["records"]) == 1
    other = acme.operator.post("/records", 422, headers=key, records=[{"text": "Releases go out on Thursdays."}])
    assert other["code"] == "idempotency_conflict"


def test_correcting_and_forgetting_happen_once_under_one_key(acme: Company) -> None:
    (record_id,) = acme.operator.post("/records", records=[{"text": "Releases go out on Tuesdays."}])["record_ids"]
    right = {"text": "Releases go out on Thursdays."}
    first = acme.operator.post(f"/records/{record_id}/correct", headers={"Idempotency-Key": "k1"}, **right)
    again = acme.operator.post(f"/records/{record_id}/correct", headers={"Idempotency-Key": "k1"}, **right)
    assert (first["record_id"], first["superseded_id"]) == (again["record_id"], again["superseded_id"])
    ids = [first["record_id"], "mem_none"]
    gone = acme.operator.post("/forget", headers={"Idempotency-Key": "k2"}, record_ids=ids)
    again = acme.operator.post("/forget", headers={"Idempotency-Key": "k2"}, record_ids=ids)
    assert gone["forgotten"] == again["forgotten"] == [first["record_id"]]
    assert gone["missing"] == again["missing"] == ["mem_none"]
    acme.operator.post("/forget", 422, headers={"Idempotency-Key": "k2"}, record_ids=["mem_other"])


def test_pages_go_on_where_they_ended(acme: Company) -> None:
    records = [{"text": f"Fact number {number}."} for number in range(5)]
    acme.operator.post("/records", records=records)
    first = acme.operator.get("/records", limit=3)
    rest = acme.operator.get("/records", limit=3, cursor=first["next_cursor"])
    assert rest["next_cursor"] is None
    assert len({each["record_id"] for each in first["records"] + rest["records"]}) == 5


def test_records_are_listed_by_their_metadata(acme: Company) -> None:
    for colour, number in (("red", 1), ("red", 2), ("blue", 1)):
        metadata = {"colour": colour, "number": number}
        acme.operator.post("/records", records=[{"text": f"{colour} {number}", "metadata": metadata}])

    def listed(wanted: Any) -> list[str]:
        found = acme.operator.get("/records", metadata_filter=json.dumps(wanted))["records"]
        return sorted(each["text"] for each in found)

    assert listed({"colour": "red"}) == ["red 1", "red 2"]
    assert listed({"colour": "red", "number": 2}) == ["red 2"]
    assert listed({"colour": "green"}) == []
    assert listed({}) == ["blue 1", "red 1", "red 2"]
    first = acme.operator.get("/records", metadata_filter='{"colour": "red"}', limit=1)
    rest = acme.operator.get("/records", metadata_filter='{"colour": "red"}', cursor=first["next_cursor"])
    assert {each["text"] for each in first["records"] + rest["records"]} == {"red 1", "red 2"}
    for wrong in ("red", "[]", '{"colour": ["red"]}', '{"colour": null}', '{"": 1}', "{"):
        assert fields_of(acme.operator.get("/records", 422, metadata_filter=wrong)) == ["metadata_filter"]


def test_an_explanation_is_of_the_query_with_its_intent_and_filter(acme: Company) -> None:
    acme.operator.post("/records", records=[{"text": "Ana prefers tea.", "metadata": {"colour": "red"}}])
    for intent in ("agent_preamble", "answer", "browse"):
        assert acme.operator.post("/explain", query="tea", intent=intent)["trace"]
    assert fields_of(acme.operator.post("/explain", 422, query="tea", intent="gossip")) == ["intent"]


def test_profile_and_explanation_are_told_where_the_provider_can(acme: Company) -> None:
    acme.operator.post("/records", records=[{"text": "Ana prefers tea."}], subject_id="ana")
    assert acme.operator.get("/profile", subject_id="ana")["binding_key"] == "default"
    assert acme.operator.post("/explain", query="tea", subject_id="ana")["trace"]
    assert acme.operator.get("/provider-jobs")["jobs"] == []
    acme.operator.post("/provider-jobs/job_none/retry", 404)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("/query", {"query": "x" * 4_001}, "query"),
    ("/query", {"query": ""}, "query"),
    ("/query", {"query": "\x00"}, "query"),
    ("/query", {"query": "x", "top_k": 26}, "top_k"),
    ("/query", {"query": "x", "intent": "gossip"}, "intent"),
    ("/query", {"query": "x", "agent": "builder"}, "agent"),
    ("/query", {"query": "x", "session_key": " "}, "session_key"),
    ("/query", {"query": "x", "metadata_filter": {"a": [1]}}, "metadata_filter"),
    ("/records", {"records": []}, "records"),
    ("/records", {"records": [{"text": "x" * 20_001}]}, "records[0].text"),
    ("/records", {"records": [{"text": "x", "summary": "x" * 2_001}]}, "records[0].summary"),
    ("/records", {"records": [{"text": "x"}] * 101}, "records"),
    ("/records", {"records": [{"text": "x"}], "source": {"kind": "gossip"}}, "source.kind"),
    ("/capture", {"source": {"kind": "run"}, "payload": {}}, "payload"),
    ("/capture", {"source": {"kind": "run"}, "payload": {"text": "x" * 20_001}}, "payload.text"),
    ("/capture", {"payload": {"text": "x"}}, "source"),
    ("/capture", {"source": {"kind": "run"}, "payload": {"text": "x"}, "mode": "whole"}, "mode"),
    ("/forget", {"record_ids": []}, "record_ids"),
    ("/forget", {"record_ids": ["x"] * 101}, "record_ids"),
    ("/forget", {"record_ids": ["\x00"]}, "record_ids[0]"),
    ("/records/mem_x/correct", {"text": "x" * 20_001}, "text"),
    ("/explain", {"query": "x", "top_k": 0}, "top_k"),
]


@pytest.mark.parametrize(("path", "given", "field"), WRONG, ids=lambda value: str(value)[:50])
def test_what_cannot_be_used_is_refused_by_its_field(
    acme: Company, path: str, given: dict[str, Any], field: str
) -> None:
    refused = acme.operator.post(path, 422, **given)
    assert fields_of(refused)[0].startswith(field)
    assert "xxxx" not in str(refused)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(acme: Company) -> None:
    answer = acme.operator("POST", "/query", json={"query": "x" * 30_000_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_disabled_binding_serves_nobody_and_nothing_steps_in(acme: Company) -> None:
    acme.operator.post("/bindings", 201, key="second", provider="local", enabled=False)
    acme.operator.put("/agents/builder/binding", binding_key="second")
    for asked in ({"agent_id": "builder"}, {"binding_key": "second"}):
        refused = acme.operator.post("/query", 409, query="x", **asked)
        assert (refused["code"], fields_of(refused)) == ("binding_disabled", ["binding_key"])
    acme.operator.post("/query", query="x", binding_key="default", agent_id="builder")


def test_an_agent_reaches_its_own_memory_and_what_is_shared(acme: Company) -> None:
    builder, tester = acme.somebody("agent", "builder"), acme.somebody("agent", "tester")
    curator = acme.somebody("agent", "librarian", role="curator")
    acme.operator.post("/records", records=[{"text": "The office is in Porto."}])
    (mine,) = builder.post("/records", records=[{"text": "The build runs on two cores."}])["record_ids"]
    texts = {each["text"] for each in builder.post("/query", query="office build")["snippets"]}
    assert texts == {"The office is in Porto.", "The build runs on two cores."}
    texts = {each["text"] for each in tester.post("/query", query="office build")["snippets"]}
    assert texts == {"The office is in Porto."}
    tester.get(f"/records/{mine}", 404)
    builder.post("/forget", 403, record_ids=[mine])
    (noted,) = curator.post("/records", records=[{"text": "Shelves are labelled."}])["record_ids"]
    assert curator.post("/forget", record_ids=[noted])["forgotten"] == [noted]


def test_an_agent_that_asks_for_another_agents_scope_is_refused_and_it_is_in_the_trail(acme: Company) -> None:
    tester = acme.somebody("agent", "tester")
    refused = tester.post("/query", 403, query="secrets", agent_id="builder")
    assert refused["code"] == "access_denied"
    acme.operator.post("/records", records=[{"text": "Whatever comes next commits what was before."}])
    found = acme.operator.get("/operations", outcome="refused", agent_id="builder")["operations"]
    assert [(each["actor"], each["type"], each["error_code"]) for each in found] == [
        ({"kind": "agent", "id": "tester"}, "query", "access_denied")
    ]


def test_companies_do_not_see_each_other(acme: Company) -> None:
    (mine,) = acme.operator.post("/records", records=[{"text": "Releases go out on Tuesdays."}])["record_ids"]
    other = acme.of("another-company", acme.operator)
    assert other.post("/query", query="releases")["snippets"] == []
    other.get(f"/records/{mine}", 404)
    assert other.post("/forget", record_ids=[mine])["missing"] == [mine]
    agent = acme.somebody("agent", "builder")
    acme.of("another-company", agent).post("/query", 403, query="releases")


def test_a_cursor_may_be_as_long_as_what_providers_may_give(acme: Company) -> None:
    for path in ("/records", "/provider-jobs"):
        refused = acme.operator.get(path, 422, cursor="A" * MAX_CURSOR_CHARS)
        assert refused["code"] == "invalid_cursor", "it was read, by whoever it should have come from"
    refused = acme.operator.post("/tools/memory.list", 422, cursor="A" * MAX_CURSOR_CHARS)
    assert refused["code"] == "invalid_cursor"
