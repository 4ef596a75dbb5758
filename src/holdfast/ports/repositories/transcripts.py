"""Port of transcripts: the ordered turns of a thread, their states, and the memories derived from them.

Methods take the thread: the scope of exactly one conversation, in the partition that the scope names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.derived_refs import DerivedMemoryRef, TranscriptCheck
from holdfast.domain.ids import MessageId
from holdfast.domain.scope import Scope
from holdfast.domain.transcript_turns import TranscriptState, TranscriptTurn, Utterance
from holdfast.ports.records import NewTurn, StoredMessages, ThreadSummary, TurnState


class TranscriptReader(Protocol):
    def tail(self, thread: Scope, limit: int) -> Sequence[Utterance]:
        """Return the last messages of any state, oldest first: without text if it was deleted, marked if private."""

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

    def check(self, thread: Scope, limit: int) -> TranscriptCheck:
        """Check the integrity of this thread's rows; at most `limit` issues."""

    def resting_on_broken(self, record_ids: Sequence[str]) -> frozenset[str]:
        """Return those messages and current memories that rest on a turn or a link in which `check` finds an issue."""

    def threads(self, after: Scope | None, limit: int) -> Sequence[ThreadSummary]:
        """Return the conversations that the grant reaches, after `after` in an order of the store."""

    def unsealed_messages(self, scope: Scope) -> Sequence[MessageId]:
        """Return the conversation's messages since the last flush."""


class TranscriptWriter(TranscriptReader, Protocol):
    def add_turn(self, turn: NewTurn, embedder: str, analyzer: int) -> StoredMessages:
        """Add a turn; raises `DuplicateId`, writing nothing, if the host's turn or another message of an id exists."""

    def seal(self, scope: Scope) -> int: ...

    def set_state(self, thread: Scope, sequences: Sequence[int], state: TranscriptState, at: datetime) -> int:
        """Set the state of those turns and all their messages; returns the number of messages.

        After the commit, no search, look-up or evidence shows masked or deleted messages. With `raw_deleted`, texts,
        metadata, senders, labels, terms and vectors are removed as in a forget; ids, roles, order and evidence links
        stay.
        """
