"""`credential`: keys for the agents, users and operators of a space. A key is printed once, alone on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import holdfast
from holdfast.cli.control_plane import Company
from holdfast.cli.exits import require_terminal
from holdfast.cli.json_output import print_json
from holdfast.cli.keys import KeyHolder, Name
from holdfast.cli.options import Json, Most, OnlyText, StoreOptions, Yes, command, group, option
from holdfast.cli.paging import iterate_pages, take_first
from holdfast.cli.render import show_table
from holdfast.cli.store_access import open_memory
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.access import ActorKind
from holdfast.domain.users import ROLES, Issued, User

app = group("Manage keys with roles for a space's agents, users and operators.")

Kind = Annotated[str, option("--kind", "KIND", "agent, user or operator.")]
AnyKind = Annotated[OnlyText, option("--kind", "KIND", "agent, user or operator.  [default: all of them]")]
Role = Annotated[
    OnlyText,
    option(
        "--role", "ROLE", "member, curator or reader (agents); member or reader (users); admin or auditor (operators)."
    ),
]
Subjects = Annotated[
    list[str] | None, option("--subject", "NAME", "A subject that an agent may act for besides itself; repeatable.")
]


@dataclass(frozen=True, slots=True)
class CredentialOptions:
    """The options of a new key."""

    kind: Kind = ActorKind.AGENT.value
    role: Role = None
    subject: Subjects = None
    company: Company = None


@command(app)
def create(name: Name, chosen: StoreOptions, key: CredentialOptions, as_json: Json = False) -> None:
    """Create a key for an agent, a user or an operator, and print it: once, and alone on stdout.

    NAME is the agent's id, the user's subject, or the operator's name. Without --role, agents and users are members,
    and operators are admins.
    """
    with open_memory(chosen, create=True) as memory:
        _issue(memory.create_user, name, chosen, key, as_json)


@command(app)
def rotate(name: Name, chosen: StoreOptions, key: CredentialOptions, as_json: Json = False) -> None:
    """Replace a key, and print the new one as `create` does. The old key is invalid from then on.

    With --role or --subject, the new key has those. A revoked credential becomes valid again.
    """
    with open_memory(chosen) as memory:
        _issue(memory.rotate_user, name, chosen, key, as_json)


@command(app)
def revoke(
    name: Name,
    chosen: StoreOptions,
    kind: Kind = ActorKind.AGENT.value,
    company: Company = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Revoke a key. It asks first; without a terminal to ask on, it needs --yes."""
    require_terminal(yes)
    with open_memory(chosen) as memory:
        _holder(name, chosen, kind, company).revoke(memory.revoke_user, yes, as_json, kind=kind, space=company)


@command(app, "list")
def list_(
    chosen: StoreOptions, kind: AnyKind = None, company: Company = None, limit: Most = None, as_json: Json = False
) -> None:
    """List credentials: kind, name, role, the subjects an agent acts for, and dates. Keys are never shown."""
    kinds = [kind] if kind is not None else sorted(ROLES)
    with open_memory(chosen) as memory:
        found = take_first(chain.from_iterable(_iter_credentials(memory, each, company) for each in kinds), limit)
    if as_json:
        print_json({"credentials": found})
        return
    create = suggest_command(chosen, "credential create NAME", company=company)
    show_table(
        ("created", "kind", "name", "role", "acts for", "new key", "revoked"),
        map(_row, found),
        f"There are no keys; `{create}` creates one.",
    )


def _iter_credentials(memory: holdfast.Memory, kind: str, space: str | None) -> Iterator[User]:
    return iterate_pages(lambda limit, cursor: memory.users(limit=limit, cursor=cursor, kind=kind, space=space), None)


def _holder(name: str, chosen: StoreOptions, kind: str, company: str | None) -> KeyHolder:
    again = suggest_command(chosen, "credential rotate", name, kind=kind, company=company)
    return KeyHolder(name, "credential", f"the {on_one_line(kind)} {on_one_line(name)}", again, shows_role=True)


def _issue(
    issue: Callable[..., Issued], name: str, chosen: StoreOptions, key: CredentialOptions, as_json: bool
) -> None:
    holder = _holder(name, chosen, key.kind, key.company)
    holder.issue(issue, as_json, kind=key.kind, role=key.role, subjects=key.subject or None, space=key.company)


def _row(one: User) -> tuple[object, ...]:
    subjects = ", ".join(sorted(one.subjects)) or None
    return (one.created_at, one.kind, one.id, one.role, subjects, one.rotated_at, one.revoked_at)
