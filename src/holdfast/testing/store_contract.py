"""The conformance suite of stores.

Subclass `StoreContract` and define a fixture `store` that gives a factory of the store under test: an asynchronous
callable that opens it, empty at first. For a persistent store, subclass `DurableStoreContract`; then the factory,
called again, opens the same store.

    class TestMyStore(DurableStoreContract):
        @pytest.fixture
        def store(self, tmp_path: Path) -> StoreFactory:
            async def opened() -> Store:
                return MyStore(tmp_path / "store")

            return opened

The tests use only the port, never a store's internals.
"""

from __future__ import annotations

import asyncio

from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.testing.store_suite.aliases_and_events import AliasAndEventContract
from holdfast.testing.store_suite.control_bindings import ControlBindingContract
from holdfast.testing.store_suite.control_costs import ControlCostContract
from holdfast.testing.store_suite.control_deliveries import ControlDeliveryContract
from holdfast.testing.store_suite.control_isolation import ControlIsolationContract
from holdfast.testing.store_suite.control_jobs import ControlJobContract
from holdfast.testing.store_suite.control_operations import ControlOperationContract
from holdfast.testing.store_suite.forgetting import ForgettingContract
from holdfast.testing.store_suite.grants import GrantContract
from holdfast.testing.store_suite.indexes import IndexContract
from holdfast.testing.store_suite.jobs import JobContract
from holdfast.testing.store_suite.lifecycle import LifecycleContract
from holdfast.testing.store_suite.proposals import ProposalContract
from holdfast.testing.store_suite.reconciliation import ReconciliationContract
from holdfast.testing.store_suite.records import RecordContract
from holdfast.testing.store_suite.resources import ResourceContract
from holdfast.testing.store_suite.scribe import (
    ANA,
    EVERYTHING,
    SPACE,
    Scribe,
    StoreFactory,
    add,
    claim,
    delta,
    enqueue,
    page,
    put,
    texts,
)
from holdfast.testing.store_suite.skills import SkillContract
from holdfast.testing.store_suite.tools import ToolContract
from holdfast.testing.store_suite.transactions import TransactionContract
from holdfast.testing.store_suite.transcripts import TranscriptContract
from holdfast.testing.store_suite.users import UserContract

__all__ = ["DurableStoreContract", "StoreContract", "StoreFactory"]


class StoreContract(
    ReconciliationContract,
    RecordContract,
    GrantContract,
    IndexContract,
    ForgettingContract,
    JobContract,
    TransactionContract,
    UserContract,
    ResourceContract,
    AliasAndEventContract,
    TranscriptContract,
    SkillContract,
    ProposalContract,
    ToolContract,
    LifecycleContract,
    ControlIsolationContract,
    ControlBindingContract,
    ControlDeliveryContract,
    ControlCostContract,
    ControlOperationContract,
    ControlJobContract,
):
    """The promises of every store. Subclass it and supply a `store` fixture: a factory of fresh stores."""


class DurableStoreContract(StoreContract):
    """For persistent stores: the `store` factory opens the same one again."""

    def test_what_was_written_is_there_after_reopening(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            message, memory = scribe.message("hello", external_id="m1"), scribe.revision(Scope(subject="ana"), "fact")
            first = await store()
            await add(first, scribe.turn(ANA, message))
            await put(first, memory)
            await put(first, scribe.revision(Scope(subject="ana"), "corrected", of=memory, supersedes=1))
            await enqueue(first, scribe, scribe.job())
            before = await page(first), await delta(first)
            await first.close()
            second = await store()
            assert (await page(second), await delta(second)) == before
            assert len(await second.read(SPACE, lambda r: r.records.revisions(memory.id))) == 2
            assert await claim(second, scribe.clock.now()) is not None
            assert (await add(second, scribe.turn(ANA, scribe.message("hello", external_id="m1")))).new == frozenset()
            await second.close()

        asyncio.run(whole())

    def test_audit_rows_are_written_on_closing(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            first = await store()
            await add(first, scribe.turn(ANA, "hello"))
            rows = [scribe.operation(ANA) for _ in range(50)]
            for row in rows:
                await first.audit(row)
            await first.close()
            second = await store()
            assert list(await second.read(EVERYTHING, lambda r: r.operations.page())) == rows[::-1]
            await second.close()

        asyncio.run(whole())

    def test_two_stores_on_one_place_see_each_others_writes(self, store: StoreFactory) -> None:
        async def whole() -> None:
            scribe = Scribe()
            first, second = await store(), await store()
            turns = [scribe.turn(ANA, f"message {number}") for number in range(40)]
            await asyncio.gather(*(add((first, second)[at % 2], turn) for at, turn in enumerate(turns)))
            assert sorted(await texts(first)) == sorted(await texts(second))
            messages = [record for record in await page(first) if isinstance(record, Message)]
            assert sorted(message.position for message in messages) == list(range(40))
            await enqueue(first, scribe, scribe.job())
            got = await asyncio.gather(*(claim(each, scribe.clock.now()) for each in (first, second) * 4))
            assert len([job for job in got if job is not None]) == 1
            await first.close()
            assert len(await texts(second)) == 40
            await second.close()

        asyncio.run(whole())
