"""The daily calls of an EverOS client work unchanged: add, flush, search, get, under both prefixes."""

from __future__ import annotations

from datetime import datetime

import pytest
from everos_client import EverosClient
from served import MOMENT, Gateway

EPISODE = {
    "id", "user_id", "app_id", "project_id", "session_id", "timestamp", "sender_ids", "summary", "subject", "episode",
    "type",
}  # fmt: skip
SEARCHED = {"episodes", "profiles", "agent_cases", "agent_skills", "unprocessed_messages"}
GOT = {"episodes", "profiles", "agent_cases", "agent_skills", "total_count", "count"}
CLIMBING = "I love climbing in Yosemite every spring."
COFFEE = "My favorite coffee shop is Blue Bottle in SOMA."
CYCLING = "I bike to work most days."


def test_a_life_of_a_client(either: EverosClient) -> None:
    assert either.add(CLIMBING, COFFEE, CYCLING, session="demo-002", app_id="default", project_id="default") == {
        "message_count": 3,
        "status": "accumulated",
    }
    found = either.search("Where do I like to climb?", top_k=5)
    assert found.keys() == SEARCHED
    best = found["episodes"][0]
    assert best.keys() == {*EPISODE, "score", "atomic_facts"}
    assert best["episode"] == best["summary"] == best["subject"] == CLIMBING
    assert (best["user_id"], best["session_id"], best["type"]) == (either.user_id, "demo-002", "Conversation")
    assert (best["app_id"], best["project_id"], best["sender_ids"]) == ("default", "default", [either.user_id])
    assert datetime.fromisoformat(best["timestamp"]).timestamp() * 1000 == MOMENT
    assert best["timestamp"].endswith("Z")
    assert found["profiles"] == found["agent_cases"] == found["agent_skills"] == []

    assert either.flush("demo-002") == "extracted"
    assert either.flush("demo-002") == "no_extraction"
    assert either.flush("never used") == "no_extraction"

    got = either.get(filters={"sender_id": either.user_id})
    assert got.keys() == GOT
    assert [each["episode"] for each in got["episodes"]] == [CYCLING, COFFEE, CLIMBING]
    assert got["episodes"][0].keys() == EPISODE
    assert (got["total_count"], got["count"]) == (3, 3)


def test_both_prefixes_and_the_gateway_tell_of_one_memory(client: EverosClient) -> None:
    client.add("The kettle is blue.", session="one")
    older = EverosClient(client.visitor, "/api/v1/memory")
    assert older.found("kettle") == client.visitor.texts("kettle", "current_chat") == ["The kettle is blue."]
    client.visitor.add("The kettle is red.", session="chat:one", at=MOMENT + 1_000)
    for session in ("one", "chat:one"):
        assert len(client.found("kettle", filters={"session_id": session})) == 2
    assert client.flush("chat:one") == "extracted"
    assert client.visitor.flush("chat:one").json()["status"] == "no_extraction"


@pytest.mark.parametrize("session", ["demo-1", "chat:42", "ein Gespräch / 1", "a" * 128, "resource:x:y"])
def test_a_session_is_told_as_the_filter_names_it(client: EverosClient, session: str) -> None:
    client.add("A lamp in the hall.", session=session)
    found = client.search("lamp", filters={"session_id": session})
    assert [each["session_id"] for each in found["episodes"]] == [session]
    got = client.get(filters={"session_id": {"in": [session]}})
    assert [each["session_id"] for each in got["episodes"]] == [session]
    assert [each["session_id"] for each in found["unprocessed_messages"]] == [session]


def test_without_a_filter_a_session_is_told_by_its_bare_name_and_means_the_same(client: EverosClient) -> None:
    client.add("A lamp in the hall.", session="chat:42")
    (told,) = client.search("lamp")["episodes"]
    assert told["session_id"] == "42"
    assert client.found("lamp", filters={"session_id": told["session_id"]}) == ["A lamp in the hall."]


