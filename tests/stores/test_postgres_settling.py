"""Lost commits: the row of a begun operation does not prove its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.domain.hooks import DeliveryFilter
from holdfast.domain.operations import OperationFilter, Outcome
from holdfast.ports import Transaction
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.store_suite.control_scribe import ControlScribe, management_grant
from postgres import Cut, Proxy, new_schema

GRANT = management_grant()


@pytest.mark.parametrize("what", list(Cut), ids=[each.value for each in Cut])
def test_an_outcome_whose_commit_is_lost_is_written_once(
    proxy: Proxy, what: Cut, at_commit: Callable[[Callable[[], None]], None]
) -> None:
    async def whole() -> None:
        scribe, store = ControlScribe(), PostgresStore(proxy.url(schema=new_schema()))
        intent = scribe.operation(outcome=Outcome.UNKNOWN)
        await store.write(GRANT, lambda t: t.operations.add(intent))
        settled = replace(intent, outcome=Outcome.SUCCEEDED, record_count=3)
        event = scribe.cost(operation_id=intent.id)
        tries: list[int] = []

        def settle(transaction: Transaction) -> None:
            tries.append(1)
            transaction.costs.add(event)
            transaction.operations.settle(settled)

        at_commit(lambda: proxy.cut(what))
        await store.write(GRANT, settle)
        assert len(tries) == (1 if what is Cut.ANSWER else 2)
        assert await store.read(GRANT, lambda r: list(r.operations.page(OperationFilter(), None, 9))) == [settled]
        assert await store.read(GRANT, lambda r: list(r.costs.page(None, 9))) == [event]
        await store.close()

    asyncio.run(whole())


@pytest.mark.parametrize("what", list(Cut), ids=[each.value for each in Cut])
def test_an_intent_whose_commit_is_lost_is_recorded_once(
    proxy: Proxy, what: Cut, at_commit: Callable[[Callable[[], None]], None]
) -> None:
    async def whole() -> None:
        scribe, store = ControlScribe(), PostgresStore(proxy.url(schema=new_schema()))
        await store.write(GRANT, lambda t: t.operations.add(scribe.operation()))
        intent = scribe.operation(outcome=Outcome.UNKNOWN)
        at_commit(lambda: proxy.cut(what))
        await store.write(GRANT, lambda t: t.operations.add(intent))
        assert await store.read(GRANT, lambda r: r.operations.find(intent.id)) == intent
        assert await store.read(GRANT, lambda r: list(r.deliveries.page(DeliveryFilter(), None, 9))) == []
        await store.close()

    asyncio.run(whole())
