"""A gateway process that can be killed, and callers that record what was acknowledged."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass, field

from faults import points
from faults.zygote import Tell
from holdfast.app import open_engine
from holdfast.gateway import server
from holdfast.gateway.app import create_app, create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics
from holdfast.settings import Settings

TOKEN = "operator-token-of-the-tests"


def before_forks() -> None:
    """Build and cache the schemas of all routes, which takes most of a service's start-up time."""
    create_route_app(None, None, GatewayConfig(operator_token=TOKEN), Metrics())  # type: ignore[arg-type]


def serve(tell: Tell, location: str, embedder: str = "fake", die_at: str | None = None, passage: int = 1) -> None:
    """Run the whole service on a free port, and report the port. It dies at the n-th passage of this point."""
    config = GatewayConfig(operator_token=TOKEN, port=0, request_logs=False, rate_per_minute=0, open_sign_up=True)
    sockets, metrics = server.listen(config), Metrics()

    def listening(at: GatewayConfig) -> None:
        if die_at is not None:
            points.die_at(die_at, passage)
        tell(port=at.port)

    async def main() -> None:
        engine = await open_engine(location, Settings(), embedder=embedder, work=die_at is None)
        if die_at is None:
            engine.start_worker()
        try:
            app = create_app(engine, engine, config, metrics)
            await server.serve(app, config, metrics, sockets, listening)
        finally:
            await engine.close()

    server.run(main())


@dataclass
class Acknowledged:
    """Acknowledged messages: text by id."""

    texts: dict[str, str] = field(default_factory=dict)
    turns: int = 0


class Callers:
    """Threads that add turns of two messages and flush them, until the service is gone."""

    def __init__(self, port: int, key: str, count: int, name: str, acknowledged: Acknowledged) -> None:
        self._port, self._key, self._name, self._acknowledged = port, key, name, acknowledged
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]
        self.began = threading.Event()
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        turn = 0
        try:
            while True:
                turn += 1
                texts = [f"{self._name} caller {number} turn {turn} says {word}" for word in ("this", "that")]
                told = post(connection, "/memories/add", self._key, turn_of(f"chat:{self._name}-{number}", texts, turn))
                for record_id, text in zip(told["message_ids"], texts, strict=True):
                    self._acknowledged.texts[record_id] = text
                self._acknowledged.turns += 1
                self.began.set()
                post(connection, "/memories/flush", self._key, {"session_id": f"chat:{self._name}-{number}"})
        except (OSError, http.client.HTTPException):
            return
        finally:
            self.began.set()
            connection.close()


def turn_of(session: str, texts: list[str], turn: int) -> dict[str, object]:
    roles = ("user", "assistant")
    messages = [
        {"sender_id": role, "role": role, "timestamp": 1_780_000_000_000 + 10 * turn + index, "content": text}
        for index, (role, text) in enumerate(zip(roles, texts, strict=True))
    ]
    return {"session_id": session, "messages": messages}


def post(connection: http.client.HTTPConnection, path: str, key: str, body: object) -> dict[str, list[str]]:
    """Post; return the answer, which must be a success."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    found: dict[str, list[str]] = json.loads(content)
    return found
