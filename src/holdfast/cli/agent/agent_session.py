"""An open agent that answers one prompt after another. Ctrl-C cancels the current prompt, not the program.

Between prompts no event loop runs, so nothing else uses the terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer
import uuid_utils

from holdfast.errors import NotFound
from holdfast.settings import read_settings

if TYPE_CHECKING:
    from holdfast.agent.loader import EngineLoadResult
    from holdfast.agent.ports import SessionEvent, SessionSummary
    from holdfast.agent.result import AgentRunResult
    from holdfast.cli.agent.options import AgentOptions, SessionChoice
    from holdfast.cli.agent.screen import Screen

R = TypeVar("R")
_LATEST_SESSIONS = 10


class PromptCancelled(Exception):
    """The user cancelled a running prompt. The session records it.

    If it was `answered`, the answer is in the session; only the gateway may not have received it.
    """

    def __init__(self, *, answered: bool) -> None:
        super().__init__("cancelled")
        self.answered = answered


class AgentSession:
    """A session of an agent."""

    def __init__(self, runner: asyncio.Runner, loaded: EngineLoadResult, session_id: str | None) -> None:
        from holdfast.agent.loop import AgentLoop

        self._runner = runner
        self._loop = AgentLoop(loaded)
        self.loaded = loaded
        self.named = session_id is not None
        self.session_id = session_id or new_session()

    def start_new(self) -> None:
        self.session_id = new_session()

    def say(self, prompt: str, screen: Screen) -> AgentRunResult:
        """Answer a prompt, or raise `PromptCancelled`. A second Ctrl-C during the cancellation ends the program."""
        ended = False

        async def answer() -> AgentRunResult:
            nonlocal ended
            try:
                screen.wait()
                return await self._loop.run(prompt, self.session_id, watch=screen.watch)
            finally:
                ended = True

        try:
            return self._runner.run(answer())
        except (KeyboardInterrupt, asyncio.CancelledError):
            if not ended:
                raise typer.Abort from None
        finally:
            screen.close()
        raise PromptCancelled(answered=screen.answered)

    def earlier_events(self) -> tuple[SessionEvent, ...]:
        """The session's earlier messages."""
        return self.wait(self.loaded.sessions.events(self.session_id, visible=True))

    def earlier_prompts(self) -> list[str]:
        """The user's prompts in the latest sessions, oldest first."""
        from holdfast.agent.ports import Role

        async def read_prompts() -> list[str]:
            found: list[str] = []
            for session in reversed(await self.loaded.sessions.sessions(_LATEST_SESSIONS)):
                events = await self.loaded.sessions.events(session.id, visible=True)
                found += [event.content for event in events if event.role is Role.USER]
            return found

        return self.wait(read_prompts())

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        return self._runner.run(work)


def new_session() -> str:
    return str(uuid_utils.uuid7())


@contextmanager
def open_session(chosen: AgentOptions, talk: SessionChoice) -> Iterator[AgentSession]:
    """Load the agent, choose the session, and close everything at the end."""
    from holdfast.agent.loader import EngineLoader

    settings = read_settings()
    config = chosen.config(settings)
    with asyncio.Runner() as runner:
        loaded = runner.run(EngineLoader(chosen.workspace, settings=settings, config=config).load())
        try:
            session_id = runner.run(_latest(loaded)) if talk.continue_ else talk.session
            yield AgentSession(runner, loaded, session_id)
        finally:
            runner.run(loaded.close())


async def _latest(loaded: EngineLoadResult) -> str:
    found: tuple[SessionSummary, ...] = await loaded.sessions.sessions(1)
    if not found:
        raise NotFound("there is no session to continue yet; leave --continue out")
    return found[0].id
