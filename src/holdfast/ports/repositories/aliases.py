"""Port of aliases: chat ids that stand for a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.scope import Partition, Scope
from holdfast.ports.records import Alias, StoredAlias


class AliasReader(Protocol):
    def find(self, thread: Scope, chat_id: str) -> Alias | None:
        """Resolve a chat id in the thread's partition and channel; the thread's conversation is ignored."""

    def page(self, partition: Partition, after: bytes, limit: int) -> Sequence[StoredAlias]:
        """Return the aliases of a partition with keys above `after`, ordered by key."""


class AliasWriter(AliasReader, Protocol):
    def put(self, thread: Scope, chat_id: str, at: datetime) -> Alias:
        """Map the chat id to the thread's conversation. If it mapped to another, it is no longer trusted."""

    def import_alias(self, alias: StoredAlias) -> bool:
        """Import an alias; True if it was new. One that maps to another thread here is not trusted."""
