"""The tables of tool registries and tool experience. Their words are in `texts`, where a forget blanks them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.scope import FILTER_PARTS, SCOPE_PARTS, Scope
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.tool_experience import Confidence, ExperienceKey, ToolExperience, digest_of
from holdfast.domain.tool_registries import AgentToolRegistry, RegistrySnapshot
from holdfast.ports.repositories.tools import ExperienceCount
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import NewRows, insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.write_scope import WriteScope

_PAGE = 16
_LEVELS = {None: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
_COUNTS = ("succeeded", "failed", "partial", "cancelled")
_CHANGING = ("words", *_COUNTS, "noted", "confidence", "place_key", "summary_place_key", "recent", "updated_at")
_COLUMNS = ("scope_id", "key", "partition_id", "version_key", "registry_key", "leads", *_CHANGING)
_BEST = "confidence DESC, succeeded DESC, updated_at DESC, key DESC"
_SELECT = (
    "SELECT t.external_id, t.text, e.succeeded, e.failed, e.partial, e.cancelled, e.noted, e.place_key,"
    " e.summary_place_key, e.recent, e.updated_at FROM tool_experience e JOIN texts t ON t.number = e.words"
)
_PUT = (
    f"{insert_statement('tool_experience', _COLUMNS)} ON CONFLICT (scope_id, key) DO UPDATE SET"
    f" {', '.join(f'{column} = excluded.{column}' for column in _CHANGING)}"
)
_PUT_REGISTRY = (
    f"{insert_statement('tool_registries', ('scope_id', 'key', 'partition_id', 'words'))}"
    " ON CONFLICT (scope_id, key) DO UPDATE SET words = excluded.words"
)
_OF_VERSION = "scope_id = ? AND version_key = ?"
# The forget of a conversation is not limited to records of it: experience belongs to the whole memory.
_PARTS = tuple(part for part in FILTER_PARTS if part not in ("conversation", "channel", "run", "issue"))


def _experience(row: Sequence[Any]) -> ToolExperience:
    names, summary, succeeded, failed, partial, cancelled, noted, place, summary_place, recent, updated_at = row
    return ToolExperience(
        key=ExperienceKey(*json.loads(names)),
        updated_at=from_micros(updated_at),
        succeeded=succeeded,
        failed=failed,
        partial=partial,
        cancelled=cancelled,
        noted=bool(noted),
        summary=summary,
        place=None if place is None else bytes(place),
        summary_place=None if summary_place is None else bytes(summary_place),
        recent=bytes(recent),
    )


class SqlToolReader(SqlRepository):
    """Implements `ToolReader`."""

    def registries(self, scope: Scope) -> Sequence[AgentToolRegistry]:
        found = (AgentToolRegistry.from_snapshot(text) for _, text in self._registry_texts(scope))
        return sorted(found, key=lambda each: each.registry_id)

    def snapshots(self, scope: Scope) -> Sequence[RegistrySnapshot]:
        return [RegistrySnapshot(text) for _, text in self._registry_texts(scope)]

    def registry(self, scope: Scope, registry_id: str) -> AgentToolRegistry | None:
        found = self._registry_texts(scope, digest_of(registry_id))
        return AgentToolRegistry.from_snapshot(found[0][1]) if found else None

    def _registry_texts(self, scope: Scope, key: bytes | None = None) -> list[Any]:
        """Return (number of the text, snapshot) of all registries, or of one."""
        condition, values = self._of_memory(scope)
        if key is not None:
            condition, values = f"{condition} AND e.key = ?", [*values, key]
        return self._db.execute(
            f"SELECT t.number, t.text FROM tool_registries e JOIN texts t ON t.number = e.words WHERE {condition}",
            values,
        ).fetchall()

    def experience(self, scope: Scope, key: ExperienceKey) -> ToolExperience | None:
        condition, values = self._of_memory(scope)
        row = self._db.execute(f"{_SELECT} WHERE {condition} AND e.key = ?", [*values, key.digest]).fetchone()
        return None if row is None else _experience(row)

    def leading(self, scope: Scope) -> Iterator[ToolExperience]:
        condition, values = self._of_memory(scope)
        order = _BEST.replace(", ", ", e.")
        first = 0
        while True:
            found = self._db.execute(
                f"{_SELECT} WHERE {condition} AND e.leads = 1 ORDER BY e.{order} LIMIT {_PAGE} OFFSET {first:d}", values
            ).fetchall()
            yield from map(_experience, found)
            if len(found) < _PAGE:
                return
            first += _PAGE

    def experience_count(self, scope: Scope) -> int:
        condition, values = self._of_memory(scope)
        return int(self._db.execute(f"SELECT count(*) FROM tool_experience e WHERE {condition}", values).fetchone()[0])

    def count_versions(self, scope: Scope) -> Mapping[bytes, ExperienceCount]:
        condition, values = self._of_memory(scope)
        found = self._db.execute(
            "SELECT e.version_key, e.registry_key, count(*), sum(CASE WHEN e.confidence > 0 THEN 1 ELSE 0 END)"
            f" FROM tool_experience e WHERE {condition} GROUP BY e.version_key, e.registry_key",
            values,
        )
        return {
            bytes(version): ExperienceCount(bytes(registry), int(governed), int(total - governed))
            for version, registry, total, governed in found
        }

    def plan_forget(self, target: ForgetTarget) -> tuple[list[str], list[int]]:
        """Return the names of what a forget takes, and the numbers of its texts.

        A subject takes everything of its memory. A conversation takes the experience that came from it alone, and the
        summaries that came from it.
        """
        if target.subject is not None and target.conversation is None:
            taken = {"registry": ("tool_registries", "s.subject"), "experience": ("tool_experience", "s.subject")}
            value: object = target.subject
        elif target.conversation is not None:
            taken = {
                "experience": ("tool_experience", "e.place_key"),
                "summary": ("tool_experience", "e.place_key IS NULL AND e.summary_place_key"),
            }
            value = digest_of(target.conversation)
        else:
            return [], []
        condition, values = self._within()
        found = [
            (f"{kind}/{scope_id}/{bytes(key).hex()}", int(words))
            for kind, (table, column) in taken.items()
            for scope_id, key, words in self._db.execute(
                f"SELECT e.scope_id, e.key, e.words FROM {table} e JOIN scopes s ON s.id = e.scope_id"
                f" WHERE {condition} AND {column} = ?",
                [*values, value],
            )
        ]
        return sorted(name for name, _ in found), [words for _, words in found]

    def _of_memory(self, scope: Scope) -> tuple[str, list[Any]]:
        """Match the rows `e` of exactly this memory, within the grant."""
        reach, values = self._scope.reach("e", keyed=True)
        parts = " AND ".join(f"s.{part} = ?" for part in SCOPE_PARTS)
        number = self._scope.number_of(scope.partition)
        one = f"e.scope_id = (SELECT s.id FROM scopes s WHERE s.partition_id = ? AND {parts})"
        return f"{one} AND {reach}", [number, *rows.scope_values(scope), *values]

    def _within(self) -> tuple[str, list[Any]]:
        condition, values = self._scope.reach("e")
        for part in _PARTS:
            if (value := getattr(self._scope.grant.scope, part)) is not None:
                condition, values = f"{condition} AND s.{part} = ?", [*values, value]
        return condition, values


class SqlToolWriter(SqlToolReader):
    """Implements `ToolWriter`."""

    _scope: WriteScope

    def put_registry(self, scope: Scope, registry: AgentToolRegistry) -> None:
        partition, scope_id = self._enter(scope)
        key = digest_of(registry.registry_id)
        for number, _ in self._registry_texts(scope, key):
            self._blank(number)
        words = self._add_words(registry.registry_id, registry.to_snapshot())
        self._db.execute(_PUT_REGISTRY, (scope_id, key, partition, words))

    def delete_registry(self, scope: Scope, registry_id: str) -> bool:
        _, scope_id = self._enter(scope)
        key = digest_of(registry_id)
        if not self._registry_texts(scope, key):
            return False
        self._delete_registry(scope_id, key)
        return True

    def put_experience(self, scope: Scope, experience: ToolExperience) -> None:
        partition, scope_id = self._enter(scope)
        key, version = experience.key.digest, experience.key.version_digest
        values = (
            *(getattr(experience, name) for name in _COUNTS), int(experience.noted), _LEVELS[experience.confidence],
            experience.place, experience.summary_place, experience.recent, to_micros(experience.updated_at),
        )  # fmt: skip
        names = (scope_id, key, partition, version, digest_of(experience.key.registry_id), 0)
        self._db.execute(_PUT, (*names, self._put_words(scope_id, experience), *values))
        self._choose_leader(scope_id, version)

    def delete_experience(self, scope: Scope, registry_id: str) -> int:
        _, scope_id = self._enter(scope)
        found = self._db.execute(
            "SELECT key FROM tool_experience WHERE scope_id = ? AND registry_key = ?",
            (scope_id, digest_of(registry_id)),
        ).fetchall()
        for (key,) in found:
            self._delete_experience(scope_id, bytes(key))
        return len(found)

    def forget(self, names: Sequence[str]) -> Mapping[int, int]:
        """Delete what `plan_forget` named; return how much of each partition."""
        gone: Counter[int] = Counter()
        for name in names:
            kind, scope_id, key = name.split("/")
            gone[self._FORGET[kind](self, int(scope_id), bytes.fromhex(key))] += 1
        return gone

    def _delete_registry(self, scope_id: int, key: bytes) -> int:
        statement = "DELETE FROM tool_registries WHERE scope_id = ? AND key = ? RETURNING partition_id, words"
        partition, words = self._db.execute(statement, (scope_id, key)).fetchone()
        self._blank(words)
        return int(partition)

    def _delete_experience(self, scope_id: int, key: bytes) -> int:
        statement = (
            "DELETE FROM tool_experience WHERE scope_id = ? AND key = ? RETURNING partition_id, words, version_key"
        )
        partition, words, version = self._db.execute(statement, (scope_id, key)).fetchone()
        self._blank(words)
        self._choose_leader(scope_id, bytes(version))
        return int(partition)

    def _drop_summary(self, scope_id: int, key: bytes) -> int:
        partition, words, names = self._db.execute(
            "SELECT e.partition_id, e.words, t.external_id FROM tool_experience e JOIN texts t ON t.number = e.words"
            " WHERE e.scope_id = ? AND e.key = ?",
            (scope_id, key),
        ).fetchone()
        self._blank(words)
        self._db.execute(
            "UPDATE tool_experience SET words = ?, summary_place_key = NULL WHERE scope_id = ? AND key = ?",
            (self._add_words(names, ""), scope_id, key),
        )
        return int(partition)

    _FORGET: ClassVar = {"registry": _delete_registry, "experience": _delete_experience, "summary": _drop_summary}

    def _enter(self, scope: Scope) -> tuple[int, int]:
        """Lock the memory; return the numbers of its partition and scope."""
        partition = self._scope.partition_id(scope.partition)
        self._scope.change(partition)
        return partition, self._scope.scope_id(partition, scope)

    def _put_words(self, scope_id: int, experience: ToolExperience) -> int:
        """Store names and summary as one text, unless they are stored already. An earlier text is blanked."""
        stored = self._db.execute(
            "SELECT t.number, t.text FROM tool_experience e JOIN texts t ON t.number = e.words"
            " WHERE e.scope_id = ? AND e.key = ?",
            (scope_id, experience.key.digest),
        ).fetchone()
        if stored is not None:
            if stored[1] == experience.summary:
                return int(stored[0])
            self._blank(int(stored[0]))
        return self._add_words(json.dumps(list(experience.key), ensure_ascii=False), experience.summary)

    def _add_words(self, names: str, text: str) -> int:
        drawn = self._scope.dialect.reserve_numbers(self._db, 1)
        return self._scope.dialect.add_text(self._db, drawn, NewRows(("external_id", "text"), [(names, text)]))

    def _blank(self, number: int) -> None:
        self._db.execute(f"{self._scope.dialect.blank_texts} WHERE number = ?", (number,))

    def _choose_leader(self, scope_id: int, version: bytes) -> None:
        """Let the best governed row of a tool and schema lead, so that hints need not read the others."""
        of = (scope_id, version)
        best = self._db.execute(
            f"SELECT key FROM tool_experience WHERE {_OF_VERSION} AND confidence > 0 ORDER BY {_BEST} LIMIT 1", of
        ).fetchone()
        key = b"" if best is None else bytes(best[0])
        led = f"UPDATE tool_experience SET leads = 0 WHERE {_OF_VERSION} AND leads = 1 AND key <> ?"
        self._db.execute(led, (*of, key))
        self._db.execute(
            "UPDATE tool_experience SET leads = 1 WHERE scope_id = ? AND key = ? AND leads = 0", (scope_id, key)
        )
