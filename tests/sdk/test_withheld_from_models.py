"""Random histories that are flushed: the model behind HTTP is never sent a text that is withheld.

Every text has its own canary. The model proposes each message word for word, so that later requests would show the
canaries again as known memories. Turns are withheld at any time: before a flush, before its job, or after it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from writers import CHAT, Host, hosting

from completions import chat_curator
from holdfast import AsyncMemory
from holdfast.domain.runtime_api.transcripts import (
    MemoryTranscriptCommitRequest,
    MemoryTranscriptLifecycleRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.errors import NotFound
from model_server import ModelServer, model_server

LIVES = int(os.environ.get("HOLDFAST_LIVES", "3"))
STEPS = 40
OPEN, PRIVATE = [None, "user_asserted"], ["private_garden_internal", "soul_governance", "operator_diagnostic"]


@dataclass
class History:
    host: Host
    memory: AsyncMemory
    model: ModelServer
    chance: random.Random
    turns: list[str] = field(default_factory=list)
    messages: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by turn: ids and canaries
    withheld: set[str] = field(default_factory=set)

    async def step(self, deed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Do something, chosen at random unless given, and look at what the model was sent."""
        before = len(self.model.asked)
        deeds = [self.say] * 4 + [self.flush] * 3 + [self.work] * 2 + [self.age, self.forget, self.correct]
        deed = deed or self.chance.choice(deeds)
        await deed()
        sent = "".join(str(request.body) for request in self.model.asked[before:])
        assert not [canary for canary in self.withheld if canary in sent], deed

    async def say_openly(self) -> None:
        turn, canary = f"turn-{len(self.turns)}", f"canary{len(self.turns)}x"
        (message_id,) = await self.host.said(f"The lamp is called {canary}.", turn=turn)
        self.turns.append(turn)
        self.messages[turn] = [(message_id, canary)]

    async def say(self) -> None:
        turn, said, canaries = f"turn-{len(self.turns)}", [], []
        for place in range(self.chance.randint(1, 3)):
            role = self.chance.choice(["user", "user", "assistant", "tool"])
            authority = self.chance.choice([*OPEN * 3, *PRIVATE, "external_content"])
            canary = f"canary{len(self.turns)}{'abc'[place]}x"
            if role == "tool" or authority in (*PRIVATE, "external_content"):
                self.withheld.add(canary)
            said.append(TurnMessage(f"The lamp is called {canary}.", role, authority=authority))
            canaries.append(canary)
        request = MemoryTranscriptCommitRequest(TranscriptTurnInput(turn, tuple(said), conversation=CHAT))
        report = await self.host.commit_transcript(request)
        self.turns.append(turn)
        self.messages[turn] = list(zip(map(str, report.message_ids), canaries, strict=True))

    async def flush(self) -> None:
        await self.memory.flush(subject="ana", conversation="chat")

    async def work(self) -> None:
        await self.memory.drain()

    async def age(self) -> None:
        if self.turns:
            turn = self.chance.choice(self.turns)
            transition = self.chance.choice(["mask", "delete_raw", "archive"])
            report = await self.host.request_transcript_lifecycle(
                MemoryTranscriptLifecycleRequest(transition, "asked to", CHAT, turn)
            )
            assert report.lifecycle_report.success
            self.withheld |= {canary for _, canary in self.messages[turn]}

    async def forget(self) -> None:
        if self.turns:
            message_id, canary = self.chance.choice(self.messages[self.chance.choice(self.turns)])
            self.withheld.add(canary)
            with suppress(NotFound):  # it is out of reach already
                await self.memory.forget(message_id, subject="ana")

    async def correct(self) -> None:
        if self.turns:
            message_id, canary = self.chance.choice(self.messages[self.chance.choice(self.turns)])
            if canary not in self.withheld:
                await self.memory.correct(message_id, "The lamp has no name.", subject="ana")
                self.withheld.add(canary)


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_model_is_never_sent_what_is_withheld(seed: int, tmp_path: Path) -> None:
    async def live(model: ModelServer) -> None:
        curator = chat_curator("small", base_url=f"{model.url}/v1", first_wait_seconds=0.001)
        async with hosting(str(tmp_path / "memory.db"), curator=curator) as host:
            history = History(host, AsyncMemory(host.engine), model, random.Random(seed))
            # Something is known, and shown, before anything is withheld.
            for deed in (history.say_openly, history.flush, history.work) * 2:
                await deed()
            assert model.asked[-1].shown["known"]
            for _ in range(STEPS):
                await history.step()
            await history.step(history.flush)
            await history.step(history.work)

    with model_server() as model:
        asyncio.run(live(model))
