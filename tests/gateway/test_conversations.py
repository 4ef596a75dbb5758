"""The calls of every agent turn: add, flush, search, with the schemas of seed 000."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest
from served import MOMENT, Gateway, Visitor

RESULT = {"id", "session_id", "text", "score", "source_scope", "resource_uri", "raw"}


def test_a_turn_is_found_at_once(visitor: Visitor) -> None:
    messages = [
        {"sender_id": visitor.user_id, "role": "user", "timestamp": MOMENT, "content": "My cat is called Pixel."},
        {"sender_id": "beaver", "role": "assistant", "timestamp": MOMENT + 1000, "content": "What a lovely name."},
    ]
    added = visitor.http.post("/memories/add", json={**visitor.signed, "session_id": "chat:one", "messages": messages})
    assert added.status_code == 200, added.text
    assert added.json()["message_count"] == added.json()["stored"] == 2
    assert visitor.flush().json() == {"session_id": "chat:one", "status": "extracted", "message_count": 2}
    assert visitor.flush().json()["status"] == "no_extraction"
    found = visitor.search("What is the cat called?", "current_chat", "resources", top_k=8).json()["results"]
    assert found[0].keys() == RESULT
    best = next(each for each in found if each["text"] == "My cat is called Pixel.")
    assert (best["session_id"], best["source_scope"], best["resource_uri"]) == ("chat:one", "current_chat", None)
    assert best["raw"]["sender_id"] == visitor.user_id
    assert best["raw"]["timestamp"] == MOMENT


def test_the_key_may_stand_in_the_header_alone(visitor: Visitor) -> None:
    body = {"session_id": "chat:one", "messages": [
        {"sender_id": "x", "role": "user", "timestamp": MOMENT, "content": "Only a header."}
    ]}  # fmt: skip
    assert visitor.http.post("/memories/add", json=body, headers=visitor.headers).status_code == 200
    asked = {"query": "header", "scope": ["all_user_memory"]}
    answer = visitor.http.post("/memories/search", json=asked, headers=visitor.headers)
    assert [each["text"] for each in answer.json()["results"]] == ["Only a header."]


def test_two_keys_that_differ_are_refused(gateway: Gateway, visitor: Visitor) -> None:
    answer = visitor.http.post(
        "/memories/search",
        json={**visitor.signed, "query": "x", "scope": ["all_user_memory"]},
        headers=gateway.user("another user").headers,
    )
    assert answer.status_code == 422
    assert "user_key" in answer.json()["detail"]


def test_scopes_say_where_to_look(visitor: Visitor) -> None:
    visitor.add("The lantern hangs in the first chat.")
    visitor.add("The lantern hangs in the second chat.", session="chat:two")
    visitor.upload(b"The lantern hangs in a document.")
    assert visitor.texts("lantern", "current_chat") == ["The lantern hangs in the first chat."]
    assert visitor.texts("lantern", "resources") == ["The lantern hangs in a document."]
    both = visitor.search("lantern", "current_chat", "resources").json()["results"]
    assert {(each["source_scope"], each["text"]) for each in both} == {
        ("current_chat", "The lantern hangs in the first chat."),
        ("resources", "The lantern hangs in a document."),
    }
    everything = visitor.search("lantern", "current_chat", "all_user_memory").json()["results"]
    assert {each["source_scope"] for each in everything} == {"current_chat", "all_user_memory"}
    assert len(everything) == 3


@pytest.mark.parametrize("method", ["hybrid", "keyword", "vector"])
def test_every_method_finds(visitor: Visitor, method: str) -> None:
    visitor.add("The violin stands in the hall.", "Dinner is at eight.")
    assert visitor.texts("violin", method=method)[0] == "The violin stands in the hall."


def test_radius_keeps_what_is_far_away(visitor: Visitor) -> None:
    visitor.add("The violin stands in the hall.", "Dinner is at eight.")
    assert len(visitor.texts("the violin stands in the hall", radius=0.95, method="vector")) == 1


def test_filters_narrow_by_session_sender_and_time(visitor: Visitor) -> None:
    visitor.add("An apple a day.", "An apple a night.", at=MOMENT)
    visitor.add("An apple a year.", session="chat:two", at=MOMENT + 10_000)
    assert visitor.texts("apple", filters={"session_id": "chat:two"}) == ["An apple a year."]
    assert visitor.texts("apple", filters={"timestamp": {"gte": MOMENT + 1, "lt": MOMENT + 10_000}}) == [
        "An apple a night."
    ]
    assert visitor.texts("apple", filters={"sender_id": {"ne": visitor.user_id}}) == []
    either = {"OR": [{"session_id": "chat:two"}, {"timestamp": {"eq": MOMENT}}]}
    assert set(visitor.texts("apple", filters=either)) == {"An apple a day.", "An apple a year."}


def test_options_of_the_library_narrow_a_search_and_a_list(visitor: Visitor) -> None:
    visitor.add("The kettle is blue.")
    everywhere = "all_user_memory"
    assert visitor.texts("kettle", everywhere, sender=visitor.user_id, role="user", min_score=0)
    assert not visitor.texts("kettle", everywhere, sender="nobody")
    assert not visitor.texts("kettle", everywhere, role="assistant")
    assert not visitor.texts("kettle", everywhere, planes=["resource"])
    assert not visitor.texts("kettle", everywhere, said_from="2100-01-01T00:00:00Z")
    assert not visitor.texts("kettle", everywhere, as_of="2000-01-01T00:00:00Z")
    assert visitor.search("kettle", everywhere, as_of="soon").json()["errors"][0]["field"] == "as_of"
    listed = {
        sender: visitor.http.get("/memories", params={"sender": sender}, headers=visitor.headers).json()["memories"]
        for sender in (visitor.user_id, "nobody")
    }
    assert [len(found) for found in listed.values()] == [1, 0]


def test_apps_and_projects_do_not_see_each_other(visitor: Visitor) -> None:
    visitor.add("A secret of the default app.")
    asked = {**visitor.signed, "app_id": "other", "query": "secret", "scope": ["all_user_memory"]}
    assert visitor.http.post("/memories/search", json=asked).json() == {"results": []}


def test_a_retried_add_with_its_key_has_one_effect(visitor: Visitor) -> None:
    headers = {"Idempotency-Key": "turn-1"}
    first = visitor.add("Only once.", headers=headers)
    again = visitor.add("Only once.", headers=headers)
    assert first.json()["message_ids"] == again.json()["message_ids"]
    assert again.json()["replayed"] is True
    other = visitor.add("Something else.", headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
    assert visitor.texts("once else") == ["Only once."]


BAD = {
    "no prefix": ({"session_id": "one"}, "session_id"),
    "an empty conversation": ({"session_id": "chat:"}, "session_id"),
    "no messages": ({"messages": []}, "messages"),
    "too many": ({"messages": [{}] * 501}, "messages"),
    "an unknown field": ({"sesion_id": "chat:one"}, "body: has an unknown field; did you mean session_id?"),
    "an unknown field of a message": (
        {"messages.0": {"text": "x"}},
        "messages[0].text: is not a field here; did you mean content?",
    ),
    "seconds": ({"messages.0": {"timestamp": 1_780_000_000}}, "milliseconds"),
    "microseconds": ({"messages.0": {"timestamp": 1_780_000_000_000_000}}, "messages[0].timestamp"),
    "no time": ({"messages.0": {"timestamp": 0}}, "messages[0].timestamp"),
    "a time in quotes": ({"messages.0": {"timestamp": "1780000000000"}}, "messages[0].timestamp"),
    "no text": ({"messages.0": {"content": " "}}, "messages[0]"),
    "an unknown role": ({"messages.0": {"role": "king"}}, "messages[0].role"),
    "a list for a text": (
        {"messages.0": {"content": ["x"]}},
        "messages[0].content: is a list of parts; send their text",
    ),
    "an empty app": ({"app_id": ""}, "app_id"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_messages_are_refused_by_the_name_of_the_field(visitor: Visitor, case: str) -> None:
    changes, named = BAD[case]
    message = {"sender_id": "x", "role": "user", "timestamp": MOMENT, "content": "Should not be there."}
    body = {**visitor.signed, "session_id": "chat:one", "messages": [message]}
    for place, value in changes.items():
        if place == "messages.0":
            message.update(value)
        else:
            body[place] = value
    answer = visitor.http.post("/memories/add", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]
    assert visitor.texts("should") == []


BAD_SEARCHES = {
    "an empty scope": ({"scope": []}, "scope"),
    "an unknown scope": ({"scope": ["everything"]}, "scope"),
    "no conversation": ({"scope": ["current_chat"], "conversation_id": None}, "conversation_id"),
    "a session for a conversation": ({"conversation_id": "chat:one"}, "conversation_id"),
    "top_k 0": ({"top_k": 0}, "top_k"),
    "top_k 101": ({"top_k": 101}, "top_k"),
    "agentic": ({"method": "agentic"}, "method"),
    "a radius beyond 1": ({"radius": 1.5}, "radius"),
    "no query": ({"query": ""}, "query"),
    "a blank query": ({"query": "  "}, "query"),
    "a filter of no field": ({"filters": {"colour": "red"}}, "filters['…']"),
    "a reserved filter": ({"filters": {"app_id": "other"}}, "app_id"),
    "a filter in seconds": ({"filters": {"timestamp": {"gt": 1_780_000_000}}}, "timestamp"),
}


@pytest.mark.parametrize("case", BAD_SEARCHES)
def test_bad_searches_are_refused_by_the_name_of_the_field(visitor: Visitor, case: str) -> None:
    changes, named = BAD_SEARCHES[case]
    body = {**visitor.signed, "query": "x", "scope": ["all_user_memory"], **changes}
    answer = visitor.http.post("/memories/search", json=body)
    assert answer.status_code == 422, answer.text
    assert named in answer.json()["detail"]


def test_a_refused_body_never_comes_back_in_the_answer(gateway: Gateway, visitor: Visitor) -> None:
    body = {**visitor.signed, "user_key": ["uk_canary_in_a_list"], "session_id": "canary-session", "messages": "canary"}
    answer = gateway.http.post("/memories/add", json=body)
    assert answer.status_code == 422
    assert "canary" not in answer.text


def test_what_is_noted_of_a_message_is_kept_and_told_with_it(visitor: Visitor) -> None:
    noted = {"team": "harbour", "crane": 2, "load": 1.0, "idle": True, "since": None}
    noted |= {"least": -(2**63), "most": 2**63 - 1, "large": sys.float_info.max}
    message = {
        "sender_id": visitor.user_id,
        "role": "user",
        "timestamp": MOMENT,
        "content": "The crane is called Heron.",
        "metadata": noted,
    }
    payload = {**visitor.signed, "session_id": "chat:one", "messages": [message]}
    added = visitor.http.post("/memories/add", json=payload)
    assert added.status_code == 200, added.text
    (record_id,) = added.json()["message_ids"]
    told = visitor.http.get(f"/memories/{record_id}", headers=visitor.headers).json()
    assert repr(sorted(told["metadata"].items())) == repr(sorted(noted.items()))
    raw = visitor.search("What is the crane called?").json()["results"][0]["raw"]
    assert (raw["metadata"], raw["app_id"], raw["project_id"]) == (noted, "default", "default")
    for wrong in (["harbour"], 2**63, -(2**63) - 1):
        payload["messages"][0]["metadata"] = {"team": wrong}
        refused = visitor.http.post("/memories/add", json=payload)
        assert refused.status_code == 422
        assert "metadata" in refused.text


SHORT = {
    "a text": "I moved to Lisbon",
    "a message": {"content": "I moved to Lisbon"},
    "texts": ["I moved to Lisbon"],
    "messages of models": [{"role": "user", "content": "I moved to Lisbon"}],
}


@pytest.mark.parametrize("case", SHORT)
def test_a_message_needs_only_its_text_and_a_search_only_its_query(visitor: Visitor, case: str) -> None:
    before = datetime.now(UTC)
    added = visitor.http.post("/memories/add", json={"messages": SHORT[case]}, headers=visitor.headers)
    assert (added.status_code, added.json()["session_id"]) == (200, "chat:default"), added.text
    for route in ("search", "recall"):
        found = visitor.http.post(f"/memories/{route}", json={"query": "Lisbon"}, headers=visitor.headers).json()
        (hit,) = found["results"]
        assert (hit["text"], hit["session_id"]) == ("I moved to Lisbon", "chat:default")
        assert (hit["raw"]["sender_id"], hit["raw"]["role"]) == (visitor.user_id, "user")
        said = datetime.fromtimestamp(hit["raw"]["timestamp"] / 1_000, UTC)
        assert before - timedelta(seconds=1) < said < datetime.now(UTC) + timedelta(seconds=1)
    flushed = visitor.http.post("/memories/flush", json={}, headers=visitor.headers).json()
    assert flushed == {"session_id": "chat:default", "status": "extracted", "message_count": 1}


def test_a_conversation_narrows_a_search_to_it_and_to_documents(visitor: Visitor) -> None:
    visitor.add("The lantern hangs in the first chat.")
    visitor.add("The lantern hangs in the second chat.", session="chat:two")
    asked = {"query": "lantern", "conversation_id": "two"}
    found = visitor.http.post("/memories/search", json=asked, headers=visitor.headers).json()["results"]
    assert [each["text"] for each in found] == ["The lantern hangs in the second chat."]


def test_fields_without_effect_are_named(visitor: Visitor) -> None:
    flags = {"enable_llm_rerank": True, "include_profile": False}
    for route in ("search", "recall"):
        told = visitor.http.post(f"/memories/{route}", json={"query": "x", **flags}, headers=visitor.headers).json()
        assert told["ignored"] == ["enable_llm_rerank", "include_profile"]
        told = visitor.http.post(f"/memories/{route}", json={"query": "x"}, headers=visitor.headers).json()
        assert "ignored" not in told
    asked = {"messages": "A pear.", "defer_extraction": False}
    assert visitor.http.post("/memories/add", json=asked, headers=visitor.headers).json()["ignored"] == [
        "defer_extraction"
    ]


def test_the_operator_learns_whose_key_a_route_needs(gateway: Gateway) -> None:
    for route, body in (("add", {"messages": "I moved to Lisbon"}), ("search", {"query": "Lisbon"})):
        told = gateway.http.post(f"/memories/{route}", json=body, headers=gateway.operator)
        assert (told.status_code, told.json()["code"]) == (401, "unauthenticated")
        assert "needs a user's key" in told.json()["detail"]
        assert "POST /users" in told.json()["detail"]
