"""Once a request to mask or delete is answered, no later call shows the withheld content."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from lives import Elsewhere
from test_withheld_traces import CHAT, Host
from writers import Proposing

from holdfast.app import open_engine
from holdfast.sdk import (
    MemoryExportRequest,
    MemoryMaintainRequest,
    MemoryProjectionRequest,
    MemoryRecallRequest,
    MemorySpaceExportRequest,
    MemoryTranscriptReplayRequest,
)
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr

Call = Callable[[Host], Awaitable[Any]]
READS: dict[str, Call] = {
    "search": lambda host: host.memory.search("canary"),
    "recall": lambda host: host.runtime.recall(MemoryRecallRequest("canary", scope=CHAT)),
    "project": lambda host: host.runtime.project(MemoryProjectionRequest("canary", scope=CHAT)),
    "replay": lambda host: host.runtime.replay_transcript(MemoryTranscriptReplayRequest("raw_owner_only", CHAT)),
    "export": lambda host: host.runtime.export(MemoryExportRequest(scope=CHAT, include_private=True)),
    "space": lambda host: host.runtime.export_space(MemorySpaceExportRequest(include_private=True)),
    "browse": lambda host: host.memory.browse(),
    "list": lambda host: host.memory.list(),
}


@pytest.mark.parametrize("transition", ["mask", "delete_raw"])
def test_whoever_asks_after_it_was_withheld_is_not_shown_it(location: str, transition: str) -> None:
    async def whole() -> None:
        # Maintenance waits in the model until the turn is withheld.
        asked, go_on = asyncio.Event(), asyncio.Event()
        curator = Resting(asked, go_on)
        embedder = Elsewhere()
        engine = await open_engine(location, Settings(), embedder=embedder, curator=curator, work=False)
        host = Host(engine, embedder)
        over = False
        shown_before = shown_after = 0

        async def read_on(call: Call) -> None:
            nonlocal shown_before, shown_after
            for _ in range(8):
                began_after = over
                shown = "canary" in full_repr(await call(host)).replace("'canary'", "")
                shown_before += shown and not began_after
                shown_after += shown and began_after
                await asyncio.sleep(0)

        async def withhold() -> None:
            nonlocal over
            await asyncio.wait_for(asked.wait(), 60)
            await host.age(transition)
            over = True
            go_on.set()

        try:
            await host.say("I keep a canary in the house.")
            learning = asyncio.create_task(host.runtime.maintain(MemoryMaintainRequest(scope=CHAT)))
            await asyncio.gather(withhold(), *(read_on(call) for call in READS.values()))
            for call in READS.values():
                assert "canary" not in full_repr(await call(host)).replace("'canary'", "")
            assert shown_before
            assert not shown_after
            # The model's proposals come too late to be learned.
            learned = await learning
            assert learned.semantic_governance.accepted == 0
            assert await host.memory.search("house", kind="memory") == ()
        finally:
            await engine.close()

    asyncio.run(whole())


class Resting(Proposing):
    """A model that gets the texts, and answers when the test lets it."""

    def __init__(self, asked: asyncio.Event, go_on: asyncio.Event) -> None:
        super().__init__(lambda messages: [(message.text, [message.id]) for message in messages])
        self._asked, self._go_on = asked, go_on

    async def curate(self, messages: Any) -> Any:
        self._asked.set()
        await asyncio.wait_for(self._go_on.wait(), 60)
        return await super().curate(messages)
