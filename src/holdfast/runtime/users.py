"""`create_user`, `revoke_user`, `list_users`: manage the users, agents and operators of a space and their keys.

A key is returned once; only its digest is stored.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from holdfast.domain.access import Action, ActorKind, ActorRole, Grant
from holdfast.domain.arguments import IdempotencyKey, Rule, check_arguments, many, text_rule
from holdfast.domain.contract import Cursor
from holdfast.domain.lookalikes import find_lookalike
from holdfast.domain.scope import EVERYWHERE, Part, Scope
from holdfast.domain.users import (
    KEY_PREFIXES,
    MAX_SUBJECTS,
    ROLES,
    Issued,
    User,
    UserPage,
    checked_kind,
    checked_role,
    checked_subjects,
    key_digest,
    require_manager,
)
from holdfast.domain.visible_text import has_hidden, is_plain_line
from holdfast.errors import InvalidInput, NotFound, UserExists
from holdfast.ports import Reader, Transaction
from holdfast.runtime.cursors import PageLimit, PageRead
from holdfast.runtime.gate import Core, Write
from holdfast.runtime.idempotency import digest_of

_KEY_BYTES = 32
# Ids made by other processes since `prepare` are compared again; this allows for clocks that differ.
_LONGEST_SIGN_UP = timedelta(hours=1)
_MAX_KEY_CHARS = 256
HolderKind = Annotated[
    ActorKind,
    Rule(lambda value, _: checked_kind(value), "KIND"),
    "The kind of credential: user, agent or operator.",
]


def _check_space(scope: Scope) -> None:
    """Require a scope that is a whole space: users belong to no part of it."""
    if scope.space == EVERYWHERE:
        raise InvalidInput("space", "a user belongs to one space; name it")
    if narrower := [name for name in scope.given() if name != "space"]:
        raise InvalidInput(narrower[0], "users belong to a whole space; leave it out")


@dataclass(frozen=True, slots=True)
class _NewKey:
    now: datetime
    key: str = field(repr=False)
    any_id: bool = False


@dataclass(frozen=True, slots=True)
class CreateUser(Write[_NewKey, Issued]):
    """Create a credential for a user, an agent or an operator of one space. The key is returned only this once.

    If it exists already and the caller presents its key, nothing changes.
    """

    action: ClassVar[Action] = Action.CREATE_USER
    scope: Scope
    user_id: Part
    presented_key: Annotated[
        str | None, text_rule(_MAX_KEY_CHARS, "KEY"), "The current key, which proves that the caller holds it."
    ] = field(default=None, repr=False)
    rotate: Annotated[bool, "Issue a new key, also to a revoked user, and set its role and subjects."] = False
    idempotency_key: IdempotencyKey | None = None
    must_exist: Annotated[bool, "Create no user."] = False
    kind: HolderKind = ActorKind.USER
    role: Annotated[ActorRole | None, "What it may do. The default depends on its kind."] = None
    subjects: Annotated[
        frozenset[Part] | None,
        many(MAX_SUBJECTS, noun="NAME"),
        "The subjects that an agent may act for besides itself.",
    ] = None

    def __post_init__(self) -> None:
        _check_space(self.scope)
        check_arguments(self)
        checked_role(self.kind, self.role)
        checked_subjects(self.kind, self.subjects)

    async def prepare(self, core: Core, grant: Grant) -> _NewKey:
        require_manager(grant.actor, self.kind, self.user_id, new=not self.must_exist or self.role is not None)
        any_id = self.must_exist or core.allow_confusable_ids
        made = _NewKey(core.clock.now(), KEY_PREFIXES[self.kind] + secrets.token_urlsafe(_KEY_BYTES), any_id)
        if not any_id:
            # All ids are compared here, where no transaction waits for it, and the latest ones again in `apply`.
            await core.store.read(grant, self._check_new_id)
        return made

    def _check_new_id(self, reader: Reader, since: datetime | None = None) -> None:
        """Raise `InvalidInput` if the id is new, and could be mistaken for another. Existing ones are left alone."""
        if reader.users.find(self.user_id, self.kind) is not None:
            return
        if not is_plain_line(self.user_id) or has_hidden(self.user_id, anywhere=True):
            problem = "holds an invisible character; write it without"
        elif find_lookalike(self.user_id, reader.users.names(self.kind, since)) is not None:
            problem = f"looks like the id of another {self.kind}; choose one that nobody can mistake for it"
        else:
            return
        raise InvalidInput("user_id", f"{problem}, or set HOLDFAST_ALLOW_CONFUSABLE_IDS=1 where the store is opened")

    def apply(self, transaction: Transaction, prepared: _NewKey) -> Issued:
        found = transaction.users.find(self.user_id, self.kind)
        if found is None:
            if self.must_exist:
                raise _no_such_user(self.kind)
            if not prepared.any_id:
                self._check_new_id(transaction, prepared.now - _LONGEST_SIGN_UP)
            user = User(self.user_id, self.scope.space, prepared.now, kind=self.kind, role=self._first_role())
            user = replace(user, subjects=self.subjects or frozenset())
            transaction.users.put(user, key_digest(prepared.key))
            return Issued(user, prepared.key, created=True)
        user, digest = found
        if self._holds_key(digest) and user.revoked_at is None:
            return Issued(user)
        if not self.rotate:
            raise UserExists(_user_exists_message(self.kind, self.user_id))
        user = replace(
            user,
            rotated_at=prepared.now,
            revoked_at=None,
            role=user.role if self.role is None else self.role,
            subjects=user.subjects if self.subjects is None else self.subjects,
        )
        transaction.users.put(user, key_digest(prepared.key))
        return Issued(user, prepared.key, rotated=True)

    def _first_role(self) -> ActorRole | None:
        return self.role if self.role is not None or self.kind is ActorKind.USER else ROLES[self.kind][0]

    def _holds_key(self, digest: bytes) -> bool:
        """True if the presented key is the user's. Compares in constant time."""
        return self.presented_key is not None and hmac.compare_digest(key_digest(self.presented_key), digest)

    def replay_state(self, result: Issued) -> dict[str, Any]:
        return {"created": result.created, "rotated": result.rotated}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> Issued:
        """Return the user as it is now, without the key: that is returned only once."""
        user, _ = _find_user(transaction, self.kind, self.user_id)
        return Issued(user, None, kept["created"], kept["rotated"])

    def record_count(self, result: Issued) -> int:
        return int(result.created or result.rotated)


