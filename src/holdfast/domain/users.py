"""Who may come in from outside: users, agents and operators of a space, each with one key.

Only the key's digest is ever kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.domain.access import Actor, ActorKind, Role
from holdfast.domain.scope import check_part
from holdfast.errors import AccessDenied, InvalidInput

KEY_PREFIX = "uk_"
# By its key's first letters one sees what kind of credential it is.
KEY_PREFIXES = {ActorKind.USER: KEY_PREFIX, ActorKind.AGENT: "ak_", ActorKind.OPERATOR: "ok_"}
# What each kind can be made for; the first is what an agent or operator gets that asks for none. A user who asks for
# none may do all that users may.
ROLES: Mapping[ActorKind, tuple[Role, ...]] = {
    ActorKind.USER: (Role.MEMBER, Role.READER),
    ActorKind.AGENT: (Role.MEMBER, Role.CURATOR, Role.READER),
    ActorKind.OPERATOR: (Role.ADMIN, Role.AUDITOR),
}
MAX_SUBJECTS = 100


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


def checked_kind(kind: object) -> ActorKind:
    if not isinstance(kind, ActorKind) or kind not in ROLES:
        raise InvalidInput("kind", f"must be one of {', '.join(ROLES)}: {str(kind)!r:.40} gets no key")
    return kind


def checked_role(kind: ActorKind, role: object) -> Role | None:
    """A role that this kind can have; None leaves it as it is, or as it is at first."""
    if role is not None and (not isinstance(role, Role) or role not in ROLES[kind]):
        raise InvalidInput("role", f"{kind}s are one of {', '.join(ROLES[kind])}, not {role!s:.40}")
    return role


def checked_subjects(kind: ActorKind, subjects: object) -> frozenset[str] | None:
    """Whom an agent may also speak for. A user speaks for itself, an operator for the space."""
    if subjects is None:
        return None
    # In a text, every part of a name would be found.
    if not isinstance(subjects, frozenset):
        raise InvalidInput("subjects", f"expected a set of names, got {type(subjects).__name__}")
    if subjects and kind is not ActorKind.AGENT:
        raise InvalidInput("subjects", f"are mounted on agents; {kind}s have none: leave them out")
    if len(subjects) > MAX_SUBJECTS:
        raise InvalidInput("subjects", f"are {len(subjects)}; at most {MAX_SUBJECTS} can be mounted on one agent")
    for subject in subjects:
        check_part("subjects", subject)
    return subjects


def require_manager(actor: Actor, kind: ActorKind, user_id: str, *, new: bool) -> None:
    """Only an operator without walls makes operators. One of a company may change or revoke its own key alone."""
    if kind is not ActorKind.OPERATOR or actor.space is None:
        return
    itself = actor.kind is ActorKind.OPERATOR and actor.id == user_id and not new
    if not itself:
        raise AccessDenied(
            f"{actor.kind} {actor.id!r} is of one company, and may not make or change its operators;"
            " use the operator's token, or the command line beside the store"
        )
