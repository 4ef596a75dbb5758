"""Finds the user of a read in its filters, where clients of EverOS's cloud name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.domain.conditions import MAX_DEPTH, MAX_VALUES
from holdfast.errors import InvalidInput
from holdfast.gateway.everos.unsupported import NO_GROUPS, NotSupported

_ROOT = "filters"
_NO_USER = "name no user; send user_id, which must hold for all that is found: not within an OR"


class OwnedFilters(NamedTuple):
    """The user that filters name, and the filters without it."""

    user_id: str
    others: dict[str, Any]


def split_user(filters: Mapping[str, Any]) -> OwnedFilters:
    """Split filters that hold for exactly one user: `user_id` must stand outside of any `OR`."""
    users: list[str] = []
    others = _take_users(filters, _ROOT, 1, users)
    if not users:
        raise InvalidInput(_ROOT, _NO_USER)
    if len(set(users)) > 1:
        raise InvalidInput(f"{_ROOT}.user_id", "names several users; send one request for each")
    return OwnedFilters(users[0], others)


def _take_users(node: Mapping[str, Any], path: str, depth: int, users: list[str]) -> dict[str, Any]:
    """Append the users that a node names to `users`; return the rest of the node."""
    others: dict[str, Any] = {}
    for name, value in node.items():
        if name == "user_id":
            users += _read_users(value, f"{path}.user_id")
        elif name == "group_id":
            raise NotSupported(f"{path}.group_id: {NO_GROUPS}")
        elif name == "AND" and isinstance(value, list) and depth < MAX_DEPTH:
            parts = []
            for number, part in enumerate(value):
                # What is no object, or empty, is refused by the parser of the filters.
                if not isinstance(part, Mapping) or not part:
                    parts.append(part)
                elif left := _take_users(part, f"{path}.AND[{number}]", depth + 1, users):
                    parts.append(left)
            if parts or not value:
                others[name] = parts
        else:
            others[name] = value
    return others


def _read_users(value: Any, path: str) -> list[str]:
    if isinstance(value, Mapping) and len(value) == 1 and value.keys() <= {"eq", "in"}:
        op, value = next(iter(value.items()))
        if op == "in" and not (isinstance(value, list) and 1 <= len(value) <= MAX_VALUES):
            raise InvalidInput(path, f"takes a list of 1 to {MAX_VALUES:,} users under `in`")
    else:
        op = "eq"
    users: list[Any] = value if op == "in" else [value]
    if not all(isinstance(user, str) and user for user in users):
        raise InvalidInput(path, "expected the id of a user, or `eq` or `in` with it")
    return users
