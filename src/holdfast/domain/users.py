"""Who may come in from outside: users of a space, each with one key. Only the key's digest is ever kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.domain.access import Actor, ActorKind, Role

KEY_PREFIX = "uk_"
# By its key's first letters one sees what kind of credential it is.
KEY_PREFIXES = {ActorKind.USER: KEY_PREFIX, ActorKind.AGENT: "ak_", ActorKind.OPERATOR: "ok_"}


@dataclass(frozen=True, slots=True)
class User:
    """Whoever has a key: a user speaks for the subject of its id, in its space; an agent for itself and for the
    subjects that are mounted on it; an operator for the space. One with `revoked_at` has no key that is good.
    """

    id: str
    space: str
    created_at: datetime
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None
    kind: ActorKind = ActorKind.USER
    role: Role | None = None
    subjects: frozenset[str] = frozenset()

    @property
    def actor(self) -> Actor:
        return Actor(self.kind, self.id, self.space, self.subjects, self.role)


@dataclass(frozen=True, slots=True)
class Issued:
    """What became of asking for a user. `key` is told this once, and only if a new one was made."""

    user: User
    key: str | None = field(default=None, repr=False)
    created: bool = False
    rotated: bool = False


@dataclass(frozen=True, slots=True)
class UserPage:
    """A page of users, in the order of their ids. `next_cursor` is None on the last."""

    items: tuple[User, ...]
    next_cursor: str | None


def key_digest(key: str) -> bytes:
    """What is kept of a key. It is long and random, so one round of a plain digest keeps it secret."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
