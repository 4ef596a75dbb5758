"""A page of another site changes nothing: every route of the table refuses what a browser sends for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from gateway.edge.edged import Line, running
from gateway.served import Gateway, serving, table
from holdfast.errors import ConfigurationError
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge import exchange
from serving import OPERATOR_KEY

CONFIGURED = "https://app.example.org"
PUBLIC = "https://memory.example.org:8443"
CHANGING = sorted(
    (method, route.path.replace("{", "").replace("}", "").replace(":path", ""))
    for route in table()
    for method in route.methods
    if method not in ("GET", "HEAD", "OPTIONS")
)
# They need no content type without a body. `test_no_route_takes_a_change_from_a_foreign_page` covers them too.
BODILESS = {
    ("POST", f"/companies/company_id/memory/{path}")
    for path in (
        "provider-jobs/job_id/retry",
        "extraction-jobs/job_id/retry",
        "extraction-jobs/job_id/cancel",
        "deliveries/delivery_id/retry",
        "deliveries/delivery_id/drop",
    )
}
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:3000", "sec_fetch_site": "same-site"},
    {"origin": "https://app.example.org.evil.example", "sec_fetch_site": "cross-site"},
    {"origin": f"{CONFIGURED}, {CONFIGURED}"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
]
MEDIA_TYPES = ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/json"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place: Path = tmp_path_factory.mktemp("browsers") / "memory.db"
    options = {"allowed_origins": (CONFIGURED,), "public_url": PUBLIC, "rate_per_minute": 0}
    with pytest.MonkeyPatch.context() as patch, serving(place, work=False, **options) as found:
        patch.setattr(exchange, "REFUSALS_PER_SECOND", 1_000_000)
        yield found


class Browser:
    """Sends requests over one connection, and a new one where the service has closed it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.port = int(gateway.url.rpartition(":")[2])
        self.line = Line(self.port)

    def code(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
        answer = self.line.ask(method, path, body, **{"host": f"127.0.0.1:{self.port}", **headers})
        if answer.headers.get("connection") == "close":
            self.line = Line(self.port)
        told = answer.json if answer.body else {}
        if path.startswith("/memory/") and told.get("reason", "").startswith("a web page of another origin"):
            return answer.status, "foreign_origin"
        return answer.status, told.get("code") or told.get("error", {}).get("code", "")


@pytest.fixture
def browser(gateway: Gateway) -> Browser:
    return Browser(gateway)


def test_no_route_takes_a_change_from_a_foreign_page(browser: Browser) -> None:
    key = {"authorization": f"Bearer {browser.gateway.token}", "content_type": "application/json"}
    assert len(CHANGING) > 80
    for number, ((method, path), headers) in enumerate(product(CHANGING, FOREIGN)):
        body = b"{}" if number % 5 == 0 else b""
        status, code = browser.code(method, path, body, **key, **headers)
        assert (status, code.lower()) == (403, "foreign_origin"), (method, path, headers)


def test_own_and_configured_pages_and_other_programs_pass(browser: Browser) -> None:
    own = f"http://127.0.0.1:{browser.port}"
    passing = [
        {"origin": own, "sec_fetch_site": "same-origin"},
        {"origin": CONFIGURED, "sec_fetch_site": "cross-site"},
        {"origin": PUBLIC},
        {"sec_fetch_site": "none"},
        {},
    ]
    for (method, path), headers in product(CHANGING, passing):
        status, code = browser.code(method, path, **headers)
        assert code.lower() != "foreign_origin", (method, path, headers)
        assert status in (401, 415, 422), (method, path, status)


def test_a_foreign_page_may_ask_what_changes_nothing(browser: Browser) -> None:
    assert browser.code("GET", "/healthz", **FOREIGN[0])[0] == 200
    assert browser.code("GET", "/memories", **FOREIGN[0])[0] == 401


def test_a_name_that_any_page_can_have_is_no_own_origin() -> None:
    rebound = {"host": "evil.example:8010", "origin": "http://evil.example:8010"}
    with running(allowed_hosts=("*",)) as started:
        assert started.ask("POST", "/echo", **rebound).json["code"] == "foreign_origin"
    with running(allowed_hosts=("evil.example",)) as started:
        assert started.ask("POST", "/echo", **rebound).status == 200


def test_every_route_names_its_content_type_also_for_an_empty_body(browser: Browser) -> None:
    key = {"authorization": f"Bearer {browser.gateway.token}"}
    for (method, path), sent, body in product(CHANGING, MEDIA_TYPES, (b"", b"{}")):
        if method == "DELETE" or ((method, path) in BODILESS and not (sent or body)):
            continue
        expected = "multipart/form-data" if path == "/resources" else "application/json"
        status, _ = browser.code(method, path, body, **key, content_type=sent)
        assert (status == 415) == (not sent.startswith(expected)), (method, path, sent)


@pytest.mark.parametrize("origin", ["app.example.org", "https://app.example.org/", "https://*", "null", "ftp://a"])
def test_an_origin_that_is_none_is_refused_at_start(origin: str) -> None:
    with pytest.raises(ConfigurationError, match="allowed origin"):
        GatewayConfig(operator_token=OPERATOR_KEY, allowed_origins=(origin,))
