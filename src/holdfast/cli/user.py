"""`user`: users of a server and their keys. A key is printed once, alone on stdout; messages go to stderr."""

from __future__ import annotations

from holdfast.cli.exits import require_terminal
from holdfast.cli.formatting import format_time
from holdfast.cli.json_output import print_json
from holdfast.cli.keys import KeyHolder, Name
from holdfast.cli.options import Json, Most, Space, StoreOptions, Yes, command, group
from holdfast.cli.paging import iterate_pages
from holdfast.cli.store_access import open_memory
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.users import User

app = group("Create users, rotate their keys, and revoke them.")


@command(app)
def create(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Create a user and print its key: once, and alone on stdout, as in KEY=$(holdfast user create ana).

    NAME is the user's subject. Only a digest of the key is stored.
    """
    with open_memory(chosen, create=True) as memory:
        _holder(name, chosen, space).issue(memory.create_user, as_json, space=space)


@command(app)
def rotate(name: Name, chosen: StoreOptions, space: Space = None, as_json: Json = False) -> None:
    """Replace a user's key, and print the new one as `create` does. The old key is invalid from then on.

    It also reactivates a revoked user.
    """
    with open_memory(chosen) as memory:
        _holder(name, chosen, space).issue(memory.rotate_user, as_json, space=space)


@command(app)
def revoke(name: Name, chosen: StoreOptions, space: Space = None, yes: Yes = False, as_json: Json = False) -> None:
    """Revoke a user's key. It asks first; without a terminal to ask on, it needs --yes.

    The user's data stays: `holdfast forget --subject NAME` deletes it.
    """
    require_terminal(yes)
    with open_memory(chosen) as memory:
        _holder(name, chosen, space).revoke(memory.revoke_user, yes, as_json, space=space)


@command(app, "list")
def list_(chosen: StoreOptions, space: Space = None, limit: Most = None, as_json: Json = False) -> None:
    """List users by name, with the dates of creation, of the current key and of revocation."""
    with open_memory(chosen) as memory:
        found = iterate_pages(lambda limit, cursor: memory.users(limit=limit, cursor=cursor, space=space), limit)
        if as_json:
            print_json({"users": list(found)})
        else:
            create = suggest_command(chosen, "user create NAME", space=space)
            from holdfast.cli import render

            render.show_lines(map(_line, found), f"There are no users; `{create}` creates one.")


def _holder(name: str, chosen: StoreOptions, space: str | None) -> KeyHolder:
    return KeyHolder(name, "user", on_one_line(name), suggest_command(chosen, "user rotate", name, space=space))


def _line(one: User) -> str:
    parts = [f"{format_time(one.created_at)}  {on_one_line(one.id)}"]
    if one.rotated_at is not None:
        parts.append(f"new key {format_time(one.rotated_at)}")
    if one.revoked_at is not None:
        parts.append(f"revoked {format_time(one.revoked_at)}")
    return "  ".join(parts)
