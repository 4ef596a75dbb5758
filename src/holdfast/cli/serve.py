"""`serve`: serves the memory over HTTP, for agents in any language."""

from __future__ import annotations

import importlib.util
import logging
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.app import make_curator, open_engine
from holdfast.cli.allocator import return_unused_memory
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, OnlyText, StoreOptions, expand_options, option
from holdfast.cli.store_access import MEMORY, location
from holdfast.cli.suggestions import this_program
from holdfast.cli.terminal_safety import on_one_line, quote_word
from holdfast.domain.location import redact_location
from holdfast.errors import ConfigurationError
from holdfast.installation import install_command
from holdfast.settings import Settings, read_settings

if TYPE_CHECKING:
    import socket

    from holdfast.gateway.config import GatewayConfig

log = logging.getLogger("holdfast.cli")
_NEEDED = ("fastapi", "uvicorn", "httptools", "prometheus_client", "opentelemetry")

Host = Annotated[
    OnlyText, option("--host", "ADDRESS", "Listen on this address.  [env: HOLDFAST_HOST; default: 127.0.0.1]")
]
Port = Annotated[
    int | None, option("--port", "PORT", "Listen on this port; 0 is any free one.  [env: HOLDFAST_PORT; default: 8010]")
]
TokenFile = Annotated[
    Path | None,
    option(
        "--operator-token-file",
        "FILE",
        "File with the operator token.  [env: HOLDFAST_OPERATOR_TOKEN; default: a new file beside the store]",
    ),
]
OpenSignUp = Annotated[
    bool,
    typer.Option("--open-sign-up", help="Let anybody create a user, without a key.  [env: HOLDFAST_OPEN_SIGN_UP]"),
]
AllowedHost = Annotated[
    list[str] | None,
    option(
        "--allowed-host", "NAME", "Host name to accept besides localhost; repeatable.  [env: HOLDFAST_ALLOWED_HOSTS]"
    ),
]
PublicUrl = Annotated[OnlyText, option("--public-url", "URL", "Its URL for callers, if behind a proxy.")]
Certificate = Annotated[Path | None, option("--tls-cert", "FILE", "Serve HTTPS with this certificate chain.")]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Leave background jobs to a separate `holdfast worker`.")]
CertificateKey = Annotated[Path | None, option("--tls-key", "FILE", "Its private key.")]


@expand_options
def serve(
    chosen: StoreOptions,
    host: Host = None,
    port: Port = None,
    operator_token_file: TokenFile = None,
    open_sign_up: OpenSignUp = False,
    allowed_host: AllowedHost = None,
    public_url: PublicUrl = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    no_worker: NoWorker = False,
    as_json: Json = False,
) -> None:
    """Serve the memory over HTTP until Ctrl-C or SIGTERM.

    The store is created if there is none. So is an operator token, in a file beside the store that only you can read.
    """
    check_installed("serving")
    from holdfast.gateway import server
    from holdfast.gateway.config import GatewayConfig
    from holdfast.gateway.operator_token import operator_token

    settings = read_settings()
    place = location(chosen)
    config = GatewayConfig.from_settings(
        settings,
        host=host,
        port=port,
        operator_token=_read_token(operator_token_file) or operator_token(settings, place),
        open_sign_up=open_sign_up,
        allowed_hosts=tuple(allowed_host or ()),
        public_url=public_url,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    server.check_certificate(config)
    server.allow_many_files()
    sockets = server.listen(config)
    return_unused_memory()
    try:
        server.run(_serve_until_stopped(chosen, place, settings, config, sockets, as_json, work=not no_worker))
    finally:
        for opened in sockets:
            opened.close()


def check_installed(what: str) -> None:
    """Raise if a package for HTTP or metrics is missing."""
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise ConfigurationError(f"{what} needs {', '.join(missing)}; install it with: {install_command('serve')}")


async def _serve_until_stopped(
    chosen: StoreOptions,
    place: str,
    settings: Settings,
    config: GatewayConfig,
    sockets: list[socket.socket],
    as_json: bool,
    *,
    work: bool,
) -> None:
    from holdfast.gateway import server
    from holdfast.gateway.app import create_app
    from holdfast.gateway.edge.observers import Metrics, TracedService

    metrics = Metrics()
    engine = await open_engine(
        place,
        settings,
        embedder=chosen.embedder,
        curator=make_curator(settings),  # of `maintain` at /memory, and of `flush`
        work=work,
        jobs=settings.worker_jobs,
        watcher=metrics.memory,
        routed=True,
    )
    metrics.memory.show_cache(lambda: engine.cache_usage)
    metrics.show_store(engine.store_usage)
    try:
        app = create_app(TracedService(engine), engine, config, metrics)
        with server.logging_as_json():
            await server.serve(app, config, metrics, sockets, lambda at: _print_start(at, place, as_json))
    finally:
        await engine.close()


def _read_token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        token = file.read_text("utf-8").strip()
        if file.stat().st_mode & stat.S_IRWXO:
            log.warning("%s can be read by every account of this machine; `chmod 600` makes it private", file)
    except UnicodeDecodeError:
        raise ConfigurationError(f"--operator-token-file: {file} is not text") from None
    except OSError as error:
        raise ConfigurationError(f"--operator-token-file: {file} cannot be read: {error.strerror}") from None
    if not token:
        raise ConfigurationError(f"--operator-token-file: {file} is empty; `openssl rand -hex 32` makes a token")
    return token


def _print_start(at: GatewayConfig, place: str, as_json: bool) -> None:
    """Print the URL, and three commands to copy."""
    store = on_one_line(redact_location(place))
    if as_json:
        print_json({"url": at.url, "public_url": at.public_url, "store": store}, indent=None)
    else:
        with_token = "" if _is_file(place) else " where HOLDFAST_OPERATOR_TOKEN is set"
        print(f"Holdfast serves {store} on {at.url}. Ctrl-C stops it. Try, in another terminal{with_token}:\n")
        print("\n".join(f"  {line}" for line in first_calls(at, place)))
    sys.stdout.flush()  # nothing more is printed for a long time


def _is_file(place: str) -> bool:
    return place != MEMORY and "://" not in place


def first_calls(at: GatewayConfig, place: str) -> tuple[str, str, str]:
    """Create a user, add a message, recall it."""
    url = at.public_url.rstrip("/") if at.public_url is not None else at.url
    sent = "-H 'Content-Type: application/json' -d"  # older curls have no --json
    signed = f'curl -s -H "Authorization: Bearer $KEY" {sent}'
    create = f"{this_program()} user create ana --store {quote_word(str(Path(place).absolute()))}"
    if not _is_file(place):  # a database's URL may hold a password, which is not printed
        operator = '-H "Authorization: Bearer $HOLDFAST_OPERATOR_TOKEN"'
        create = f"""curl -s {operator} {sent} '{{"user_id": "ana"}}' {url}/users | grep -o 'uk_[A-Za-z0-9_-]*'"""
    return (
        f"KEY=$({create})",
        f"""{signed} '{{"messages": "I moved to Lisbon last week."}}' {url}/memories/add""",
        f"""{signed} '{{"query": "Where does Ana live?"}}' {url}/memories/recall""",
    )
