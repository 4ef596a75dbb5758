"""Problem documents use the library's terms: no names of our classes, patterns or actions."""

from __future__ import annotations

import pytest
from company import Company, fields_of

NOT_FOR_DEVICES = "kind: input should be 'user', 'agent' or 'operator'"


def test_only_kinds_that_have_keys_are_offered(acme: Company) -> None:
    assert acme.operator.get("/credentials", 422, kind="device")["detail"] == NOT_FOR_DEVICES
    assert acme.operator.delete("/credentials/nope/nope", 422)["detail"] == NOT_FOR_DEVICES
    assert acme.operator.post("/credentials", 422, kind="system", id="x")["detail"] == NOT_FOR_DEVICES


def test_a_name_that_is_none_is_withheld(acme: Company) -> None:
    problem = acme.operator.patch("/bindings/default", 422, hooks={"foo": True})
    assert fields_of(problem) == ["hooks['…']"]


@pytest.mark.parametrize("key", ["Upper", "-begins", "with space"])
def test_a_key_of_another_form_is_told_what_its_form_is(acme: Company, key: str) -> None:
    problem = acme.operator.post("/bindings", 422, key=key, provider="local")
    words = "must be lowercase letters, digits, - and _, and begin with a letter or digit"
    assert problem["detail"] == f"key: {words}"


def test_what_nobody_may_do_is_said_in_words(acme: Company) -> None:
    agent = acme.somebody("agent", "w3")
    assert agent.get("/bindings", 403)["detail"] == "agents may not read bindings; ask an operator"
    again = acme.operator.post("/credentials", 409, kind="agent", id="w3")
    assert again["detail"].startswith("there is an agent '…' already;")


def test_a_change_of_nothing_names_no_field_that_is_in_the_address(acme: Company) -> None:
    problem = acme.operator.patch("/bindings/default", 422)
    assert problem["detail"] == "changes: there is nothing to change; give config, hooks or enabled"


def test_a_key_is_rotated_without_a_body(acme: Company) -> None:
    acme.somebody("agent", "w4")
    answer = acme.operator("POST", "/credentials/agent/w4/rotate", headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["key"].startswith("ak_")
