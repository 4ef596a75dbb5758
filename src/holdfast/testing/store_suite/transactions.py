"""Writes are atomic, each caller gets its own outcome, and every operation has an audit row."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.operations import Outcome
from holdfast.domain.results import Record
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.errors import HoldfastError, StoreClosed
from holdfast.ports import (
    ListFilter,
    Reader,
    Store,
    Transaction,
)
from holdfast.testing.store_suite.scribe import (
    _PATIENCE_SECONDS,
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SHARED,
    SPACE,
    Scribe,
    add,
    page,
    populate,
    put,
    scenario,
    texts,
    wait_until,
    write_grant,
)


class TransactionContract:
    # --- transactions ---

    @scenario
    async def test_a_failing_write_is_rolled_back_alone(self, store: Store) -> None:
        scribe = Scribe()
        turns = [scribe.turn(ANA, f"message {number}") for number in range(30)]

        def work(number: int) -> Callable[[Transaction], int]:
            def write(transaction: Transaction) -> int:
                transaction.transcripts.add_turn(turns[number], EMBEDDER, ANALYZER)
                if number % 3 == 0:
                    raise ValueError(number)
                return number

            return write

        ended = await asyncio.gather(
            *(store.write(write_grant(ANA), work(number)) for number in range(30)), return_exceptions=True
        )
        for number, outcome in enumerate(ended):
            if number % 3 == 0:
                # Each caller gets its own error.
                assert isinstance(outcome, ValueError)
                assert outcome.args == (number,)
            else:
                assert outcome == number
        committed = {f"message {number}" for number in range(30) if number % 3}
        assert set(await texts(store)) == committed
        positions = sorted(record.position for record in await page(store) if isinstance(record, Message))
        assert positions == list(range(20))

    @scenario
    async def test_what_breaks_the_stores_own_rules_is_an_error_of_holdfast(self, store: Store) -> None:
        scribe = Scribe()
        memory = scribe.revision(Scope(subject="ana"), "one")
        await put(store, memory)

        def clash(transaction: Transaction) -> None:
            transaction.transcripts.add_turn(scribe.turn(ANA, "never"), EMBEDDER, ANALYZER)
            transaction.records.add_revision(replace(memory, text="the same id again"), EMBEDDER, ANALYZER)

        ended = await asyncio.gather(
            store.write(write_grant(ANA), clash), add(store, scribe.turn(ANA, "hello")), return_exceptions=True
        )
        assert isinstance(ended[0], HoldfastError)
        assert await texts(store) == ["hello", "one"]

    @scenario
    async def test_a_write_sees_what_it_wrote_and_others_only_what_is_committed(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("hello")
        turn = scribe.turn(ANA, message)

        def write(transaction: Transaction) -> list[Record]:
            transaction.transcripts.add_turn(turn, EMBEDDER, ANALYZER)
            assert transaction.records.find(message.id) is not None
            return list(transaction.records.page(ListFilter(), None, 10))

        assert [record.text for record in await store.write(write_grant(ANA), write)] == ["hello"]

    @scenario
    async def test_a_reader_sees_one_moment(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "before"))
        looked, written = threading.Event(), threading.Event()

        def look(reader: Reader) -> tuple[int, int]:
            first = reader.maintenance.counts(EMBEDDER, ANALYZER)["messages"]
            looked.set()
            # A store may block the writer until the reader is done; then nothing is written meanwhile.
            written.wait(0.5)
            return first, reader.maintenance.counts(EMBEDDER, ANALYZER)["messages"]

        async def write() -> None:
            await asyncio.to_thread(looked.wait, _PATIENCE_SECONDS)
            await add(store, scribe.turn(ANA, "after"))
            written.set()

        seen, _ = await asyncio.gather(store.read(SPACE, look), write())
        assert seen == (1, 1)
        assert await texts(store) == ["after", "before"]

    @scenario
    async def test_a_failing_read_tells_its_caller_and_spoils_nothing(self, store: Store) -> None:
        def fail(reader: Reader) -> None:
            reader.records.page(ListFilter(), None, 1)
            raise ValueError("mine")

        ended = await asyncio.gather(
            *(store.read(SPACE, fail) for _ in range(10)), texts(store), return_exceptions=True
        )
        assert [str(outcome) for outcome in ended[:10]] == ["mine"] * 10
        assert ended[10] == []

    @scenario
    async def test_a_cancelled_write_is_whole_or_not_there_and_the_store_goes_on(self, store: Store) -> None:
        scribe = Scribe()
        started, go_on = threading.Event(), threading.Event()

        def slow(transaction: Transaction) -> None:
            started.set()
            go_on.wait(_PATIENCE_SECONDS)
            transaction.transcripts.add_turn(scribe.turn(ANA, "slow 1", "slow 2"), EMBEDDER, ANALYZER)

        running = asyncio.create_task(store.write(write_grant(ANA), slow))
        await asyncio.to_thread(started.wait, _PATIENCE_SECONDS)
        queued = asyncio.create_task(add(store, scribe.turn(BOB, "queued 1", "queued 2")))
        await asyncio.sleep(0)
        for task in (running, queued):
            task.cancel()
        go_on.set()
        for task in (running, queued):
            with pytest.raises(asyncio.CancelledError):
                await task
        await add(store, scribe.turn(ANA, "after"))
        said = await texts(store)
        assert "after" in said
        assert len([text for text in said if text.startswith("slow")]) in (0, 2)
        assert len([text for text in said if text.startswith("queued")]) in (0, 2)

    @scenario
    async def test_integrity_finds_nothing_wrong_after_all_of_it(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, SHARED):
            await populate(store, scribe, scope)
        memory = scribe.revision(Scope(subject="ana"), "one")
        await put(store, memory)
        await put(store, scribe.revision(Scope(subject="ana"), "two", of=memory, supersedes=1))
        checked, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER))
        assert list(findings) == []
        assert checked["records"] == 8

    # --- audit ---

    @scenario
    async def test_an_operation_commits_with_its_write(self, store: Store) -> None:
        scribe = Scribe()
        operation = replace(
            scribe.operation(ANA, Action.ADD, record_count=2),
            actor=Actor(ActorKind.AGENT, "bot"),
            outcome=Outcome.FAILED,
            error_code="store_full",
        )

        def write(transaction: Transaction) -> None:
            transaction.transcripts.add_turn(scribe.turn(ANA, "hello"), EMBEDDER, ANALYZER)
            transaction.operations.add(operation)

        await store.write(write_grant(ANA), write)
        assert list(await store.read(SPACE, lambda r: r.operations.page())) == [operation]

        def fail(transaction: Transaction) -> None:
            transaction.operations.add(scribe.operation(ANA))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.write(write_grant(ANA), fail)
        assert len(await store.read(SPACE, lambda r: r.operations.page())) == 1

    @scenario
    async def test_the_audit_row_of_a_read_is_written_soon(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "hello"))
        rows = [scribe.operation(ANA) for _ in range(3)]
        for row in rows:
            await store.audit(row)

        async def are_written() -> bool:
            return list(await store.read(EVERYTHING, lambda r: r.operations.page())) == rows[::-1]

        await wait_until(are_written)
        assert len(await store.read(EVERYTHING, lambda r: r.operations.page(limit=2))) == 2

    @scenario
    async def test_audited_rows_can_be_read_at_once(self, store: Store) -> None:
        scribe = Scribe()
        rows = [scribe.operation(each) for each in (ANA, SPACE.scope) * 5]
        for count, row in enumerate(rows, start=1):
            await store.audit(row)
            await store.wait_for_audits()
            assert list(await store.read(EVERYTHING, lambda r: r.operations.page())) == rows[:count][::-1]
        await store.wait_for_audits()

    @scenario
    async def test_very_many_audit_rows_are_all_written(self, store: Store) -> None:
        scribe = Scribe()
        for _ in range(3_000):
            await store.audit(scribe.operation(ANA))

        async def are_written() -> bool:
            return len(await store.read(EVERYTHING, lambda r: r.operations.page(limit=5_000))) == 3_000

        await wait_until(are_written)

    @scenario
    async def test_an_audit_row_that_cannot_be_written_spoils_nothing_else(self, store: Store) -> None:
        scribe = Scribe()
        good, twice = scribe.operation(ANA), scribe.operation(ANA)
        for row in (twice, twice, good):
            await store.audit(row)
        await add(store, scribe.turn(ANA, "hello"))

        async def are_written() -> bool:
            return len(await store.read(EVERYTHING, lambda r: r.operations.page())) == 2

        await wait_until(are_written)
        assert await texts(store) == ["hello"]

    # --- closing ---

    @scenario
    async def test_a_closed_store_says_so(self, store: Store) -> None:
        scribe = Scribe()
        await store.close()
        for _ in range(2):
            with pytest.raises(StoreClosed):
                await store.read(SPACE, lambda r: r.index.partitions())
            with pytest.raises(StoreClosed):
                await store.write(SPACE, lambda t: t.index.partitions())
            with pytest.raises(StoreClosed):
                await store.audit(scribe.operation(ANA))
            with pytest.raises(StoreClosed):
                await store.wait_for_audits()
            with pytest.raises(StoreClosed):
                await store.scrub()
        await store.close()

    @scenario
    async def test_writes_that_were_accepted_are_finished_on_closing(self, store: Store) -> None:
        scribe = Scribe()
        writes = [asyncio.ensure_future(add(store, scribe.turn(ANA, f"message {number}"))) for number in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert all(len(stored.new) == 1 for stored in await asyncio.gather(*writes))

    @scenario
    async def test_a_store_says_where_it_is(self, store: Store) -> None:
        assert store.location
