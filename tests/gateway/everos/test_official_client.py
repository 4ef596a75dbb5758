"""The official Python package of EverOS works unmodified: it adds, flushes, searches, gets and deletes, for a user and
an agent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import everos
import pytest
from official import CLIENTS, Official, issue_key
from served import MOMENT, Gateway, Visitor, serving

from postgres import ON_POSTGRES

CLIMBING = "I love climbing in Yosemite every spring."
COFFEE = "Mein Lieblingscafé heißt „Zum Löwen“ ☕ 東京."
WORK: list[dict[str, Any]] = [
    {"role": "user", "timestamp": MOMENT, "content": "Restart the printer on the second floor."},
    {
        "role": "assistant",
        "timestamp": MOMENT + 1,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "restart", "arguments": '{"floor":2}'}}],
    },
    {"role": "tool", "timestamp": MOMENT + 2, "tool_call_id": "c1", "content": "The printer answers again."},
    {"role": "assistant", "timestamp": MOMENT + 3, "content": [{"type": "text", "text": "The printer works."}]},
]


@pytest.fixture(params=[*CLIENTS, ON_POSTGRES])
def either(request: pytest.FixtureRequest) -> Iterator[Official]:
    """A client of each kind, of a user of this test only; and one of a gateway on PostgreSQL."""
    with contextlib.ExitStack() as ending:
        if request.param in CLIENTS:
            gateway, visitor = request.getfixturevalue("gateway"), request.getfixturevalue("visitor")
        else:
            gateway = ending.enter_context(serving(request.getfixturevalue("postgres_url")))
            visitor = gateway.user("ana")
        kind = request.param if request.param in CLIENTS else "sync"
        yield ending.enter_context(Official(gateway, visitor.key, visitor.user_id, kind))


@pytest.fixture
def official(gateway: Gateway, visitor: Visitor) -> Iterator[Official]:
    with Official(gateway, visitor.key, visitor.user_id) as found:
        yield found


def test_a_life_of_a_user(either: Official) -> None:
    added = either.add(CLIMBING, COFFEE)
    assert (added.message_count, added.status) == (2, "accumulated")
    assert either.done(either.client.v1.tasks.retrieve(added.task_id)).data.status == "success"

    found = either.search("Where do I like to climb?", top_k=1)
    (best,) = found.episodes
    assert (best.episode, best.user_id, best.session_id) == (CLIMBING, either.user_id, "s1")
    assert best.participants == [either.user_id]
    assert best.timestamp == datetime.fromtimestamp(MOMENT / 1000, UTC)
    assert (found.query.text, found.query.method) == ("Where do I like to climb?", "hybrid")
    assert found.profiles == found.raw_messages == found.agent_memory.cases == []

    flush = either.memories.flush
    assert either.done(flush(user_id=either.user_id, session_id="s1")).data.status == "extracted"
    assert either.done(flush(user_id=either.user_id, session_id="s1")).data.status == "no_extraction"

    got = either.get(filters={"session_id": "s1"})
    assert [each.episode for each in got.episodes] == [COFFEE, CLIMBING]
    assert (got.count, got.total_count) == (2, 2)

    either.delete(memory_id=best.id)
    assert CLIMBING not in either.listed()
    with pytest.raises(everos.NotFoundError):
        either.delete(memory_id=best.id)
    either.add("Elsewhere.", session="s2", at=MOMENT + 10)
    either.delete(user_id=either.user_id, session_id="s1")
    assert either.listed() == ["Elsewhere."]
    either.delete(user_id=either.user_id)
    assert either.get().total_count == 0


def test_a_life_of_an_agents_work(either: Official) -> None:
    assert either.work(WORK).message_count == 4
    either.add("I like quiet printers.", at=MOMENT + 100)

    found = either.search("printer on the second floor", memory_types=["agent_memory", "episodic_memory"])
    cases = found.agent_memory.cases
    assert cases[0].task_intent == cases[0].approach == WORK[0]["content"]
    assert {each.approach for each in cases} == {
        WORK[0]["content"],
        'restart({"floor":2})',
        "The printer answers again.",
        "The printer works.",
    }
    assert [each.episode for each in found.episodes] == ["I like quiet printers."]

    flush = either.memories.agent.flush
    assert either.done(flush(user_id=either.user_id, session_id="s1")).data.status == "extracted"
    assert either.done(flush(user_id=either.user_id, session_id="s1")).data.status == "no_extraction"
    personal = either.memories.flush(user_id=either.user_id, session_id="s1")
    assert either.done(personal).data.status == "extracted", "a conversation and the work in it are sealed apart"

    got = either.get("agent_case", page_size=3, rank_order="asc", filters={"session_id": "s1"})
    assert got.agent_cases[0].task_intent == WORK[0]["content"]
    assert (got.count, got.total_count) == (3, 4)
    either.delete(memory_id=cases[0].id)
    assert either.get("agent_case").total_count == 3
    either.delete(user_id=either.user_id, session_id="s1")
    assert either.get("agent_case").total_count == 0
    assert "I like quiet printers." not in either.listed()


def test_procedural_memories_are_skills(gateway: Gateway, official: Official, visitor: Visitor) -> None:
    body = {
        "scope": {"space": "default", "subject": visitor.user_id, "app": "default", "project": "default"},
        "text": "Restart a printer by its panel.\nThen wait a minute.",
        "plane": "procedural",
    }
    made = gateway.http.post("/verbs/remember", json=body, headers=visitor.headers)
    assert made.status_code == 200, made.text
    (found,) = official.search("printer", memory_types=["agent_memory"]).agent_memory.skills
    (got,) = official.get("agent_skill").agent_skills
    assert (found.id, found.content, found.name) == (got.id, body["text"], "Restart a printer by its panel.")
    assert official.listed() == official.found("printer") == []


def test_the_pages_of_get_hold_everything_once_in_order(official: Official) -> None:
    said = [f"Nummer {number}: ☃ {'ü' * number}" for number in range(7)]
    official.add(*said)
    for order, expected in (("asc", said), ("desc", said[::-1])):
        pages = [official.get(page=page, page_size=3, rank_by="timestamp", rank_order=order) for page in (1, 2, 3, 4)]
        assert [each.episode for page in pages for each in page.episodes] == expected
        assert [page.count for page in pages] == [3, 3, 1, 0]
        assert {page.total_count for page in pages} == {7}


def test_filters_and_top_k_narrow(official: Official) -> None:
    official.add("An apple a day.", "An apple a night.")
    official.add("An apple a year.", session="s2", at=MOMENT + 10_000)
    day, night, year = "An apple a day.", "An apple a night.", "An apple a year."
    user = {"user_id": {"in": [official.user_id]}}
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"session_id": "s2"}, {year}),
        ({"session_id": {"in": ["s1", "s2"]}}, {day, night, year}),
        ({"timestamp": {"gte": MOMENT + 1, "lt": MOMENT + 2}}, {night}),
        ({"timestamp": datetime.fromtimestamp(MOMENT / 1000, UTC).isoformat()}, {day}),
        ({"OR": [{"session_id": "s2"}, {"timestamp": MOMENT}]}, {day, year}),
        ({"AND": [user, {"session_id": "s1"}, {"timestamp": {"gt": MOMENT}}]}, {night}),
    ]
    for filters, expected in cases:
        assert set(official.found("apple", filters)) == expected, filters
        assert set(official.listed(filters)) == expected, filters
    assert len(official.found("apple", top_k=2)) == 2
    for method in ("keyword", "vector", "hybrid"):
        assert official.found("apple night", method=method)[0] == night
    assert official.found(night, method="vector", radius=0.95) == [night]


def test_without_a_session_a_conversation_has_the_usual_name(official: Official) -> None:
    official.add("A lamp.", session=None)
    assert official.search("lamp").episodes[0].session_id == "default"
    assert official.done(official.memories.flush(user_id=official.user_id)).data.status == "extracted"


def test_raw_messages_are_those_that_no_flush_has_sealed(official: Official) -> None:
    official.add("Sealed.")
    official.done(official.memories.flush(user_id=official.user_id, session_id="s1"))
    official.add("First.", "Second.", at=MOMENT + 10)
    official.add("Elsewhere.", session="s2", at=MOMENT + 20)
    raw = official.search("x", {"session_id": "s1"}, memory_types=["raw_message"]).raw_messages
    assert [each.content_items[0]["text"] for each in raw] == ["First.", "Second."]
    assert {(each.sender_id, each.session_id) for each in raw} == {(official.user_id, "s1")}
    assert len(official.search("x", memory_types=["raw_message"]).raw_messages) == 3
    assert len(official.search("x", memory_types=["raw_message"], top_k=1).raw_messages) == 1


def test_a_retry_stores_nothing_twice(official: Official) -> None:
    official.add("Once.")
    official.add("Once.")
    assert official.get().total_count == 1
    headers = {"Idempotency-Key": "k-1"}
    first, again = (official.add("Twice.", at=MOMENT + 5, extra_headers=headers) for _ in range(2))
    assert first.task_id == again.task_id


def test_parameters_without_an_effect_are_named(official: Official) -> None:
    assert official.add("A pear.", async_mode=True).model_extra == {"ignored": ["async_mode"]}
    item = {"type": "text", "text": "A plum.", "name": "plum.txt", "extras": {"a": 1}}
    message = {"role": "user", "timestamp": MOMENT, "content": [item]}
    added = official.done(official.memories.add(user_id=official.user_id, messages=[message])).data
    assert added.model_extra == {"ignored": ["messages.content.extras", "messages.content.name"]}
    found = official.search("pear", include_original_data=True, memory_types=["episodic_memory", "profile"])
    assert found.ignored == ["include_original_data", "memory_types.profile"]
    assert "ignored" not in official.search("pear").model_fields_set


def test_it_is_the_memory_of_the_other_routes(official: Official, visitor: Visitor) -> None:
    official.add("The kettle is blue.", session="one")
    assert visitor.texts("kettle", "current_chat") == ["The kettle is blue."]
    visitor.add("The kettle is red.", at=MOMENT + 1)
    assert set(official.listed({"session_id": "chat:one"})) == {"The kettle is blue.", "The kettle is red."}


# --- keys of agents and operators ---


def test_an_agents_key_has_its_own_memory_and_that_of_its_users(gateway: Gateway, visitor: Visitor) -> None:
    key = issue_key(gateway, "scribe", kind="agent", role="curator", subjects=[visitor.user_id])
    with Official(gateway, key, "scribe") as own, Official(gateway, key, visitor.user_id) as lent:
        own.work([{**WORK[0], "sender_id": "ana"}, *WORK[1:]])
        own.add("I am the scribe.", session="s2")
        lent.add("I write with a quill.", session="s3")
        assert own.get("agent_case", rank_order="asc").agent_cases[0].user_id == "scribe"
        assert own.listed() == ["I am the scribe."]
        assert lent.found("quill")[0] == "I write with a quill."
        assert visitor.texts("quill") == ["I write with a quill."]
        task = lent.add("And with a pen.", session="s3", at=MOMENT + 9).task_id
        assert lent.client.v1.tasks.retrieve(task).data.task_id == task
        with pytest.raises(everos.NotFoundError):
            own.delete(memory_id=lent.get().episodes[0].id)
        lent.delete(memory_id=lent.get().episodes[0].id, user_id=visitor.user_id)
        with pytest.raises(everos.NotFoundError):
            lent.client.v1.tasks.retrieve(task)
        lent.delete(user_id=visitor.user_id)
        assert visitor.texts("quill") == []
        own.delete(user_id="scribe", session_id="s2")
        own.delete(memory_id=own.get("agent_case").agent_cases[0].id)
        assert (own.get().total_count, own.get("agent_case").total_count) == (0, 3)
        with pytest.raises(everos.UnprocessableEntityError, match=r"NOT_SUPPORTED.*session_id or memory_id"):
            own.delete(user_id="scribe")
        for refused in ("user-that-it-has-not", ""):
            with pytest.raises((everos.PermissionDeniedError, everos.UnprocessableEntityError)):
                own.done(own.memories.get(memory_type="episodic_memory", filters={"user_id": refused}))


def test_an_agent_that_is_a_member_deletes_nothing(gateway: Gateway) -> None:
    key = issue_key(gateway, "helper", kind="agent", role="member")
    with Official(gateway, key, "helper") as official:
        official.add("Kept.")
        with pytest.raises(everos.PermissionDeniedError):
            official.delete(user_id="helper", session_id="s1")
        assert official.listed() == ["Kept."]


def test_names_are_of_any_script(gateway: Gateway) -> None:
    key = issue_key(gateway, "app of all", kind="operator", role="admin")
    with Official(gateway, key, "Zoë/東京@ ☂%2F") as official:
        task = official.add("Grüße.", session="chat mit „Zoë“ / 2").task_id
        assert official.client.v1.tasks.retrieve(task).data.status == "success"
        (found,) = official.get(filters={"session_id": "chat mit „Zoë“ / 2"}).episodes
        assert (found.user_id, found.session_id) == (official.user_id, "chat mit „Zoë“ / 2")
        official.delete(user_id=official.user_id, session_id=found.session_id)
        assert official.listed() == []


def test_one_key_of_an_operator_serves_all_users_as_an_account_of_the_cloud_does(gateway: Gateway) -> None:
    key = issue_key(gateway, "app", kind="operator", role="admin")
    with Official(gateway, key, "kim") as kim, Official(gateway, key, "lee") as lee:
        kim.add("I am Kim.")
        lee.add("I am Lee.")
        (found,) = kim.get().episodes
        assert (found.episode, found.user_id) == ("I am Kim.", "kim")
        lee.delete(memory_id=found.id)
        assert (kim.listed(), lee.listed()) == ([], ["I am Lee."])


def test_every_call_is_one_row_of_the_audit_trail(gateway: Gateway, official: Official) -> None:
    task = official.add("Audited.").task_id
    official.done(official.client.v1.tasks.retrieve(task))
    official.found("audited")
    official.listed()
    official.done(official.memories.flush(user_id=official.user_id, session_id="s1"))
    official.delete(memory_id=task)
    with pytest.raises(everos.PermissionDeniedError):
        official.delete(user_id="somebody else")
    rows = gateway.http.get(
        "/companies/default/memory/operations", params={"limit": 100}, headers=gateway.operator
    ).json()["operations"]
    actor = {"kind": "user", "id": official.user_id}
    assert sorted(f"{row['action']} {row['outcome']}" for row in rows if row["actor"] == actor) == [
        "add succeeded",
        "browse succeeded",
        "flush succeeded",
        "forget refused",
        "forget succeeded",
        "get succeeded",
        "search succeeded",
    ]
