"""The content of a store, as one value to compare, without anything that differs by chance.

Ids and recording times differ between two runs of the same calls, so records are identified by their text.
"""

from __future__ import annotations

from typing import Any

from faults.ledger import EVERYTHING
from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.memory import MemoryRecord, Plane
from holdfast.domain.results import Record
from holdfast.domain.scope import Scope
from holdfast.ports import ListFilter, Reader, Store

Snapshot = frozenset[tuple[Any, ...]]


async def snapshot(store: Store, space: str | None = None) -> Snapshot:
    """Take a snapshot of the whole store, or of one space without its name."""
    grant = EVERYTHING if space is None else authorize(SYSTEM, Action.WORK, Scope(space=space))
    found = await store.read(grant, _taken)
    return found if space is None else frozenset(_without_space(each) for each in found)


def _without_space(held: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, text, where, *rest = held
    return (kind, text, tuple(part for part in where if part[0] != "space"), *rest)


def _taken(reader: Reader) -> Snapshot:
    records = reader.records.page(ListFilter(planes=frozenset(Plane)), None, 1_000_000)
    messages = {record.id: record.text for record in records if not isinstance(record, MemoryRecord)}
    held: list[tuple[Any, ...]] = []
    for record in records:
        if isinstance(record, MemoryRecord):
            held += [_learned(each, messages, record) for each in reader.records.revisions(record.id)]
        else:
            sealed = record.id not in reader.transcripts.unsealed_messages(record.scope)
            held.append(("message", *_common(record), record.sender, record.role, record.position, sealed))
    assert len(set(held)) == len(held), "two records say the same: the snapshot would hide one"
    return frozenset(held)


def _learned(revision: Record, messages: dict[str, str], current: MemoryRecord) -> tuple[Any, ...]:
    assert isinstance(revision, MemoryRecord)
    evidence = tuple(sorted(messages[link.message_id] for link in revision.evidence))
    validity = (revision.validity.since, revision.validity.until)
    newest = revision.superseded_at is None
    assert newest == (revision.revision == current.revision)
    told = (revision.plane, revision.status, revision.trust, revision.author, revision.reason)
    return ("memory", *_common(revision), revision.revision, newest, *told, validity, evidence)


def _common(record: Record) -> tuple[Any, ...]:
    scope = tuple(sorted(record.scope.given().items()))
    return (record.text, scope, tuple(sorted(record.metadata.items())), record.source)
