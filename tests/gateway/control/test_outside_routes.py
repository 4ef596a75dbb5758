"""Jobs, deliveries and costs over HTTP with an external provider bound, including one that is down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from company import Company
from served import TOKEN, Gateway
from served import serving as served_by_us

from holdfast.domain.bindings import Binding
from holdfast.domain.contract import (
    AttributionMode,
    BillingType,
    Capabilities,
    ContextBundle,
    QueryRequest,
    TraceResult,
    Usage,
)
from holdfast.domain.secret import Secret
from holdfast.errors import UnknownProvider
from holdfast.ports.provider import Adapter, NestedCall, Provider
from holdfast.providers.gateway.provider import GatewayProvider
from holdfast.providers.local import LocalProvider
from serving import HANG, answering, http

RUN = {"source": {"kind": "run", "run_id": "r1"}, "payload": {"text": "I live in Porto."}}
NOBODY = "http://127.0.0.1:9"


class Metered:
    """A provider that finds nothing, bills each query, and explains it by the request."""

    key = "metered"
    description = "Bills each query."
    outside = True
    capabilities = Capabilities(explanation=True)

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {}}

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return config

    def open(self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Any:
        return self

    async def query(self, request: QueryRequest) -> ContextBundle:
        told = Usage(
            "vendor",
            model="small",
            billing_type=BillingType.METERED_API,
            attribution_mode=AttributionMode.BILLED_DIRECTLY,
            input_tokens=1_000,
            cost_cents=Decimal("0.12"),
        )
        counted = Usage("vendor", model="large", attribution_mode=AttributionMode.BILLED_DIRECTLY, input_tokens=2_000)
        included = Usage("vendor", attribution_mode=AttributionMode.INCLUDED_IN_RUN, input_tokens=5)
        return ContextBundle((), usage=(told, counted, included))

    async def explain(self, request: QueryRequest) -> TraceResult:
        return TraceResult({"intent": request.intent.value, "filter": dict(request.metadata_filter)})

    async def close(self) -> None:
        return None


class Chosen:
    """Implements `ports.Providers` with a fixed list."""

    def list_providers(self) -> Sequence[Provider]:
        found: list[Any] = [GatewayProvider(), LocalProvider(), Metered()]
        return found

    def get(self, name: str) -> Provider:
        for each in self.list_providers():
            if each.key == name:
                return each
        raise UnknownProvider("provider", f"there is no provider {name!r}")

    def check_secrets(self, provider: Provider, config: Mapping[str, Any]) -> None:
        """No test here uses secrets."""

    def adapter(self, binding: Binding) -> Adapter:
        return self.get(binding.provider).open(binding.config, {}, None)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway without background work: jobs stay queued until a test acts on them."""
    place = tmp_path_factory.mktemp("idle") / "memory.db"
    with served_by_us(place, token=TOKEN, work=False, providers=Chosen()) as found:
        yield found


@pytest.fixture
def acme(gateway: Gateway, request: pytest.FixtureRequest) -> Company:
    return Company(gateway, re.sub(r"\W+", "-", request.node.name)[-100:])


def bound(acme: Company, url: str, **config: Any) -> None:
    given = {"url": url, "user_id": "u", **config}
    acme.operator.post("/bindings", 201, key="far", provider="gateway", config=given)
    acme.operator.put("/default-binding", binding_key="far")


def test_a_job_is_cancelled_and_tried_again_once(acme: Company) -> None:
    operator = acme.operator
    operator.post("/capture", agent_id="builder", **RUN)
    (job,) = operator.get("/extraction-jobs")["jobs"]
    assert (job["state"], job["retry_available"]) == ("queued", False)
    cancelled = operator.post(f"/extraction-jobs/{job['job_id']}/cancel")
    assert (cancelled["job_id"], cancelled["state"], cancelled["retry_available"]) == (job["job_id"], "cancelled", True)
    operator.post(f"/extraction-jobs/{job['job_id']}/cancel", 409)
    again = operator.post(f"/extraction-jobs/{job['job_id']}/retry", 201)
    assert (again["retry_of"], again["attempt"], again["state"]) == (job["job_id"], 2, "queued")
    assert (again["source"], again["hook"]) == (job["source"], job["hook"])
    assert operator.get(f"/extraction-jobs/{job['job_id']}")["retry_available"] is False
    operator.post(f"/extraction-jobs/{job['job_id']}/retry", 409)
    states = [(each["attempt"], each["state"]) for each in operator.get("/extraction-jobs")["jobs"]]
    assert sorted(states) == [(1, "cancelled"), (2, "queued")]
    actions = [each["action"] for each in operator.get("/activity")["activity"]]
    assert actions == ["memory.job_retried", "memory.job_cancelled"]


