"""The gateway's configuration: settings and options, validated once, before anything listens."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.errors import ConfigurationError
from holdfast.settings import Settings

LEAST_TOKEN_CHARS = 16
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_ORIGIN = re.compile(r"https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
# A name, an address, an address in brackets, or `*.` and a name; `*` alone allows every host.
_HOST = re.compile(r"\*|(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The options of one gateway. The constructor validates them; repr contains no secret."""

    host: str = "127.0.0.1"
    port: int = 8010
    space: str = "default"
    operator_token: str = field(repr=False)
    open_sign_up: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    rate_per_minute: int = 6_000
    max_requests: int = 128
    max_requests_per_key: int = 3
    max_connections: int = 2_000
    wait_seconds: float = 5.0
    max_body_bytes: int = 4 * 1024 * 1024
    max_upload_bytes: int = 25 * 1024 * 1024
    max_bodies_bytes: int = 256 * 1024 * 1024
    body_seconds: float = 30.0
    header_seconds: float = 10.0
    idle_seconds: float = 65.0
    shutdown_seconds: float = 20.0
    request_logs: bool = True
    profile: str = "server-linux-memory-gateway"
    transports: tuple[str, ...] = ("http", "mcp")
    skill_folders: tuple[str, ...] = ()
    maintains: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigurationError(
                f"{self.port} is not a port; choose one up to 65535 with --port, or 0 for any free one"
            )
        _check_token(self.operator_token)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("TLS needs both a certificate and its key: give --tls-cert and --tls-key")
        if self.public_url is not None and not _public_host(self.public_url):
            raise ConfigurationError(
                "the public URL must begin with http:// or https://, such as https://memory.example.org"
            )
        for proxy in self.trusted_proxies:
            _check_proxy(proxy)
        for name in self.allowed_hosts:
            if not _HOST.fullmatch(name):
                raise ConfigurationError(
                    f"allowed host {name!r:.80}: give a name such as memory.example.org, without a scheme or a port"
                )
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigurationError(
                    f"allowed origin {origin!r:.80}: give a scheme, a name, and a port if it is not the scheme's own,"
                    " such as https://app.example.org, without a path"
                )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The allow-list for the Host header. A web page cannot make a browser send any of these (DNS rebinding)."""
        own = () if self.host in ("0.0.0.0", "::", "") else (_bracket_ipv6(self.host),)  # noqa: S104
        public = (_public_host(self.public_url),) if self.public_url is not None else ()
        return tuple(dict.fromkeys((*_LOOPBACK_NAMES, *own, *public, *self.allowed_hosts)))

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of web pages that may send changing requests, besides the one that the request itself names."""
        public = () if self.public_url is None else (_origin(self.public_url),)
        return (*public, *self.allowed_origins)

    @property
    def url(self) -> str:
        """The gateway's URL for a caller on this machine."""
        scheme = "https" if self.tls_cert is not None else "http"
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"{scheme}://{_bracket_ipv6(host)}:{self.port}"

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        operator_token: str,
        host: str | None = None,
        port: int | None = None,
        open_sign_up: bool = False,
        allowed_hosts: tuple[str, ...] = (),
        public_url: str | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
    ) -> GatewayConfig:
        """Read the settings; arguments override them."""
        same = {each.name: getattr(settings, each.name) for each in fields(cls) if hasattr(settings, each.name)}
        own = {
            "host": host or settings.host,
            "port": settings.port if port is None else port,
            "operator_token": operator_token,
            "open_sign_up": open_sign_up or settings.open_sign_up,
            "allowed_hosts": _names(allowed_hosts or settings.allowed_hosts.split(",")),
            "allowed_origins": _names(settings.allowed_origins.split(",")),
            "public_url": public_url,
            "trusted_proxies": _names(settings.trusted_proxies.split(",")),
            "transports": settings.listed_transports,
            "maintains": bool(settings.model) and "maintain" in (settings.asked_verbs or {"maintain"}),
            "tls_cert": tls_cert,
            "tls_key": tls_key,
        }
        return cls(**{**same, **own})

    def at(self, port: int) -> GatewayConfig:
        """Copy with the port that the system assigned."""
        return replace(self, port=port)


def is_loopback(host: str) -> bool:
    """True for a loopback address and for `localhost`. Other names are not resolved, and are not loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names if name.strip())


def _public_host(url: str) -> str:
    """The host name in the URL; empty if it is not an HTTP URL."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for an invalid port
    except ValueError:
        return ""
    return _bracket_ipv6(parts.hostname or "") if parts.scheme in ("http", "https") else ""


def _origin(url: str) -> str:
    """The origin of a URL, as browsers write it: without a path, and without the scheme's own port."""
    parts = urlsplit(url)
    port = "" if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{_bracket_ipv6(parts.hostname or '')}{port}"


def _check_proxy(proxy: str) -> None:
    try:
        ipaddress.ip_network(proxy, strict=False)
    except ValueError:
        raise ConfigurationError(
            f"trusted proxy {proxy!r:.80}: give an address such as 10.0.0.5, or a network such as 10.0.0.0/8"
        ) from None


def _check_token(token: str) -> None:
    """Check that an `Authorization` header can carry the token unchanged."""
    if len(token) < LEAST_TOKEN_CHARS:
        raise ConfigurationError(
            f"the operator token must have at least {LEAST_TOKEN_CHARS} characters; `openssl rand -hex 32` makes one"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError("the operator token may contain only printable ASCII characters, and no spaces")


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()