@dataclass(frozen=True, slots=True)
class RevokeUser(Write[datetime, User]):
    """Revoke a credential. The user's records stay; `forget` deletes them."""

    action: ClassVar[Action] = Action.REVOKE_USER
    scope: Scope
    user_id: Part
    idempotency_key: IdempotencyKey | None = None
    kind: HolderKind = ActorKind.USER

    def __post_init__(self) -> None:
        _check_space(self.scope)
        check_arguments(self)

    async def prepare(self, core: Core, grant: Grant) -> datetime:
        require_manager(grant.actor, self.kind, self.user_id, new=False)
        return core.clock.now()

    def apply(self, transaction: Transaction, prepared: datetime) -> User:
        user, digest = _find_user(transaction, self.kind, self.user_id)
        if user.revoked_at is None:
            user = replace(user, revoked_at=prepared)
            transaction.users.put(user, digest)
        return user

    def replay_state(self, result: User) -> dict[str, Any]:
        return {}

    def from_replay(self, transaction: Transaction, kept: dict[str, Any]) -> User:
        return _find_user(transaction, self.kind, self.user_id)[0]

    def record_count(self, result: User) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ListUsers(PageRead[UserPage]):
    """List a space's users, agents or operators by id, page by page, including revoked ones."""

    action: ClassVar[Action] = Action.LIST_USERS
    scope: Scope
    limit: PageLimit = 50
    cursor: Cursor | None = None
    kind: HolderKind = ActorKind.USER

    def __post_init__(self) -> None:
        _check_space(self.scope)
        PageRead.__post_init__(self)

    def apply(self, reader: Reader, prepared: Core) -> UserPage:
        return UserPage(*self._page(reader.users.page(self._before(), self.limit + 1, self.kind)))

    def _query(self) -> str:
        of_others = () if self.kind is ActorKind.USER else (self.kind,)
        return digest_of("users", self.scope.space, *of_others)[:16]


def _find_user(transaction: Transaction, kind: ActorKind, user_id: str) -> tuple[User, bytes]:
    """Return a user and the digest of its key."""
    found = transaction.users.find(user_id, kind)
    if found is None:
        raise _no_such_user(kind)
    return found


def _no_such_user(kind: ActorKind) -> NotFound:
    return NotFound(f"there is no {kind} of this id in this space; see `holdfast {_cli_group(kind)} list`")


def _user_exists_message(kind: ActorKind, user_id: str) -> str:
    article = "a" if kind is ActorKind.USER else "an"
    message = (
        f"there is {article} {kind} {user_id!r:.80} already; give its current key, or have an operator make a new one:"
    )
    if kind is ActorKind.USER:
        return f"{message} `holdfast user rotate`, or POST /users with the operator's token"
    return f"{message} `holdfast credential rotate`"


def _cli_group(kind: ActorKind) -> str:
    return "user" if kind is ActorKind.USER else "credential"
