"""An agent's memory around one turn, for the agent's own loop and for whoever has another.

    memory = AgentMemory.load()
    async with memory.turn(prompt, session) as turn:
        text = await my_model(system=turn.system, messages=[*turn.messages, ...])
        turn.answer(text)

Two layers that know nothing of each other: the curated files, frozen as they are when the turn begins, and the gateway,
which recalls before and is told the turn after. A turn that raises, or that has no answer, is told to nobody.
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
from holdfast.domain.scope import check_part
from holdfast.domain.text import checked_text
from holdfast.errors import InvalidInput

_log = logging.getLogger("holdfast.agent")


class Turn:
    """What memory has to say to one prompt, and the place to leave the answer."""

    def __init__(self, snapshot: MemorySnapshot | None, recall: GatewayRecallOutcome | None) -> None:
        self.snapshot = snapshot
        self.recall = recall
        self._answer: tuple[str, datetime] | None = None

    def __repr__(self) -> str:
        return f"Turn(curated={self.snapshot is not None}, recalled={len(self.recall.items) if self.recall else 0})"

    @property
    def system(self) -> str:
        """For the system prompt: the curated files, and how to take what a gateway recalls if there is one.

        Nothing that was recalled is in it.
        """
        parts = [self.snapshot.block if self.snapshot else "", REFERENCE_RULE if self.recall else ""]
        return "\n\n".join(part for part in parts if part)

    @property
    def messages(self) -> list[dict[str, str]]:
        """For this turn alone, before what was said and the prompt: what the gateway recalled, if it did."""
        return [{"role": "user", "content": self.recall.message}] if self.recall and self.recall.message else []

    def answer(self, text: str) -> None:
        """What the agent answered at last. It is kept when the turn ends well; one without a word is not."""
        if not isinstance(text, str):
            raise InvalidInput("text", f"expected text, got {type(text).__name__}")
        self._answer = (text, datetime.now(UTC)) if text.strip() else None

    @property
    def answered(self) -> tuple[str, datetime] | None:
        """The answer and when it was given, if there is one."""
        return self._answer


class AgentMemory:
    """The layers that there are: either may be missing."""

    def __init__(self, curated: MemoryService | None, gateway: MemoryGatewayService | None) -> None:
        self.curated = curated
        self.gateway = gateway

    @classmethod
    def load(cls, workspace: Path | str | None = None) -> Self:
        """As the config file of a workspace says; what it warns of goes to the log `holdfast.agent`."""
        config = read_config(workspace)
        for warning in config.warnings:
            _log.warning("%s", warning)
        return cls.configured(config)

    @classmethod
    def configured(cls, config: AgentConfig) -> Self:
        """The layers of the mode. No file is made and nobody is called yet."""
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
        """One prompt and its answer. `record` is told what came of each call to the gateway, as it comes."""
        prompted_at = datetime.now(UTC)
        checked_text(prompt, "prompt")
        check_part("session", session)
        turn = Turn(*await self._before(session, prompt))
        if turn.recall is not None and record is not None:
            await record(turn.recall.event)
        yield turn
        # Whatever is raised in the turn is raised at the `yield`: only what ended well comes this far.
        if self.gateway is None or turn.answered is None:
            return
        text, answered_at = turn.answered
        await self.gateway.persist_after_run(
            session, prompt, text, prompted_at=prompted_at, answered_at=answered_at, record=record
        )

    async def _before(self, session: str, prompt: str) -> tuple[MemorySnapshot | None, GatewayRecallOutcome | None]:
        """Both at once: neither waits for the other."""
        if self.gateway is None:
            return await self._snapshot(), None
        recalling = asyncio.create_task(self.gateway.recall_before_run(session, prompt))
        try:
            return await self._snapshot(), await recalling
        finally:
            # Not if all is well: it is done then. Else nobody waits for it any more.
            recalling.cancel()

    async def _snapshot(self) -> MemorySnapshot | None:
        return None if self.curated is None else await self.curated.snapshot()

    async def close(self) -> None:
        """Finish what is under way, and let go of the connections."""
        if self.gateway is not None:
            await self.gateway.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
