"""Connection limits and timeouts that uvicorn leaves to a proxy: slow clients (slowloris) and clients that do not read.

uvicorn only closes an idle connection after a response. A client could take forever to send its first line, send
endless headers, keep sending a body after the response, or never read its response (backpressure). Each case has a
limit here. An ordinary request costs no timer: timers start only if headers arrive in pieces or a client does not
read.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics

MAX_HEADER_BYTES = 64 * 1024
MAX_PIPELINED = 64
# Timeout for a client that does not read its response, and for the rest of a body after the response.
STALLED_SECONDS = 30.0


def connection_protocol(config: GatewayConfig, metrics: Metrics) -> type[asyncio.Protocol]:
    """Create the protocol class for a server with these limits."""

    class ConfiguredConnection(GuardedConnection):
        limits = config
        counts = metrics

    return ConfiguredConnection


class GuardedConnection(HttpToolsProtocol):
    limits: GatewayConfig
    counts: Metrics

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        # True until the headers of the next request are complete; and the bytes of them received so far.
        self._in_headers = True
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._refuse(503, "Service Unavailable", "too_many_connections", "too many connections; try again shortly")
            return
        self._reading = self.loop.call_later(self.limits.header_seconds, self._headers_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_read_timeout()
        self._cancel_write_timeout()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_headers:
            # One read may contain the end of a request and the start of the next: counting all of it is close enough.
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._refuse(431, "Request Header Fields Too Large", "headers_too_large", "the headers are too large")
            elif self._reading is None:
                self._reading = self.loop.call_later(self.limits.header_seconds, self._headers_too_slow)
        elif self.cycle.response_complete and self._reading is None and self.timeout_keep_alive_task is None:
            # Bytes arrived between requests that start none, and uvicorn has stopped its keep-alive timer.
            self._reading = self.loop.call_later(self.limits.idle_seconds, self._headers_too_slow)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers = True

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        self._cancel_read_timeout()
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self.counts.count_rejection("too_many_pipelined")
            self.transport.abort()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._cancel_read_timeout()

    def on_response_complete(self) -> None:
        unread = self.cycle is not None and self.cycle.response_complete and self.cycle.more_body
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_write_timeout()
        elif unread and self._reading is None:
            # A response before the end of the request, such as an error: the rest may still arrive, but not forever.
            self._reading = self.loop.call_later(STALLED_SECONDS, self._body_timed_out)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._start_write_timeout()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_write_timeout()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._cancel_write_timeout()

    def send_400_response(self, msg: str) -> None:
        """Called for invalid HTTP. Aborts if a response has started: a second one must not be written into it."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.counts.count_rejection("invalid_http")
            self.transport.abort()
        else:
            self._refuse(400, "Bad Request", "invalid_http", "this is not an HTTP request")

    def _cancel_read_timeout(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _cancel_write_timeout(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _start_write_timeout(self) -> None:
        """Start the write timeout (backpressure). It also covers closing, which waits for unread data."""
        if self._writing is None:
            self._writing = self.loop.call_later(STALLED_SECONDS, self._write_timed_out)

    def _write_timed_out(self) -> None:
        self.counts.count_rejection("answer_not_read")
        self.transport.abort()

    def _headers_too_slow(self) -> None:
        """Respond 408 to incomplete headers; close silently if nothing was sent."""
        self._reading = None
        if self._header_bytes:
            self._refuse(408, "Request Timeout", "headers_too_slow", "the headers did not arrive in time")
        else:
            self.counts.count_rejection("connection_unused")
            self.transport.close()

    def _body_timed_out(self) -> None:
        self.counts.count_rejection("body_unwanted")
        self.transport.close()
        self._start_write_timeout()

    def _refuse(self, status: int, title: str, code: str, detail: str) -> None:
        """Send an error response without the app, which has no request yet, and close."""
        self.counts.count_rejection(code)
        problem = {
            "type": f"urn:holdfast:problem:{code}",
            "title": title,
            "status": status,
            "detail": detail,
            "code": code,
        }
        body = json.dumps(problem, separators=(",", ":")).encode("ascii")
        head = (
            f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
        self._start_write_timeout()
