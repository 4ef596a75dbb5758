"""A real server for tests: uvicorn in a thread, the verbs' routes, an engine on a store of the test's own.

Who is calling is told by a token, without a directory of users; `broken` answers as proxies and worse do.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse

from holdfast.app import Engine, open_engine
from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.errors import HoldfastError, InvalidInput, NotFound, Unauthenticated
from holdfast.gateway import verbs
from holdfast.ports import Embedder, Verb
from holdfast.settings import Settings
from holdfast.wire import error_body

OPERATOR_KEY = "operator-token-of-the-tests"
USER_KEY = "uk_of-ana-in-the-tests"
CALLERS = {
    OPERATOR_KEY: Actor(ActorKind.OPERATOR, "local"),
    USER_KEY: Actor(ActorKind.USER, "ana", "default"),
    "uk_of-ben-in-the-tests": Actor(ActorKind.USER, "ben", "tenant"),
}


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    engine: Engine


async def caller(request: Request) -> Actor:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if given not in CALLERS:
        raise Unauthenticated("the key is not known")
    return CALLERS[given]


def verbs_app(engine: Engine) -> FastAPI:
    async def perform(request: Request, action: Action, make: Callable[[], Verb[Any]]) -> Any:
        return await engine.perform(await caller(request), action, make, space="default")

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HoldfastError)
        kinds = {Unauthenticated: 401, InvalidInput: 422, NotFound: 404}
        status = next((status for kind, status in kinds.items() if isinstance(error, kind)), 500)
        return JSONResponse(error_body(error), status)

    app = FastAPI()
    app.include_router(verbs.router(perform, caller))
    app.add_exception_handler(HoldfastError, refused)
    return app


class _Server(uvicorn.Server):
    """Tells when it listens; leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI app."""
    # Named as TCP: asyncio sends small answers at once only on sockets that say so.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=10))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    assert server.up.wait(30), "the server did not start"
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@contextmanager
def served(location: str, embedder: str | Embedder = "fake") -> Iterator[Served]:
    """A memory at `location`, behind a server that does no background work of its own."""
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(open_engine(location, Settings(), embedder=embedder, work=False))
    try:
        with serving(verbs_app(engine)) as url:
            yield Served(url, engine)
    finally:
        loop.run_until_complete(engine.close())
        loop.close()
