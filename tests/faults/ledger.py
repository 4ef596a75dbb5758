"""Records the promises made about a store and checks that the store keeps them.

The `Ledger` collects the reports of `writers` over all runs on one store. Acknowledged calls are in the store; calls
in flight when a writer died are there completely or not at all; rebuilt indexes equal the old ones.

Works with any kind of store.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import holdfast
from faults.places import Place
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.memory import MemoryRecord, Plane
from holdfast.domain.operations import Outcome
from holdfast.domain.results import Record
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.library import AsyncMemory
from holdfast.ports import ListFilter, Store

EVERYTHING = authorize(SYSTEM, Action.WORK, Scope(space=EVERYWHERE))
FINGERPRINT = "fake:64:1"  # of the fake embedder
# Longer than the lease of any job that a dead worker held.
_AHEAD = timedelta(minutes=2)


class LaterClock:
    """A clock that runs ahead, so that the leases of dead workers have expired."""

    def now(self) -> datetime:
        return datetime.now(UTC) + _AHEAD


# --- expected content -------------------------------------------------------------------------------------------------


@dataclass
class Ledger:
    """Acknowledged calls on one store, and the calls in flight when a writer died."""

    messages: dict[str, str] = field(default_factory=dict)  # id to text
    memories: dict[str, list[str]] = field(default_factory=dict)  # id to the texts of its revisions
    subjects: dict[str, str] = field(default_factory=dict)  # id to subject
    forgotten: list[tuple[str, str]] = field(default_factory=list)  # subject and text
    done: Counter[str] = field(default_factory=Counter)  # completed calls per verb
    uncertain: Counter[str] = field(default_factory=Counter)  # calls of verbs that leave no trace

    def note(self, said: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Take in a writer's lines; return the calls that were not acknowledged."""
        under_way: dict[str, dict[str, Any]] = {}
        for line in said:
            if "do" in line:
                under_way[line["key"]] = line
            elif "done" in line:
                self._happened(under_way.pop(line["done"]), line["ids"])
        return list(under_way.values())

    def _happened(self, call: dict[str, Any], ids: list[str]) -> None:
        verb = call["do"]
        self.done[verb] += 1
        if verb == "add":
            self.messages.update(zip(ids, call["texts"], strict=True))
        elif verb == "remember":
            self.memories[ids[0]] = [call["text"]]
        elif verb == "correct":
            self.memories[call["id"]].append(call["text"])
        elif verb == "forget":
            for record_id in call["ids"]:
                texts = [self.messages.pop(record_id)] if record_id in self.messages else self.memories.pop(record_id)
                self.forgotten += [(call["subject"], text) for text in texts]
        for record_id in ids:
            self.subjects[record_id] = call["subject"]

    def settle(self, call: dict[str, Any], kept: Kept) -> None:
        """Decide whether an unacknowledged call took effect; it must have done so completely or not at all."""
        verb = call["do"]
        if verb == "add":
            ids = [kept.by_text.get(text) for text in call["texts"]]
            assert len({found is None for found in ids}) == 1, f"half of a batch is visible: {call} {ids}"
            if ids[0] is not None:
                self._happened(call, [str(found) for found in ids])
        elif verb == "remember":
            if found := kept.by_text.get(call["text"]):
                self._happened(call, [found])
        elif verb == "correct":
            texts = kept.histories.get(call["id"], [])
            assert texts in (before := self.memories[call["id"]], [*before, call["text"]]), f"{call} {texts}"
            if texts[-1] == call["text"]:
                self._happened(call, [call["id"]])
        elif verb == "forget":
            there = {record_id in kept.records for record_id in call["ids"]}
            assert len(there) == 1, f"half of a forget is visible: {call}"
            if there == {False}:
                self._happened(call, [])
        else:
            self.uncertain[verb] += 1

    # --- checking a store ---

    async def check(self, place: Place, under_way: list[dict[str, Any]], chance: random.Random) -> None:
        place.settle()
        async with place.store() as store:
            kept = await Kept.of(store)
            for call in under_way:
                self.settle(call, kept)
            self._check_records(kept)
            self._check_operations(kept)
            await check_whole(store)
            async with holdfast.open_async(place.location, embedder="fake", work=False, clock=LaterClock()) as memory:
                # Records are found at once, and rank high once the vectors left by a dead worker are made.
                await self._check_search(memory, chance, top_k=1_000)
                await memory.drain()
                await self._check_search(memory, chance, top_k=20)
                said = sorted(self.messages.values())
                await check_rebuild(memory, store, chance.sample(said, min(3, len(said))))
                self.done["rebuild"] += 1
                # Check again: a rebuild must neither repair nor break a store.
                await check_whole(store)

    def _check_records(self, kept: Kept) -> None:
        messages = {key: each.text for key, each in kept.records.items() if not isinstance(each, MemoryRecord)}
        assert messages == self.messages
        written = {key: texts for key, texts in kept.histories.items() if not kept.is_extracted(key)}
        assert written == self.memories
        for record_id, record in kept.records.items():
            if isinstance(record, MemoryRecord):
                # Extracted memories rest on existing messages.
                assert bool(record.evidence) == kept.is_extracted(record_id)
            else:
                assert dict(record.metadata) == {"k": record.external_id.rpartition("x")[0]}  # type: ignore[union-attr]

    def _check_operations(self, kept: Kept) -> None:
        """Check that every write has its operation row, and every row its write."""
        for verb in ("add", "remember", "correct", "forget"):
            assert kept.succeeded[verb] == self.done[verb], f"{verb}: {kept.succeeded[verb]} {self.done[verb]}"
        for verb in ("flush", "rebuild"):
            assert self.done[verb] <= kept.succeeded[verb] <= self.done[verb] + self.uncertain[verb]

    async def _check_search(self, memory: AsyncMemory, chance: random.Random, top_k: int) -> None:
        current = [*self.messages.items(), *((key, texts[-1]) for key, texts in self.memories.items())]
        for record_id, text in chance.sample(current, min(3, len(current))):
            hits = await memory.search(text, subject=self.subjects[record_id], top_k=top_k)
            assert record_id in [hit.id for hit in hits]
        for subject, text in chance.sample(self.forgotten, min(3, len(self.forgotten))):
            assert text not in [hit.text for hit in await memory.search(text, subject=subject, top_k=top_k)]


