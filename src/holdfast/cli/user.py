"""`user`: users of a server and their keys. A key is printed once, alone on stdout; messages go to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

import holdfast
from holdfast.cli.advice import advised
from holdfast.cli.exits import ExitCode, Usage
from holdfast.cli.machine import print_json
from holdfast.cli.opening import opened
from holdfast.cli.options import Json, Most, Space, StoreOptions, Yes, unfolded
from holdfast.cli.paging import every, print_each
from holdfast.cli.safety import on_one_line
from holdfast.cli.words import moment
from holdfast.domain.users import Issued, User
from holdfast.errors import OutcomeUnknown, UserExists
from holdfast.inputs import ScopeKwargs

app = typer.Typer(help="Create users, rotate their keys, and revoke them.", rich_markup_mode=None)
log = logging.getLogger("holdfast.cli")

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


@app.callback(invoke_without_command=True)
def user(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
@unfolded
def create(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Create a user and print its key: once, and alone on stdout, as in KEY=$(holdfast user create ana).

    NAME is the user's subject. Only a digest of the key is stored.
    """
    again = _again(chosen, name, space)
    with opened(chosen, create=True) as memory:
        _show(_asked(memory, name, _where(space), again, rotate=False), again, as_json)


@app.command()
@unfolded
def rotate(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Replace a user's key, and print the new one as `create` does. The old key is invalid from then on.

    It also reactivates a revoked user.
    """
    again = _again(chosen, name, space)
    with opened(chosen) as memory:
        _show(_asked(memory, name, _where(space), again, rotate=True), again, as_json)


@app.command()
@unfolded
def revoke(name: Name, chosen: StoreOptions, space: Space = None, yes: Yes = False, as_json: Json = False) -> None:
    """Revoke a user's key. It asks first; without a terminal to ask on, it needs --yes.

    The user's data stays: `holdfast forget --subject NAME` deletes it.
    """
    if not (yes or sys.stdin.isatty()):
        raise Usage("there is no terminal to ask on; add --yes")
    with opened(chosen) as memory:
        question = f"Revoke the key of {on_one_line(name)}?"
        revoked = memory.revoke_user(name, **_where(space)) if yes or typer.confirm(question, err=True) else None
    if as_json:
        print_json({"user": revoked})
    elif revoked is None:
        print("Nothing was changed.")
    else:
        print(f"Revoked {on_one_line(name)}. `{_again(chosen, name, space)}` makes a new key.")
    if revoked is None:
        raise typer.Exit(ExitCode.PROBLEM)


@app.command(name="list")
@unfolded
def list_(chosen: StoreOptions, space: Space = None, limit: Most = None, as_json: Json = False) -> None:
    """List users by name, with the dates of creation, of the current key and of revocation."""
    where = _where(space)
    with opened(chosen) as memory:
        found = every(lambda limit, cursor: memory.users(limit=limit, cursor=cursor, **where), limit)
        if as_json:
            print_json({"users": list(found)})
        else:
            create = advised(chosen, "user create NAME", space=space)
            print_each(map(_line, found), f"There are no users; `{create}` creates one.")


def _where(space: str | None) -> ScopeKwargs:
    return {} if space is None else {"space": space}


def _again(chosen: StoreOptions, name: str, space: str | None) -> str:
    return advised(chosen, "user rotate", name, space=space)


def _asked(memory: holdfast.Memory, name: str, where: ScopeKwargs, again: str, *, rotate: bool) -> Issued:
    try:
        return memory.rotate_user(name, **where) if rotate else memory.create_user(name, **where)
    except UserExists:
        problem = f"there is a user {name!r:.80} already, or one who was revoked; `{again}` gives it a new key"
    except OutcomeUnknown:
        log.warning("if it was done, the key is lost; `%s` makes another", again)
        raise
    raise UserExists(problem)


def _show(issued: Issued, again: str, as_json: bool) -> None:
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
    parts = [f"{moment(one.created_at)}  {on_one_line(one.id)}"]
    if one.rotated_at is not None:
        parts.append(f"new key {moment(one.rotated_at)}")
    if one.revoked_at is not None:
        parts.append(f"revoked {moment(one.revoked_at)}")
    return "  ".join(parts)
