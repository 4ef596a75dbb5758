"""Credentials of a space: users, agents and operators, each with one key.

Only the digest of a key is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.domain.access import Actor, ActorKind, ActorRole, checked_names
from holdfast.domain.presentable import SECRET, Presentable, PresentableList
from holdfast.errors import AccessDenied, InvalidInput

KEY_PREFIX = "uk_"
# The prefix of a key shows the kind of its credential.
KEY_PREFIXES = {ActorKind.USER: KEY_PREFIX, ActorKind.AGENT: "ak_", ActorKind.OPERATOR: "ok_"}
# The roles that each kind can have. The first is the default of agents and operators. A user without a role may do all
# that users may.
ROLES: Mapping[ActorKind, tuple[ActorRole, ...]] = {
    ActorKind.USER: (ActorRole.MEMBER, ActorRole.READER),
    ActorKind.AGENT: (ActorRole.MEMBER, ActorRole.CURATOR, ActorRole.READER),
    ActorKind.OPERATOR: (ActorRole.ADMIN, ActorRole.AUDITOR),
}
MAX_SUBJECTS = 100


@dataclass(frozen=True, slots=True)
class User(Presentable):
    """The owner of a key: a user acts for the subject of the same id in its space, an agent for itself and for its
    mounted subjects, an operator for the space. With `revoked_at` set, its key is no longer valid.
    """

    id: str
    space: str
    created_at: datetime
    rotated_at: datetime | None = None
    revoked_at: datetime | None = None
    kind: ActorKind = ActorKind.USER
    role: ActorRole | None = None
    subjects: frozenset[str] = frozenset()

    @property
    def actor(self) -> Actor:
        """The caller that the key stands for."""
        return Actor(self.kind, self.id, self.space, self.subjects, self.role)


@dataclass(frozen=True, slots=True)
class Issued(Presentable):
    """The result of creating a user. `key` is only here, and only if a new one was made.

    No line, table, dictionary or JSON shows the key: read the attribute.
    """

    user: User
    key: str | None = field(default=None, repr=False, metadata=SECRET)
    created: bool = False
    rotated: bool = False


@dataclass(frozen=True, slots=True)
class UserPage(PresentableList[User]):
    """A page of users, in the order of their ids. `next_cursor` is None on the last."""

    items: tuple[User, ...]
    next_cursor: str | None


def key_digest(key: str) -> bytes:
    """Return the digest that is stored for a key. Keys are long and random, so one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def checked_kind(kind: object) -> ActorKind:
    if not isinstance(kind, ActorKind) or kind not in ROLES:
        raise InvalidInput("kind", f"must be one of {', '.join(ROLES)}: {str(kind)!r:.40} cannot have a key")
    return kind


def checked_role(kind: ActorKind, role: object) -> ActorRole | None:
    """Return the role if this kind can have it. None keeps the current role, or the default for a new user."""
    if role is not None and (not isinstance(role, ActorRole) or role not in ROLES[kind]):
        raise InvalidInput("role", f"{kind}s are one of {', '.join(ROLES[kind])}, not {role!s:.40}")
    return role


def checked_subjects(kind: ActorKind, subjects: object) -> frozenset[str] | None:
    """Return the subjects that an agent may also act for. Users and operators have none."""
    if subjects is None:
        return None
    names = checked_names(subjects, "subjects")
    if names and kind is not ActorKind.AGENT:
        raise InvalidInput("subjects", f"can be mounted on agents only; leave them out for {kind}s")
    if len(names) > MAX_SUBJECTS:
        raise InvalidInput("subjects", f"has {len(names)} names; at most {MAX_SUBJECTS} can be mounted on one agent")
    return names


def require_manager(actor: Actor, kind: ActorKind, user_id: str, *, new: bool) -> None:
    """Raise `AccessDenied` if `actor` may not manage this user.

    Only an operator without a space makes operators. An operator of a space may change or revoke its own key only.
    """
    if kind is not ActorKind.OPERATOR or actor.space is None:
        return
    itself = actor.kind is ActorKind.OPERATOR and actor.id == user_id and not new
    if not itself:
        raise AccessDenied(
            f"{actor.kind} {actor.id!r} belongs to one space and may not create or change its operators;"
            " use the operator's token, or the command line beside the store"
        )
