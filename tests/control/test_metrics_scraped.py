"""Memory metrics from a real `/metrics` endpoint: they equal the report, are bounded, and contain no text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from desk import AGENT, BOT, NOTE, OPERATOR, OTHER, WHOLE, Desk, text
from misbehaving import ANSWERS, HostileProvider, raising, soon
from prometheus_client.parser import text_string_to_metric_families

from holdfast.control.bindings import UpdateBinding
from holdfast.control.costs import SetPrice
from holdfast.control.hooks import EmitHook
from holdfast.control.hydration import Hydrate
from holdfast.control.memory import Capture, CorrectRecord, Query
from holdfast.control.operations import GetMetrics
from holdfast.domain import ids
from holdfast.domain.access import Action, Actor, ActorKind, storewide_grant
from holdfast.domain.contract import AttributionMode, BillingType, ContextBundle, HookKind, RecordHandle, Usage
from holdfast.domain.costs import CostEvent, Price
from holdfast.domain.ids import CostEventId, JobId, OperationId
from holdfast.domain.jobs import MAX_ATTEMPTS, Job, JobKind, NewJob
from holdfast.domain.operations import Attribution, BindingCounts, Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import HoldfastError, StoreBusy, StoreFull
from holdfast.failpoints import arm
from holdfast.gateway.app import create_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import MOST_LABEL_SETS, Metrics
from holdfast.runtime.worker import Handler, Worker
from probes import SteppingClock
from serving import serving

TOKEN = "operator-token-of-the-tests"
Sample = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Scraped:
    desk: Desk
    url: str
    clock: SteppingClock

    def text(self) -> str:
        answer = httpx2.get(f"{self.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        return answer.text

    def memory(self) -> dict[Sample, float]:
        return samples(self.text())

    def value(self, name: str, **labels: str) -> float:
        return self.memory().get((f"holdfast_memory_{name}", tuple(sorted(labels.items()))), 0.0)


def samples(rendered: str) -> dict[Sample, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(rendered)
        for sample in family.samples
        if sample.name.startswith("holdfast_memory_") and not sample.name.endswith("_created")
    }


@pytest.fixture
def scraped(location: str, hostile: HostileProvider, runner: asyncio.Runner) -> Iterator[Scraped]:
    metrics, clock = Metrics(), SteppingClock()
    desk = runner.run(Desk.opened(location, hostile, watcher=metrics.memory, clock=clock))
    config = GatewayConfig(operator_token=TOKEN, rate_per_minute=0, request_logs=False)
    with serving(create_app(desk.engine, desk.engine, config, metrics)) as url:
        yield Scraped(desk, url, clock)
    runner.run(desk.close())


def test_calls_are_counted_by_company_binding_type_and_outcome_as_the_report_has_them(
    scraped: Scraped, runner: asyncio.Runner
) -> None:
    desk = scraped.desk

    async def scene() -> None:
        made = await desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT)
        await desk.do(CorrectRecord(BOT, made.result.records[0], "The cat ran."), AGENT)
        await desk.do(Query(BOT, "cat"), AGENT)
        await desk.do(Query(Scope(space="acme", agent="idle"), "cat"))
        await desk.bind_outside()
        desk.hostile.does["query"] = raising(RuntimeError("down"))
        with pytest.raises(HoldfastError):
            await desk.do(Query(BOT, "cat"), AGENT)
        desk.hostile.does["query"] = soon(ContextBundle(()))
        await desk.do(Query(BOT, "cat"), AGENT)
        with pytest.raises(HoldfastError):
            await desk.do(Query(Scope(space="acme", agent="other"), "cat"), AGENT)
        with pytest.raises(HoldfastError):
            await desk.do(Query(BOT, "cat", binding_key="never-made"), AGENT)
        await desk.rows()

    runner.run(scene())
    for binding, kind, outcome, count in [
        ("default", "capture", "succeeded", 1),
        ("default", "correct", "succeeded", 1),
        ("default", "query", "succeeded", 2),
        ("elsewhere", "query", "succeeded", 1),
        ("elsewhere", "query", "failed", 1),
        ("none", "query", "refused", 2),
    ]:
        labels = {"company": "acme", "binding": binding, "type": kind, "outcome": outcome}
        assert scraped.value("operations_total", **labels) == count, labels
    assert scraped.value("queries_total", company="acme", result="hit") == 1
    assert scraped.value("queries_total", company="acme", result="empty") == 2
    assert scraped.value("recalls_total", company="acme", result="hit") == 1
    assert scraped.value("recalls_total", company="acme", result="empty") == 1
    assert scraped.value("operation_seconds_count", provider="local", type="query") == 2
    assert scraped.value("operation_seconds_count", provider="hostile", type="query") == 2
    report = runner.run(desk.do(GetMetrics(WHOLE)))
    assert (report.queries, report.empty_queries, report.recalls, report.recall_hits) == (3, 2, 2, 1)
    for counts in report.bindings:
        found = sum(
            value
            for (name, labels), value in scraped.memory().items()
            if name == "holdfast_memory_operations_total" and ("binding", counts.binding or "none") in labels
        )
        assert found == counts.succeeded + counts.failed + counts.refused + counts.unknown


def of_binding(scraped: Scraped, binding: str) -> tuple[float, ...]:
    """The scraped counts of a binding, in the format of `counted`."""
    return tuple(
        sum(
            value
            for (name, labels), value in scraped.memory().items()
            if name == "holdfast_memory_operations_total" and {("binding", binding), ("outcome", each)} <= set(labels)
        )
        for each in ("succeeded", "failed", "refused", "unknown")
    )


def counted(counts: BindingCounts) -> tuple[float, ...]:
    return (counts.succeeded, counts.failed, counts.refused, counts.unknown)


def emitted(hook_id: str, kind: HookKind = HookKind.POST_RUN_CAPTURE) -> EmitHook:
    return EmitHook(BOT, kind, hook_id, NOTE, text("The cat sat."))


async def _skipped(desk: Desk) -> None:
    await desk.do(emitted("c1", HookKind.ISSUE_COMMENT_CAPTURE))
    await desk.do(UpdateBinding(WHOLE, "default", enabled=False))
    await desk.do(emitted("h1"))
    await desk.do(Hydrate(BOT, "cat"))


async def _captured_and_emitted_again(desk: Desk) -> None:
    for _ in range(3):
        await desk.do(emitted("h1"))


async def _resumed(desk: Desk) -> None:
    await desk.do(emitted("c1", HookKind.ISSUE_COMMENT_CAPTURE))
    await desk.do(UpdateBinding(WHOLE, "default", hooks={HookKind.ISSUE_COMMENT_CAPTURE: True}))
    await desk.do(emitted("c1", HookKind.ISSUE_COMMENT_CAPTURE))


async def _told_to_a_subscriber(desk: Desk) -> None:
    desk.engine.hooks.subscribe("hears", [HookKind.POST_RUN_CAPTURE], lambda event: None)
    desk.engine.hooks.subscribe("breaks", [HookKind.POST_RUN_CAPTURE], raising(RuntimeError("deaf")))
    await desk.do(emitted("h1"))
    await desk.engine.crew.drain()


async def _delivered_outside(desk: Desk) -> None:
    await desk.bind_outside()
    await desk.do(emitted("h1"))
    await desk.engine.crew.drain()
    await desk.do(emitted("h1"))


async def _never_delivered(desk: Desk) -> None:
    await desk.bind_outside()
    desk.hostile.does["capture"] = raising(RuntimeError("down"))
    await desk.do(emitted("h1"))
    await desk.engine.crew.drain()


async def _switched_off_on_the_way(desk: Desk) -> None:
    await desk.bind_outside()
    await desk.do(emitted("h1"))
    await desk.do(UpdateBinding(WHOLE, "elsewhere", hooks={HookKind.POST_RUN_CAPTURE: False}))
    await desk.engine.crew.drain()


async def _made_again_with_its_key(desk: Desk) -> None:
    await desk.bind_outside()
    for _ in range(3):
        await desk.do(Capture(BOT, NOTE, text("The cat sat."), idempotency_key="k1"))
    with pytest.raises(HoldfastError):
        await desk.do(Capture(BOT, NOTE, text("Another."), idempotency_key="k1"))


# Each scene, and its counts by binding: succeeded, failed, refused.
ASKINGS: dict[str, tuple[Callable[[Desk], Awaitable[None]], dict[str, tuple[int, int, int]]]] = {
    "what is skipped asks nobody": (_skipped, {}),
    "a hook that is captured, and emitted again": (_captured_and_emitted_again, {"default": (1, 0, 0)}),
    "a hook that was skipped, and is emitted when it is wanted": (_resumed, {"default": (1, 0, 0)}),
    "a subscriber is no memory": (_told_to_a_subscriber, {"default": (1, 0, 0)}),
    "a hook that goes outside, once it does": (_delivered_outside, {"elsewhere": (1, 0, 0)}),
    "a hook that goes outside, when it fails": (_never_delivered, {"elsewhere": (0, 1, 0)}),
    "a hook that is switched off on the way": (_switched_off_on_the_way, {"elsewhere": (0, 0, 1)}),
    "a call that is made again with its key": (_made_again_with_its_key, {"elsewhere": (1, 0, 1)}),
}


@pytest.mark.parametrize("named", ASKINGS)
def test_success_and_failure_are_of_what_a_provider_was_asked_once_for_each_asking(
    scraped: Scraped, runner: asyncio.Runner, named: str
) -> None:
    scene, expected = ASKINGS[named]
    runner.run(scene(scraped.desk))
    report = runner.run(scraped.desk.do(GetMetrics(WHOLE)))
    assert {each.binding: counted(each) for each in report.bindings} == {
        binding: (*counts, 0) for binding, counts in expected.items()
    }
    assert (report.queries, report.recalls) == (0, 0), "what was not asked found nothing, and missed nothing"
    for binding in ("default", "elsewhere", "none"):
        assert of_binding(scraped, binding) == (*expected.get(binding, (0, 0, 0)), 0), binding
    assert not [
        name for name, _ in scraped.memory() if name.startswith(("holdfast_memory_queries", "holdfast_memory_rec"))
    ]
    timed = sum(
        value for (name, _), value in scraped.memory().items() if name == "holdfast_memory_operation_seconds_count"
    )
    assert timed == sum(sum(counts) for counts in expected.values())


def test_what_was_answered_and_could_not_be_kept_is_counted_as_unknown_and_costs_nothing(
    scraped: Scraped, runner: asyncio.Runner
) -> None:
    desk = scraped.desk
    runner.run(desk.bind_outside())
    paid = Usage("model", attribution_mode=AttributionMode.BILLED_DIRECTLY, cost_cents=Decimal(1))
    desk.hostile.does["query"] = soon(ContextBundle((), usage=(paid,)))

    def fail(point: str) -> None:
        if point == "commit.before" and desk.hostile.asked:
            raise StoreFull("no space is left")

    arm(fail)
    try:
        with pytest.raises(StoreFull):
            runner.run(desk.do(Query(BOT, "cat"), AGENT))
    finally:
        arm(None)
    outcomes = {
        dict(labels)["outcome"]
        for (name, labels) in scraped.memory()
        if name == "holdfast_memory_operations_total" and ("binding", "elsewhere") in labels
    }
    assert outcomes == {"unknown"}
    assert not [name for name, _ in scraped.memory() if name == "holdfast_memory_cost_micros_total"]


def test_costs_are_counted_by_currency_as_the_ledger_has_them(scraped: Scraped, runner: asyncio.Runner) -> None:
    desk = scraped.desk
    usage = (
        Usage("model", billing_type=BillingType.METERED_API, input_tokens=2_000_000),
        Usage("vendor", attribution_mode=AttributionMode.BILLED_DIRECTLY, cost_cents=Decimal("1.5"), currency="EUR"),
        Usage("vendor", attribution_mode=AttributionMode.INCLUDED_IN_RUN, cost_cents=Decimal("99"), currency="EUR"),
    )

    async def scene() -> None:
        await desk.bind_outside()
        await desk.do(SetPrice(WHOLE, Price("model", "*", "USD", input_micros=150_000)), OPERATOR)
        answer: Callable[..., Any] = ANSWERS["query"]
        desk.hostile.does["query"] = soon(replace(answer(None), usage=usage))
        for _ in range(3):
            await desk.do(Query(BOT, "cat"), AGENT)

    runner.run(scene())
    assert scraped.value("cost_micros_total", company="acme", currency="USD") == 3 * 300_000
    assert scraped.value("cost_micros_total", company="acme", currency="EUR") == 3 * 15_000


@pytest.mark.parametrize(
    ("kind", "name"), [(JobKind.EXTRACT, "extraction_failures_total"), (JobKind.DELIVER, "dead_deliveries_total")]
)
def test_failures_are_counted_when_the_last_try_has_come_to_nothing(
    scraped: Scraped, runner: asyncio.Runner, kind: JobKind, name: str
) -> None:
    core = scraped.desk.engine._core

    async def fails(_: Any, job: Job) -> Any:
        raise StoreBusy("not now")

    worker = Worker(core, {kind: Handler(fails)}, kinds=frozenset({kind}), looks=False)

    async def queue() -> None:
        job_id = JobId(core.ids.new(ids.JOB))
        await core.store.write(storewide_grant(), lambda t: t.jobs.enqueue(job_id, NewJob(kind, BOT), core.clock.now()))

    runner.run(queue())
    for attempt in range(MAX_ATTEMPTS):
        assert scraped.value(name, company="acme") == 0, attempt
        assert runner.run(worker.drain()) == 1
        scraped.clock.advance(hours=1)
    assert scraped.value(name, company="acme") == 1


def test_nothing_that_anybody_wrote_is_told(scraped: Scraped, runner: asyncio.Runner) -> None:
    desk = scraped.desk

    async def scene() -> None:
        await desk.do(Capture(BOT, NOTE, text("The secret canary sings.")), AGENT)
        await desk.do(Query(replace(BOT, run="run-canary", issue="issue-canary"), "secret canary?"), AGENT)
        for verb in (
            Query(BOT, "x", binding_key="canary-key"),
            CorrectRecord(BOT, RecordHandle("local", "mem_canary"), "canary"),
            Query(Scope(space="canary-company", agent="bot"), "x"),
        ):
            with pytest.raises(HoldfastError):
                await desk.do(verb, AGENT)

    runner.run(scene())
    assert "canary" not in scraped.text()


def _operation(company: str, binding: str = "default") -> Operation:
    actor = Actor(ActorKind.AGENT, "bot", company)
    about = Attribution(binding=binding, provider="local")
    at = datetime(2026, 11, 1, tzinfo=UTC)
    return Operation(
        OperationId("op_1"), actor, Action.QUERY, Scope(company, agent="bot"), Outcome.SUCCEEDED, None, 1, at, 5, about
    )


def test_label_sets_are_bounded_and_the_rest_is_other() -> None:
    metrics = Metrics()
    for number in range(3 * MOST_LABEL_SETS):
        metrics.memory.on_operation(_operation(f"company-{number}"))
        usage = Usage("p")
        cost = CostEvent(
            CostEventId("c"), None, None, Scope(f"company-{number}"), usage, 7, "USD", False, datetime.now(UTC)
        )
        metrics.memory.on_costs([cost])
    metrics.memory.on_operation(_operation("company-0"))  # a known label set is still counted
    found = samples(metrics.render().decode())
    for name in ("operations_total", "queries_total", "recalls_total", "cost_micros_total"):
        own = {labels: value for (metric, labels), value in found.items() if metric == f"holdfast_memory_{name}"}
        assert len(own) == MOST_LABEL_SETS + 1
        other = next(value for labels, value in own.items() if all(each == "other" for _, each in labels))
        assert other == 2 * MOST_LABEL_SETS * (7 if name == "cost_micros_total" else 1)
    assert len(metrics.render()) < 2_000_000


def test_another_companys_door_is_knocked_at_in_ones_own_trail(scraped: Scraped, runner: asyncio.Runner) -> None:
    with pytest.raises(HoldfastError):
        runner.run(scraped.desk.do(Query(Scope(space=OTHER, agent="bot"), "x"), AGENT))
    refused = {"binding": "none", "type": "query", "outcome": "refused"}
    assert scraped.value("operations_total", company="acme", **refused) == 1
    assert OTHER not in scraped.text()
    (row,) = [row for row in runner.run(scraped.desk.rows()) if row.action is Action.QUERY]
    assert (row.scope, row.outcome) == (WHOLE, Outcome.REFUSED)
