"""The cost ledger: each metered call is in it once, linked both ways, and the sums are correct. On both stores."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from desk import AGENT, BOT, NOTE, OPERATOR, OTHER, WHOLE, Desk, text
from misbehaving import ANSWERS, soon

from holdfast.control.costs import (
    AddFinanceEvent,
    ListCostEvents,
    ListFinanceEvents,
    ListPrices,
    RemovePrice,
    SetPrice,
    SummarizeCosts,
)
from holdfast.control.memory import (
    Capture,
    CorrectRecord,
    ExplainQuery,
    ForgetProviderRecords,
    ListProviderJobs,
    ListRecords,
    Query,
    ReadProviderProfile,
    RetryProviderJob,
    UpsertRecords,
)
from holdfast.domain.access import Actor, ActorKind, ActorRole, authorize
from holdfast.domain.contract import AttributionMode, BillingType, NewRecord, RecordHandle, Usage
from holdfast.domain.costs import (
    MAX_FEE_MICROS,
    CostEvent,
    CostGroup,
    CostLine,
    FinanceEvent,
    FinanceKind,
    Price,
)
from holdfast.domain.events import EventKind
from holdfast.domain.ids import CostEventId
from holdfast.domain.operations import Operation, Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.usage import NOTES, is_billed
from holdfast.errors import AccessDenied, IdempotencyConflict, InvalidInput, NotFound, ProviderMalformed
from holdfast.runtime.metering import record_costs
from holdfast.testing.full_repr import full_repr

HERE = Path(__file__).parent
METERED = Usage("model", model="small", billing_type=BillingType.METERED_API, input_tokens=1_000_000)
REPORTED = Usage(
    "vendor", attribution_mode=AttributionMode.BILLED_DIRECTLY, cost_cents=Decimal("0.12345"), currency="EUR"
)
INCLUDED = Usage("model", attribution_mode=AttributionMode.INCLUDED_IN_RUN, cost_cents=Decimal(5), input_tokens=9)
INVOICED = Usage("model", attribution_mode=AttributionMode.EXTERNAL_INVOICE, cost_cents=Decimal(5))
FREE = Usage("model")
UNCLASSIFIED = Usage("vendor", cost_cents=Decimal(5))
HANDLE = RecordHandle("hostile", "r1")
CALLS: dict[str, Callable[[Scope], Any]] = {
    "query": lambda scope: Query(scope, "cat"),
    "capture": lambda scope: Capture(scope, NOTE, text("The cat sat.")),
    "upsert_records": lambda scope: UpsertRecords(scope, (NewRecord("The cat sat."),)),
    "list": lambda scope: ListRecords(scope),
    "forget": lambda scope: ForgetProviderRecords(scope, (HANDLE,)),
    "correct": lambda scope: CorrectRecord(scope, HANDLE, "The cat ran."),
    "profile": lambda scope: ReadProviderProfile(scope),
    "explain": lambda scope: ExplainQuery(scope, "cat"),
    "list_extraction_jobs": lambda scope: ListProviderJobs(scope),
    "retry_extraction_job": lambda scope: RetryProviderJob(scope, "j1"),
}


def billing(desk: Desk, *names: str, usage: Sequence[Any]) -> None:
    """Make the provider report this usage for these verbs."""
    for name in names:

        async def verb(*given: Any, plain: Callable[..., Any] = ANSWERS[name]) -> Any:
            return replace(plain(*given), usage=tuple(usage))

        desk.hostile.does[name] = verb


async def ledger(desk: Desk, space: Scope = WHOLE) -> list[CostEvent]:
    """All cost events, newest first, read page by page."""
    found: list[CostEvent] = []
    cursor = None
    while True:
        page = await desk.do(ListCostEvents(space, cursor, 7))
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found


def check_linked(rows: Sequence[Operation], events: Sequence[CostEvent]) -> None:
    """Check that events and operations name each other, and that each metered entry of a call has exactly one event."""
    named = Counter(event_id for row in rows if row.attribution for event_id in row.attribution.cost_events)
    assert named == Counter({event.id: 1 for event in events})
    by_id = {event.id: event for event in events}
    for row in rows:
        if row.attribution is None:
            continue
        own = [by_id[event_id] for event_id in row.attribution.cost_events]
        assert [event.usage for event in own] == [entry for entry in row.attribution.usage if is_billed(entry)]
        assert {event.operation_id for event in own} <= {row.id}
        assert {event.binding for event in own} <= {row.attribution.binding}
        assert {event.scope for event in own} <= {row.scope}


@pytest.mark.parametrize("name", CALLS)
def test_a_metered_call_is_in_the_ledger_once_for_each_entry_and_linked_both_ways(
    desk: Desk, runner: asyncio.Runner, name: str
) -> None:
    runner.run(desk.bind_outside())
    billing(desk, name, usage=(METERED, INCLUDED, REPORTED, FREE))
    scope = replace(BOT, run="run-1", issue="issue-1", project="p")
    runner.run(desk.do(CALLS[name](scope), OPERATOR))

    events = runner.run(ledger(desk))
    rows = runner.run(desk.listed(binding="elsewhere", agent="bot"))
    assert len(events) == 2
    check_linked(rows, events)
    (row,) = [row for row in rows if row.attribution and row.attribution.usage]
    assert row.attribution is not None
    assert row.attribution.mode is AttributionMode.BILLED_DIRECTLY
    assert row.attribution.usage == (METERED, INCLUDED, REPORTED, FREE)
    assert {(event.scope.agent, event.scope.run, event.scope.issue) for event in events} == {
        ("bot", "run-1", "issue-1")
    }
    money = {(event.usage.provider, event.amount_micros, event.currency, event.estimated) for event in events}
    assert money == {("model", 0, "USD", True), ("vendor", 1_234, "EUR", False)}


@pytest.mark.parametrize(
    ("usage", "mode"),
    [
        ((INCLUDED,), AttributionMode.INCLUDED_IN_RUN),
        ((INVOICED, INCLUDED), AttributionMode.EXTERNAL_INVOICE),
        ((FREE,), AttributionMode.UNTRACKED),
        ((), None),
    ],
    ids=["included", "invoiced", "free", "nothing"],
)
def test_what_is_on_another_account_leaves_its_mode_and_no_event(
    desk: Desk, runner: asyncio.Runner, usage: tuple[Usage, ...], mode: AttributionMode | None
) -> None:
    runner.run(desk.bind_outside())
    billing(desk, "query", usage=usage)
    runner.run(desk.do(Query(replace(BOT, run="run-1"), "cat"), AGENT))

    assert runner.run(ledger(desk)) == []
    (row,) = runner.run(desk.listed(run="run-1"))
    assert row.attribution is not None
    assert (row.attribution.mode, row.attribution.usage, row.attribution.cost_events) == (mode, usage, ())


def test_a_cost_that_is_reported_without_saying_whose_it_is_is_in_the_ledger(
    desk: Desk, runner: asyncio.Runner
) -> None:
    runner.run(desk.bind_outside())
    billing(desk, "query", usage=(UNCLASSIFIED, INCLUDED, INVOICED, FREE))
    runner.run(desk.do(Query(replace(BOT, run="run-1"), "cat"), AGENT))

    (event,) = runner.run(ledger(desk))
    assert (event.usage, event.amount_micros, event.currency, event.estimated) == (UNCLASSIFIED, 50_000, "USD", False)
    rows = runner.run(desk.listed(run="run-1"))
    check_linked(rows, [event])
    assert [row.attribution.mode for row in rows if row.attribution] == [AttributionMode.BILLED_DIRECTLY]


def test_our_own_store_costs_nothing(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat.")), AGENT))
    runner.run(desk.do(Query(BOT, "cat"), AGENT))
    assert runner.run(ledger(desk)) == []
    assert runner.run(desk.do(SummarizeCosts(WHOLE))).lines == ()


def test_a_call_that_is_repeated_with_its_key_is_paid_for_once(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    billing(desk, "capture", usage=(METERED,))
    for _ in range(3):
        runner.run(desk.do(Capture(BOT, NOTE, text("The cat sat."), idempotency_key="k"), AGENT))
    (event,) = runner.run(ledger(desk))
    check_linked(runner.run(desk.listed(agent="bot")), [event])


def test_a_call_that_failed_is_in_the_trail_and_not_in_the_ledger(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    desk.hostile.does["query"] = soon("no bundle at all")
    with pytest.raises(ProviderMalformed):
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
    (row,) = runner.run(desk.listed(agent="bot"))
    assert row.outcome is Outcome.FAILED
    assert runner.run(ledger(desk)) == []


HOSTILE: list[Any] = [
    Usage("model", billing_type=BillingType.METERED_API, input_tokens=-5),
    Usage("model", billing_type=BillingType.METERED_API, cost_cents=Decimal("NaN")),
    Usage("model", billing_type=BillingType.METERED_API, cost_cents=Decimal("Infinity"), output_tokens=10**40),
    Usage("model", billing_type=BillingType.METERED_API, cost_cents=Decimal(5), currency="$$$"),
    Usage("model", billing_type=BillingType.METERED_API, input_tokens="many"),  # type: ignore[arg-type]
    Usage("x" * 10_000, billing_type=BillingType.METERED_API, model="\x00", details={"words": "w" * 100_000}),
    "no usage",
    None,
]


def test_hostile_usage_harms_neither_the_answer_nor_the_ledger(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    billing(desk, "query", usage=HOSTILE)
    answered = runner.run(desk.do(Query(BOT, "cat"), AGENT))
    assert len(answered.result.snippets) == 1

    events = runner.run(ledger(desk))
    assert len(events) == 6
    check_linked(runner.run(desk.listed(agent="bot")), events)
    assert {event.amount_micros for event in events} == {0}
    assert all(NOTES in event.usage.details for event in events)
    assert {event.usage.provider for event in events} == {"model", "hostile"}
    summary = runner.run(desk.do(SummarizeCosts(WHOLE, CostGroup.PROVIDER)))
    assert summary.totals == {"USD": 0}


@pytest.mark.parametrize(
    ("point", "passage", "left"),
    [
        ("commit.before", 1, (None, 0)),
        ("outside.before", 1, (Outcome.UNKNOWN, 0)),
        ("outside.after", 1, (Outcome.UNKNOWN, 0)),
        ("commit.before", 2, (Outcome.UNKNOWN, 0)),
        ("commit.after", 2, (Outcome.SUCCEEDED, 2)),
    ],
)
def test_a_crash_leaves_the_outcome_with_its_costs_or_neither(
    desk: Desk,
    location: str,
    runner: asyncio.Runner,
    point: str,
    passage: int,
    left: tuple[Outcome | None, int],
) -> None:
    runner.run(desk.bind_outside())
    path = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, str(HERE / "billing_dying.py"), location, point, str(passage)],
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    rows = [row for row in runner.run(desk.rows()) if row.action is Query.action]
    events = runner.run(ledger(desk))
    outcome, count = left
    assert [row.outcome for row in rows] == ([] if outcome is None else [outcome])
    assert len(events) == count
    check_linked(rows, events)


# --- prices -----------------------------------------------------------------------------------------------------------


def test_a_price_is_what_calls_are_reckoned_by_from_then_on(desk: Desk, runner: asyncio.Runner) -> None:
    runner.run(desk.bind_outside())
    billing(desk, "query", usage=(METERED,))

    def asked() -> int:
        runner.run(desk.do(Query(BOT, "cat"), AGENT))
        newest: int = runner.run(ledger(desk))[0].amount_micros
        return newest

    assert asked() == 0
    runner.run(desk.do(SetPrice(WHOLE, Price("model", "*", "USD", input_micros=150_000))))
    assert asked() == 150_000
    runner.run(desk.do(SetPrice(WHOLE, Price("model", "small", "USD", input_micros=70_000))))
    assert asked() == 70_000
    assert [price.model for price in runner.run(desk.do(ListPrices(WHOLE)))] == ["*", "small"]
    runner.run(desk.do(RemovePrice(WHOLE, "model", "small")))
    assert asked() == 150_000
    # Earlier amounts do not change.
    assert [event.amount_micros for event in runner.run(ledger(desk))] == [150_000, 70_000, 150_000, 0]
    assert runner.run(desk.do(ListPrices(Scope(space=OTHER)))) == ()
    with pytest.raises(NotFound, match="'model/small'"):
        runner.run(desk.do(RemovePrice(WHOLE, "model", "small")))


def test_every_change_of_prices_and_fees_is_an_activity_that_says_who(desk: Desk, runner: asyncio.Runner) -> None:
    price = Price("model", "*", "USD", input_micros=5)
    runner.run(desk.do(SetPrice(WHOLE, price), OPERATOR))
    runner.run(desk.do(SetPrice(WHOLE, price), OPERATOR))  # nothing changes
    fee = runner.run(desk.do(AddFinanceEvent(WHOLE, FinanceKind.STORAGE, "Of November", 5), OPERATOR))
    runner.run(desk.do(RemovePrice(WHOLE, "model"), OPERATOR))
    told = [(each.kind, each.key, each.details["actor"]) for each in runner.run(desk.activity())]
    assert told == [
        (EventKind.PRICE_REMOVED, "model/*", "operator:boss"),
        (EventKind.FINANCE_ADDED, fee.id, "operator:boss"),
        (EventKind.PRICE_SET, "model/*", "operator:boss"),
    ]
    assert "Of November" not in full_repr(runner.run(desk.activity()))


# --- fees -------------------------------------------------------------------------------------------------------------


def test_a_fee_is_written_down_once_and_stands_beside_the_calls(desk: Desk, runner: asyncio.Runner) -> None:
    at = datetime(2026, 11, 1, tzinfo=timezone(timedelta(hours=2)))
    fee = AddFinanceEvent(
        WHOLE, FinanceKind.SUBSCRIPTION, "Of November", 49_000_000, "EUR", at, "elsewhere", "vendor", "INV-7",
        idempotency_key="k",
    )  # fmt: skip
    made = runner.run(desk.do(fee))
    assert made == FinanceEvent(
        made.id, "acme", FinanceKind.SUBSCRIPTION, "Of November", 49_000_000, "EUR", at, "elsewhere", "vendor", "INV-7"
    )
    assert runner.run(desk.do(fee)) == made
    with pytest.raises(IdempotencyConflict):
        runner.run(desk.do(replace(fee, amount_micros=1)))
    credit = runner.run(
        desk.do(AddFinanceEvent(WHOLE, FinanceKind.OTHER, "Credit", -9_000_000, "EUR", provider="vendor"))
    )
    page = runner.run(desk.do(ListFinanceEvents(WHOLE, limit=1)))
    assert page.items == (credit,)
    rest = runner.run(desk.do(ListFinanceEvents(WHOLE, page.next_cursor)))
    assert (rest.items, rest.next_cursor) == ((made,), None)

    summary = runner.run(desk.do(SummarizeCosts(WHOLE)))
    assert (summary.lines, summary.totals, summary.fee_totals) == ((), {}, {"EUR": 40_000_000})
    assert [(line.name, line.events) for line in summary.fees] == [("vendor", 2)]
    october = runner.run(desk.do(SummarizeCosts(WHOLE, until=datetime(2026, 11, 1, tzinfo=UTC))))
    assert october.fee_totals == {"EUR": 49_000_000}  # 22:00 UTC on 31 October
    assert runner.run(desk.do(ListFinanceEvents(Scope(space=OTHER)))).items == ()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kind": "fine"}, "kind"),
        ({"description": ""}, "description"),
        ({"description": "x" * 501}, "description"),
        ({"amount_micros": 1.5}, "amount_micros"),
        ({"amount_micros": True}, "amount_micros"),
        ({"amount_micros": MAX_FEE_MICROS + 1}, "amount_micros"),
        ({"currency": "euro"}, "currency"),
        ({"occurred_at": datetime(2026, 11, 1)}, "occurred_at"),
        ({"binding": "Not A Key"}, "binding"),
        ({"provider": ""}, "provider"),
        ({"external_invoice_id": "a\x00b"}, "external_invoice_id"),
        ({"estimated": 1}, "estimated"),
        ({"scope": BOT}, "agent"),
        ({"scope": Scope(space="*")}, "space"),
    ],
    ids=str,
)
def test_a_fee_that_makes_no_sense_is_refused_by_name(
    desk: Desk, runner: asyncio.Runner, wrong: dict[str, Any], named: str
) -> None:
    given = {"scope": WHOLE, "kind": FinanceKind.OTHER, "description": "x", "amount_micros": 1, **wrong}
    with pytest.raises(InvalidInput) as refused:
        runner.run(desk.make(lambda: AddFinanceEvent(**given), AddFinanceEvent))
    assert refused.value.field == named


# --- sums -------------------------------------------------------------------------------------------------------------


def _usage(chance: random.Random) -> Usage:
    return Usage(
        chance.choice(["model", "vendor"]),
        model=chance.choice([None, "small", "large"]),
        billing_type=chance.choice(list(BillingType)),
        attribution_mode=chance.choice(list(AttributionMode)),
        input_tokens=chance.randrange(10_000),
        cached_input_tokens=chance.randrange(100),
        output_tokens=chance.randrange(10_000),
        embedding_tokens=chance.randrange(1_000),
        cost_cents=chance.choice([None, Decimal(chance.randrange(10**9)).scaleb(-6)]),
        currency=chance.choice(["USD", "EUR"]),
    )


TRAITS: dict[CostGroup, Callable[[CostEvent], str | None]] = {
    CostGroup.BINDING: lambda event: event.binding,
    CostGroup.AGENT: lambda event: event.scope.agent,
    CostGroup.PROVIDER: lambda event: event.usage.provider,
    CostGroup.MODEL: lambda event: event.usage.model,
    CostGroup.DAY: lambda event: event.occurred_at.astimezone(UTC).date().isoformat(),
}
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "embedding_tokens")


def summed(events: Sequence[CostEvent], group: CostGroup) -> set[CostLine]:
    """Sum events by plain addition."""
    sums: dict[tuple[str | None, str], list[CostEvent]] = defaultdict(list)
    for event in events:
        sums[TRAITS[group](event), event.currency].append(event)
    return {
        CostLine(
            name,
            currency,
            sum(event.amount_micros for event in found),
            len(found),
            *(sum(getattr(event.usage, each) for event in found) for each in TOKENS),
            sum(event.amount_micros for event in found if event.estimated),
        )
        for (name, currency), found in sums.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_summaries_are_the_sums_of_what_is_in_the_ledger(desk: Desk, runner: asyncio.Runner, seed: int) -> None:
    chance = random.Random(seed)
    core = desk.engine._core
    start = datetime(2026, 2, 27, 22, tzinfo=timezone(timedelta(hours=chance.randrange(-11, 12))))
    for price in (
        Price("model", "*", "USD", 150_000, 75_000, 600_000, 20_000),
        Price("vendor", "large", "EUR", 1, 2, 3),
    ):
        runner.run(desk.do(SetPrice(WHOLE, price)))
    taken: list[Usage] = []

    async def history() -> None:
        for number in range(120):
            usage = [_usage(chance) for _ in range(chance.randrange(3))]
            taken.extend(usage)
            space = "acme" if number % 10 else OTHER
            scope = Scope(space=space, agent=chance.choice([None, "bot", "ben"]))
            grant = authorize(Actor(ActorKind.SYSTEM, "w"), Query.action, scope)
            at = start + timedelta(minutes=chance.randrange(5 * 24 * 60))
            binding = chance.choice([None, "default", "elsewhere"])
            await core.store.write(
                grant,
                lambda transaction: record_costs(transaction, core, None, binding, scope, usage, at),  # noqa: B023
            )

    runner.run(history())
    ours, theirs = runner.run(ledger(desk)), runner.run(ledger(desk, Scope(space=OTHER)))
    assert len(ours) + len(theirs) == sum(is_billed(usage) for usage in taken)
    assert len(theirs) > 0
    moments = sorted(event.occurred_at for event in ours)
    early, late = moments[len(moments) // 4], moments[-len(moments) // 4]
    spans = [(None, None), (early, None), (None, late), (early, late)]
    for group in CostGroup:
        for since, until in spans:
            within = [
                event
                for event in ours
                if (since is None or event.occurred_at >= since) and (until is None or event.occurred_at < until)
            ]
            summary = runner.run(desk.do(SummarizeCosts(WHOLE, group, since, until)))
            assert len(summary.lines) == len(set(summary.lines))
            assert set(summary.lines) == summed(within, group)
            micros: dict[str, int] = defaultdict(int)
            for event in within:
                micros[event.currency] += event.amount_micros
            assert summary.totals == dict(micros)
        whole = runner.run(desk.do(SummarizeCosts(WHOLE, group))).lines
        order = [line.name for line in whole] if group is CostGroup.DAY else [-line.amount_micros for line in whole]
        assert order == sorted(order)  # type: ignore[type-var]


def test_sums_beyond_what_a_float_holds_are_exact(desk: Desk, runner: asyncio.Runner) -> None:
    core = desk.engine._core
    dear = replace(METERED, cost_cents=Decimal("99999999.9999"))

    async def fill() -> None:
        grant = authorize(Actor(ActorKind.SYSTEM, "w"), Query.action, WHOLE)
        for _ in range(100):
            await core.store.write(
                grant,
                lambda transaction: record_costs(transaction, core, None, None, WHOLE, [dear] * 100, core.clock.now()),
            )

    runner.run(fill())
    assert runner.run(desk.do(SummarizeCosts(WHOLE))).totals == {"USD": 10_000 * 999_999_999_999}


# --- access -----------------------------------------------------------------------------------------------------------

VERBS: dict[str, Callable[[Scope], Any]] = {
    "summarize": lambda scope: SummarizeCosts(scope),
    "events": lambda scope: ListCostEvents(scope),
    "fees": lambda scope: ListFinanceEvents(scope),
    "prices": lambda scope: ListPrices(scope),
    "set": lambda scope: SetPrice(scope, Price("model", "*")),
    "remove": lambda scope: RemovePrice(scope, "model", "*"),
    "fee": lambda scope: AddFinanceEvent(scope, FinanceKind.OTHER, "x", 1),
}
READS = ("summarize", "events", "fees", "prices")


@pytest.mark.parametrize("name", VERBS)
def test_costs_are_the_operators_of_their_company_and_auditors_only_read_them(
    desk: Desk, runner: asyncio.Runner, name: str
) -> None:
    runner.run(desk.do(SetPrice(WHOLE, Price("model", "*"))))
    auditor = replace(OPERATOR, role=ActorRole.AUDITOR)
    for actor in (AGENT, Actor(ActorKind.USER, "ana", "acme"), replace(OPERATOR, space=OTHER)):
        with pytest.raises(AccessDenied):
            runner.run(desk.do(VERBS[name](WHOLE), actor))
    if name in READS:
        runner.run(desk.do(VERBS[name](WHOLE), auditor))
    else:
        with pytest.raises(AccessDenied):
            runner.run(desk.do(VERBS[name](WHOLE), auditor))
    runner.run(desk.do(VERBS[name](WHOLE), replace(OPERATOR, role=ActorRole.ADMIN)))


def test_a_cost_is_not_written_into_another_company(desk: Desk, runner: asyncio.Runner) -> None:
    core = desk.engine._core
    grant = authorize(AGENT, Query.action, BOT)
    foreign = Scope(space=OTHER)
    event = CostEvent(CostEventId("cost_1"), None, None, foreign, METERED, 5, "USD", False, core.clock.now())
    with pytest.raises(AccessDenied):
        runner.run(core.store.write(grant, lambda transaction: transaction.costs.add(event)))
    assert runner.run(ledger(desk, foreign)) == []
