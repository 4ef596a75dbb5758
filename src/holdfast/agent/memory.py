"""An agent's memory around one turn, for the agent's own loop and for other loops.

    memory = AgentMemory.load()
    async with memory.turn(prompt, session) as turn:
        text = await my_model(system=turn.system, messages=[*turn.messages, ...])
        turn.answer(text)

Two independent layers: the curated files, frozen when the turn begins, and the gateway, which recalls before the turn
and stores it afterwards. A turn that raises, or that has no answer, is not stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.agent.config import AgentConfig, read_config
from holdfast.agent.curated import MemoryService, MemorySnapshot, MemoryStore
from holdfast.agent.gateway import REFERENCE_RULE, GatewayRecallOutcome, MemoryGatewayService, Record
from holdfast.domain.checks import checked_text
from holdfast.domain.scope import check_part
from holdfast.errors import InvalidInput

_log = logging.getLogger("holdfast.agent")


class Turn:
    """Memory for one prompt. `answer` takes the agent's answer."""

    def __init__(self, snapshot: MemorySnapshot | None, recall: GatewayRecallOutcome | None) -> None:
        self.snapshot = snapshot
        self.recall = recall
        self.final_answer: tuple[str, datetime] | None = None
        """The answer and its time, if there is one."""

    def __repr__(self) -> str:
        return f"Turn(curated={self.snapshot is not None}, recalled={len(self.recall.items) if self.recall else 0})"

    @property
    def system(self) -> str:
        """Text for the system prompt: the curated files and, if there is a gateway, the rule for recalled text.

        It holds no recalled text.
        """
        parts = [self.snapshot.block if self.snapshot else "", REFERENCE_RULE if self.recall else ""]
        return "\n\n".join(part for part in parts if part)

    @property
    def messages(self) -> list[dict[str, str]]:
        """Messages for this turn alone, to stand before the history and the prompt: recalled text, if any."""
        return [{"role": "user", "content": self.recall.message}] if self.recall and self.recall.message else []

    def answer(self, text: str) -> None:
        """Record the agent's final answer. It is stored if the turn ends without an error; a blank one is not."""
        if not isinstance(text, str):
            raise InvalidInput("text", f"expected text, got {type(text).__name__}")
        self.final_answer = (text, datetime.now(UTC)) if text.strip() else None


class AgentMemory:
    """The layers of an agent's memory; either may be missing."""

    def __init__(self, curated: MemoryService | None, gateway: MemoryGatewayService | None) -> None:
        self.curated = curated
        self.gateway = gateway

    @classmethod
    def load(cls, workspace: Path | str | None = None) -> Self:
        """Load the layers that a workspace's config file names; its warnings go to the log `holdfast.agent`."""
        config = read_config(workspace)
        for warning in config.warnings:
            _log.warning("%s", warning)
        return cls.from_config(config)

    @classmethod
    def from_config(cls, config: AgentConfig) -> Self:
        """Build the layers of the configured mode. Creates no file and makes no call yet."""
        memory = config.memory
        curated = gateway = None
        if memory.mode.has_curated:
            store = MemoryStore(config.memories, memory_chars=memory.memory_chars, user_chars=memory.user_chars)
            curated = MemoryService(store)
        if memory.gateway is not None:
            gateway = MemoryGatewayService(memory.gateway, assistant_id=config.agent_id)
        return cls(curated, gateway)

    @asynccontextmanager
    async def turn(self, prompt: str, session: str, *, record: Record | None = None) -> AsyncIterator[Turn]:
        """Open a turn: one prompt and its answer. `record` receives the audit event of each gateway call."""
        prompted_at = datetime.now(UTC)
        checked_text(prompt, "prompt")
        check_part("session", session)
        turn = Turn(*await self._read_layers(session, prompt))
        if turn.recall is not None and record is not None:
            await record(turn.recall.event)
        yield turn
        # An error in the turn is raised at the `yield`, so only a successful turn comes this far.
        if self.gateway is None or turn.final_answer is None:
            return
        text, answered_at = turn.final_answer
        await self.gateway.persist_after_run(
            session, prompt, text, prompted_at=prompted_at, answered_at=answered_at, record=record
        )

    async def _read_layers(
        self, session: str, prompt: str
    ) -> tuple[MemorySnapshot | None, GatewayRecallOutcome | None]:
        """Read both layers concurrently."""
        if self.gateway is None:
            return await self._snapshot(), None
        recalling = asyncio.create_task(self.gateway.recall_before_run(session, prompt))
        try:
            return await self._snapshot(), await recalling
        finally:
            # No effect on success, when it is done. After an error nothing waits for it.
            recalling.cancel()

    async def _snapshot(self) -> MemorySnapshot | None:
        return None if self.curated is None else await self.curated.snapshot()

    async def close(self) -> None:
        """Wait for calls in progress, and close the connections."""
        if self.gateway is not None:
            await self.gateway.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
