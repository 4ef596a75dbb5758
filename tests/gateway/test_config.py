"""A gateway's configuration is valid or is not created."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError
from holdfast.gateway.config import GatewayConfig, is_loopback
from holdfast.settings import Settings

TOKEN = "operator-token-of-this-test"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST", "::1", "[::1]")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "memory.example.org", "127.0.0.1.example.org")),
    ],
)
def test_a_loopback_address_is_told_from_others(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("token", ["short", "", "with spaces in the middle of it", "sechzehn-zeichen-ü", "a\nb" * 10])
def test_a_token_that_cannot_be_presented_or_be_guessed_is_refused_without_being_told(token: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        GatewayConfig(operator_token=token)
    assert not token or token not in str(refused.value)


def test_no_secret_is_in_its_repr() -> None:
    assert TOKEN not in repr(GatewayConfig(operator_token=TOKEN))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--tls-key"):
        GatewayConfig(operator_token=TOKEN, tls_cert=tmp_path / "cert.pem")
    assert GatewayConfig(operator_token=TOKEN, tls_cert=tmp_path / "c", tls_key=tmp_path / "k").url.startswith(
        "https://"
    )


@pytest.mark.parametrize("name", ["https://memory.example.org", "memory.example.org:443", "a b", "*.", "a.*"])
def test_an_allowed_host_is_a_name_alone(name: str) -> None:
    with pytest.raises(ConfigurationError, match="without a scheme or a port"):
        GatewayConfig(operator_token=TOKEN, allowed_hosts=(name,))


@pytest.mark.parametrize("url", ["memory.example.org", "ftp://memory.example.org", "https://", "http://a:port"])
def test_a_public_url_is_one(url: str) -> None:
    with pytest.raises(ConfigurationError, match="public URL"):
        GatewayConfig(operator_token=TOKEN, public_url=url)


def test_a_trusted_proxy_is_an_address_or_a_network() -> None:
    assert GatewayConfig(operator_token=TOKEN, trusted_proxies=("10.0.0.5", "10.0.0.0/8", "::1")).trusted_proxies
    for proxy in ("*", "proxy.example.org", "10.0.0.0/99"):
        with pytest.raises(ConfigurationError, match="trusted proxy"):
            GatewayConfig(operator_token=TOKEN, trusted_proxies=(proxy,))


def test_options_go_before_settings() -> None:
    settings = Settings(host="10.0.0.1", port=9000, open_sign_up=True, allowed_hosts=" Memory.Example.org, *.local ,")
    from_settings = GatewayConfig.from_settings(settings, operator_token=TOKEN)
    assert (from_settings.host, from_settings.port, from_settings.open_sign_up) == ("10.0.0.1", 9000, True)
    assert from_settings.hosts == ("localhost", "127.0.0.1", "[::1]", "10.0.0.1", "memory.example.org", "*.local")
    given = GatewayConfig.from_settings(settings, operator_token=TOKEN, host="::", port=0, allowed_hosts=("a.example",))
    assert (given.host, given.port, given.allowed_hosts) == ("::", 0, ("a.example",))
    assert given.at(8123).url == "http://[::1]:8123"


def test_each_setting_of_the_service_arrives() -> None:
    settings = Settings(
        rate_per_minute=1, max_requests=2, max_connections=3, max_body_bytes=4000, max_upload_bytes=5000,
        body_seconds=6, header_seconds=7, idle_seconds=8, shutdown_seconds=9, request_logs=False, space="elsewhere",
    )  # fmt: skip
    made = GatewayConfig.from_settings(settings, operator_token=TOKEN)
    assert (made.rate_per_minute, made.max_requests, made.max_connections) == (1, 2, 3)
    assert (made.max_body_bytes, made.max_upload_bytes) == (4000, 5000)
    assert (made.body_seconds, made.header_seconds, made.idle_seconds, made.shutdown_seconds) == (6, 7, 8, 9)
    assert (made.request_logs, made.space) == (False, "elsewhere")
    assert not made.open_sign_up
    assert GatewayConfig.from_settings(settings, operator_token=TOKEN, open_sign_up=True).open_sign_up
