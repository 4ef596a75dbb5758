"""The table of credentials. They belong to a whole space: a grant over some of its partitions reaches none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.access import ActorKind
from holdfast.domain.times import to_micros
from holdfast.domain.users import User
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import GrantScope, SqlRepository
from holdfast.stores.sql.rows import builder_of

_COLUMNS = "id, space, created_at, rotated_at, revoked_at, kind, role, subjects"
_user = builder_of(User, _COLUMNS)
# Earlier gateways without a token took every caller on their machine for this operator. The trail names the caller and
# the time of a call, not the key that it issued.
_UNPROVEN = (
    "SELECT {0} FROM credentials c WHERE {1} AND c.kind = 'operator' AND c.revoked_at IS NULL AND EXISTS"
    " (SELECT 1 FROM operations o WHERE o.space = c.space AND o.action = 'create_user' AND o.actor_kind = 'operator'"
    " AND o.actor_id = 'loopback' AND o.outcome = 'succeeded' AND coalesce(c.rotated_at, c.created_at)"
    " BETWEEN o.started_at AND o.started_at + o.duration_micros) ORDER BY c.space, c.id"
)


def _among_users(scope: GrantScope) -> tuple[str, list[Any]]:
    if scope.grant.partitions is not None:
        return "FALSE", []
    return ("TRUE", []) if scope.grant.everywhere else ("space = ?", [scope.grant.scope.space])


def count_users(scope: GrantScope) -> int:
    reach, values = _among_users(scope)
    found = scope.database.execute(f"SELECT count(*) FROM credentials WHERE {reach} AND kind = 'user'", values)
    return int(found.fetchone()[0])


class SqlUserReader(SqlRepository):
    """Implements `UserReader`."""

    def find(self, user_id: str, kind: ActorKind = ActorKind.USER) -> tuple[User, bytes] | None:
        reach, values = _among_users(self._scope)
        row = self._db.execute(
            f"SELECT {_COLUMNS}, key_digest FROM credentials WHERE {reach} AND kind = ? AND id = ?",
            [*values, kind, user_id],
        ).fetchone()
        return (_user(row[:-1]), bytes(row[-1])) if row else None

    def find_by_key(self, key_digest: bytes) -> User | None:
        reach, values = _among_users(self._scope)
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM credentials WHERE key_digest = ? AND {reach}", [key_digest, *values]
        ).fetchone()
        return _user(row) if row else None

    def page(self, after: str | None, limit: int, kind: ActorKind = ActorKind.USER) -> Sequence[User]:
        reach, values = _among_users(self._scope)
        found = self._db.execute(
            f"SELECT {_COLUMNS} FROM credentials WHERE {reach} AND kind = ? AND id > ? ORDER BY space, id LIMIT ?",
            [*values, kind, after or "", limit],
        )
        return [_user(row) for row in found]

    def unproven_operators(self) -> Sequence[User]:
        reach, values = _among_users(self._scope)
        return [_user(row) for row in self._db.execute(_UNPROVEN.format(_COLUMNS, reach), values)]

    def names(self, kind: ActorKind, since: datetime | None = None) -> Sequence[str]:
        reach, values = _among_users(self._scope)
        found = self._db.execute(
            f"SELECT id FROM credentials WHERE {reach} AND kind = ? AND created_at >= ?",
            [*values, kind, 0 if since is None else to_micros(since)],
        )
        return [name for (name,) in found]


class SqlUserWriter(SqlUserReader):
    """Implements `UserWriter`."""

    def put(self, user: User, key_digest: bytes) -> None:
        if self._scope.grant.partitions is not None or not (
            self._scope.grant.everywhere or user.space == self._scope.grant.scope.space
        ):
            raise AccessDenied("the grant does not reach the users of this space")
        subjects = json.dumps(sorted(user.subjects), ensure_ascii=False) if user.subjects else None
        self._db.execute(
            "INSERT INTO credentials (space, kind, id, role, subjects, key_digest, created_at, rotated_at, revoked_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (space, kind, id) DO UPDATE SET role = excluded.role, subjects = excluded.subjects,"
            " key_digest = excluded.key_digest, rotated_at = excluded.rotated_at, revoked_at = excluded.revoked_at",
            (
                user.space, user.kind, user.id, user.role, subjects, key_digest, to_micros(user.created_at),
                rows.micros(user.rotated_at), rows.micros(user.revoked_at),
            ),
        )  # fmt: skip
