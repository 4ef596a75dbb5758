"""Refusals reach the official Python package of EverOS as its own exceptions, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import everos
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from official import CLIENTS, Official
from served import MOMENT, Gateway, Visitor, serving

from blank import blank
from holdfast.errors import InvalidInput
from holdfast.gateway.everos.cloud_filters import split_user

Call = Callable[[Any, dict[str, Any]], Any]


@pytest.fixture
def official(gateway: Gateway, visitor: Visitor) -> Iterator[Official]:
    with Official(gateway, visitor.key, visitor.user_id) as found:
        yield found


def refused(caught: pytest.ExceptionInfo[Any], code: str) -> str:
    """Check the envelope of an error; return its message."""
    body = caught.value.body
    assert body.keys() == {"request_id", "error"}
    assert body["error"].keys() == {"code", "message", "timestamp", "path"}
    assert body["error"]["code"] == code
    assert body["error"]["path"].startswith("/api/v1/")
    message: str = body["error"]["message"]
    return message


SAID = {"role": "user", "timestamp": MOMENT, "content": "Not to be stored."}
# Every call that names a user.
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "add": lambda v1, user: v1.memories.add(user_id=user, messages=[SAID]),
    "flush": lambda v1, user: v1.memories.flush(user_id=user),
    "search": lambda v1, user: v1.memories.search(filters={"user_id": user}, query="x"),
    "get": lambda v1, user: v1.memories.get(filters={"user_id": user}, memory_type="episodic_memory"),
    "delete": lambda v1, user: v1.memories.delete(user_id=user),
    "delete one": lambda v1, user: v1.memories.delete(user_id=user, memory_id="mem_1"),
    "agent add": lambda v1, user: v1.memories.agent.add(user_id=user, messages=[SAID]),
    "agent flush": lambda v1, user: v1.memories.agent.flush(user_id=user),
    "agent search": lambda v1, user: v1.memories.search(
        filters={"AND": [{"user_id": {"eq": user}}]}, query="x", memory_types=["agent_memory", "raw_message"]
    ),
    "agent get": lambda v1, user: v1.memories.get(filters={"user_id": {"in": [user]}}, memory_type="agent_case"),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_another_users_id_is_refused_by_every_call(gateway: Gateway, visitor: Visitor, kind: str) -> None:
    other = gateway.user(f"{visitor.user_id}, other")
    other.add("Not yours.")
    with Official(gateway, visitor.key, visitor.user_id, kind) as official:
        for user in (other.user_id, "nobody"):
            for call in CALLS.values():
                with pytest.raises(everos.PermissionDeniedError) as caught:
                    official.done(call(official.client.v1, user))
                assert other.user_id not in refused(caught, "ACCESS_DENIED")
        message = {**SAID, "sender_id": other.user_id}
        with pytest.raises(everos.PermissionDeniedError) as caught:
            official.done(official.memories.add(user_id=official.user_id, messages=[message]))
        assert "messages[0].sender_id" in refused(caught, "ACCESS_DENIED")
        assert official.get().total_count == 0
    assert other.texts("yours") == ["Not yours."]


def test_a_wrong_key_is_refused_by_every_call(gateway: Gateway) -> None:
    with Official(gateway, "uk_wrong", "ana") as official:
        for call in (*CALLS.values(), *(call for call, _ in UNSUPPORTED.values())):
            with pytest.raises(everos.AuthenticationError) as caught:
                call(official.client.v1, "ana")
            refused(caught, "UNAUTHENTICATED")


# --- calls without an equivalent ---


UNSUPPORTED: dict[str, tuple[Callable[[Any, str], Any], str]] = {
    "group add": (
        lambda v1, user: v1.memories.group.add(group_id="g", messages=[{**SAID, "sender_id": user}]),
        "group",
    ),
    "group flush": (lambda v1, user: v1.memories.group.flush(group_id="g"), "group"),
    "group create": (lambda v1, user: v1.groups.create(group_id="g"), "group"),
    "group retrieve": (lambda v1, user: v1.groups.retrieve("g"), "group"),
    "group patch": (lambda v1, user: v1.groups.patch("g", name="G"), "group"),
    "sender create": (lambda v1, user: v1.senders.create(sender_id="s"), "senders"),
    "sender retrieve": (lambda v1, user: v1.senders.retrieve("s"), "senders"),
    "sender patch": (lambda v1, user: v1.senders.patch("s", name="S"), "senders"),
    "settings retrieve": (lambda v1, user: v1.settings.retrieve(), "settings"),
    "settings update": (lambda v1, user: v1.settings.update(timezone="UTC"), "settings"),
    "object sign": (
        lambda v1, user: v1.object.sign(object_list=[{"file_id": "f", "file_name": "f.png", "file_type": "image"}]),
        "/resources",
    ),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_has_no_equivalent_says_so(gateway: Gateway, visitor: Visitor, kind: str) -> None:
    with Official(gateway, visitor.key, visitor.user_id, kind) as official:
        for call, named in UNSUPPORTED.values():
            with pytest.raises(everos.UnprocessableEntityError) as caught:
                official.done(call(official.client.v1, official.user_id))
            assert named in refused(caught, "NOT_SUPPORTED")


NOT_SUPPORTED: dict[str, tuple[Call, str]] = {
    "profiles alone": (lambda m, me: m.search(filters=me, query="x", memory_types=["profile"]), "memory_types"),
    "a profile": (lambda m, me: m.get(filters=me, memory_type="profile"), "memory_type"),
    "a group": (lambda m, me: m.get(filters={"group_id": "g"}, memory_type="episodic_memory"), "filters.group_id"),
    "a group of a user": (
        lambda m, me: m.search(filters={"AND": [me, {"group_id": "g"}]}, query="x"),
        "filters.AND[1].group_id",
    ),
    "raw messages of a time": (
        lambda m, me: m.search(filters={**me, "timestamp": MOMENT}, query="x", memory_types=["raw_message"]),
        "raw_message",
    ),
    "deletion of a group": (lambda m, me: m.delete(group_id="g"), "group_id"),
    "deletion by sender": (lambda m, me: m.delete(**me, sender_id="s"), "sender_id"),
    "deletion without a sender": (lambda m, me: m.delete(**me, sender_id=None), "sender_id"),
    "deletion without a session": (lambda m, me: m.delete(**me, session_id=None), "session_id"),
    "deletion of an empty session": (lambda m, me: m.delete(**me, session_id=""), "session_id"),
}


def test_a_parameter_that_would_change_the_result_is_refused(official: Official) -> None:
    official.add("Still here.")
    for case, (call, named) in NOT_SUPPORTED.items():
        with pytest.raises(everos.UnprocessableEntityError) as caught:
            call(official.memories, {"user_id": official.user_id})
        assert named in refused(caught, "NOT_SUPPORTED"), case
        assert official.listed() == ["Still here."], case


def test_a_file_is_refused_before_it_leaves_the_machine(official: Official, tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    items = [{"type": "doc", "uri": str(file)}]
    with pytest.raises(everos.UnprocessableEntityError, match=r"NOT_SUPPORTED.*POST /resources"):
        official.memories.add(user_id=official.user_id, messages=[{**SAID, "content": items}])
    items = [{"type": "image", "base64": "aGVsbG8=", "ext": "png"}]
    with pytest.raises(everos.APIStatusError) as caught:
        official.memories.add(user_id=official.user_id, messages=[{**SAID, "content": items}])
    assert (caught.value.status_code, refused(caught, "UNSUPPORTED_FORMAT")[:26]) == (415, "messages[0].content[0].typ")
    assert official.get().total_count == 0


# --- bad input ---


def _add(**changes: Any) -> Call:
    return lambda m, me: m.add(**{**me, "session_id": "s", "messages": [SAID], **changes})


def _said(**changes: Any) -> Call:
    return _add(messages=[SAID, {**SAID, **changes}])


def _work(**changes: Any) -> Call:
    return lambda m, me: m.agent.add(**me, messages=[SAID, {**SAID, **changes}])


def _search(**changes: Any) -> Call:
    return lambda m, me: m.search(**{"filters": me, "query": "x", **changes})


def _filtered(filters: dict[str, Any]) -> Call:
    return lambda m, me: m.search(filters={**me, **filters}, query="x")


def _get(**changes: Any) -> Call:
    return lambda m, me: m.get(**{"filters": me, "memory_type": "episodic_memory", **changes})


BAD: dict[str, tuple[Call, str]] = {
    "no messages": (_add(messages=[]), "messages"),
    "too many messages": (_add(messages=[SAID] * 501), "messages"),
    "an empty user": (_add(user_id=""), "user_id"),
    "a user that cannot be": (_add(user_id="a\nb"), "user_id"),
    "a long session": (_add(session_id="s" * 129), "session_id"),
    "an unknown field": (_add(extra_body={"colour": "red"}), "unknown field"),
    "an unknown field of a message": (_said(colour="red"), "messages[1]"),
    "a mode that is no truth": (_add(async_mode="yes"), "async_mode"),
    "a role of tools": (_said(role="tool"), "messages[1].role"),
    "no time": (_said(timestamp=None), "messages[1].timestamp"),
    "a negative time": (_said(timestamp=-1), "messages[1].timestamp"),
    "a time in microseconds": (_said(timestamp=MOMENT * 1000), "messages[1].timestamp"),
    "a time that is text": (_said(timestamp="2026-01-01"), "messages[1].timestamp"),
    "a number as content": (_work(content=5), "messages[1].content"),
    "no content": (_said(content=None), "messages[1].content"),
    "only empty content": (_add(messages=[{**SAID, "content": ""}]), "messages"),
    "an unknown field of an item": (_said(content=[{"type": "text", "text": "x", "y": 1}]), "messages[1].content[0]"),
    "a result of no call": (_work(role="tool"), "tool_call_id"),
    "a user that calls tools": (
        _work(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]),
        "tool_calls",
    ),
    "work without content": (_work(content=None), "content"),
    "no user": (_search(filters={"session_id": "s"}), "filters: name no user"),
    "no filters": (_search(filters={}), "filters: name no user"),
    "a user within OR": (_search(filters={"OR": [{"user_id": "x"}]}), "filters: name no user"),
    "a user within OR too": (_filtered({"OR": [{"user_id": "x"}]}), "filters.OR[0].user_id"),
    "two users": (_filtered({"AND": [{"user_id": "x"}]}), "filters.user_id"),
    "a list of users": (_search(filters={"user_id": {"in": ["x", "y"]}}), "filters.user_id"),
    "an empty list of users": (_search(filters={"user_id": {"in": []}}), "filters.user_id"),
    "users without an operator": (_search(filters={"user_id": ["x"]}), "filters.user_id"),
    "another than a user": (_search(filters={"user_id": {"ne": "x"}}), "filters.user_id"),
    "an unknown filter": (_filtered({"colour": "red"}), "filters['…']"),
    "an order of sessions": (_filtered({"session_id": {"gt": "x"}}), "filters.session_id.gt"),
    "a time that is none": (_filtered({"timestamp": "yesterday"}), "filters.timestamp"),
    "AND that is an object": (_filtered({"AND": {"session_id": "x"}}), "filters.AND"),
    "AND of texts": (_filtered({"AND": ["x"]}), "filters.AND[0]"),
    "AND of nothing": (_filtered({"AND": []}), "filters.AND"),
    "an empty query": (_search(query=""), "query"),
    "no kinds": (_search(memory_types=[]), "memory_types"),
    "an unknown kind": (_search(memory_types=["dream"]), "memory_types[0]"),
    "a model's search": (_search(method="agentic"), "method"),
    "top_k 0": (_search(top_k=0), "top_k"),
    "top_k 101": (_search(top_k=101), "top_k"),
    "a radius beyond 1": (_search(radius=1.5), "radius"),
    "page 0": (_get(page=0), "page"),
    "a large page": (_get(page_size=101), "page_size"),
    "another order": (_get(rank_by="score"), "rank_by"),
    "another direction": (_get(rank_order="up"), "rank_order"),
    "an unknown type": (_get(memory_type="dream"), "memory_type"),
    "deletion of nothing": (lambda m, me: m.delete(), "user_id"),
    "deletion of one in a session": (lambda m, me: m.delete(memory_id="mem_1", session_id="s"), "session_id"),
    "deletion of a session that cannot be": (lambda m, me: m.delete(**me, session_id="chat:"), "session_id"),
}


def test_bad_input_is_refused_by_the_name_of_its_field(official: Official) -> None:
    for case, (call, named) in BAD.items():
        with pytest.raises(everos.UnprocessableEntityError) as caught:
            call(official.memories, {"user_id": official.user_id})
        message = refused(caught, "INVALID_INPUT")
        assert named in message, case
        assert "red" not in message, f"{case}: what was sent is not repeated"
    assert official.get().total_count == 0


def test_unknown_ids_are_not_found(official: Official) -> None:
    for call in (lambda: official.delete(memory_id="mem_1"), lambda: official.client.v1.tasks.retrieve("msg_1")):
        with pytest.raises(everos.NotFoundError) as caught:
            call()
        refused(caught, "NOT_FOUND")


def test_a_body_that_cannot_be_read_or_is_too_large_has_the_same_envelope(official: Official) -> None:
    for body, status in ((b"{", 400), (b"[]", 422), (b"x" * (30 * 1024 * 1024), 413)):
        with pytest.raises(everos.APIStatusError) as caught:
            official.client.post(
                "/api/v1/memories",
                cast_to=object,
                content=body,
                options={"headers": {"Content-Type": "application/json"}},
            )
        assert caught.value.status_code == status
        refused(caught, {400: "BAD_REQUEST", 422: "INVALID_INPUT", 413: "BODY_TOO_LARGE"}[status])


def test_a_text_that_is_no_unicode_is_refused(official: Official) -> None:
    for body in (
        {"filters": {"user_id": official.user_id, "session_id": "\ud800"}, "query": "x"},
        {"filters": {"user_id": "\ud800"}, "query": "x"},
        {"filters": {"user_id": official.user_id, "\ud800": "x"}, "query": "x"},
        {"filters": {"user_id": official.user_id}, "query": "\ud800"},
    ):
        with pytest.raises(everos.UnprocessableEntityError) as caught:
            official.client.post("/api/v1/memories/search", cast_to=object, content=json.dumps(body).encode())
        refused(caught, "INVALID_INPUT")


def test_too_many_calls_are_limited(tmp_path: Path) -> None:
    with serving(blank(tmp_path / "memory.db"), rate_per_minute=1) as gateway:
        key = gateway.user("ana").key
        with Official(gateway, key, "ana") as official:
            with pytest.raises(everos.RateLimitError) as caught:
                _ = [official.get() for _ in range(100)]
            refused(caught, "RATE_LIMITED")


# --- filters ---


LEAVES = st.sampled_from([{"session_id": "s"}, {"timestamp": {"gt": 1}, "sender_id": "ana"}, {"colour": "red"}])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda name, parts: {name: parts}, st.sampled_from(["AND", "OR"]), st.lists(inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=100)
@given(st.lists(TREES, max_size=3), st.integers(0, 3), st.sampled_from(["ana", {"eq": "ana"}, {"in": ["ana"]}]))
def test_a_user_is_found_within_any_nested_and_and_nothing_else_changes(
    others: list[Any], depth: int, user: Any
) -> None:
    node: dict[str, Any] = {"user_id": user}
    plain: dict[str, Any] = {}
    for level in range(depth):
        node = {"AND": [*others[:level], node]}
        plain = {"AND": [*others[:level], *([plain] if plain else [])]} if others[:level] or plain else {}
    assert split_user(node) == ("ana", plain)
    with pytest.raises(InvalidInput):
        split_user({"OR": [node]})
