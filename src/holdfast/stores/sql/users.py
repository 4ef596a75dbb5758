"""The table of credentials. They belong to a whole space: a grant over some of its partitions reaches none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.times import from_micros, to_micros
from holdfast.domain.users import User
from holdfast.errors import AccessDenied
from holdfast.stores.sql import rows
from holdfast.stores.sql.grant_scope import GrantScope

_COLUMNS = "id, space, created_at, rotated_at, revoked_at, kind, role, subjects"


def _user(row: Sequence[Any]) -> User:
    return User(
        row[0],
        row[1],
        from_micros(row[2]),
        rows.moment(row[3]),
        rows.moment(row[4]),
        ActorKind(row[5]),
        None if row[6] is None else ActorRole(row[6]),
        frozenset(json.loads(row[7])) if row[7] else frozenset(),
    )


class UserReader(GrantScope):
    """The part of `ports.Reader` that is about holders of keys."""

    def _among_users(self) -> tuple[str, list[Any]]:
        if self._grant.partitions is not None:
            return "FALSE", []
        return ("TRUE", []) if self._grant.everywhere else ("space = ?", [self._grant.scope.space])

    def user(self, user_id: str, kind: ActorKind = ActorKind.USER) -> tuple[User, bytes] | None:
        reach, values = self._among_users()
        row = self._db.execute(
            f"SELECT {_COLUMNS}, key_digest FROM credentials WHERE {reach} AND kind = ? AND id = ?",
            [*values, kind, user_id],
        ).fetchone()
        return (_user(row), bytes(row[8])) if row else None

    def user_with_key(self, key_digest: bytes) -> User | None:
        reach, values = self._among_users()
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM credentials WHERE key_digest = ? AND {reach}", [key_digest, *values]
        ).fetchone()
        return _user(row) if row else None

    def users(self, after: str | None, limit: int, kind: ActorKind = ActorKind.USER) -> Sequence[User]:
        reach, values = self._among_users()
        found = self._db.execute(
            f"SELECT {_COLUMNS} FROM credentials WHERE {reach} AND kind = ? AND id > ? ORDER BY space, id LIMIT ?",
            [*values, kind, after or "", limit],
        )
        return [_user(row) for row in found]

    def _user_count(self) -> int:
        reach, values = self._among_users()
        found = self._db.execute(f"SELECT count(*) FROM credentials WHERE {reach} AND kind = 'user'", values)
        return int(found.fetchone()[0])


class UserWriter(UserReader):
    """The part of `ports.Transaction` that is about holders of keys."""

    def put_user(self, user: User, key_digest: bytes) -> None:
        if self._grant.partitions is not None or not (self._grant.everywhere or user.space == self._grant.scope.space):
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