@dataclass(frozen=True)
class Kept:
    """A store's content, read through its port."""

    records: dict[str, Record]
    histories: dict[str, list[str]]
    succeeded: Counter[str]

    @property
    def by_text(self) -> dict[str, str]:
        return {record.text: record_id for record_id, record in self.records.items()}

    def is_extracted(self, record_id: str) -> bool:
        record = self.records[record_id]
        return isinstance(record, MemoryRecord) and record.author.startswith("extractor:")

    @classmethod
    async def of(cls, store: Store) -> Kept:
        wanted = ListFilter(planes=frozenset(Plane))
        records: dict[str, Record] = {
            record.id: record
            for record in await store.read(EVERYTHING, lambda r: r.records.page(wanted, None, 1_000_000))
        }
        memories = [record_id for record_id, record in records.items() if isinstance(record, MemoryRecord)]
        histories = await store.read(
            EVERYTHING,
            lambda r: {record_id: [each.text for each in r.records.revisions(record_id)] for record_id in memories},
        )
        rows = await store.read(EVERYTHING, lambda r: r.operations.page(limit=1_000_000))
        return cls(records, histories, Counter(str(row.action) for row in rows if row.outcome is Outcome.SUCCEEDED))


async def check_whole(store: Store) -> None:
    """Assert that the store is undamaged and its tables are consistent with each other."""
    checked, findings = await store.read(EVERYTHING, lambda reader: reader.maintenance.integrity(FINGERPRINT))
    assert checked
    assert not findings, findings


async def check_rebuild(memory: AsyncMemory, store: Store, queries: Sequence[str] = ()) -> None:
    """Assert that indexes rebuilt from the texts equal the old ones and give the same results.

    No vector may be pending afterwards.
    """
    before = await _indexes(store), [await _answers(memory, query) for query in queries]
    rebuilt = await memory.rebuild()
    assert rebuilt.pending_vectors == 0
    # The second view has followed the rebuild incrementally; the first was built in one go.
    assert (await _indexes(store), [await _answers(memory, query) for query in queries]) == before


async def _indexes(store: Store) -> dict[str, tuple[set[object], set[object]]]:
    return await store.read(
        EVERYTHING,
        lambda r: {
            str(partition): (set(found.rows), set(found.vectors))
            for partition in r.index.partitions()
            for found in [r.index.delta(partition, 0, FINGERPRINT)]
        },
    )


async def _answers(memory: AsyncMemory, query: str) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 4)) for hit in await memory.search(query, top_k=30)]