def test_a_delivery_is_tried_again_and_dropped(acme: Company) -> None:
    operator = acme.operator
    bound(acme, NOBODY)
    (delivery,) = operator.post("/hooks/post_run_capture", hook_id="h1", agent_id="builder", **RUN)["deliveries"]
    place = f"/deliveries/{delivery['delivery_id']}"
    assert (delivery["to"], delivery["status"]) == ("binding:far", "pending")
    operator.post(f"{place}/retry", 409)
    (job,) = operator.get("/extraction-jobs", kind="deliver")["jobs"]
    operator.post(f"/extraction-jobs/{job['job_id']}/cancel")
    assert operator.get(place)["status"] == "dead"
    revived = operator.post(f"{place}/retry")
    assert (revived["delivery_id"], revived["status"]) == (delivery["delivery_id"], "pending")
    assert operator.get(f"/extraction-jobs/{job['job_id']}")["retry_available"] is False, "it is on its way again"
    operator.post(f"/extraction-jobs/{job['job_id']}/retry", 409)
    dropped = operator.post(f"{place}/drop")
    assert dropped["status"] == operator.get(place)["status"] == "dropped"
    operator.post(f"{place}/retry", 409)
    operator.post(f"{place}/drop", 409)
    actions = [each["action"] for each in operator.get("/activity")["activity"]]
    assert actions[:3] == ["memory.delivery_dropped", "memory.delivery_retried", "memory.job_cancelled"]


def test_a_metered_call_is_in_the_ledger_and_in_the_sums(acme: Company) -> None:
    operator = acme.operator
    operator.post("/bindings", 201, key="billed", provider="metered")
    operator.put("/costs/prices", provider="vendor", model="large", input_micros=500_000)
    asked = operator.post("/query", query="tea", binding_key="billed", agent_id="builder", run_id="r1")
    events = operator.get("/costs/events")["events"]
    assert {(each["usage"]["model"], each["amount_micros"], each["estimated"]) for each in events} == {
        ("small", 1_200, False), ("large", 1_000, True),
    }  # fmt: skip
    assert {(each["operation_id"], each["binding_key"], each["scope"]["run_id"]) for each in events} == {
        (asked["operation_id"], "billed", "r1")
    }
    row = operator.get(f"/operations/{asked['operation_id']}")
    assert (row["attribution_mode"], len(row["usage"])) == ("billed_directly", 3)
    page = operator.get("/costs/events", limit=1)
    assert page["events"] + operator.get("/costs/events", cursor=page["next_cursor"])["events"] == events
    for by, names in {
        "binding": {"billed": 2_200}, "agent": {"builder": 2_200}, "provider": {"vendor": 2_200},
        "model": {"small": 1_200, "large": 1_000},
    }.items():  # fmt: skip
        found = operator.get("/costs/summary", by=by)
        assert {each["name"]: each["amount_micros"] for each in found["metered"]} == names, by
        assert found["fees"] == []
    (day,) = operator.get("/costs/summary", by="day")["metered"]
    assert (day["amount_micros"], day["name"]) == (2_200, events[0]["occurred_at"][:10])
    assert operator.get("/costs/summary", since="2100-01-01")["metered"] == []


def test_what_is_explained_is_what_was_asked(acme: Company) -> None:
    acme.operator.post("/bindings", 201, key="billed", provider="metered")
    asked = {"query": "tea", "binding_key": "billed", "metadata_filter": {"colour": "red"}}
    assert acme.operator.post("/explain", **asked)["trace"]["intent"] == "answer"
    told = acme.operator.post("/explain", intent="agent_preamble", **asked)["trace"]
    assert told == {"intent": "agent_preamble", "filter": {"colour": "red"}}


@contextmanager
def _down() -> Iterator[str]:
    yield NOBODY


@contextmanager
def _answering(reply: bytes) -> Iterator[str]:
    with answering(reply) as (url, _):
        yield url


FAILING: dict[str, tuple[Any, int, str]] = {
    "down": (_down, 502, "provider_unavailable"),
    "broken": (lambda: _answering(http(500, b"{}")), 502, "provider_unavailable"),
    "malformed": (lambda: _answering(http(200, b"<html>sk-never-to-be-seen")), 502, "provider_malformed"),
    "slow": (lambda: _answering(HANG), 504, "provider_timeout"),
}
CALLS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "query": ("POST", "/query", {"query": "tea"}, "query"),
    "records": ("POST", "/records", {"records": [{"text": "Tea."}]}, "record_upsert"),
    "capture": ("POST", "/capture", RUN, "capture"),
    "list": ("GET", "/records", {}, "list"),
}


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("how", sorted(FAILING))
def test_a_memory_that_fails_is_told_as_its_failure_and_is_in_the_trail(acme: Company, how: str, name: str) -> None:
    failing, status, code = FAILING[how]
    method, path, body, kind = CALLS[name]
    with failing() as url:
        # A busy machine must not make a timeout of another failure.
        bound(acme, url, timeout_seconds=0.5 if how == "slow" else 10.0)
        answer = acme.operator(method, path, **({"json": body} if method == "POST" else {}))
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert url not in answer.text
    assert "sk-never" not in answer.text
    (row,) = acme.operator.get("/operations", type=kind)["operations"]
    assert (row["binding_key"], row["error_code"]) == ("far", code)
    assert row["outcome"] in ("failed", "unknown")
