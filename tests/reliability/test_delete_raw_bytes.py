"""After raw content is deleted, no byte of it is in any file, although its rows stay in place."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from canaries import Canaries, assert_gone

from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.transcript_turns import HostOpaqueRef, HostRefVisibility, Relation, TranscriptState
from holdfast.ports import NewTurn
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.store_suite.scribe import ANA, EMBEDDER, EVERYTHING, Scribe, add, put, read_grant, write_grant

TURNS = 60


class Teller:
    """Makes turns that consist of canaries and records the content of each."""

    def __init__(self, seed: int) -> None:
        self.chance, self.scribe, self.canaries = random.Random(seed), Scribe(), Canaries(seed)
        self.said: list[list[str]] = []

    def turn(self) -> NewTurn:
        make, number = self.canaries.make, len(self.said) + 1
        held, messages = [make(40)], []
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            text, sender, name, value = self.canaries.text(), make(), make(), make(self.chance.choice((10, 300, 3_000)))
            held += [text, sender, name, value]
            messages.append(
                self.scribe.message(text, sender=sender, external_id=name, metadata={value[:8]: value}, vectors=())
            )
        ref = HostOpaqueRef("desk", "ticket", "7", Relation.ORIGIN, HostRefVisibility.HOST_UI, held[0])
        self.said.append(held)
        return replace(self.scribe.turn(ANA, *messages), external_id=f"turn {number}", host_refs=[ref])


async def delete(store: SqliteStore, sequences: list[int], at: datetime) -> None:
    await store.write(
        write_grant(ANA), lambda t: t.transcripts.set_state(ANA, sequences, TranscriptState.RAW_DELETED, at)
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_byte_of_deleted_content_is_left_whatever_the_layout(tmp_path: Path, seed: int) -> None:
    teller = Teller(seed)

    async def whole() -> tuple[set[int], list[int]]:
        store = SqliteStore(str(tmp_path / "memory.db"))
        deleted: set[int] = set()
        for number in range(1, TURNS + 1):
            turn = teller.turn()
            await add(store, turn)
            # Memories lie between the messages and move with them.
            await put(store, teller.scribe.revision(ANA, "learned", evidence=[turn.messages[0].id], vectors=()))
            if teller.chance.random() < 0.5:
                chosen = teller.chance.sample(range(1, number + 1), min(number, 3))
                at = teller.scribe.clock.step()
                await store.write(
                    write_grant(ANA),
                    lambda t, chosen=chosen, at=at: t.transcripts.set_state(
                        ANA, chosen, TranscriptState.RAW_DELETED, at
                    ),
                )
                deleted |= set(chosen)
        assert await store.scrub()
        lost = [value for number in deleted for value in teller.said[number - 1]]
        kept = [value for number in range(1, TURNS + 1) if number not in deleted for value in teller.said[number - 1]]
        # Check while the store is open: the log is still in use.
        assert_gone(tmp_path, lost, kept)
        found = await store.read(read_grant(ANA), lambda r: r.transcripts.turns(ANA, 0, TURNS))
        readable = [turn.sequence for turn in found if all(message.text for message in turn.messages)]
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []
        await store.close()
        assert_gone(tmp_path, lost, kept)
        return deleted, readable

    deleted, readable = asyncio.run(whole())
    assert deleted
    assert readable == [number for number in range(1, TURNS + 1) if number not in deleted]


def test_of_an_event_the_digest_goes_with_the_content(tmp_path: Path) -> None:
    scribe, digest = Scribe(), Canaries(9).make(64)
    message = scribe.message("said")

    async def whole() -> None:
        store = SqliteStore(str(tmp_path / "memory.db"))
        await add(store, scribe.turn(ANA, message))
        event = Event(EventId("evt_1"), EventKind.WRITE, ANA, scribe.clock.now(), None, message.id, digest)
        await store.write(write_grant(ANA), lambda t: t.events.append(event))
        await delete(store, [1], scribe.clock.step())
        assert await store.scrub()
        assert_gone(tmp_path, [digest])
        (kept,) = await store.read(read_grant(ANA), lambda r: r.events.page(10))
        assert kept == replace(event, content_hash=None)
        await store.close()

    asyncio.run(whole())
