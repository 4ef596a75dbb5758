"""Port of users: the holders of keys. Only a grant over a whole space reaches them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.domain.access import ActorKind
from holdfast.domain.users import User


class UserReader(Protocol):
    def find(self, user_id: str, kind: ActorKind = ActorKind.USER) -> tuple[User, bytes] | None:
        """Return a credential of the grant's space, and the digest of its key. An agent and a user may share an id."""

    def find_by_key(self, key_digest: bytes) -> User | None:
        """Return the credential with this key, of any kind."""

    def page(self, after: str | None, limit: int, kind: ActorKind = ActorKind.USER) -> Sequence[User]:
        """Return credentials of that kind with ids above `after`, ordered by id."""

    def unproven_operators(self) -> Sequence[User]:
        """Return operators whose valid key was issued to a caller without a credential, ordered by space and id."""

    def names(self, kind: ActorKind, since: datetime | None = None) -> Sequence[str]:
        """Return the ids of all credentials of that kind; with `since`, of those made at that time or later."""


class UserWriter(UserReader, Protocol):
    def put(self, user: User, key_digest: bytes) -> None:
        """Insert or replace a user."""
