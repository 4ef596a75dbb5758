"""Messages that came through a gateway have a lifecycle too; withheld content is in no response of any route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import TOKEN, Visitor, serving

from holdfast.sdk import (
    MemoryRuntime,
    MemoryScope,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptReplayRequest,
)
from holdfast.testing.full_repr import full_repr
from postgres import ON_POSTGRES

PREFIXES = ("/api/v1/memory", "/api/v2/memory")


def said_twice(visitor: Visitor) -> list[str]:
    """Add messages through the gateway's own route and as EverOS clients do. Return the ids of the first."""
    found: list[str] = visitor.add("The canary sings. I live in Canary Wharf.").json()["message_ids"]
    message = {
        "sender_id": visitor.user_id,
        "role": "user",
        "timestamp": 1,
        "content": "A canary too.",
        "sender_name": "canary",
    }
    done = visitor.http.post(
        f"{PREFIXES[0]}/add", json={"session_id": "two", "messages": [message]}, headers=visitor.headers
    )
    assert done.status_code == 200, done.text
    return found


def answers(visitor: Visitor, record_ids: list[str]) -> Iterator[tuple[str, Any]]:
    """The response of each route that reads, searched in every way."""
    http, headers = visitor.http, visitor.headers
    for method in ("hybrid", "keyword", "vector"):
        yield f"search {method}", visitor.search("canary", method=method)
    yield "list", http.get("/memories", headers=headers)
    for record_id in record_ids:
        for path in (f"/memories/{record_id}", f"/memories/{record_id}/history"):
            yield path, http.get(path, headers=headers)
    for prefix in PREFIXES:
        for filters in ({}, {"session_id": "one"}, {"session_id": "two"}):
            whose = {"user_id": visitor.user_id, "filters": filters}
            yield prefix, http.post(f"{prefix}/search", json={**whose, "query": "canary"}, headers=headers)
            yield prefix, http.post(f"{prefix}/get", json={**whose, "memory_type": "episode"}, headers=headers)


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return str(tmp_path / "memory.db")


@pytest.mark.parametrize("transition", ["mask", "delete_raw"])
def test_what_is_withheld_is_in_no_answer_of_a_gateway(place: str, transition: str) -> None:
    with serving(place, token=TOKEN) as gateway:
        visitor = gateway.user("ana")
        record_ids = said_twice(visitor)
        before = [told for told, answer in answers(visitor, record_ids) if "canary" in answer.text.casefold()]
        assert len(before) > 10
        builder = MemoryRuntime.builder().store(place).identity(subject_id="ana", app="default", project="default")
        with builder.without_worker().open() as runtime:

            def age(conversation: str) -> MemoryTranscriptLifecycleReport:
                where = MemoryScope(conversation_id=conversation)
                return runtime.request_transcript_lifecycle(
                    MemoryTranscriptLifecycleRequest(transition, "asked to", where)
                )

            assert [age(name).changed for name in ("one", "two")] == [True, True]
            for told, answer in answers(visitor, record_ids):
                assert "canary" not in answer.text.casefold(), told
            for change in ("patch", "delete"):
                refused = visitor.http.request(
                    change.upper(), f"/memories/{record_ids[0]}", headers=visitor.headers, json={"text": "x"}
                )
                assert "canary" not in refused.text.casefold()
            visitor.flush("one")
            visitor.add("The parrot talks.")
            assert visitor.texts("parrot") == ["The parrot talks."]
            view = MemoryTranscriptReplayRequest("raw_owner_only", MemoryScope(conversation_id="one"))
            assert "canary" not in full_repr(runtime.replay_transcript(view)).casefold()
