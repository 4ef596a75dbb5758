"""Costs of memory: stored to the millionth, and summed exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.contract import BillingType
from holdfast.domain.costs import CostEvent, CostGroup, CostLine, FinanceKind, Price
from holdfast.domain.ids import OperationId
from holdfast.domain.scope import Scope
from holdfast.ports import Store
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from holdfast.testing.store_suite.scribe import EVERYTHING, scenario

GRANT = management_grant()
_LARGEST = 9_000_000_000_000


def _name(event: CostEvent, group: CostGroup) -> str | None:
    return {
        CostGroup.BINDING: event.binding,
        CostGroup.AGENT: event.scope.agent,
        CostGroup.PROVIDER: event.usage.provider,
        CostGroup.MODEL: event.usage.model,
        CostGroup.DAY: event.occurred_at.astimezone(UTC).date().isoformat(),
    }[group]


def _sum_by_group(events: Iterable[CostEvent], group: CostGroup) -> dict[tuple[str | None, str], CostLine]:
    lines: dict[tuple[str | None, str], CostLine] = {}
    for event in events:
        key = (_name(event, group), event.currency)
        line, usage = lines.get(key, CostLine(*key, 0, 0, 0, 0, 0, 0, 0)), event.usage
        lines[key] = CostLine(
            *key,
            line.amount_micros + event.amount_micros,
            line.events + 1,
            line.input_tokens + usage.input_tokens,
            line.cached_input_tokens + usage.cached_input_tokens,
            line.output_tokens + usage.output_tokens,
            line.embedding_tokens + usage.embedding_tokens,
            line.estimated_micros + (event.amount_micros if event.estimated else 0),
        )
    return lines


async def _events(store: Store, scribe: ControlScribe) -> list[CostEvent]:
    made = []
    for n in range(50):
        usage = scribe.usage(
            provider="ab"[n % 2],
            model=(None, "m1", "m2")[n % 3],
            input_tokens=n,
            cached_input_tokens=n % 4,
            output_tokens=_LARGEST if n == 9 else n % 7,
            embedding_tokens=n % 5,
            cost_cents=None if n % 4 else Decimal(n) / 8,
        )
        made.append(
            scribe.cost(
                usage=usage,
                binding=(None, "x", "y")[n % 3],
                scope=scribe.scope(agent=f"a{n % 4}") if n % 5 else scribe.scope(subject="ana"),
                amount_micros=_LARGEST if n == 11 else 3 * n + 1,
                currency="EUR" if n % 9 == 0 else "USD",
                estimated=n % 3 == 0,
                operation_id=OperationId(f"op_{n}") if n % 2 else None,
                occurred_at=scribe.clock.step(timedelta(hours=5)),
            )
        )
    for each in made:
        await store.write(GRANT, lambda t, each=each: t.costs.add(each))  # type: ignore[misc]
    return made


class ControlCostContract:
    @scenario
    async def test_costs_are_kept_as_they_were_and_listed_newest_first(self, store: Store) -> None:
        scribe = ControlScribe()
        made = await _events(store, scribe)
        assert await store.read(GRANT, lambda r: list(r.costs.page(None, 100))) == made[::-1]
        assert await store.read(GRANT, lambda r: list(r.costs.page(made[20].id, 5))) == made[15:20][::-1]
        assert await store.read(GRANT, lambda r: list(r.costs.page(made[0].id, 5))) == []

    @pytest.mark.parametrize("group", CostGroup)
    @scenario
    async def test_sums_are_what_plain_arithmetic_makes_of_all_events(self, store: Store, group: CostGroup) -> None:
        scribe = ControlScribe()
        made = await _events(store, scribe)
        moments = [None, made[0].occurred_at, made[17].occurred_at, made[33].occurred_at, made[-1].occurred_at]
        for since in moments:
            for until in moments:
                within = [
                    each
                    for each in made
                    if (since is None or each.occurred_at >= since) and (until is None or each.occurred_at < until)
                ]
                found = await store.read(GRANT, lambda r, s=since, u=until: list(r.costs.summary(group, s, u)))  # type: ignore[misc]
                assert {(line.name, line.currency): line for line in found} == _sum_by_group(within, group)
                if group is CostGroup.DAY:
                    assert [line.name for line in found] == sorted(line.name or "" for line in found)
                else:
                    assert [-line.amount_micros for line in found] == sorted(-line.amount_micros for line in found)

    @scenario
    async def test_a_day_is_of_utc_to_the_microsecond(self, store: Store) -> None:
        scribe = ControlScribe()
        midnight = datetime(2026, 3, 1, tzinfo=UTC)
        moments = [
            midnight - timedelta(microseconds=1),
            midnight,
            datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-2))),
        ]
        for at in moments:
            event = scribe.cost(occurred_at=at)
            await store.write(GRANT, lambda t, event=event: t.costs.add(event))  # type: ignore[misc]
        found = await store.read(GRANT, lambda r: list(r.costs.summary(CostGroup.DAY, None, None)))
        assert [line.name for line in found] == ["2026-02-28", "2026-03-01", "2026-03-02"]
        found = await store.read(GRANT, lambda r: list(r.costs.summary(CostGroup.DAY, midnight, moments[2])))
        assert [line.name for line in found] == ["2026-03-01"]

    @scenario
    async def test_fees_are_kept_and_summed_by_provider_beside_the_calls(self, store: Store) -> None:
        scribe = ControlScribe()
        fees = [
            scribe.finance(amount_micros=100),
            scribe.finance(
                kind=FinanceKind.OTHER, amount_micros=-30, external_invoice_id="inv-7", binding="x", estimated=True
            ),
            scribe.finance(provider=None, currency="EUR", amount_micros=7, occurred_at=scribe.clock.step()),
        ]
        for fee in fees:
            await store.write(GRANT, lambda t, fee=fee: t.costs.add_finance(fee))  # type: ignore[misc]
        await store.write(GRANT, lambda t: t.costs.add(scribe.cost()))
        assert await store.read(GRANT, lambda r: list(r.costs.finance_page(None, 10))) == fees[::-1]
        assert await store.read(GRANT, lambda r: list(r.costs.finance_summary(None, None))) == [
            CostLine(fees[0].provider, "USD", 70, 2, 0, 0, 0, 0, -30),
            CostLine(None, "EUR", 7, 1, 0, 0, 0, 0, 0),
        ]
        since = fees[2].occurred_at
        assert [line.name for line in await store.read(GRANT, lambda r: r.costs.finance_summary(since, None))] == [None]
        assert len(await store.read(GRANT, lambda r: r.costs.finance_summary(None, since))) == 1

    @scenario
    async def test_any_caller_adds_its_cost_and_reads_the_prices(self, store: Store) -> None:
        scribe = ControlScribe()
        await store.write(GRANT, lambda t: t.costs.put_price(Price("vendor", "*", input_micros=3)))
        agents = authorize(LOCAL_OPERATOR, Action.CAPTURE, Scope(agent="bo"))
        event = scribe.cost(scope=scribe.scope(agent="bo"), usage=scribe.usage(billing_type=BillingType.UNKNOWN))
        await store.write(agents, lambda t: t.costs.add(event))
        assert await store.read(agents, lambda r: list(r.costs.prices())) == [Price("vendor", "*", input_micros=3)]
        assert await store.read(agents, lambda r: list(r.costs.page(None, 10))) == []
        assert await store.read(GRANT, lambda r: list(r.costs.page(None, 10))) == [event]

    @scenario
    async def test_prices_are_put_replaced_and_removed(self, store: Store) -> None:
        prices = [Price("b", "*"), Price("a", "m", "EUR", 1, 2, 3, 4), Price("a", "*", input_micros=5)]
        for price in prices:
            await store.write(GRANT, lambda t, price=price: t.costs.put_price(price))  # type: ignore[misc]
        changed = replace(prices[1], output_micros=9, currency="USD")
        await store.write(GRANT, lambda t: t.costs.put_price(changed))
        assert await store.read(GRANT, lambda r: list(r.costs.prices())) == [prices[2], changed, prices[0]]
        assert await store.write(GRANT, lambda t: t.costs.remove_price("a", "m"))
        assert not await store.write(GRANT, lambda t: t.costs.remove_price("a", "m"))
        assert await store.read(GRANT, lambda r: list(r.costs.prices())) == [prices[2], prices[0]]
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity("e")))[1] == []
