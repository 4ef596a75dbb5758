"""Every route that seals a conversation lets the configured model learn from it, and so does an agent's turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import MOMENT, TOKEN, Gateway, serving

import holdfast
from blank import blank
from holdfast.agent.config import MemoryGatewayConfig
from holdfast.agent.gateway import MemoryGatewayService
from holdfast.agent.memory import AgentMemory
from holdfast.domain.secret import Secret
from holdfast.settings import Settings
from model_server import ModelServer, model_server

SAID = "The fence is green."
MESSAGE = {"sender_id": "ana", "role": "user", "timestamp": MOMENT, "content": SAID}
Sealing = Callable[[Gateway], None]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path, model: ModelServer) -> Iterator[Gateway]:
    settings = Settings(model="small", model_url=f"{model.url}/v1", embedder="fake")
    with serving(blank(tmp_path / "memory.db"), work=False, settings=settings) as server:
        yield server


def _memories(gateway: Gateway) -> None:
    ana = gateway.user("ana")
    assert ana.add(SAID).status_code == ana.flush().status_code == 200


def _everos(gateway: Gateway) -> None:
    ana = gateway.user("ana")
    for name, body in (("add", {"session_id": "s", "messages": [MESSAGE]}), ("flush", {"session_id": "s"})):
        answer = ana.http.post(f"/api/v1/memory/{name}", json=body, headers=ana.headers)
        assert answer.status_code == 200, answer.text


def _capture(gateway: Gateway) -> None:
    source = {"kind": "issue_comment", "issue_id": "i1", "comment_id": "c1"}
    body = {"source": source, "payload": {"text": SAID}, "subject_id": "ana"}
    answer = gateway.http.post("/companies/default/memory/capture", json=body, headers=gateway.operator)
    assert answer.status_code == 200, answer.text


def _verbs(gateway: Gateway) -> None:
    with holdfast.open(gateway.url, key=TOKEN) as memory:
        memory.add([SAID], subject="ana", conversation="c")
        memory.flush(subject="ana", conversation="c")


def _agent(gateway: Gateway) -> None:
    async def turn() -> None:
        config = MemoryGatewayConfig(gateway.url, "ana", Secret(gateway.user("ana").key))
        async with (
            AgentMemory(None, MemoryGatewayService(config, assistant_id="helper")) as memory,
            memory.turn(SAID, "s") as turn,
        ):
            turn.answer("Lovely.")

    asyncio.run(turn())


@pytest.mark.parametrize("seal", [_memories, _everos, _verbs, _agent])
def test_what_is_sealed_is_learned_by_the_model(seal: Sealing, gateway: Gateway, model: ModelServer) -> None:
    seal(gateway)
    assert model.asked == [], "in the background"
    with holdfast.open(gateway.url, key=TOKEN) as memory:
        memory.drain()
        found = memory.list(kind="memory", subject="ana").items
        assert [(each.text, each.author) for each in found] == [(SAID, "curator:small")]
    assert SAID in model.texts


def test_what_is_captured_from_elsewhere_is_not_shown_to_the_model(gateway: Gateway, model: ModelServer) -> None:
    _capture(gateway)
    with holdfast.open(gateway.url, key=TOKEN) as memory:
        memory.drain()
        assert [each.text for each in memory.list(kind="message", subject="ana").items] == [SAID]
    assert model.texts == []