def test_what_was_learned_is_an_episode_and_its_own_fact(gateway: Gateway, client: EverosClient) -> None:
    remembered = client.visitor.http.post(
        "/verbs/remember",
        json={
            "scope": {"space": "default", "subject": client.user_id, "app": "default", "project": "default"},
            "text": "Prefers trains to planes.",
        },
        headers=client.visitor.headers,
    )
    assert remembered.status_code == 200, remembered.text
    (found,) = client.search("trains")["episodes"]
    assert found["atomic_facts"] == [{"id": found["id"], "content": found["episode"], "score": found["score"]}]
    assert (found["session_id"], found["sender_ids"]) == ("", [])
    assert client.listed() == ["Prefers trains to planes."]


# --- messages that no flush has sealed ---


def test_unprocessed_messages_are_what_the_next_flush_will_seal(either: EverosClient) -> None:
    either.add("Sealed already.")
    either.flush()
    calls = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"at":"Porto"}'}}]
    messages = [
        either.said("What is the weather?", sender_name="Ana"),
        {
            "sender_id": "helper",
            "role": "assistant",
            "timestamp": MOMENT + 1,
            "content": "",
            "tool_calls": calls,
        },
        {"sender_id": "w", "role": "tool", "timestamp": MOMENT + 2, "content": "Sunny.", "tool_call_id": "c1"},
    ]
    assert either.done("add", {"session_id": "demo-1", "messages": messages})["message_count"] == 3
    found = either.search("weather", filters={"session_id": "demo-1"})["unprocessed_messages"]
    assert [each["content"] for each in found] == ["What is the weather?", "", "Sunny."]
    assert [each["sender_name"] for each in found] == ["Ana", None, None]
    assert [each["role"] for each in found] == ["user", "assistant", "tool"]
    assert [each["tool_call_id"] for each in found] == [None, None, "c1"]
    assert [each["tool_calls"] for each in found] == [None, calls, None]
    assert {each["sender_id"] for each in found} == {either.user_id, "helper", "w"}
    assert either.found("Porto", method="keyword") == ['weather({"at":"Porto"})']
    either.flush()
    assert either.search("weather", filters={"session_id": "demo-1"})["unprocessed_messages"] == []


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {},
        {"session_id": {"eq": "demo-1"}},
        {"AND": [{"session_id": "demo-1"}]},
        {"session_id": {"in": ["demo-1"]}},
    ],
)
def test_unprocessed_messages_come_for_a_plain_session_id_alone(client: EverosClient, filters: object) -> None:
    client.add("Not sealed.")
    assert client.search("sealed", filters=filters)["unprocessed_messages"] == []


@pytest.mark.parametrize("session", ["s" * 300, "a\nb", "s" * 129])
def test_a_session_that_cannot_be_holds_nothing(client: EverosClient, session: str) -> None:
    client.add("Somewhere else.")
    found = client.search("somewhere", filters={"session_id": session})
    assert (found["episodes"], found["unprocessed_messages"]) == ([], [])


# --- search options ---


@pytest.mark.parametrize("method", ["hybrid", "keyword", "vector"])
def test_every_method_finds(client: EverosClient, method: str) -> None:
    client.add("The violin stands in the hall.", "Dinner is at eight.")
    assert client.found("violin", method=method)[0] == "The violin stands in the hall."


def test_minus_one_is_as_many_as_allowed(client: EverosClient) -> None:
    client.add(*(f"Pebble number {number}." for number in range(120)))
    assert len(client.found("pebble", top_k=-1)) == len(client.found("pebble")) == 100
    assert len(client.found("pebble", top_k=7)) == 7


def test_radius_and_min_score_cut_what_is_weak(client: EverosClient) -> None:
    violin = "The violin stands in the hall."
    client.add(violin, "Dinner is at eight.")
    assert client.found(violin, method="vector", radius=0.95) == [violin]
    scores = [each["score"] for each in client.search("violin dinner")["episodes"]]
    assert len(scores) == 2
    assert len(client.found("violin dinner", min_score=max(scores))) < 2
    assert len(client.found("violin dinner", min_score=0, radius=0)) == 2


def test_fields_that_change_nothing_are_taken(client: EverosClient) -> None:
    client.add("A pear.", defer_extraction=True, async_mode=False, mode="chat")
    more = {"include_profile": True, "enable_llm_rerank": True, "with_tags": ["x"], "top_k": 3}
    assert client.found("pear", **more) == ["A pear."]
    assert client.search("pear", **more)["ignored"] == ["enable_llm_rerank", "include_profile"]
    assert "ignored" not in client.search("pear")
    assert client.get(with_readable_episode=True)["total_count"] == 1


