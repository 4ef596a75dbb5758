"""A real HTTP server with the APIs of models: OpenAI's chat completions, as Ollama speaks them too, and Anthropic's
messages. It records what it is sent, and answers as a test says.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/messages"
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
Shown = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its path, its headers with names in small letters, its body, and what it shows to the model."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def shown(self) -> Shown:
        found: Shown = json.loads(self.body["messages"][-1]["content"] if self.path == COMPLETIONS else self._block)
        return found

    @property
    def _block(self) -> str:
        return str(self.body["messages"][-1]["content"][0]["text"])


@dataclass
class ModelServer:
    """`reply` makes the answer of what is shown: memories, any text, or a status."""

    url: str
    reply: Callable[[Shown], Any]
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def texts(self) -> list[str]:
        """The texts of all messages and known memories that were sent."""
        return [
            each["text"]
            for request in self.asked
            for each in (*request.shown["messages"], *request.shown["known"])
        ]  # fmt: skip


def fact(text: str, *messages: int, relation: str = "new", known: Any = None, **dates: Any) -> dict[str, Any]:
    return {
        "text": text,
        "messages": messages,
        "relation": relation,
        "known": known,
        "since": None,
        "until": None,
    } | dates


def repeat_user(shown: Shown) -> list[dict[str, Any]]:
    """Propose each message of the user, word for word."""
    return [fact(said["text"], said["message"]) for said in shown["messages"] if said["role"] == "user"]


@contextmanager
def model_server(reply: Callable[[Shown], Any] = repeat_user) -> Iterator[ModelServer]:
    """Serve until the context ends. An answer of None is none: the connection hangs until then."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            server.asked.append(asked)
            answer = server.reply(asked.shown)
            if answer is None:
                server.released.wait(30)
                self.close_connection = True
            elif isinstance(answer, int):
                self._send(answer, "application/json", b'{"error": {"message": "canary"}}')
            else:
                text = answer if isinstance(answer, str) else json.dumps({"memories": answer})
                streams = self.path == MESSAGES
                sent = _as_events(text) if streams else _as_completion(text)
                self._send(200, "text/event-stream" if streams else "application/json", sent)

        def _send(self, status: int, media_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = ModelServer(f"http://127.0.0.1:{listening.server_address[1]}", reply)
    thread = threading.Thread(target=lambda: listening.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        listening.shutdown()
        listening.server_close()
        thread.join(10)


def _as_completion(text: str) -> bytes:
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()


def _as_events(text: str) -> bytes:
    begun = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude", "stop_reason": None}
    events = [
        {"type": "message_start", "message": begun | {"usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()
