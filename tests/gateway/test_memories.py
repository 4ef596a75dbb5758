"""`/memories`: list, read, override, delete and forget, with ETags and idempotency."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import pytest
from served import MOMENT, Gateway, Visitor, send_target


def only_id(visitor: Visitor, text: str) -> str:
    added = visitor.add(text)
    assert added.status_code == 200, added.text
    return str(added.json()["message_ids"][0])


def test_memories_are_listed_newest_first_page_by_page(visitor: Visitor) -> None:
    visitor.add(*(f"Number {number}." for number in range(7)))
    found, cursor = [], None
    while True:
        query = {"limit": 3, **({"cursor": cursor} if cursor else {})}
        page = visitor.http.get("/memories", params=query, headers=visitor.headers).json()
        found += [each["text"] for each in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == [f"Number {number}." for number in reversed(range(7))]


def test_a_cursor_of_somebody_else_is_refused(gateway: Gateway, visitor: Visitor) -> None:
    visitor.add(*(f"Number {number}." for number in range(4)))
    page = visitor.http.get("/memories", params={"limit": 2}, headers=visitor.headers).json()
    other = gateway.user("the one with a borrowed cursor")
    answer = other.http.get("/memories", params={"limit": 2, "cursor": page["next_cursor"]}, headers=other.headers)
    assert answer.status_code == 422
    assert "cursor" in answer.json()["detail"]


def test_a_listing_can_be_narrowed_to_a_session(visitor: Visitor) -> None:
    visitor.add("In the first.")
    visitor.add("In the second.", session="chat:two")
    visitor.upload(b"In a file.")
    for session in ("chat:one", "chat:two"):
        page = visitor.http.get("/memories", params={"session_id": session}, headers=visitor.headers).json()
        assert {each["session_id"] for each in page["memories"]} == {session}
    refused = visitor.http.get("/memories", params={"session_id": "one"}, headers=visitor.headers)
    assert refused.status_code == 422


def test_an_override_takes_the_place_of_a_message_and_keeps_history(visitor: Visitor) -> None:
    message = only_id(visitor, "The meeting is on Monday.")
    answer = visitor.http.patch(
        f"/memories/{message}", json={"text": "The meeting is on Tuesday.", "reason": "moved"}, headers=visitor.headers
    )
    assert answer.status_code == 200, answer.text
    memory = answer.json()
    assert memory["text"] == "The meeting is on Tuesday."
    assert memory["evidence"] == [message]
    assert visitor.texts("When is the meeting?") == ["The meeting is on Tuesday."]
    assert (
        visitor.http.get(f"/memories/{message}", headers=visitor.headers).json()["text"] == "The meeting is on Monday."
    )
    again = visitor.http.patch(f"/memories/{memory['id']}", json={"text": "On Friday."}, headers=visitor.headers)
    assert again.json()["revision"] == 2
    for either in (message, memory["id"]):
        history = visitor.http.get(f"/memories/{either}/history", headers=visitor.headers).json()["revisions"]
        assert [each["id"] for each in history] == [message, memory["id"], memory["id"]]
        assert [each["text"] for each in history] == [
            "The meeting is on Monday.",
            "The meeting is on Tuesday.",
            "On Friday.",
        ]


def test_deleting_an_override_deletes_the_message_that_it_replaced(visitor: Visitor) -> None:
    message = only_id(visitor, "The meeting is on Monday.")
    made = visitor.http.patch(f"/memories/{message}", json={"text": "It is on Tuesday."}, headers=visitor.headers)
    deleted = visitor.http.delete(f"/memories/{made.json()['id']}", headers=visitor.headers)
    assert deleted.status_code == 200, deleted.text
    assert (deleted.json()["messages"], deleted.json()["memories"]) == (1, 1)
    assert visitor.texts("When is the meeting?") == []
    assert visitor.http.get("/memories", headers=visitor.headers).json()["memories"] == []
    for gone in (message, made.json()["id"]):
        for path in (f"/memories/{gone}", f"/memories/{gone}/history"):
            assert visitor.http.get(path, headers=visitor.headers).status_code == 404
    again = visitor.http.patch(f"/memories/{message}", json={"text": "On Friday."}, headers=visitor.headers)
    assert again.status_code == 404


def test_if_match_protects_against_lost_updates(visitor: Visitor) -> None:
    message = only_id(visitor, "One.")
    memory = visitor.http.patch(f"/memories/{message}", json={"text": "Two."}, headers=visitor.headers)
    path, tag = f"/memories/{memory.json()['id']}", memory.headers["etag"]
    assert visitor.http.get(path, headers=visitor.headers).headers["etag"] == tag
    held = {**visitor.headers, "If-Match": tag}
    changed = visitor.http.patch(path, json={"text": "Three."}, headers=held)
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    for refused in (
        visitor.http.patch(path, json={"text": "Four."}, headers=held),
        visitor.http.delete(path, headers=held),
        visitor.http.patch(
            path, json={"text": "Four."}, headers={**visitor.headers, "If-Match": '"of something else"'}
        ),
    ):
        assert refused.status_code == 412, refused.text
        assert refused.json()["code"] == "revision_conflict"
    assert visitor.http.get(path, headers=visitor.headers).json()["text"] == "Three."
    current = {**visitor.headers, "If-Match": changed.headers["etag"]}
    assert visitor.http.delete(path, headers=current).status_code == 200
    assert visitor.http.get(path, headers=visitor.headers).status_code == 404


def test_if_match_takes_the_etag_of_a_message_too(visitor: Visitor) -> None:
    path = f"/memories/{only_id(visitor, 'One.')}"
    tag = visitor.http.get(path, headers=visitor.headers).headers["etag"]
    held = {**visitor.headers, "If-Match": tag}
    changed = visitor.http.patch(path, json={"text": "Two."}, headers=held)
    assert changed.status_code == 200, changed.text
    assert visitor.http.patch(path, json={"text": "Three."}, headers=held).status_code == 412
    said = visitor.http.get(path, headers=visitor.headers).json()
    assert said["superseded_at"] == changed.json()["recorded_at"]
    assert visitor.http.delete(path, headers=held).status_code == 200


def test_a_delete_for_one_revision_can_be_retried_under_its_key(visitor: Visitor) -> None:
    path = f"/memories/{only_id(visitor, 'One.')}"
    tag = visitor.http.get(path, headers=visitor.headers).headers["etag"]
    held = {**visitor.headers, "If-Match": tag, "Idempotency-Key": uuid.uuid4().hex}
    first, again = (visitor.http.delete(path, headers=held) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert first.json() == again.json()


def test_what_is_deleted_is_gone(visitor: Visitor) -> None:
    message = only_id(visitor, "The password is swordfish.")
    receipt = visitor.http.delete(f"/memories/{message}", headers=visitor.headers)
    assert receipt.status_code == 200
    assert receipt.json()["remaining"] == 0
    assert receipt.json()["messages"] == 1
    assert visitor.texts("password swordfish") == []
    assert visitor.http.get(f"/memories/{message}", headers=visitor.headers).status_code == 404
    assert visitor.http.delete(f"/memories/{message}", headers=visitor.headers).status_code == 404


def test_forget_shows_first_and_acts_with_the_token(visitor: Visitor) -> None:
    visitor.add("One of two.", "Two of two.")
    visitor.add("Another chat.", session="chat:two")
    body = {**visitor.signed, "session_id": "chat:one"}
    preview = visitor.http.post("/memories/forget", json=body).json()
    assert (preview["messages"], preview["receipt"]) == (2, None)
    assert len(visitor.texts("two chat")) == 3
    visitor.add("Three of three.", at=MOMENT + 100)
    outdated = visitor.http.post("/memories/forget", json={**body, "token": preview["token"]})
    assert (outdated.status_code, outdated.json()["code"]) == (409, "preview_outdated")
    token = visitor.http.post("/memories/forget", json=body).json()["token"]
    done = visitor.http.post("/memories/forget", json={**body, "token": token}).json()
    assert done["receipt"]["messages"] == 3
    assert visitor.texts("two three chat") == ["Another chat."]


def test_everything_of_a_user_can_be_forgotten(visitor: Visitor) -> None:
    visitor.add("A word.")
    visitor.upload(b"A file of words.")
    body = {**visitor.signed, "everything": True}
    token = visitor.http.post("/memories/forget", json=body).json()["token"]
    done = visitor.http.post("/memories/forget", json={**body, "token": token})
    assert done.status_code == 200, done.text
    assert done.json()["resources"] == 1
    assert visitor.texts("word file") == []
    assert visitor.http.get("/resources", headers=visitor.headers).json()["resources"] == []


@pytest.mark.parametrize(
    "what", [{}, {"ids": ["msg_x"], "everything": True}, {"session_id": "one"}, {"ids": []}, {"everything": False}]
)
def test_a_forget_without_exactly_one_target_forgets_nothing(visitor: Visitor, what: dict[str, object]) -> None:
    visitor.add("Stays.")
    answer = visitor.http.post("/memories/forget", json={**visitor.signed, **what})
    assert answer.status_code == 422
    assert visitor.texts("stays") == ["Stays."]


def test_every_write_can_be_retried_under_its_key(visitor: Visitor) -> None:
    message = only_id(visitor, "One.")
    key = {**visitor.headers, "Idempotency-Key": uuid.uuid4().hex}
    first = visitor.http.patch(f"/memories/{message}", json={"text": "Two."}, headers=key)
    again = visitor.http.patch(f"/memories/{message}", json={"text": "Two."}, headers=key)
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert first.json() == again.json()
    other = visitor.http.patch(f"/memories/{message}", json={"text": "Three."}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
    gone = {**visitor.headers, "Idempotency-Key": uuid.uuid4().hex}
    memory = first.json()["id"]
    deleted = visitor.http.delete(f"/memories/{memory}", headers=gone)
    once_more = visitor.http.delete(f"/memories/{memory}", headers=gone)
    assert (deleted.status_code, once_more.status_code) == (200, 200), once_more.text
    assert deleted.json()["operation_id"] == once_more.json()["operation_id"]


@pytest.mark.parametrize("record_id", ["mem_nowhere", "x", "%2e%2e", "a b", "'; DROP TABLE records; --"])
def test_an_id_of_nothing_is_not_found(visitor: Visitor, record_id: str) -> None:
    target = f"/memories/{quote(record_id, safe='%')}"
    for method in ("GET", "DELETE"):
        answer = send_target(visitor.http, method, target, headers=visitor.headers)
        assert answer.status_code in (404, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
