"""One entry of a table of verbs: the names that surfaces give a verb and its arguments, and where it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from holdfast.domain.arguments import Argument, arguments_of


class Reach(Enum):
    """The place of a verb: the whole space, the scope that the caller names, all that the caller may see, one space,
    or the whole store."""

    COMPANY = "company"
    SCOPE = "scope"
    VISIBLE = "visible"
    SPACE = "space"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class VerbEntry:
    """One verb: the name of its method, and its request.

    Required arguments are positional, except sources, and so are those in `positional`. `names` maps an argument to its
    public name, and `defaults` to its default, where that is another than the request's; `defaults` may also name a
    part of the scope. `hidden` are arguments that no surface has; `constants` are their values, if not the defaults.
    """

    name: str
    request: Any
    reach: Reach = Reach.COMPANY
    positional: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    doc: str | None = None
    result: str | None = None
    """The field of the result that the method returns; None if all of it."""
    short: bool = False
    """Whether the blocking method may run in the calling thread."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return tuple(each for each in arguments_of(self.request) if each.name not in self.hidden)

    def is_positional(self, argument: Argument) -> bool:
        return (argument.required and argument.name != "source") or argument.name in self.positional

    def public_name(self, argument: Argument) -> str:
        return self.names.get(argument.name, NAMES.get(argument.name, argument.name))

    def default_of(self, argument: Argument) -> Any:
        return self.defaults.get(argument.name, argument.default)


# Public names that differ from the fields of requests.
NAMES: Mapping[str, str] = {
    "binding": "binding_key",
    "drafts": "messages",
    "handle": "record_id",
    "handles": "record_ids",
    "ids": "record_id",
}
