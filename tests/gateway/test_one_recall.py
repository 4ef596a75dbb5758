"""One policy on every surface: for a store and a question, each shows the same records in the same order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import TOKEN, Gateway, Visitor, serving

import holdfast
from holdfast.agent.config import MemoryGatewayConfig
from holdfast.agent.gateway import MemoryGatewayService
from holdfast.domain.secret import Secret
from holdfast.sdk import MemoryProjectionRequest, MemoryRecallRequest, MemoryRuntime, MemoryScope

RUNTIME = {"subject_id": "ana", "app": "default", "project": "default"}
QUESTION = "When do we ship version 2?"
PLACE = {"subject": "ana", "app": "default", "project": "default"}
TALK = [
    ("Ana", "user", "We ship version 2 on 12 May."),
    ("Ben", "user", "Got it, thanks!"),
    ("Ana", "user", "Reminder: we ship version 2 on 12 May."),
    ("bot", "assistant", "Noted: you ship version 2 on 12 May."),
    ("Ben", "user", "When do we ship version 2?"),
    ("Ana", "user", "Change of plan: we now ship version 2 on 14 May."),
    ("Ben", "user", "Shipping needs a signed contract."),
    ("Ben", "user", "Great, thanks Ana!"),
]
NOTES = ("Version 1 had 40 customers.", "Version 1 had 40 customers!", "The meeting room is booked on Mondays.")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Path]]:
    place = tmp_path_factory.mktemp("one") / "memory.db"
    with holdfast.open(place) as memory:
        messages = [
            {"sender": sender, "role": role, "text": text, "timestamp": f"2026-04-0{day}T09:00Z"}
            for day, (sender, role, text) in enumerate(TALK, 1)
        ]
        said = memory.add(messages, conversation="talk", **PLACE).message_ids
        for note in NOTES:
            memory.remember(note, **PLACE)
        memory.remember("Shipping needs a contract.", evidence=[str(said[6])], **PLACE)
    with serving(place, token=TOKEN) as found:
        yield found, place


@pytest.fixture(scope="module")
def ana(gateway: tuple[Gateway, Path]) -> Visitor:
    return gateway[0].user("ana")


def in_library(place: Path, min_score: float | None) -> list[str]:
    with holdfast.open(place) as memory:
        return [hit.text for hit in memory.recall(QUESTION, top_k=10, min_score=min_score, **PLACE).hits]


def over_http(ana: Visitor, min_score: float | None) -> list[str]:
    answer = ana.http.post(
        "/memories/recall",
        headers=ana.headers,
        json={"query": QUESTION, "top_k": 10, **({} if min_score is None else {"min_score": min_score})},
    )
    assert answer.status_code == 200, answer.text
    return [found["text"] for found in answer.json()["results"]]


def in_control_plane(place: Path, min_score: float | None) -> list[str]:
    with holdfast.ControlPlane.open(place, space="default") as plane:
        found = plane.hydrate(QUESTION, agent="builder", subject="ana", top_k=10, min_score=min_score)
    return [snippet.text for snippet in found.snippets]


def in_runtime(place: Path, min_score: float | None) -> tuple[list[str], list[str]]:
    here = MemoryScope(conversation_id="talk")
    runtime = MemoryRuntime.builder().store(str(place)).identity(**RUNTIME).open()
    try:
        recall = runtime.recall(MemoryRecallRequest(QUESTION, 10, scope=here, min_score=min_score))
        project = runtime.project(
            MemoryProjectionRequest(QUESTION, recent_messages_limit=0, scope=here, min_score=min_score)
        )
    finally:
        runtime.close()
    lines = [line.partition("] ")[2] for line in project.system_memory_block.splitlines() if line.startswith("- ")]
    assert lines == [record.text for record in project.context.records]
    return [hit.text for hit in recall.working.hits], lines


def in_agent(ana: Visitor, min_score: float | None) -> list[str]:
    config = MemoryGatewayConfig(
        str(ana.http.base_url), "ana", Secret(ana.key), scope=("all_user_memory",), top_k=50, min_score=min_score
    )

    async def ask() -> Any:
        service = MemoryGatewayService(config, assistant_id="bot")
        try:
            return await service.recall_before_run("another", QUESTION)
        finally:
            await service.close()

    outcome = asyncio.run(ask())
    assert outcome.succeeded
    assert len(outcome.message.splitlines()) == 1 + len(outcome.items)
    return [item.text for item in outcome.items]


@pytest.mark.parametrize("min_score", [None, 0.0])
def test_every_surface_shows_the_same_records_in_the_same_order(
    gateway: tuple[Gateway, Path], ana: Visitor, min_score: float | None
) -> None:
    _, place = gateway
    expected = in_library(place, min_score)
    assert expected[0] == "Change of plan: we now ship version 2 on 14 May."
    assert not {"Got it, thanks!", "Great, thanks Ana!", QUESTION, "We ship version 2 on 12 May."} & set(expected)
    assert over_http(ana, min_score) == expected
    assert in_control_plane(place, min_score) == expected
    assert in_agent(ana, min_score) == expected
    recalled, projected = in_runtime(place, min_score)
    assert recalled == expected
    # The block keeps the lines of a section together; sections and their lines are in the order of relevance.
    assert sorted(projected) == sorted(expected)
    assert projected[0] == expected[0]
    for kind in (set(NOTES) | {"Shipping needs a contract."}, {text for _, _, text in TALK}):
        assert [text for text in projected if text in kind] == [text for text in expected if text in kind]


def test_the_route_answers_with_one_message_and_says_why_it_is_empty(ana: Visitor) -> None:
    def recall(query: str, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = ana.http.post(
            "/memories/recall", headers=ana.headers, json={"query": query, **more}
        ).json()
        return found

    found = recall(QUESTION, budget_chars=250)
    assert len(found["message"]) <= 250
    assert re.search(
        r"\n1\. \[said by Ana, 2026-04-06\] Change of plan: we now ship version 2 on 14 May\.", found["message"]
    )
    assert found["reason"] is None
    assert found["omitted"]["small_talk"] >= 1
    nothing = recall("What is the capital of Mongolia?", min_score=0.9)
    assert (nothing["message"], nothing["results"]) == ("", [])
    assert re.fullmatch(
        r"nothing bears on the query: the best of \d+ candidates scores 0\.\d\d\d, below the floor of 0\.900",
        nothing["reason"],
    )
    # The question itself scores most, and answers nothing.
    assert recall(QUESTION, min_score=0.7)["reason"] == "only small talk and questions reach the floor of 0.700"
    assert len(recall(QUESTION, budget_tokens=60, min_score=0)["message"]) > 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"min_score": 1.5}, "min_score"), ({"min_score": -1}, "min_score"), ({"min_score": "much"}, "min_score"),
     ({"budget_chars": 0}, "budget_chars"), ({"budget_tokens": -5}, "budget_tokens"),
     ({"budget_tokens": 10**9}, "budget_tokens"), ({"top_k": 101}, "top_k"), ({"floor": 0.5}, "min_score")],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_422_and_named(ana: Visitor, wrong: dict[str, Any], field: str) -> None:
    refused = ana.http.post("/memories/recall", headers=ana.headers, json={"query": QUESTION, **wrong})
    assert refused.status_code == 422
    assert field in refused.text
