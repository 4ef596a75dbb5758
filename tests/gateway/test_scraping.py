"""A worker's metrics: the same access rules as for the service's own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from holdfast.errors import ConfigurationError
from holdfast.gateway.metrics_server import MOST_AT_ONCE, MetricsServer, metrics_config
from holdfast.gateway.operator_token import operator_token
from holdfast.settings import Settings

TOKEN = "operator-token-of-the-tests"


ALLOWED = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def scraping(host: str = "127.0.0.1") -> Iterator[MetricsServer]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    settings = Settings(operator_token=SecretStr(TOKEN))
    with closing(MetricsServer(metrics_config(host, port, settings, "memory.db"))) as made:
        made.begin()
        yield made


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_only_the_holder_of_the_token_is_answered(host: str) -> None:
    with scraping(host) as made:
        for given in (None, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
            headers = {} if given is None else {"Authorization": given}
            for path in ("", "/elsewhere"):
                answer = httpx2.get(made.url + path, headers=headers)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), given
                assert "holdfast_memory" not in answer.text
        # The token holder may use any host name.
        answer = httpx2.get(made.url, headers={**ALLOWED, "Host": "10.1.2.3:9100"})
        assert "holdfast_memory_dead_deliveries" in answer.text
        assert "Python" not in answer.headers["server"]


def test_there_is_nothing_else_and_nothing_can_be_sent() -> None:
    with scraping() as made:
        assert httpx2.get(made.url + "?name[]=x", headers=ALLOWED).status_code == 200
        assert httpx2.get(made.url.removesuffix("/metrics"), headers=ALLOWED).status_code == 404
        assert httpx2.post(made.url, content=b"x").status_code == 501


def test_those_who_hold_connections_open_do_not_take_more_than_their_places() -> None:
    with scraping() as made:
        host, port = made.url.removeprefix("http://").removesuffix("/metrics").split(":")
        held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(MOST_AT_ONCE + 1)]
        assert held[-1].recv(1) == b"", "it is hung up on"
        for each in held:
            each.close()


def test_without_a_configured_token_it_is_the_one_beside_the_store(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    made = metrics_config("127.0.0.1", 9_100, Settings(), store)
    assert made.operator_token == operator_token(Settings(), store)
    with pytest.raises(ConfigurationError, match="HOLDFAST_OPERATOR_TOKEN"):
        metrics_config("127.0.0.1", 9_100, Settings(), "postgresql://db/memory")
    with pytest.raises(ConfigurationError, match="16 characters"):
        metrics_config("127.0.0.1", 9_100, Settings(operator_token=SecretStr("short")), store)
