"""The metrics of a process that serves nothing else: a worker's, on a port of their own, for Prometheus.

They are counted as `holdfast serve` counts them, and shown to whom it would show them: with an operator token only to
its holder; without one on this machine alone, to whoever calls it by a name of this machine. They name companies.
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
from holdfast.gateway.config import GatewayConfig, is_loopback
from holdfast.gateway.edge.exchange import OF_PROXIES
from holdfast.gateway.edge.hosts import Names, name_in
from holdfast.gateway.edge.watching import MemoryCounters
from holdfast.gateway.serving import listen
from holdfast.settings import Settings

PATH = "/metrics"
PORT_OPTION, HOST_OPTION = "--metrics-port", "--metrics-host"
PATIENCE_SECONDS = 10.0  # with one who does not send, or does not read
MOST_AT_ONCE = 16
_PLAIN = "text/plain; charset=utf-8"

Answer = tuple[int, str, bytes]


def scraped_at(host: str, port: int, settings: Settings) -> GatewayConfig:
    """Where it is to listen, and for whom; checked before a store is opened."""
    if not 1 <= port <= 65_535:
        raise ConfigurationError(f"{PORT_OPTION}: there is no port {port}; choose one from 1 to 65535")
    if settings.operator_token is None and not is_loopback(host):
        raise ConfigurationError(
            f"{HOST_OPTION}: {host:.80} can be reached from other machines, and metrics name companies: set"
            " HOLDFAST_OPERATOR_TOKEN, which Prometheus then presents, or listen on 127.0.0.1"
        )
    return GatewayConfig.from_settings(settings, host=host, port=port)


class Scraping:
    """`memory` is to be told what the engine does. It listens from the start, and answers once it is begun."""

    def __init__(self, config: GatewayConfig) -> None:
        self.url = f"{config.url}{PATH}"
        self._registry = CollectorRegistry()
        self.memory = MemoryCounters(self._registry)
        ProcessCollector(registry=self._registry)
        self._token = None if config.operator_token is None else config.operator_token.encode()
        self._names = Names(config.hosts)
        self._servers = [_Server(bound, self) for bound in listen(config, port_option=PORT_OPTION)]

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
        if (refused := self._refused(headers)) is not None:
            return refused
        if path.partition("?")[0] != PATH:
            return _refusal(404, f"there is nothing here but {PATH}")
        return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)

    def _refused(self, headers: Mapping[str, str]) -> Answer | None:
        if self._token is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
                return _refusal(401, "present the operator token: Authorization: Bearer ...")
            return None
        # Without a token the name keeps pages on the web out, and whoever is brought along by a proxy stays out.
        if any(name.decode() in headers for name in OF_PROXIES):
            return _refusal(403, "behind a proxy an operator token is needed; set HOLDFAST_OPERATOR_TOKEN")
        name = name_in(headers.get("host", "").encode())
        if name is None or not self._names.allow(name):
            return _refusal(421, "it does not go by the name in the Host header; ask for localhost, or for its address")
        return None


def _refusal(status: int, told: str) -> Answer:
    return status, _PLAIN, f"{told}\n".encode()


class _Server(ThreadingHTTPServer):
    """A thread for each that asks, and for not too many."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, bound: socket.socket, scraping: Scraping) -> None:
        super().__init__(bound.getsockname()[:2], _Exchange, bind_and_activate=False)
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
        """Whoever asked has gone, most likely; nothing of it is worth a traceback on stderr."""


class _Exchange(BaseHTTPRequestHandler):
    timeout = PATIENCE_SECONDS
    server: _Server

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
        """Stderr is for what the worker does."""
