"""A real gateway for tests: an engine, the whole app with its edge, uvicorn, and a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi.routing import APIRoute

from holdfast.app import open_engine
from holdfast.gateway.app import create_app, create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics
from holdfast.ports.provider import Providers
from holdfast.settings import Settings
from serving import Prompt

TOKEN = "operator-token-of-the-tests"
MOMENT = 1_780_000_000_000


def table() -> list[APIRoute]:
    """All routes of the service, with their access rules."""
    app = create_route_app(None, None, GatewayConfig(operator_token=TOKEN), Metrics())  # type: ignore[arg-type]
    found: list[APIRoute] = app.state.table
    return found


def send_target(http: httpx2.Client, method: str, target: str, **more: Any) -> httpx2.Response:
    """Send a request with this path as it is. By itself, a client removes dot segments and empty ones."""
    return http.request(method, "/", extensions={"target": target.encode()}, **more)


@dataclass(frozen=True)
class Visitor:
    """A user with its key, and the requests that it sends."""

    http: httpx2.Client
    user_id: str
    key: str
    app_id: str = "default"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def signed(self) -> dict[str, str]:
        return {"user_id": self.user_id, "user_key": self.key, "app_id": self.app_id, "project_id": "default"}

    def add(self, *texts: str, session: str = "chat:one", at: int = MOMENT, **more: Any) -> httpx2.Response:
        messages = [
            {"sender_id": self.user_id, "role": "user", "timestamp": at + index, "content": text}
            for index, text in enumerate(texts)
        ]
        return self.http.post(
            "/memories/add", json={**self.signed, "session_id": session, "messages": messages}, **more
        )

    def flush(self, session: str = "chat:one") -> httpx2.Response:
        return self.http.post("/memories/flush", json={**self.signed, "session_id": session})

    def search(self, query: str, *scopes: str, **more: Any) -> httpx2.Response:
        asked = {"conversation_id": "one", "scope": list(scopes or ("all_user_memory",)), **more}
        return self.http.post("/memories/search", json={**self.signed, "query": query, **asked})

    def texts(self, query: str, *scopes: str, **more: Any) -> list[str]:
        answer = self.search(query, *scopes, **more)
        assert answer.status_code == 200, answer.text
        return [found["text"] for found in answer.json()["results"]]

    def upload(
        self, content: bytes, name: str = "notes.txt", media_type: str = "text/plain", **more: Any
    ) -> httpx2.Response:
        return self.http.post("/resources", data=self.signed, files={"file": (name, content, media_type)}, **more)


@dataclass
class Gateway:
    url: str
    http: httpx2.Client
    token: str
    visitors: dict[str, Visitor] = field(default_factory=dict)

    @property
    def operator(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def user(self, user_id: str) -> Visitor:
        if user_id not in self.visitors:
            made = self.http.post("/users", json={"user_id": user_id}, headers=self.operator)
            assert made.status_code == 201, made.text
            self.visitors[user_id] = Visitor(self.http, user_id, made.json()["user_key"])
        return self.visitors[user_id]


@contextmanager
def serving(
    location: Path | str,
    *,
    token: str = TOKEN,
    work: bool = True,
    providers: Providers | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Iterator[Gateway]:
    """Run a gateway in a thread. Without `work`, queued jobs stay queued."""
    config = GatewayConfig(**{"operator_token": token, "request_logs": False, **options})
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that name TCP.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    port = listening.getsockname()[1]
    ready, servers = threading.Event(), list[Prompt]()

    async def run() -> None:
        metrics = Metrics()
        engine = await open_engine(
            str(location), settings or Settings(), watcher=metrics.memory, routed=True, work=work, providers=providers
        )
        if work:
            engine.start_worker()
        try:
            app = create_app(engine, engine, config.at(port), metrics)
            server = Prompt(uvicorn.Config(app, log_config=None, lifespan="off", loop="asyncio"))
            servers.append(server)
            ready.set()
            await server.serve([listening])
        finally:
            await engine.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="gateway")
    thread.start()
    try:
        assert ready.wait(30), "the gateway did not start"
        url = f"http://127.0.0.1:{port}"
        with httpx2.Client(base_url=url, timeout=30) as http:
            yield Gateway(url, http, token)
    finally:
        for server in servers:
            server.end()
        thread.join(30)
