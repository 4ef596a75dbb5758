"""A server on loopback that answers chat completions as a script says, in the form of an OpenAI-compatible endpoint.

A script names messages by their place in its conversation and known memories by their text. A request shows both under
numbers of its own, so the server looks them up there: in any JSON within the request's messages, in objects with `text`
and either `message` or `known`. What the request does not show gets a number that it does not show either, as a model
would invent one; `invented` lists these texts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_INVENTED = 999


@dataclass(frozen=True, slots=True)
class ScriptedMemory:
    """A memory in a model's answer: what it says of messages and of known memories, right or wrong."""

    text: str
    messages: tuple[int, ...]
    relation: str
    known: str | None
    since: str | None
    until: str | None


@dataclass(slots=True)
class Script:
    """The conversation that is learned from now, and the answer about it."""

    conversation: Sequence[str] = ()
    answer: Sequence[ScriptedMemory] = ()
    requests: int = 0
    invented: list[str] = field(default_factory=list)

    def reply(self, request: Any) -> str:
        """Return the answer, as JSON, in the numbers of the request."""
        self.requests += 1
        shown = list(_shown(request))
        messages = {_plain(each["text"]): each["message"] for each in shown if "message" in each}
        known = {_plain(each["text"]): each["known"] for each in shown if "known" in each}
        return json.dumps({"memories": [self._entry(memory, messages, known) for memory in self.answer]})

    def _entry(self, memory: ScriptedMemory, messages: dict[str, int], known: dict[str, int]) -> dict[str, Any]:
        return {
            "text": memory.text,
            "messages": [self._message_number(place, messages) for place in memory.messages],
            "relation": memory.relation,
            "known": None if memory.known is None else self._number(memory.known, known),
            "since": memory.since,
            "until": memory.until,
        }

    def _message_number(self, place: int, messages: dict[str, int]) -> int:
        if not 1 <= place <= len(self.conversation):
            return _INVENTED
        return self._number(self.conversation[place - 1], messages)

    def _number(self, text: str, shown: dict[str, int]) -> int:
        if _plain(text) not in shown:
            self.invented.append(text)
        return shown.get(_plain(text), _INVENTED)


@contextmanager
def serve(script: Script) -> Iterator[str]:
    """Serve the script, which may be changed meanwhile; yield the endpoint's URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": script.reply(request)}
            usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
            body = json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: the report is on standard output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _shown(request: Any) -> Iterator[dict[str, Any]]:
    """Yield the numbered texts in all JSON that the request's messages hold."""
    for message in request["messages"]:
        try:
            yield from _numbered(json.loads(message["content"]))
        except ValueError:
            continue  # instructions in plain words


def _numbered(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _numbered(each)
    elif isinstance(value, dict):
        if "text" in value and ("message" in value or "known" in value):
            yield value
        else:
            yield from _numbered(list(value.values()))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
