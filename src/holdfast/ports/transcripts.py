"""Store port of transcripts: ordered turns, their states, derived memories, aliases, and the event log.

Methods take the thread: the scope of exactly one conversation, in the partition that the scope names. A thread that the
grant does not reach is treated as missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.domain.derived_refs import DerivedMemoryRef, TranscriptCheck
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.manifest import RepairAction
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.transcript import Message
from holdfast.domain.transcript_turns import TranscriptState, TranscriptTurn, Utterance


class TurnState(NamedTuple):
    """A turn of a thread without its content. `messages` counts the stored ones."""

    sequence: int
    id: TurnId
    state: TranscriptState
    messages: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Alias:
    """The conversation that a chat id maps to. An alias that mapped to two is no longer trusted."""

    conversation: str
    trusted: bool


class StoredAlias(NamedTuple):
    """A stored alias: the thread, and a digest of the chat id and where it was used, never the id itself."""

    thread: Scope
    key: bytes
    trusted: bool
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    thread: Scope
    turns: int
    last_recorded_at: datetime


class TranscriptReader(Protocol):
    def tail(self, thread: Scope, limit: int) -> Sequence[Utterance]:
        """Return the last messages of any state, oldest first; without text if it was deleted."""

    def turn_count(self, thread: Scope) -> int: ...

    def turns(self, thread: Scope, after: int, limit: int) -> Sequence[TranscriptTurn]:
        """Return turns with sequences above `after`, in order. `StoreCorrupt` names a turn that cannot be read."""

    def last_turns(self, thread: Scope, limit: int) -> Sequence[TranscriptTurn]:
        """Return the last turns, oldest first."""

    def turn(self, thread: Scope, turn_id: str) -> TranscriptTurn | None:
        """Return a turn by the host's id or ours."""

    def turn_states(self, thread: Scope, after: int, limit: int) -> Sequence[TurnState]:
        """Return turn states with sequences above `after`, in order."""

    def derived_from(self, thread: Scope, sequences: Sequence[int], limit: int) -> Sequence[DerivedMemoryRef]:
        """Return memories anywhere in the space whose current revision derives from those turns, ordered by id."""

    def check_transcript(self, thread: Scope, limit: int) -> TranscriptCheck:
        """Check the integrity of this thread's rows; at most `limit` issues."""

    def alias(self, thread: Scope, chat_id: str) -> Alias | None:
        """Resolve a chat id in the thread's partition and channel; the thread's conversation is ignored."""

    def aliases(self, partition: Partition, after: bytes, limit: int) -> Sequence[StoredAlias]:
        """Return the aliases of a partition with keys above `after`, ordered by key."""

    def messages(self, message_ids: Sequence[str]) -> Mapping[str, Message]:
        """Return the readable ones by id, without masked and deleted messages."""

    def memories(self, after: str, limit: int) -> Sequence[Sequence[MemoryRecord]]:
        """Return memories of every plane and status with all revisions, ordered by id, with ids above `after`."""

    def links(self, memory_ids: Sequence[str]) -> Mapping[tuple[str, int], Sequence[MessageId]]:
        """Return the ids of all evidence by memory and revision, including hidden messages."""

    def present(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Return those that exist in this store, visible or not: their ids are taken."""

    def buried(self, partition: Partition, record_ids: Sequence[str]) -> frozenset[str]:
        """Return those that have a tombstone in the partition."""

    def mendable(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Count the work of a repair by action, in the whole store."""

    def threads(self, after: Scope | None, limit: int) -> Sequence[ThreadSummary]:
        """Return the conversations that the grant reaches, after `after` in an order of the store."""

    def events(
        self, limit: int, kinds: frozenset[EventKind] | None = None, before: str | None = None
    ) -> Sequence[Event]:
        """Return events with ids below `before`, newest first."""


class TranscriptTransaction(TranscriptReader, Protocol):
    def set_state(self, thread: Scope, sequences: Sequence[int], state: TranscriptState, at: datetime) -> int:
        """Set the state of those turns and all their messages; returns the number of messages.

        After the commit, no search, look-up or evidence shows masked or deleted messages. With `raw_deleted`, texts,
        metadata, senders, labels, terms and vectors are removed as in a forget; ids, roles, order and evidence links
        stay.
        """

    def put_alias(self, thread: Scope, chat_id: str, at: datetime) -> Alias:
        """Map the chat id to the thread's conversation. If it mapped to another, it is no longer trusted."""

    def keep_alias(self, alias: StoredAlias) -> bool:
        """Import an alias; True if it was new. One that maps to another thread here is not trusted."""

    def mend(self, now: datetime, keep_events: int) -> Mapping[RepairAction, int]:
        """Repair the whole store: delete dangling rows and release stuck jobs. No text is deleted."""

    def append_event(self, event: Event) -> None: ...

    def prune_events(self, space: str, keep: int) -> int:
        """Delete all but the newest `keep` events of the space; returns the number deleted."""
