"""Port of records: messages and memories with their revisions and evidence, and the answers of idempotent calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.forgetting import ForgetPlan, ForgetTarget
from holdfast.domain.ids import EventId, MemoryId, MessageId
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.results import Record
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.search import ListFilter
from holdfast.domain.transcript import Message
from holdfast.ports.records import NewRevision, StoredResponse


class RecordReader(Protocol):
    def fetch(self, numbers: Sequence[int]) -> dict[int, Record]:
        """Return records by the store's number, with text and evidence."""

    def find(self, record_id: str, as_of: datetime | None = None) -> tuple[int, Record] | None:
        """Return the number and the record: a message, superseded or not, or the memory revision current at `as_of`."""

    def revisions(self, record_id: str) -> Sequence[Record]:
        """Return all revisions, oldest first; empty if there is no such memory or message.

        A message and the memory that superseded it share one history, by either id.
        """

    def page(self, wanted: ListFilter, before: str | None, limit: int) -> Sequence[Record]:
        """Return records with ids below `before`, newest first."""

    def histories(self, memory_ids: Sequence[str]) -> Sequence[Sequence[MemoryRecord]]:
        """Return the readable ones of these memories with all revisions, oldest first, ordered by id."""

    def resting_on(self, message_ids: Sequence[str]) -> Sequence[MemoryId]:
        """Return the memories that rest on any of these messages, with any revision."""

    def contradictions(self, memory_ids: Sequence[str]) -> Mapping[str, Sequence[MemoryId]]:
        """Return which memories the current revisions of these contradict, where both are marked."""

    def in_slot(self, scope: Scope, slot: str) -> Record | None:
        """Return the current memory in the slot, of exactly this scope."""

    def messages(self, message_ids: Sequence[str]) -> Mapping[str, Message]:
        """Return the readable ones by id, without masked and deleted messages."""

    def memories(self, after: str, limit: int) -> Sequence[Sequence[MemoryRecord]]:
        """Return memories of every plane and status with all revisions, ordered by id, with ids above `after`."""

    def links(self, memory_ids: Sequence[str]) -> Mapping[tuple[str, int], Sequence[MessageId]]:
        """Return the ids of all evidence by memory and revision, including hidden messages."""

    def existing_ids(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Return those that exist in this store, visible or not: their ids are taken."""

    def tombstones(self, partition: Partition, record_ids: Sequence[str]) -> frozenset[str]:
        """Return those that have a tombstone in the partition."""

    def occupied_partitions(self) -> Sequence[Partition]:
        """Return the partitions with records in the grant's scope, such as in its conversation."""

    def plan_forget(self, target: ForgetTarget) -> ForgetPlan:
        """Plan a forget: the target, memories derived only from it, and messages that its memories superseded."""

    def response(self, partition: Partition, key: str) -> StoredResponse | None: ...


class RecordWriter(RecordReader, Protocol):
    def add_revision(self, revision: NewRevision, embedder: str, analyzer: int) -> int:
        """Add it and return its revision number; raises `RevisionConflict` if `supersedes` is not current."""

    def supersede(self, message_id: str, at: datetime) -> None:
        """Mark a message as superseded by a memory: from then on it is found by id or `as_of` only.

        Raises `RevisionConflict` if it is superseded already.
        """

    def forget(self, plan: ForgetPlan, at: datetime, new_id: Callable[[], EventId]) -> tuple[int, int]:
        """Forget, and return the number of tombstones, and of records that can still be found (0).

        Each partition that loses records gets a `memory.delete` event with an id of `new_id`, their counts and ids. Of
        earlier events of forgotten memories only the ids stay.
        """

    def put_response(self, partition: Partition, key: str, response: StoredResponse, at: datetime) -> None: ...
