"""`user`: users of a server and their keys. A key is printed once, alone on stdout; messages go to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

import holdfast
from holdfast.cli.exits import ExitCode, UsageError
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, Most, Space, StoreOptions, Yes, command, group
from holdfast.cli.paging import iterate_pages, print_each
from holdfast.cli.store_access import open_memory
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.users import Issued, User
from holdfast.errors import OutcomeUnknown, UserExists

app = group("Create users, rotate their keys, and revoke them.")
log = logging.getLogger("holdfast.cli")

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


@command(app)
def create(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Create a user and print its key: once, and alone on stdout, as in KEY=$(holdfast user create ana).

    NAME is the user's subject. Only a digest of the key is stored.
    """
    again = _rotate_command(chosen, name, space)
    with open_memory(chosen, create=True) as memory:
        _print_key(_issue_key(memory, name, space, again, rotate=False), again, as_json)


@command(app)
def rotate(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Replace a user's key, and print the new one as `create` does. The old key is invalid from then on.

    It also reactivates a revoked user.
    """
    again = _rotate_command(chosen, name, space)
    with open_memory(chosen) as memory:
        _print_key(_issue_key(memory, name, space, again, rotate=True), again, as_json)


@command(app)
def revoke(name: Name, chosen: StoreOptions, space: Space = None, yes: Yes = False, as_json: Json = False) -> None:
    """Revoke a user's key. It asks first; without a terminal to ask on, it needs --yes.

    The user's data stays: `holdfast forget --subject NAME` deletes it.
    """
    if not (yes or sys.stdin.isatty()):
        raise UsageError("there is no terminal to ask on; add --yes")
    with open_memory(chosen) as memory:
        question = f"Revoke the key of {on_one_line(name)}?"
        revoked = memory.revoke_user(name, space=space) if yes or typer.confirm(question, err=True) else None
    if as_json:
        print_json({"user": revoked})
    elif revoked is None:
        print("Nothing was changed.")
    else:
        print(f"Revoked {on_one_line(name)}. `{_rotate_command(chosen, name, space)}` makes a new key.")
    if revoked is None:
        raise typer.Exit(ExitCode.PROBLEM)


@command(app, "list")
def list_(chosen: StoreOptions, space: Space = None, limit: Most = None, as_json: Json = False) -> None:
    """List users by name, with the dates of creation, of the current key and of revocation."""
    with open_memory(chosen) as memory:
        found = iterate_pages(lambda limit, cursor: memory.users(limit=limit, cursor=cursor, space=space), limit)
        if as_json:
            print_json({"users": list(found)})
        else:
            create = suggest_command(chosen, "user create NAME", space=space)
            print_each(map(_line, found), f"There are no users; `{create}` creates one.")


def _rotate_command(chosen: StoreOptions, name: str, space: str | None) -> str:
    return suggest_command(chosen, "user rotate", name, space=space)


def _issue_key(memory: holdfast.Memory, name: str, space: str | None, again: str, *, rotate: bool) -> Issued:
    try:
        return memory.rotate_user(name, space=space) if rotate else memory.create_user(name, space=space)
    except UserExists:
        problem = f"there is a user {name!r:.80} already, or one who was revoked; `{again}` gives it a new key"
    except OutcomeUnknown:
        log.warning("if it was done, the key is lost; `%s` makes another", again)
        raise
    raise UserExists(problem)


def _print_key(issued: Issued, again: str, as_json: bool) -> None:
    """Print the key. It is stored nowhere else, so a failure to print it is logged."""
    name = issued.user.id
    try:
        if as_json:
            print_json(issued)
        else:
            done = "Created" if issued.created else "There is a new key for"
            print(f"{done} {on_one_line(name)}. The key is shown only once; keep it:", file=sys.stderr, flush=True)
            print(issued.key)
        sys.stdout.flush()
    except OSError:
        log.warning("the key could not be printed and is lost; `%s` makes another", again)
        raise


def _line(one: User) -> str:
    parts = [f"{format_time(one.created_at)}  {on_one_line(one.id)}"]
    if one.rotated_at is not None:
        parts.append(f"new key {format_time(one.rotated_at)}")
    if one.revoked_at is not None:
        parts.append(f"revoked {format_time(one.revoked_at)}")
    return "  ".join(parts)
