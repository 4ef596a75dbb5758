"""One process of the gateway: sockets, TLS, signals and logs. uvicorn serves; what it leaves open is closed here.

It stops on SIGTERM and Ctrl-C: takes no more connections, finishes what it accepted within a bound, and returns.
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
from holdfast.gateway.config import GatewayConfig, is_loopback
from holdfast.gateway.connections import guarded
from holdfast.gateway.edge.logs import JsonLines
from holdfast.gateway.edge.metrics import Metrics

_MOST_FILES = 65_536
Tell = Callable[[GatewayConfig], None]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one."""
    factory = None
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        factory = uvloop.new_event_loop
    with Runner(loop_factory=factory) as runner:
        runner.run(coroutine)


def listen(config: GatewayConfig, *, port_option: str = "--port") -> list[socket.socket]:
    """Sockets bound to each address that the host means, before a store is opened for nobody."""
    try:
        found = socket.getaddrinfo(config.host.strip("[]"), config.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ConfigurationError(f"{config.host} is no address of this machine: {error.strerror}") from None
    addresses = list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))
    if config.operator_token is None and not all(is_loopback(address) for _, address in addresses):
        raise ConfigurationError(
            f"{config.host} means more than this machine, so an operator token is needed: set HOLDFAST_OPERATOR_TOKEN"
        )
    sockets: list[socket.socket] = []
    port = config.port
    try:
        for family, address in addresses:
            sockets.append(_bound(family, address, port))
            port = sockets[0].getsockname()[1]
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise ConfigurationError(
            f"cannot listen on {config.host}, port {config.port}: {error.strerror or error}; choose another with"
            f" {port_option}"
        ) from None
    return sockets


def _bound(family: int, address: str, port: int) -> socket.socket:
    # Named as TCP: where there is no uvloop, small answers are sent at once only on sockets that say so.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` is everything there is, of the old kind too; any other address is itself.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


async def serve(
    app: ASGIApp, config: GatewayConfig, metrics: Metrics, sockets: Sequence[socket.socket], listening: Tell
) -> None:
    """Serve until a signal says otherwise. `listening` is told where, once calls are answered."""
    # What is there by now stays: looking through all of it for garbage would hold up requests for a tenth of a second.
    gc.collect()
    gc.freeze()
    await Server(app, config, metrics, sockets, listening).serve(list(sockets))


class Server(uvicorn.Server):
    """uvicorn's, which ends by returning, whatever signal asked for it: whoever called has a store to close."""

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
        http=guarded(config, metrics),
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
    """Say what is wrong with it by the option's name, and never ask for a password on the terminal."""
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
            f"--tls-cert, --tls-key: not a certificate and its own unencrypted key ({reason})"
        ) from None


@contextlib.contextmanager
def logging_as_json(stream: TextIO | None = None) -> Iterator[None]:
    """While it serves, everything that is logged is a line of JSON, ours and uvicorn's.

    Which thread and process wrote it is not in the line, and so is not asked for each.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    levels = {"holdfast": logging.INFO, "uvicorn.error": logging.WARNING}
    asked = {name: getattr(logging, name) for name in ("logThreads", "logProcesses", "logMultiprocessing")}
    before = {}
    for name in asked:
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
        for name, value in asked.items():
            setattr(logging, name, value)
        for logger, (handlers, level, propagate) in before.items():
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


def allow_many_files() -> None:
    """Each connection is a file, and shells allow few: take as many as the system lets us."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):  # where that is not ours to say, what there is will do
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
