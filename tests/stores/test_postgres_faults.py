"""Faults between a store and its server: lost connections, lost servers, conflicting writers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from openers import own

from holdfast.domain.access import Action
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.scope import Scope
from holdfast.errors import OutcomeUnknown, StoreBusy, StoreUnavailable, StoreUnusable
from holdfast.ports import IndexUpdate, Reader, Store, Transaction
from holdfast.stores.postgres import PostgresStore, pipeline
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SPACE,
    Scribe,
    add,
    delta,
    forget,
    texts,
    vector,
    write_grant,
)
from postgres import PASSWORD, AnyServer, Cut, Proxy, Server, new_schema, schema_of


def terminate(server: AnyServer) -> int:
    """End all connections of a store, as an administrator or a restarting server does."""
    ended = server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'")
    return len(ended)


def test_a_server_that_says_nothing_is_given_up_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SILENCE_SECONDS", 0.5)

    async def whole() -> None:
        with Server() as server:
            scribe, store = Scribe(), PostgresStore(server.store_url(), busy_seconds=2)
            await add(store, scribe.turn(ANA, "before"))
            with server.frozen():
                with pytest.raises(StoreUnavailable):
                    await store.read(EVERYTHING, lambda reader: reader.index.partitions())
            await add(store, scribe.turn(ANA, "after"))
            assert await texts(store) == ["after", "before"]
            await store.close()

    asyncio.run(whole())


# --- connections ------------------------------------------------------------------------------------------------------


def test_reads_and_writes_go_on_over_lost_connections(postgres: AnyServer, postgres_url: str) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(postgres_url)
        kept = []
        for number in range(12):
            assert len((await add(store, scribe.turn(ANA, f"message {number}"))).new) == 1
            kept.append(f"message {number}")
            assert sorted(await texts(store)) == sorted(kept)
            assert terminate(postgres) > 0
        await store.close()

    asyncio.run(whole())


def test_a_connection_lost_within_a_read_or_a_write_is_replaced(postgres: AnyServer, postgres_url: str) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(postgres_url)
        tries: list[str] = []

        def write(transaction: Transaction) -> int:
            tries.append("write")
            transaction.transcripts.add_turn(scribe.turn(ANA, "hello"), EMBEDDER, ANALYZER)
            if len(tries) == 1:
                terminate(postgres)
            return transaction.maintenance.counts(EMBEDDER, ANALYZER)["messages"]

        def read(reader: Reader) -> int:
            tries.append("read")
            if tries.count("read") == 1:
                terminate(postgres)
            return reader.maintenance.counts(EMBEDDER, ANALYZER)["messages"]

        assert await store.write(write_grant(ANA), write) == 1
        assert await store.read(SPACE, read) == 1
        assert tries == ["write", "write", "read", "read"]
        await store.close()

    asyncio.run(whole())


@pytest.mark.parametrize("what", list(Cut), ids=[each.value for each in Cut])
def test_a_commit_whose_connection_is_lost_is_made_once(
    proxy: Proxy, what: Cut, at_commit: Callable[[Callable[[], None]], None]
) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(proxy.url(schema=new_schema()))
        await add(store, scribe.turn(ANA, "before"))
        at_commit(lambda: proxy.cut(what))
        tries: list[int] = []

        def write(transaction: Transaction) -> None:
            tries.append(1)
            transaction.transcripts.add_turn(scribe.turn(ANA, "during"), EMBEDDER, ANALYZER)
            transaction.operations.add(scribe.operation(ANA))

        await store.write(write_grant(ANA), write)
        # A commit whose acknowledgement was lost is not repeated; one that was lost itself is.
        assert len(tries) == (1 if what is Cut.ANSWER else 2)
        await add(store, scribe.turn(ANA, "after"))
        assert await texts(store) == ["after", "during", "before"]
        checked, findings = await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER))
        assert (checked["records"], checked["operations"], list(findings)) == (3, 1, [])
        await store.close()

    asyncio.run(whole())


def test_a_batch_whose_commit_was_lost_is_made_once(
    proxy: Proxy, at_commit: Callable[[Callable[[], None]], None]
) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(proxy.url(schema=new_schema()))
        await add(store, scribe.turn(ANA, "before"))
        at_commit(lambda: proxy.cut(Cut.ANSWER))
        stored = await asyncio.gather(*(add(store, scribe.turn(ANA, f"message {each}")) for each in range(30)))
        assert all(len(each.new) == 1 for each in stored)
        assert len(await texts(store)) == 31
        await store.close()

    asyncio.run(whole())


def test_an_outcome_that_cannot_be_found_out_is_told(
    proxy: Proxy, at_commit: Callable[[Callable[[], None]], None]
) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(proxy.url(schema=new_schema()), busy_seconds=1)
        await add(store, scribe.turn(ANA, "before"))

        def away() -> None:
            proxy.close_door()
            proxy.cut(Cut.ANSWER)

        at_commit(away)
        with pytest.raises(OutcomeUnknown, match="idempotency_key") as told:
            await add(store, scribe.turn(ANA, "during"))
        assert PASSWORD not in str(told.value)
        proxy.open_door()
        assert await texts(store) == ["during", "before"]
        await store.close()

    asyncio.run(whole())


def test_a_server_that_stays_away_is_told_in_bounded_time(proxy: Proxy) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(proxy.url(schema=new_schema()), busy_seconds=1)
        await add(store, scribe.turn(ANA, "before"))
        await texts(store)
        proxy.close_door()
        proxy.sever()
        with pytest.raises(StoreUnavailable, match=r"nothing was changed|cannot be opened"):
            await asyncio.wait_for(add(store, scribe.turn(ANA, "during")), 30)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(texts(store), 30)
        proxy.open_door()
        await add(store, scribe.turn(ANA, "after"))
        assert await texts(store) == ["after", "before"]
        await store.close()

    asyncio.run(whole())


# --- servers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_comes_back_is_waited_for_and_has_lost_nothing(how: str) -> None:
    async def whole(server: Server) -> None:
        scribe, store = Scribe(), PostgresStore(server.store_url(), busy_seconds=90)
        acknowledged: list[str] = []
        done = threading.Event()

        async def write(writer: int) -> None:
            number = 0
            while not done.is_set():
                text = f"writer {writer} message {number}"
                await said(store, scribe, replace(ANA, subject=f"s{writer}"), text)
                acknowledged.append(text)
                number += 1

        writers = [asyncio.create_task(write(each)) for each in range(4)]
        for _ in range(2):
            await growing(acknowledged, 20)
            await asyncio.to_thread(server.kill if how == "kill" else server.stop)
            await asyncio.to_thread(server.start)
        done.set()
        await asyncio.gather(*writers)
        records = await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER)["messages"])
        there = set(await everything(store))
        assert set(acknowledged) <= there
        assert records == len(there) == len(acknowledged)
        assert list((await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1]) == []
        await store.close()

    with Server() as server:
        asyncio.run(whole(server))


async def growing(acknowledged: list[str], by: int) -> None:
    """Wait until `by` more are acknowledged."""
    count = len(acknowledged) + by
    async with asyncio.timeout(90):
        while len(acknowledged) < count:  # noqa: ASYNC110 - threads append to it, too
            await asyncio.sleep(0.01)


async def said(store: Store, scribe: Scribe, scope: Scope, text: str) -> None:
    """Add a turn as a verb does: with the operation row that shows, after a failover, whether it was committed."""
    turn, operation = scribe.turn(scope, text), scribe.operation(scope)

    def write(transaction: Transaction) -> None:
        transaction.transcripts.add_turn(turn, EMBEDDER, ANALYZER)
        transaction.operations.add(operation)

    await store.write(write_grant(scope), write)


async def everything(store: Store) -> list[str]:
    def read(reader: Reader) -> list[str]:
        found = []
        for partition in reader.index.partitions():
            numbers = [row.number for row in reader.index.delta(partition, 0, EMBEDDER).rows]
            found += [record.text for record in reader.records.fetch(numbers).values()]
        return found

    return await store.read(SPACE, read)


def test_a_failover_to_a_replica_keeps_what_was_acknowledged() -> None:
    async def whole(primary: Server, replica: Server) -> None:
        address = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
        url = primary.url(target_session_attrs="read-write").replace(f"127.0.0.1:{primary.port}", address)
        scribe, store = Scribe(), PostgresStore(url, busy_seconds=60)
        acknowledged: list[str] = []
        done = threading.Event()

        async def write() -> None:
            while not done.is_set():
                text = f"message {len(acknowledged)}"
                await said(store, scribe, ANA, text)
                acknowledged.append(text)

        writer = asyncio.create_task(write())
        await growing(acknowledged, 20)
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(replica.promote)
        replica.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        replica.execute("SELECT pg_reload_conf()")
        await growing(acknowledged, 20)
        done.set()
        await writer
        assert set(acknowledged) <= set(await everything(store))
        assert list((await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1]) == []
        await store.close()

    with Server({"synchronous_commit": "on"}) as primary:
        with Server.replica_of(primary) as replica:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.execute("SELECT pg_reload_conf()")
            asyncio.run(whole(primary, replica))


# --- writers ----------------------------------------------------------------------------------------------------------


def test_writers_in_a_deadlock_both_succeed(postgres_url: str) -> None:
    async def whole() -> None:
        scribe = Scribe()
        first, second = PostgresStore(postgres_url), PostgresStore(postgres_url)
        await add(first, scribe.turn(ANA, "a"))
        await add(first, scribe.turn(BOB, "b"))
        meeting = threading.Barrier(2)
        tries: list[str] = []

        def work(name: str, one: Scope, other: Scope) -> Callable[[Transaction], None]:
            def write(transaction: Transaction) -> None:
                again = name in tries
                tries.append(name)
                transaction.transcripts.add_turn(scribe.turn(one, f"{name} 1"), EMBEDDER, ANALYZER)
                transaction.records.find("msg_0")  # a read, so all statements sent before are done
                if not again:
                    meeting.wait(30)
                transaction.transcripts.add_turn(scribe.turn(other, f"{name} 2"), EMBEDDER, ANALYZER)

            return write

        await asyncio.gather(
            first.write(EVERYTHING, work("left", ANA, BOB)), second.write(EVERYTHING, work("right", BOB, ANA))
        )
        assert len(tries) == 3
        assert sorted(await everything(first)) == ["a", "b", "left 1", "left 2", "right 1", "right 2"]
        await first.close()
        await second.close()

    asyncio.run(whole())


def test_a_lock_held_for_too_long_is_told(postgres_url: str) -> None:
    async def whole() -> None:
        scribe = Scribe()
        slow, other = PostgresStore(postgres_url), PostgresStore(postgres_url, busy_seconds=0.5)
        held, go_on = threading.Event(), threading.Event()
        await add(slow, scribe.turn(ANA, "before"))

        def hold(transaction: Transaction) -> None:
            transaction.transcripts.add_turn(scribe.turn(ANA, "slow"), EMBEDDER, ANALYZER)
            transaction.records.find("msg_0")
            held.set()
            go_on.wait(60)

        holding = asyncio.create_task(slow.write(write_grant(ANA), hold))
        await asyncio.to_thread(held.wait, 30)
        with pytest.raises(StoreBusy, match="nothing was changed"):
            await add(other, scribe.turn(ANA, "in vain"))
        # Another partition of the same space is not blocked; a call on the whole space is.
        await add(other, scribe.turn(BOB, "beside"))
        grant = replace(write_grant(replace(BOB, conversation=None)), action=Action.FORGET)
        with pytest.raises(StoreBusy):
            await forget(other, ForgetTarget(subject="bob"), grant, scribe.clock.now())
        go_on.set()
        await holding
        assert sorted(await texts(other)) == ["before", "beside", "slow"]
        await slow.close()
        await other.close()

    asyncio.run(whole())


def test_a_delta_never_skips_what_several_stores_write(postgres_url: str) -> None:
    async def whole() -> None:
        stores = [PostgresStore(postgres_url, connections=4) for _ in range(3)]
        scribe, done = Scribe(), asyncio.Event()
        seen: dict[int, object] = {}

        async def write(store: Store, writer: int) -> None:
            for number in range(40):
                await add(store, scribe.turn(ANA, f"{writer} {number}"))

        async def follow() -> None:
            since, last = 0, False
            while not last:
                last = done.is_set()
                part = await delta(stores[0], since=since)
                seen.update((row.number, row) for row in part.rows)
                assert {row.number for row in part.rows} == {each.number for each in part.vectors}
                since = part.change

        following = asyncio.create_task(follow())
        await asyncio.gather(*(write(store, each) for each, store in enumerate(stores * 2)))
        done.set()
        await following
        whole_of_it = await delta(stores[1])
        assert seen == {row.number: row for row in whole_of_it.rows}
        assert len(seen) == 240
        assert sorted(row.position for row in whole_of_it.rows) == list(range(240))
        for store in stores:
            await store.close()

    asyncio.run(whole())


def test_a_message_forgotten_while_its_vectors_are_made_leaves_no_ghost(postgres_url: str) -> None:
    async def whole() -> None:
        scribe = Scribe()
        worker, user = PostgresStore(postgres_url), PostgresStore(postgres_url)
        for _ in range(10):
            message = scribe.message("canary", vectors=())
            await add(user, scribe.turn(ANA, message))
            number = await user.read(SPACE, lambda r, m=message: r.records.find(m.id)[0])  # type: ignore[misc]
            entry = IndexUpdate(number, [vector()])
            await asyncio.gather(
                worker.write(EVERYTHING, lambda t, e=entry: t.index.update([e], EMBEDDER, ANALYZER)),  # type: ignore[misc]
                forget(user, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step()),
            )
        whole_of_it = await delta(user)
        assert (list(whole_of_it.rows), list(whole_of_it.vectors)) == ([], [])
        assert list((await user.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1]) == []
        await worker.close()
        await user.close()

    asyncio.run(whole())


# --- forgetting -------------------------------------------------------------------------------------------------------


def test_a_scrub_waits_for_older_snapshots_and_says_so(
    postgres: AnyServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.stores.postgres.store.SCRUB_SECONDS", 0.3)

    async def whole() -> None:
        scribe, store, other = Scribe(), PostgresStore(postgres_url), PostgresStore(postgres_url)
        message = scribe.message("canary")
        await add(store, scribe.turn(ANA, message))
        looking, go_on = threading.Event(), threading.Event()

        def look(reader: Reader) -> int:
            first = reader.maintenance.counts(EMBEDDER, ANALYZER)["messages"]
            looking.set()
            go_on.wait(60)
            return first

        held = asyncio.create_task(other.read(SPACE, look))
        await asyncio.to_thread(looking.wait, 30)
        await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step())
        assert await store.scrub() is False
        go_on.set()
        assert await held == 1
        monkeypatch.setattr("holdfast.stores.postgres.store.SCRUB_SECONDS", 30)
        assert await store.scrub() is True
        await store.close()
        await other.close()

    asyncio.run(whole())


def test_a_user_who_only_uses_a_store_forgets_and_leaves_the_vacuum_to_the_server(
    postgres: AnyServer, postgres_url: str
) -> None:
    server, name = own(postgres), schema_of(postgres_url)
    asyncio.run(PostgresStore(postgres_url).close())
    server.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    server.execute(f"GRANT USAGE ON SCHEMA {name} TO reader")
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO reader")
    server.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO reader")

    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(server.url(user="reader", schema=name))
        message = scribe.message("canary")
        await add(store, scribe.turn(ANA, message))
        assert await forget(store, ForgetTarget(ids=(message.id,)), write_grant(ANA), scribe.clock.step()) == (1, 0)
        assert await store.scrub() is False
        assert await texts(store) == []
        await store.close()

    try:
        asyncio.run(whole())
    finally:
        server.execute("DROP OWNED BY reader")
        server.execute("DROP ROLE reader")


def test_a_store_whose_tables_are_dropped_says_so(postgres: AnyServer, postgres_url: str) -> None:
    async def whole() -> None:
        scribe, store = Scribe(), PostgresStore(postgres_url)
        await add(store, scribe.turn(ANA, "hello"))
        postgres.execute(f"DROP SCHEMA {schema_of(postgres_url)} CASCADE")
        with pytest.raises(StoreUnusable, match="gone; open it again"):
            await add(store, scribe.turn(ANA, "in vain"))
        await store.close()

    asyncio.run(whole())