def test_filters_narrow_by_session_sender_and_time(client: EverosClient) -> None:
    client.add("An apple a day.", "An apple a night.", at=MOMENT)
    client.add("An apple a year.", session="two", at=MOMENT + 10_000)
    moment = datetime.fromtimestamp(MOMENT / 1000).astimezone().isoformat()
    cases: list[tuple[dict[str, object], set[str]]] = [
        ({"session_id": "two"}, {"An apple a year."}),
        ({"session_id": {"ne": "two"}}, {"An apple a day.", "An apple a night."}),
        (
            {"sender_id": {"in": [client.user_id]}, "timestamp": {"gt": MOMENT}},
            {"An apple a night.", "An apple a year."},
        ),
        ({"timestamp": {"lte": MOMENT // 1000}}, {"An apple a day."}),
        ({"timestamp": {"eq": moment}}, {"An apple a day."}),
        ({"OR": [{"session_id": "two"}, {"timestamp": MOMENT}]}, {"An apple a day.", "An apple a year."}),
        ({"parent_type": "memcell"}, set()),
        ({"parent_id": {"ne": "x"}, "session_id": "two"}, {"An apple a year."}),
    ]
    for filters, expected in cases:
        assert set(client.found("apple", filters=filters)) == expected, filters
        assert set(client.listed(filters=filters)) == expected, filters
        assert client.get(filters=filters, page_size=1)["total_count"] == len(expected), filters


def test_an_agents_memory_is_empty_lists(client: EverosClient) -> None:
    client.add("Mine alone.")
    found = client.done("search", {"agent_id": "any", "query": "mine", "filters": {"session_id": "demo-1"}})
    assert found.pop("unprocessed_messages")[0]["content"] == "Mine alone."
    assert set(map(str, found.values())) == {"[]"}
    for kind in ("agent_case", "agent_skill"):
        got = client.done("get", {"agent_id": "any", "memory_type": kind})
        assert (got["total_count"], got["count"], got["episodes"]) == (0, 0, [])
    assert client.get(memory_type="profile")["profiles"] == []


# --- pages ---


def test_pages_hold_everything_once_in_the_order_asked_for(client: EverosClient) -> None:
    # The order of storage is the reverse of the order of timestamps.
    for number in range(7):
        client.add(f"Step {number}.", at=MOMENT - 1_000 * number, session=f"s{number % 2}")
    newest_first = [f"Step {number}." for number in range(7)]

    def all_of(**more: object) -> list[str]:
        pages = [client.get(page=page, page_size=3, **more) for page in range(1, 5)]
        assert [page["count"] for page in pages] == [3, 3, 1, 0]
        assert {page["total_count"] for page in pages} == {7}
        return [each["episode"] for page in pages for each in page["episodes"]]

    assert all_of() == newest_first
    assert all_of(sort_order="asc") == newest_first[::-1]
    assert all_of(sort_by="updated_at") == newest_first[::-1]
    assert all_of(sort_by="updated_at", sort_order="asc") == newest_first
    assert client.listed(page=10**30) == []
    assert len(client.listed(filters={"session_id": "s0"})) == 4


# --- retries ---


def test_a_retried_add_with_its_key_has_one_effect(either: EverosClient) -> None:
    body = {"session_id": "demo-1", "messages": [either.said("Only once.")]}
    first = either.done("add", body, **{"Idempotency-Key": "turn-1"})
    assert either.done("add", body, **{"Idempotency-Key": "turn-1"}) == first
    other = {"session_id": "demo-1", "messages": [either.said("Something else.")]}
    refused = either.post("add", other, **{"Idempotency-Key": "turn-1"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "INVALID_INPUT")
    assert either.listed() == ["Only once."]


def test_a_retried_flush_with_its_key_tells_what_the_first_did(client: EverosClient) -> None:
    client.add("To be sealed.")
    body = {"session_id": "demo-1"}
    for _ in range(3):
        assert client.done("flush", body, **{"Idempotency-Key": "f"}) == {"status": "extracted"}
    assert client.flush() == "no_extraction"


def test_an_add_sent_twice_is_there_once(client: EverosClient) -> None:
    assert client.add("The same.") == client.add("The same.")
    assert client.listed() == ["The same."]
