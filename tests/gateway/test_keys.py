"""Authentication: creating, rotating and revoking users, and the access that a key gives."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from served import TOKEN, Gateway, Visitor, serving

from postgres import ON_POSTGRES


def test_a_user_gets_a_key_once(open_gateway: Gateway) -> None:
    made = open_gateway.http.post("/users", json={"user_id": "ana"})
    assert made.status_code == 201
    assert made.json()["user_id"] == "ana"
    key = made.json()["user_key"]
    assert key.startswith("uk_")
    assert len(key) >= 40
    assert made.headers["cache-control"] == "no-store"
    again = open_gateway.http.post("/users", json={"user_id": "ana"}, headers={"Authorization": f"Bearer {key}"})
    assert (again.status_code, again.json()) == (200, {"user_id": "ana", "user_key": None})
    in_body = open_gateway.http.post("/users", json={"user_id": "ana", "user_key": key})
    assert (in_body.status_code, in_body.json()["user_key"]) == (200, None)


def test_without_its_key_an_existing_user_is_a_conflict(open_gateway: Gateway) -> None:
    open_gateway.user("ana")
    for headers in ({}, {"Authorization": "Bearer uk_wrong"}):
        answer = open_gateway.http.post("/users", json={"user_id": "ana"}, headers=headers)
        assert answer.status_code == 409
        assert answer.json()["code"] == "user_exists"


def test_with_a_token_configured_only_the_operator_creates_users(gateway: Gateway) -> None:
    for headers in ({}, {"Authorization": "Bearer uk_wrong"}, {"Authorization": "Bearer " + TOKEN[:-1]}):
        answer = gateway.http.post("/users", json={"user_id": "mallory"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert gateway.http.post("/users", json={"user_id": "mallory"}, headers=gateway.operator).status_code == 201


def test_the_operator_rotates_a_key_and_the_old_one_is_worth_nothing(gateway: Gateway, visitor: Visitor) -> None:
    assert visitor.add("The old key writes.").status_code == 200
    rotated = gateway.http.post("/users", json={"user_id": visitor.user_id}, headers=gateway.operator)
    assert rotated.status_code == 200
    fresh = Visitor(gateway.http, visitor.user_id, rotated.json()["user_key"])
    assert fresh.key != visitor.key
    assert visitor.search("key").status_code == 401
    assert fresh.texts("key") == ["The old key writes."]


def test_a_revoked_user_is_out_until_its_key_is_rotated(gateway: Gateway) -> None:
    visitor = gateway.user("a/b c%2F ü")
    assert visitor.add("Something.").status_code == 200
    revoked = gateway.http.delete("/users/a/b c%252F ü", headers=gateway.operator)
    assert revoked.status_code == 200, revoked.text
    assert revoked.json()["revoked_at"]
    assert visitor.search("something").status_code == 401
    rotated = gateway.http.post("/users", json={"user_id": visitor.user_id}, headers=gateway.operator)
    assert Visitor(gateway.http, visitor.user_id, rotated.json()["user_key"]).texts("something") == ["Something."]


@pytest.mark.parametrize("kind", ["file", ON_POSTGRES])
def test_what_another_process_does_to_a_key_counts_at_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "memory.db") if kind == "file" else request.getfixturevalue("postgres_url")

    def user(*words: str) -> str:
        command = [sys.executable, "-m", "holdfast", "user", *words, "--store", place]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    with serving(place, token=TOKEN) as gateway:
        first = gateway.user("ana")
        assert first.add("The old key writes.").status_code == 200
        second = Visitor(gateway.http, "ana", user("rotate", "ana"))
        assert first.search("key").status_code == 401
        assert second.texts("key") == ["The old key writes."]
        user("revoke", "ana", "--yes")
        assert second.search("key").status_code == 401
        third = Visitor(gateway.http, "ana", user("rotate", "ana"))
        assert [each.search("key").status_code for each in (first, second, third)] == [401, 401, 200]


def test_users_are_listed_for_the_operator_page_by_page(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db", token=TOKEN) as gateway:
        for number in range(7):
            gateway.user(f"user {number}")
        found, cursor = [], None
        while True:
            query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
            page = gateway.http.get("/users", params=query, headers=gateway.operator).json()
            found += [each["user_id"] for each in page["users"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == [f"user {number}" for number in range(7)]
        assert gateway.http.get("/users").status_code == 401
        assert gateway.http.get("/users", headers=gateway.user("user 0").headers).status_code == 401


def test_unknown_users_and_wrong_keys_get_the_same_answer(gateway: Gateway, visitor: Visitor) -> None:
    other = gateway.user("another one")
    attempts = [
        Visitor(gateway.http, visitor.user_id, "uk_wrong"),
        Visitor(gateway.http, "nobody at all", "uk_wrong"),
        Visitor(gateway.http, visitor.user_id, other.key),
        Visitor(gateway.http, "nobody at all", visitor.key),
    ]
    answers = [attempt.search("anything") for attempt in attempts]
    assert {answer.status_code for answer in answers} == {401}
    told = [{**answer.json(), "instance": ""} for answer in answers]
    assert all(each == told[0] for each in told)
    assert {frozenset(answer.headers) for answer in answers} == {frozenset(answers[0].headers)}


def test_no_key_is_in_the_store(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db", token=TOKEN) as gateway:
        key = gateway.user("ana").key
        assert gateway.user("ana").add("Hello there.").status_code == 200
    with sqlite3.connect(tmp_path / "memory.db") as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert key.encode() not in content
        assert TOKEN.encode() not in content


@pytest.mark.parametrize("user_id", ["", " ", "x" * 257, "a\x00b", 7, None])
def test_a_user_id_that_cannot_be_is_refused_by_name(gateway: Gateway, user_id: object) -> None:
    answer = gateway.http.post("/users", json={"user_id": user_id}, headers=gateway.operator)
    assert answer.status_code == 422
    assert "user_id" in answer.json()["detail"]


def test_whoever_may_not_sign_up_is_told_what_it_takes(gateway: Gateway) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = gateway.http.post("/users", json={"user_id": "somebody new"}, headers=headers)
        assert answer.status_code == 401
        assert "operator's token" in answer.json()["detail"]
