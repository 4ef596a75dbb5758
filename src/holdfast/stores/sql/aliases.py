"""Aliases of conversations: digests of chat ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from holdfast.domain.scope import CONVERSATION_PARTS, Partition, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.ports import Alias, StoredAlias
from holdfast.stores.sql.dialect import insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.transcripts.rows import CONVERSATION_COLUMNS, thread_of
from holdfast.stores.sql.write_scope import WriteScope

_ALIAS = (
    "SELECT c.name, a.trusted, a.conversation_id FROM aliases a JOIN conversations c ON c.id = a.conversation_id"
    " WHERE a.partition_id = ? AND a.key = ?"
)
_ADD = insert_statement("aliases", ("partition_id", "key", "conversation_id", "trusted", "recorded_at"))
_PLACES = tuple(part for part in CONVERSATION_PARTS if part != "conversation")


def _alias_key(thread: Scope, chat_id: str) -> bytes:
    """Digest a chat id, as every name in an index: an index moves its entries, and would leave copies of the text."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (*(getattr(thread, name) or "" for name in _PLACES), chat_id):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


class SqlAliasReader(SqlRepository):
    """Implements `AliasReader`."""

    def find(self, thread: Scope, chat_id: str) -> Alias | None:
        # A grant for one conversation may look up which one a chat id stands for.
        granted, partition = self._scope.grant.scope, self._scope.number_of(thread.partition)
        if partition is None or any(getattr(granted, part) not in (None, getattr(thread, part)) for part in _PLACES):
            return None
        row = self._db.execute(_ALIAS, (partition, _alias_key(thread, chat_id))).fetchone()
        return None if row is None else Alias(row[0], bool(row[1]))

    def page(self, partition: Partition, after: bytes, limit: int) -> Sequence[StoredAlias]:
        number = self._scope.number_of(partition)
        if number is None:
            return []
        found = self._db.execute(
            f"SELECT a.key, a.trusted, a.recorded_at, {', '.join(f'c.{column}' for column in CONVERSATION_COLUMNS)}"
            " FROM aliases a JOIN conversations c ON c.id = a.conversation_id"
            " WHERE a.partition_id = ? AND a.key > ? ORDER BY a.key LIMIT ?",
            (number, after, limit),
        )
        return [
            StoredAlias(thread_of(partition, row[3:]), bytes(row[0]), bool(row[1]), from_micros(row[2]))
            for row in found
        ]


class SqlAliasWriter(SqlAliasReader):
    """Implements `AliasWriter`."""

    _scope: WriteScope

    def put(self, thread: Scope, chat_id: str, at: datetime) -> Alias:
        partition = self._scope.partition_id(thread.partition)
        conversation = self._scope.conversation_id(partition, thread)
        key = _alias_key(thread, chat_id)
        existing = self._db.execute(_ALIAS, (partition, key)).fetchone()
        if existing is None:
            self._db.execute(_ADD, (partition, key, conversation, 1, to_micros(at)))
            return Alias(thread.conversation or "", trusted=True)
        name, trusted, stood_for = existing
        if trusted and stood_for != conversation:
            # The chat id is ambiguous from now on.
            self._db.execute(
                "UPDATE aliases SET trusted = 0, recorded_at = ? WHERE partition_id = ? AND key = ?",
                (to_micros(at), partition, key),
            )
            return Alias(name, trusted=False)
        return Alias(name, bool(trusted))

    def import_alias(self, alias: StoredAlias) -> bool:
        partition = self._scope.partition_id(alias.thread.partition)
        conversation = self._scope.conversation_id(partition, alias.thread)
        existing = self._db.execute(_ALIAS, (partition, alias.key)).fetchone()
        if existing is None:
            values = (partition, alias.key, conversation, int(alias.trusted), to_micros(alias.recorded_at))
            self._db.execute(_ADD, values)
            return True
        if not alias.trusted or existing[2] != conversation:
            self._db.execute(
                "UPDATE aliases SET trusted = 0 WHERE partition_id = ? AND key = ?", (partition, alias.key)
            )
        return False
