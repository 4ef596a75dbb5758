"""`credential`: keys for the agents, users and operators of a company. A key is printed once, alone on stdout."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, NamedTuple

import typer

import holdfast
from holdfast.cli.control_plane import Company, show_table
from holdfast.cli.error_names import errors_as_typed
from holdfast.cli.exits import ExitCode, UsageError
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, Most, OnlyText, StoreOptions, Yes, command, group, option
from holdfast.cli.paging import iterate_pages, take_first
from holdfast.cli.store_access import open_memory
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.access import ActorKind
from holdfast.domain.users import ROLES, Issued, User
from holdfast.errors import OutcomeUnknown, UserExists

app = group("Manage keys with roles for a company's agents, users and operators.")
log = logging.getLogger("holdfast.cli")

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]
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


class CredentialOptions(NamedTuple):
    """The options of a new key."""

    kind: str
    role: str | None
    subjects: list[str] | None
    space: str | None


@command(app)
def create(
    name: Name,
    chosen: StoreOptions,
    kind: Kind = ActorKind.AGENT.value,
    role: Role = None,
    subject: Subjects = None,
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Create a key for an agent, a user or an operator, and print it: once, and alone on stdout.

    NAME is the agent's id, the user's subject, or the operator's name. Without --role, agents and users are members,
    and operators are admins.
    """
    options = CredentialOptions(kind, role, subject or None, company)
    again = _rotate_command(chosen, name, kind, company)
    with errors_as_typed(), open_memory(chosen, create=True) as memory:
        _print_key(_issue_key(memory, name, options, again, rotate=False), again, as_json)


@command(app)
def rotate(
    name: Name,
    chosen: StoreOptions,
    kind: Kind = ActorKind.AGENT.value,
    role: Role = None,
    subject: Subjects = None,
    company: Company = None,
    as_json: Json = False,
) -> None:
    """Replace a key, and print the new one as `create` does. The old key is invalid from then on.

    With --role or --subject, the new key has those. A revoked credential becomes valid again.
    """
    options = CredentialOptions(kind, role, subject or None, company)
    again = _rotate_command(chosen, name, kind, company)
    with errors_as_typed(), open_memory(chosen) as memory:
        _print_key(_issue_key(memory, name, options, again, rotate=True), again, as_json)


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
    if not (yes or sys.stdin.isatty()):
        raise UsageError("there is no terminal to ask on; add --yes")
    with errors_as_typed(), open_memory(chosen) as memory:
        question = f"Revoke the key of the {on_one_line(kind)} {on_one_line(name)}?"
        sure = yes or typer.confirm(question, err=True)
        revoked = memory.revoke_user(name, kind=kind, space=company) if sure else None
    if as_json:
        print_json({"credential": revoked})
    elif revoked is None:
        print("Nothing was changed.")
    else:
        print(
            f"Revoked the {kind} {on_one_line(name)}. `{_rotate_command(chosen, name, kind, company)}` makes a new key."
        )
    if revoked is None:
        raise typer.Exit(ExitCode.PROBLEM)


@command(app, "list")
def list_(
    chosen: StoreOptions, kind: AnyKind = None, company: Company = None, limit: Most = None, as_json: Json = False
) -> None:
    """List credentials: kind, name, role, the subjects an agent acts for, and dates. Keys are never shown."""
    kinds = [kind] if kind is not None else sorted(ROLES)
    with errors_as_typed(), open_memory(chosen) as memory:
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


def _rotate_command(chosen: StoreOptions, name: str, kind: str, company: str | None) -> str:
    return suggest_command(chosen, "credential rotate", name, kind=kind, company=company)


def _issue_key(memory: holdfast.Memory, name: str, options: CredentialOptions, again: str, *, rotate: bool) -> Issued:
    kind, role, subjects, space = options
    issue = memory.rotate_user if rotate else memory.create_user
    try:
        return issue(name, kind=kind, role=role, subjects=subjects, space=space)
    except UserExists:
        problem = f"this {kind} has a credential already, perhaps a revoked one; `{again}` gives it a new key"
    except OutcomeUnknown:
        log.warning("if it was done, the key is lost; `%s` makes another", again)
        raise
    raise UserExists(problem)


def _print_key(issued: Issued, again: str, as_json: bool) -> None:
    """Print the key. It is stored nowhere else, so a failure to print it is logged."""
    one = issued.user
    try:
        if as_json:
            print_json({"credential": one, "key": issued.key, "created": issued.created, "rotated": issued.rotated})
        else:
            done = "Created" if issued.created else "There is a new key for"
            what = f"the {one.kind} {on_one_line(one.id)} ({one.role or 'no role'}) of {on_one_line(one.space)}"
            print(f"{done} {what}. The key is shown only once; keep it:", file=sys.stderr, flush=True)
            print(issued.key)
        sys.stdout.flush()
    except OSError:
        log.warning("the key could not be printed and is lost; `%s` makes another", again)
        raise


def _row(one: User) -> tuple[object, ...]:
    rotated, revoked = (None if at is None else format_time(at) for at in (one.rotated_at, one.revoked_at))
    return (
        format_time(one.created_at),
        one.kind,
        one.id,
        one.role,
        ", ".join(sorted(one.subjects)) or None,
        rotated,
        revoked,
    )
