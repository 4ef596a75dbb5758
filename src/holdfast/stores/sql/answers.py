"""Answers to idempotent calls. They outlive what they are about; what could tell what that said does not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from holdfast.domain.scope import Partition
from holdfast.domain.times import to_micros
from holdfast.ports import Answer
from holdfast.stores.sql.places import Places

_COLUMNS = ("partition_id", "key", "digest", "recorded_at", "body")
_STRINGS = re.compile(r'"([^"]+)"')


class AnswerWriter(Places):
    """The part of `ports.Transaction` that is about answers."""

    def keep_answer(self, partition: Partition, key: str, answer: Answer, at: datetime) -> None:
        values = (self._partition_id(partition), key, answer.digest, to_micros(at), answer.body)
        self.dialect.insert(self._db, "answers", _COLUMNS, [values])

    def _forget_digests(self, partitions: Iterable[int], record_ids: Iterable[str]) -> None:
        """A short text can be guessed from the digest of the call that wrote it.

        The key stays used: a call that is repeated brings nothing back.
        """
        gone = frozenset(record_ids)
        for partition in sorted(set(partitions)):
            kept = self._db.execute(
                "SELECT key, body FROM answers WHERE partition_id = ? AND digest <> ''", (partition,)
            ).fetchall()
            keys = [key for key, body in kept if not gone.isdisjoint(_STRINGS.findall(body))]
            if keys:
                self._db.executemany(
                    "UPDATE answers SET digest = '' WHERE partition_id = ? AND key = ?",
                    [(partition, key) for key in keys],
                )
