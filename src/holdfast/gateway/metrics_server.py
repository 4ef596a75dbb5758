"""The HTTP endpoint for a worker's Prometheus metrics, on its own port.

Metrics and access are the same as for `holdfast serve`: only the holder of the operator token may read them, because
they contain space names.
"""

from __future__ import annotations

import hmac
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from holdfast.errors import ConfigurationError
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import MemoryCounters
from holdfast.gateway.operator_token import operator_token
from holdfast.gateway.server import listen
from holdfast.settings import Settings

PATH = "/metrics"
PORT_OPTION = "--metrics-port"
PATIENCE_SECONDS = 10.0  # timeout for reading the request and for writing the response
MOST_AT_ONCE = 16
_PLAIN = "text/plain; charset=utf-8"

Answer = tuple[int, str, bytes]


def metrics_config(host: str, port: int, settings: Settings, store: str) -> GatewayConfig:
    """Validate the address and the token before a store is opened."""
    if not 1 <= port <= 65_535:
        raise ConfigurationError(f"{PORT_OPTION}: {port} is not a port; choose one from 1 to 65535")
    return GatewayConfig.from_settings(settings, operator_token=operator_token(settings, store), host=host, port=port)


class MetricsServer:
    """Serves metrics. The constructor binds the sockets; `begin` starts answering. The engine reports to `memory`."""

    def __init__(self, config: GatewayConfig) -> None:
        self.url = f"{config.url}{PATH}"
        self._registry = CollectorRegistry()
        self.memory = MemoryCounters(self._registry)
        ProcessCollector(registry=self._registry)
        self._token = config.operator_token.encode()
        self._servers = [_MetricsHttpServer(bound, self) for bound in listen(config, port_option=PORT_OPTION)]

    def begin(self) -> None:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, name="holdfast-metrics", daemon=True).start()
            server.begun = True

    def close(self) -> None:
        for server in self._servers:
            if server.begun:
                server.shutdown()
            server.server_close()

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token):
            return _refusal(401, "send the operator token: Authorization: Bearer ...")
        if path.partition("?")[0] != PATH:
            return _refusal(404, f"unknown path; only {PATH} is served here")
        return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)


def _refusal(status: int, detail: str) -> Answer:
    return status, _PLAIN, f"{detail}\n".encode()


class _MetricsHttpServer(ThreadingHTTPServer):
    """One thread per connection, at most `MOST_AT_ONCE`; more connections are closed at once."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, bound: socket.socket, scraping: MetricsServer) -> None:
        super().__init__(bound.getsockname()[:2], _MetricsRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        self.scraping = scraping
        self.begun = False
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        self.server_activate()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback: most likely the client disconnected."""


class _MetricsRequestHandler(BaseHTTPRequestHandler):
    timeout = PATIENCE_SECONDS
    server: _MetricsHttpServer

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, media_type, body = self.server.scraping.answer(self.path, headers)
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "holdfast"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is not ours
        """Log nothing: stderr is for the worker's own messages."""
