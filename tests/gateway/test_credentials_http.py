"""Keys of agents and operators over HTTP: the access they give, refusals elsewhere, and immediate revocation."""

from __future__ import annotations

from typing import Any

import pytest
from served import TOKEN, Gateway

import holdfast
from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.users import ROLES
from holdfast.errors import AccessDenied, Unauthenticated

CHARTER = {"kind": "operator", "role": "admin"}


def let_in(gateway: Gateway, name: str, space: str = "acme", **rights: Any) -> str:
    """A key, created as the command line does against a server."""
    with holdfast.open(gateway.url, key=TOKEN) as memory:
        made = memory.create_user(name, space=space, **rights)
        key = made.key or memory.rotate_user(name, space=space, **rights).key
    assert key is not None
    return key


def bearing(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def signed(name: str, key: str) -> dict[str, str]:
    return {"user_id": name, "user_key": key, "app_id": "default", "project_id": "default"}


@pytest.mark.parametrize(("kind", "role"), [(kind, role) for kind in ROLES for role in ROLES[kind]])
def test_the_greeting_says_whom_a_key_belongs_to(gateway: Gateway, kind: ActorKind, role: ActorRole) -> None:
    key = let_in(gateway, f"greeted-{role}", kind=kind, role=role)
    told = gateway.http.get("/verbs", headers=bearing(key)).json()["actor"]
    assert (told["kind"], told["id"], told["space"], told["role"]) == (kind, f"greeted-{role}", "acme", role)
    assert key not in str(told)


def test_an_agent_remembers_by_its_key_in_its_own_scope_alone(gateway: Gateway) -> None:
    key = let_in(gateway, "scribe", kind="agent", subjects=["ana"])
    with holdfast.open(gateway.url, key=key, space="acme") as memory:
        memory.add("The scribe writes in green ink.", agent="scribe")
        memory.add("Ana likes green ink.", agent="scribe", subject="ana")
        assert len(memory.search("green ink", agent="scribe")) == 1
        for elsewhere in ({"agent": "other"}, {"agent": "scribe", "subject": "ben"}, {"subject": "ana"}, {}):
            with pytest.raises(AccessDenied):
                memory.search("green ink", **elsewhere)  # type: ignore[arg-type]
        with pytest.raises(AccessDenied):
            memory.search("green ink", agent="scribe", space="other")


@pytest.mark.parametrize("kind", ["agent", "operator"])
def test_the_routes_of_users_say_what_another_key_is_for(gateway: Gateway, kind: str) -> None:
    key = let_in(gateway, "lost", kind=kind)
    asked = [
        gateway.http.post("/memories/search", json={**signed("lost", key), "query": "ink"}),
        gateway.http.post("/memories/flush", json={**signed("lost", key), "session_id": "chat:one"}),
        gateway.http.get("/memories", headers=bearing(key)),
        gateway.http.get("/resources", headers=bearing(key)),
    ]
    for answer in asked:
        assert answer.status_code == 403, answer.text
        assert f"the key of the {kind} '…'" in answer.json()["detail"]
        assert "/companies" in answer.json()["detail"]
        assert key not in answer.text
    # Another user's name with this key is refused as usual.
    assert gateway.http.post("/memories/search", json={**signed("ana", key), "query": "ink"}).status_code == 401


def test_an_operator_of_a_company_manages_its_users_and_no_others(gateway: Gateway) -> None:
    chief = bearing(let_in(gateway, "chief", "globex", **CHARTER))
    made = gateway.http.post("/users", json={"user_id": "ana"}, headers=chief)
    assert made.status_code == 201
    assert made.json()["user_key"].startswith("uk_")
    again = gateway.http.post("/users", json={"user_id": "ana"}, headers=chief)
    assert (again.status_code, again.json()["user_key"] not in (None, made.json()["user_key"])) == (200, True)
    listed = gateway.http.get("/users", headers=chief).json()["users"]
    assert [one["user_id"] for one in listed] == ["ana"]
    theirs = gateway.http.get("/users", headers=gateway.operator).json()["users"]
    assert "ana" not in [one["user_id"] for one in theirs]
    assert gateway.http.delete("/users/ana", headers=chief).status_code == 200
    assert gateway.http.delete("/users/nobody", headers=chief).status_code == 404


@pytest.mark.parametrize(
    ("rights", "status", "sees"),
    [({"kind": "agent"}, 401, 401), ({"kind": "operator", "role": "auditor"}, 403, 200)],
    ids=["agent", "auditor"],
)
def test_whoever_is_no_admin_lets_nobody_in(gateway: Gateway, rights: dict[str, str], status: int, sees: int) -> None:
    key = bearing(let_in(gateway, "curious", **rights))
    assert gateway.http.get("/users", headers=key).status_code == sees
    for answer in (
        gateway.http.post("/users", json={"user_id": "mallory"}, headers=key),
        gateway.http.delete("/users/ana", headers=key),
    ):
        assert answer.status_code == status, answer.text


def test_metrics_are_for_whoever_runs_the_service(gateway: Gateway) -> None:
    assert gateway.http.get("/metrics", headers=gateway.operator).status_code == 200
    for rights in (CHARTER, {"kind": "agent"}, {"kind": "user"}):
        key = let_in(gateway, "counting", **rights)
        assert gateway.http.get("/metrics", headers=bearing(key)).status_code == 401


@pytest.mark.parametrize("kind", ROLES)
def test_a_revoked_or_rotated_key_is_useless_with_the_next_call(gateway: Gateway, kind: ActorKind) -> None:
    def status(key: str) -> int:
        return gateway.http.get("/verbs", headers=bearing(key)).status_code

    first = let_in(gateway, "leaver", kind=kind)
    assert status(first) == 200
    with holdfast.open(gateway.url, key=TOKEN) as memory:
        second = memory.rotate_user("leaver", kind=kind, space="acme").key
        assert second is not None
        assert (status(first), status(second)) == (401, 200)
        memory.revoke_user("leaver", kind=kind, space="acme")
        assert status(second) == 401
        with pytest.raises(Unauthenticated), holdfast.open(gateway.url, key=second) as shut:
            shut.stats()


@pytest.mark.parametrize("prefix", ["ok_", "ak_", "uk_", ""])
def test_unknown_keys_are_told_the_same_whatever_they_pretend_to_be(gateway: Gateway, prefix: str) -> None:
    answers = [gateway.http.get("/verbs", headers=bearing(prefix + made)) for made in ("x" * 43, "y", "z" * 4_000)]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert gateway.http.get("/users", headers=bearing(prefix + "x")).status_code == 401


def test_where_anybody_signs_up_an_operators_key_still_proves_itself(open_gateway: Gateway) -> None:
    made = open_gateway.http.post("/users", json={"user_id": "ana"})
    assert made.status_code == 201
    wrong = open_gateway.http.post("/users", json={"user_id": "ben"}, headers=bearing("ok_wrong"))
    assert wrong.status_code == 401, wrong.text
