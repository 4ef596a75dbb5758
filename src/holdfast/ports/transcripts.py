"""What a store keeps of transcripts: turns in order, their states, what rests on them, aliases, and the event log.

Every method takes the thread: the scope of exactly one conversation, in the partition that the scope names. A thread
that the grant does not reach is one that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.domain.derived import DerivedMemoryRef, TranscriptCheck
from holdfast.domain.events import Event, EventKind
from holdfast.domain.governed import Spoken, TranscriptState, TranscriptTurn
from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.memory import Memory
from holdfast.domain.papers import Mend
from holdfast.domain.scope import Partition, Scope
from holdfast.domain.transcript import Message


class TurnState(NamedTuple):
    """A turn of a thread without its content. `messages` counts those that are there."""

    sequence: int
    id: TurnId
    state: TranscriptState
    messages: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Alias:
    """The conversation that a chat id stands for. One that stood for two is no longer trusted."""

    conversation: str
    trusted: bool


class KeptAlias(NamedTuple):
    """An alias as it is kept: the thread, and a digest of the chat id and of where it was used, never the id itself."""

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
    def tail(self, thread: Scope, limit: int) -> Sequence[Spoken]:
        """The last messages, oldest first, whatever their state; without text where that was deleted."""

    def turn_count(self, thread: Scope) -> int: ...

    def turns(self, thread: Scope, after: int, limit: int) -> Sequence[TranscriptTurn]:
        """In order, with sequences above `after`. `StoreCorrupt` names a turn that cannot be read."""

    def last_turns(self, thread: Scope, limit: int) -> Sequence[TranscriptTurn]:
        """The last ones, oldest first."""

    def turn(self, thread: Scope, turn_id: str) -> TranscriptTurn | None:
        """By the host's id or ours."""

    def turn_states(self, thread: Scope, after: int, limit: int) -> Sequence[TurnState]:
        """In order, with sequences above `after`."""

    def derived_from(self, thread: Scope, sequences: Sequence[int], limit: int) -> Sequence[DerivedMemoryRef]:
        """The memories, anywhere in the space, whose current revision rests on messages of those turns; by id."""

    def check_transcript(self, thread: Scope, limit: int) -> TranscriptCheck:
        """Look for what is broken in our own rows of this thread; at most so many issues."""

    def alias(self, thread: Scope, chat_id: str) -> Alias | None:
        """What a chat id stands for in the thread's partition and channel; the thread's conversation is left aside."""

    def aliases(self, partition: Partition, after: bytes, limit: int) -> Sequence[KeptAlias]:
        """Those of a partition in the order of their keys, above `after`."""

    def messages(self, message_ids: Sequence[str]) -> Mapping[str, Message]:
        """Those of them that are there to be read, by id. What is masked or deleted is not."""

    def memories(self, after: str, limit: int) -> Sequence[Sequence[Memory]]:
        """Memories of every plane and status, each with all its revisions, in the order of their ids above `after`."""

    def links(self, memory_ids: Sequence[str]) -> Mapping[tuple[str, int], Sequence[MessageId]]:
        """By memory and revision, the ids of all that it rests on, also of what is not shown with it."""

    def present(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Those of them that are records of this store, whoever may see them: another cannot have that id."""

    def buried(self, partition: Partition, record_ids: Sequence[str]) -> frozenset[str]:
        """Those of them that were forgotten there."""

    def mendable(self, now: datetime, keep_events: int) -> Mapping[Mend, int]:
        """How much of what a repair could do there is to do, in the whole store."""

    def threads(self, after: Scope | None, limit: int) -> Sequence[ThreadSummary]:
        """All conversations that the grant reaches, in an order of the store's, after that one."""

    def events(
        self, limit: int, kinds: frozenset[EventKind] | None = None, before: str | None = None
    ) -> Sequence[Event]:
        """Newest first, with ids below `before`."""


class TranscriptTransaction(TranscriptReader, Protocol):
    def set_state(self, thread: Scope, sequences: Sequence[int], state: TranscriptState, at: datetime) -> int:
        """Bring those turns and all their messages into a state; how many messages that were.

        From the commit on, no search, look-up or evidence shows what is masked or deleted. With `raw_deleted`, texts,
        metadata, senders, labels, terms and vectors go as in a forget; ids, roles, order and evidence links stay.
        """

    def put_alias(self, thread: Scope, chat_id: str, at: datetime) -> Alias:
        """Let the chat id stand for the thread's conversation. If it stood for another, it is trusted no longer."""

    def keep_alias(self, alias: KeptAlias) -> bool:
        """Bring one in from elsewhere; whether it was new. One that stands for another thread here is not trusted."""

    def mend(self, now: datetime, keep_events: int) -> Mapping[Mend, int]:
        """Do it, in the whole store: drop what refers to nothing, release what nobody works at. No text goes."""

    def append_event(self, event: Event) -> None: ...

    def prune_events(self, space: str, keep: int) -> int:
        """Leave only the newest so many of the space; how many went."""
