"""The time of `recall` over HTTP, less an echo, beside the same `recall` in process, in the same run.

`python -m bench.runtime.transports [--memories 10000] [--rounds 300]`: one user with that many memories in a SQLite
file, of which the service has a copy. The service, in a process of its own, has a further route, `/echo`, which only
this benchmark serves: it verifies the key and returns its JSON, behind the same edge. A recall in this process, one
over HTTP and an echo take turns, each query once, on one connection. The first of each are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse

from bench.engine.corpus import Corpus
from holdfast.app import Engine, open_engine
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.runtime_api.retrieval import MemoryRecallRequest
from holdfast.gateway import server
from holdfast.gateway.app import create_route_app, make_adapter
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import wrap_app
from holdfast.gateway.edge.observers import Metrics
from holdfast.library import AsyncMemory
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.settings import read_settings

SUBJECT = "ana"
_HERE = {"subject": SUBJECT, "app": "default", "project": "default"}
_AT_ONCE = 500
_WARM_UP = 30
_CONFIG = GatewayConfig(
    operator_token="operator-token-of-the-benchmarks", port=0, rate_per_minute=0, request_logs=False
)

# --- the service ------------------------------------------------------------------------------------------------------


def add_echo(app: FastAPI, engine: Engine) -> None:
    @app.post("/echo")
    async def echo(request: Request) -> JSONResponse:
        actor = await engine.actor_of(request.headers["authorization"].removeprefix("Bearer "))
        assert actor is not None
        return JSONResponse(await request.json())


def serve(place: str) -> None:
    """Serve the store on a free port, which is printed."""
    sockets, metrics = server.listen(_CONFIG), Metrics()

    async def run_service() -> None:
        engine = await open_engine(place, read_settings(), work=False, routed=True)
        try:
            app = create_route_app(engine, engine, _CONFIG, metrics)
            add_echo(app, engine)
            edge = wrap_app(app, _CONFIG, metrics, guard=app.state.guard)
            await server.serve(edge, _CONFIG, metrics, sockets, lambda at: print(at.port, flush=True))
        finally:
            await engine.close()

    server.run(run_service())


@contextmanager
def serving(place: str) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.runtime.transports", "--serve", place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


# --- the measurement --------------------------------------------------------------------------------------------------


async def fill(engine: Engine, count: int, corpus: Corpus) -> str:
    """Fill the store, and return the user's key."""
    memory = AsyncMemory(engine)
    for done in range(0, count, _AT_ONCE):
        texts = corpus.texts(min(_AT_ONCE, count - done))
        await asyncio.gather(*(memory.remember(text, **_HERE) for text in texts))
        print(f"\r{done + len(texts):,} memories", end="", file=sys.stderr)
    print(file=sys.stderr)
    key = (await memory.create_user(SUBJECT)).key
    assert key is not None
    return key


def ask(connection: http.client.HTTPConnection, path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    found: dict[str, Any] = json.loads(answer.read())
    assert answer.status == 200, found
    return found


def timed(call: Callable[[], Any], into: list[float]) -> Any:
    start = time.perf_counter()
    answer = call()
    into.append((time.perf_counter() - start) * 1000)
    return answer


def runtime_of(engine: Engine) -> AsyncMemoryRuntime:
    """The runtime in this process that the user's key has in the service."""
    identity = MemoryIdentity("default", SUBJECT, None, "default", "default")
    governance = replace(make_adapter(_CONFIG).governance, identity=identity)
    return AsyncMemoryRuntime(engine, Actor(ActorKind.USER, SUBJECT, "default"), governance)


def measured(engine: Engine, loop: asyncio.Runner, port: int, key: str, queries: list[str]) -> dict[str, Any]:
    runtime, connection = runtime_of(engine), http.client.HTTPConnection("127.0.0.1", port)
    here: list[float] = []
    there: list[float] = []
    echoes: list[float] = []

    async def recall(query: str) -> Any:
        return await runtime.recall(MemoryRecallRequest(query))

    for query in queries:
        body = {"query": query}
        report = timed(lambda query=query: loop.run(recall(query)), here)  # type: ignore[misc]
        answer = timed(lambda body=body: ask(connection, "/memory/recall", key, body), there)  # type: ignore[misc]
        timed(lambda body=body: ask(connection, "/echo", key, body), echoes)  # type: ignore[misc]
        found = [hit["id"] for hit in answer["report"]["working"]["hits"]]
        assert found == [hit.id for hit in report.working.hits], "both must do the same work"
    in_process, over_http, echo = (statistics.median(each[_WARM_UP:]) for each in (here, there, echoes))
    return {
        "in_process_p50_ms": in_process,
        "http_p50_ms": over_http,
        "echo_p50_ms": echo,
        "ratio_p50": (over_http - echo) / in_process,
    }


def run(memories: int, rounds: int, folder: Path) -> dict[str, Any]:
    place, twin, corpus = folder / "memory.db", folder / "twin.db", Corpus(6)
    with asyncio.Runner() as loop:
        engine = loop.run(open_engine(str(place), read_settings(), work=False))
        key = loop.run(fill(engine, memories, corpus))
        loop.run(engine.close())
        # Each process has a store of its own: the commits of one would drop what the other has cached.
        shutil.copy(place, twin)
        engine = loop.run(open_engine(str(place), read_settings(), work=False))
        try:
            with serving(str(twin)) as port:
                found = measured(engine, loop, port, key, list(corpus.queries(rounds + _WARM_UP)))
        finally:
            loop.run(engine.close())
    return {"memories": memories, "rounds": rounds, **found}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--serve", metavar="STORE", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.memories, given.rounds, Path(folder))
    for name, value in found.items():
        print(f"{name:20} {value:,.2f}" if isinstance(value, float) else f"{name:20} {value:,}")


if __name__ == "__main__":
    main()
