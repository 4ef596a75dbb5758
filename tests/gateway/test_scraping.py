"""A worker's metrics: the same access rules as for the service's own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx2
import pytest
from pydantic import SecretStr

from holdfast.errors import ConfigurationError
from holdfast.gateway.metrics_server import MOST_AT_ONCE, MetricsServer, metrics_config
from holdfast.settings import Settings

TOKEN = "operator-token-of-the-tests"


@contextmanager
def scraping(host: str = "127.0.0.1", token: str | None = None) -> Iterator[MetricsServer]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    settings = Settings(operator_token=None if token is None else SecretStr(token))
    with closing(MetricsServer(metrics_config(host, port, settings))) as made:
        made.begin()
        yield made


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server without a token."""
    with scraping() as made:
        yield made.url


def test_on_this_machine_whoever_asks_by_its_name_is_answered(url: str) -> None:
    for host in ("localhost", "127.0.0.1", "LOCALHOST:99", "[::1]"):
        answer = httpx2.get(url, headers={"Host": host})
        assert answer.status_code == 200, host
        assert "holdfast_memory_dead_deliveries" in answer.text
        assert "Python" not in answer.headers["server"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "attacker.example"}, 421),
        ({"Host": "localhost.attacker.example"}, 421),
        ({"Host": "localhost attacker"}, 421),
        ({"X-Forwarded-For": "203.0.113.5"}, 403),
        ({"Via": "1.1 proxy"}, 403),
    ],
)
def test_a_page_on_the_web_and_a_proxy_are_refused_while_there_is_no_token(
    url: str, headers: dict[str, str], status: int
) -> None:
    answer = httpx2.get(url, headers=headers)
    assert answer.status_code == status
    assert "holdfast_memory" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_with_a_token_only_its_holder_is_answered(host: str) -> None:
    with scraping(host, TOKEN) as made:
        for given in (None, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
            headers = {} if given is None else {"Authorization": given}
            answer = httpx2.get(made.url, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), given
            assert "holdfast_memory" not in answer.text
        # The token holder may use any host name.
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "10.1.2.3:9100"}
        assert "holdfast_memory" in httpx2.get(made.url, headers=headers).text


def test_there_is_nothing_else_and_nothing_can_be_sent(url: str) -> None:
    assert httpx2.get(url + "?name[]=x").status_code == 200
    assert httpx2.get(url.removesuffix("/metrics")).status_code == 404
    assert httpx2.post(url, content=b"x").status_code == 501


def test_those_who_hold_connections_open_do_not_take_more_than_their_places() -> None:
    with scraping() as made:
        host, port = made.url.removeprefix("http://").removesuffix("/metrics").split(":")
        held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(MOST_AT_ONCE + 1)]
        assert held[-1].recv(1) == b"", "it is hung up on"
        for each in held:
            each.close()


def test_beyond_this_machine_a_token_is_needed() -> None:
    for host in ("0.0.0.0", "::", "10.0.0.1", "some-name"):
        with pytest.raises(ConfigurationError, match="HOLDFAST_OPERATOR_TOKEN"):
            metrics_config(host, 9_100, Settings())
    with pytest.raises(ConfigurationError, match="16 characters"):
        metrics_config("0.0.0.0", 9_100, Settings(operator_token=SecretStr("short")))
