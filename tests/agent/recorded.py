"""A real gateway that records its requests and can be made to fail; agents, each in its own folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.agent.loader import EngineLoader, EngineLoadResult
from holdfast.agent.loop import AgentLoop
from holdfast.agent.ports import ModelMessage, Reply, Role, SessionEvent, ToolCall
from holdfast.agent.providers.scripted import ScriptedCall, ScriptedModel
from holdfast.app import open_engine
from holdfast.client import ChatMessage, GatewayClient
from holdfast.settings import Settings
from serving import USER_KEY, gateway, serving

SEARCH, ADD, FLUSH = "/memories/search", "/memories/add", "/memories/flush"
LEGS = (SEARCH, ADD, FLUSH)


@dataclass
class Recorded:
    """`journal` lists request paths in order, plus entries that tests add; `sent` lists each path with its body."""

    url: str = ""
    journal: list[str] = field(default_factory=list)
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for where, body in self.sent if where == path]

    def config(self, **more: Any) -> dict[str, Any]:
        return {"baseUrl": self.url, "userId": "ana", "userKey": USER_KEY, **more}

    def forget(self) -> None:
        self.journal.clear()
        self.sent.clear()

    async def remember(self, session: str, *texts: str) -> None:
        """Add earlier messages to a session."""
        async with GatewayClient(self.url, "ana", USER_KEY) as client:
            await client.add(
                session, [ChatMessage("ana", "user", 1780000000000 + at, text) for at, text in enumerate(texts)]
            )
            await client.flush(session)
        self.forget()


class _Recording:
    """Middleware around the service: record each request, then forward it or answer with a failure."""

    def __init__(self, app: Any, recorded: Recorded) -> None:
        self._app = app
        self._recorded = recorded

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self._recorded.journal.append(scope["path"])
        self._recorded.sent.append((scope["path"], json.loads(body) if body else {}))
        if status := self._recorded.failing.get(scope["path"]):
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": body})  # echoes the request, including its key
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        await self._app(scope, again, send)


@contextmanager
def recorded(location: Path) -> Iterator[Recorded]:
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(open_engine(str(location), Settings(), embedder="fake", work=False))
    told = Recorded()
    try:
        with gateway(engine) as app, serving(_Recording(app, told)) as url:
            told.url = url
            yield told
    finally:
        loop.run_until_complete(engine.close())
        loop.close()


# --- agents ---------------------------------------------------------------------------------------------------------


@dataclass
class Agent:
    loaded: EngineLoadResult
    loop: AgentLoop
    model: ScriptedModel

    async def events(self, session_id: str) -> tuple[SessionEvent, ...]:
        return await self.loaded.sessions.events(session_id)

    async def kinds(self, session_id: str) -> list[str]:
        return [event.kind for event in await self.events(session_id)]


def configured(workspace: Path, memory: dict[str, Any] | None = None, **agent: Any) -> Path:
    """Write a config file into `workspace`. Without `memory`, the file has no such section."""
    home = workspace / ".holdfast"
    home.mkdir(parents=True, exist_ok=True)
    written = {**({"memory": memory} if memory is not None else {}), **({"agent": agent} if agent else {})}
    (home / "config.json").write_text(json.dumps(written))
    return workspace


def curate(workspace: Path, *, user: str = "", memory: str = "") -> dict[str, Path]:
    folder = workspace / ".holdfast" / "memories"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"user": folder / "USER.md", "memory": folder / "MEMORY.md"}
    for name, text in (("user", user), ("memory", memory)):
        if text:
            files[name].write_text(text + "\n")
    return files


@asynccontextmanager
async def agent(workspace: Path, *replies: Any, tools: Any = ()) -> AsyncIterator[Agent]:
    model = ScriptedModel(replies)
    async with await EngineLoader(workspace, settings=Settings(), model=model, tools=tools).load() as loaded:
        yield Agent(loaded, AgentLoop(loaded), model)


def calls(*named: tuple[str, dict[str, Any]], text: str = "") -> Reply:
    """A reply with tool calls."""
    return Reply(text, tuple(ToolCall(f"call_{at}", name, json.dumps(given)) for at, (name, given) in enumerate(named)))


def system_of(asked: ScriptedCall) -> str:
    first, *others = asked.messages
    assert first.role is Role.SYSTEM
    assert not [message for message in others if message.role is Role.SYSTEM]
    return first.content


def outside_of(asked: ScriptedCall) -> list[ModelMessage]:
    """All messages except the system prompt."""
    return list(asked.messages[1:])
