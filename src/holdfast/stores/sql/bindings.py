"""Bindings: the memory that serves a space. A space without stored bindings has a default one, which is stored on the
first change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.bindings import DEFAULT_BINDING, Binding, Target, TargetKind, first_binding
from holdfast.domain.times import to_micros
from holdfast.errors import AccessDenied, BindingExists, BindingNotFound, RevisionConflict
from holdfast.stores.sql import rows
from holdfast.stores.sql.dialect import insert_statement
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.rows import builder_of, column_values

_COLUMNS = (
    "id", "space", "key", "provider", "config", "hooks", "enabled", "revision", "created_at", "updated_at",
)  # fmt: skip
_CHANGED = ("provider", "config", "hooks", "enabled", "revision", "updated_at")
_binding = builder_of(Binding, ", ".join(_COLUMNS))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM bindings x WHERE x.deleted_at IS NULL"
_ADD = f"{insert_statement('bindings', _COLUMNS)} ON CONFLICT DO NOTHING"
_SET_TARGET = (
    "INSERT INTO binding_targets (space, kind, target_id, binding_key) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (space, kind, target_id) DO UPDATE SET binding_key = excluded.binding_key"
)


class SqlBindingReader(SqlRepository):
    """Implements `BindingReader`."""

    def find_all(self, keys: Collection[str] | None = None) -> Sequence[Binding]:
        own, values = self._named_only("x.key", keys)
        found = self._db.execute(f"{_SELECT} AND {own} ORDER BY x.key, x.space", values).fetchall()
        if not found and self._is_unwritten():
            return (
                []
                if keys is not None and DEFAULT_BINDING not in keys
                else [first_binding(self._scope.grant.scope.space)]
            )
        return [_binding(row) for row in found]

    def targets(self, of: Collection[str] | None = None) -> Sequence[Target]:
        space = self._scope.grant.scope.space
        own, values = self._named_only("x.target_id", of)
        found = self._db.execute(
            f"SELECT x.kind, x.target_id, x.binding_key FROM binding_targets x WHERE {own}"
            " AND x.kind IN ('company', 'agent') ORDER BY x.kind DESC, x.target_id",
            values,
        ).fetchall()
        if not found and self._is_unwritten():
            return [] if of is not None and space not in of else [Target(TargetKind.COMPANY, space, DEFAULT_BINDING)]
        return [Target(TargetKind(kind), target_id, key) for kind, target_id, key in found]

    def _named_only(self, column: str, named: Collection[str] | None) -> tuple[str, list[Any]]:
        """Build the condition for rows of the space; only those with these names, if any are given."""
        own, values = self._scope.in_any_space()
        if not named:
            return (own, values) if named is None else ("1 = 0", [])
        among, names = self._scope.dialect.among(column, sorted(named))
        return f"{own} AND {among}", [*values, *names]

    def _is_unwritten(self) -> bool:
        """True if the space never had a stored binding."""
        if self._scope.grant.everywhere:
            return False
        there = self._db.execute("SELECT 1 FROM bindings WHERE space = ? LIMIT 1", (self._scope.grant.scope.space,))
        return there.fetchone() is None


class SqlBindingWriter(SqlBindingReader):
    """Implements `BindingWriter`."""

    def _store_default(self, at: datetime | None) -> str:
        """Store the default binding if the space never had one; return the space."""
        space = self._scope.whole_space()
        if self._is_unwritten():
            first = column_values(first_binding(space), _COLUMNS)
            moment = rows.micros(at)
            self._db.execute(_ADD, (*first[:-2], moment, None))
            self._db.execute(_SET_TARGET, (space, TargetKind.COMPANY, space, DEFAULT_BINDING))
        return space

    def add(self, binding: Binding) -> None:
        if binding.space != self._scope.whole_space():
            raise AccessDenied("the grant does not reach the bindings of this space")
        self._store_default(binding.created_at)
        if self._db.execute(_ADD, column_values(binding, _COLUMNS)).rowcount != 1:
            raise BindingExists(f"the space already has a binding {binding.key!r}; change it, or choose another key")

    def replace(self, binding: Binding) -> None:
        if binding.space != self._scope.whole_space():
            raise AccessDenied("the grant does not reach the bindings of this space")
        space = self._store_default(binding.updated_at)
        updated = self._db.execute(
            f"UPDATE bindings SET {', '.join(f'{column} = ?' for column in _CHANGED)}"
            " WHERE space = ? AND key = ? AND deleted_at IS NULL AND revision = ?",
            [*column_values(binding, _CHANGED), space, binding.key, binding.revision - 1],
        )
        if updated.rowcount != 1:
            raise RevisionConflict(f"the binding {binding.key!r} was changed meanwhile; read it again and decide anew")

    def remove(self, key: str, at: datetime) -> None:
        space = self._store_default(at)
        # Erase the configuration, which names addresses and secrets.
        removed = self._db.execute(
            "UPDATE bindings SET deleted_at = ?, config = '{}' WHERE space = ? AND key = ? AND deleted_at IS NULL",
            (to_micros(at), space, key),
        )
        if removed.rowcount != 1:
            raise BindingNotFound(f"there is no binding {key!r:.80} in this space; list its bindings")
        self._db.execute("DELETE FROM binding_targets WHERE space = ? AND binding_key = ?", (space, key))

    def set_target(self, target: Target) -> None:
        space = self._store_default(None)
        if target.kind is TargetKind.COMPANY and target.target_id != space:
            raise AccessDenied("the grant does not reach this space")
        there = self._db.execute(f"{_SELECT} AND x.space = ? AND x.key = ?", (space, target.binding_key))
        if there.fetchone() is None:
            raise BindingNotFound(f"there is no binding {target.binding_key!r:.80} in this space; list its bindings")
        self._db.execute(_SET_TARGET, (space, target.kind, target.target_id, target.binding_key))

    def clear_target(self, kind: TargetKind, target_id: str) -> bool:
        space = self._store_default(None)
        cleared = self._db.execute(
            "DELETE FROM binding_targets WHERE space = ? AND kind = ? AND target_id = ?", (space, kind, target_id)
        )
        return cleared.rowcount == 1
