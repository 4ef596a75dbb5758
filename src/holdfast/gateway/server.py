"""One gateway process on uvicorn: sockets, TLS, signals and logs.

On SIGTERM and Ctrl-C it accepts no more connections, finishes running requests within a time limit, and returns.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import logging
import math
import signal
import socket
import ssl
import sys
import threading
from asyncio import Runner
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from typing import Any, TextIO

import uvicorn
from starlette.types import ASGIApp

from holdfast.errors import ConfigurationError
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.connection_limits import connection_protocol
from holdfast.gateway.edge.observers import JsonFormatter, Metrics

_MOST_FILES = 65_536
Tell = Callable[[GatewayConfig], None]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed."""
    factory = None
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        factory = uvloop.new_event_loop
    with Runner(loop_factory=factory) as runner:
        runner.run(coroutine)


def listen(config: GatewayConfig, *, port_option: str = "--port") -> list[socket.socket]:
    """Bind a socket to each address of the host, before a store is opened."""
    try:
        found = socket.getaddrinfo(config.host.strip("[]"), config.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ConfigurationError(f"{config.host} is not an address of this machine: {error.strerror}") from None
    addresses = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
    sockets: list[socket.socket] = []
    port = config.port
    try:
        for family, address in addresses:
            sockets.append(_bind_socket(family, address, port))
            port = sockets[0].getsockname()[1]
    except OSError as error:
        for bound in sockets:
            bound.close()
        raise ConfigurationError(
            f"cannot listen on {config.host}, port {config.port}: {error.strerror or error}; choose another with"
            f" {port_option}"
        ) from None
    return sockets


def _bind_socket(family: int, address: str, port: int) -> socket.socket:
    # Without uvloop, asyncio sets TCP_NODELAY only on sockets whose protocol is TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` accepts IPv4 too; any other address accepts only itself.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
        listener.bind((address, port))
    except OSError:
        listener.close()
        raise
    return listener


async def serve(
    app: ASGIApp, config: GatewayConfig, metrics: Metrics, sockets: Sequence[socket.socket], listening: Tell
) -> None:
    """Serve until a signal arrives. Calls `listening` with the address once requests are accepted."""
    # Freeze the objects loaded so far: collecting them would delay requests by a tenth of a second.
    gc.collect()
    gc.freeze()
    await Server(app, config, metrics, sockets, listening).serve(list(sockets))


class Server(uvicorn.Server):
    """A uvicorn server that returns after a signal instead of re-raising it, so that the caller can close the store."""

    def __init__(
        self,
        app: ASGIApp,
        config: GatewayConfig,
        metrics: Metrics,
        sockets: Sequence[socket.socket],
        listening: Tell | None = None,
    ) -> None:
        super().__init__(_options(app, config, metrics))
        self._at = config.at(sockets[0].getsockname()[1])
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._listening is not None:
            self._listening(self._at)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _options(app: ASGIApp, config: GatewayConfig, metrics: Metrics) -> uvicorn.Config:
    check_certificate(config)
    return uvicorn.Config(
        app,
        http=connection_protocol(config, metrics),
        ws="none",
        lifespan="auto",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        timeout_keep_alive=math.ceil(config.idle_seconds),
        timeout_graceful_shutdown=math.ceil(config.shutdown_seconds),
        ssl_certfile=config.tls_cert,
        ssl_keyfile=config.tls_key,
        workers=1,
    )


def check_certificate(config: GatewayConfig) -> None:
    """Validate the certificate. Errors name the option; never prompts for a password."""
    if config.tls_cert is None or config.tls_key is None:
        return
    for option, path in (("--tls-cert", config.tls_cert), ("--tls-key", config.tls_key)):
        if not path.is_file():
            raise ConfigurationError(f"{option}: there is no file {path}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls_cert, config.tls_key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not in PEM form"
        raise ConfigurationError(
            f"--tls-cert, --tls-key: not a certificate and its unencrypted private key ({reason})"
        ) from None


@contextlib.contextmanager
def logging_as_json(stream: TextIO | None = None) -> Iterator[None]:
    """Write all log records, ours and uvicorn's, as lines of JSON.

    The lines contain no thread and process, so logging does not collect them.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    levels = {"holdfast": logging.INFO, "uvicorn.error": logging.WARNING}
    log_options = {name: getattr(logging, name) for name in ("logThreads", "logProcesses", "logMultiprocessing")}
    before = {}
    for name in log_options:
        setattr(logging, name, False)
    for name, level in levels.items():
        logger = logging.getLogger(name)
        before[logger] = (logger.handlers[:], logger.level, logger.propagate)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        for name, value in log_options.items():
            setattr(logging, name, value)
        for logger, (handlers, level, propagate) in before.items():
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


def allow_many_files() -> None:
    """Raise the limit of open files: each connection is one, and shells allow few."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):  # keep the current limit if we may not change it
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
