"""Commands that are imported when they are run: whoever asks for the version or the help waits for none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


class Entry(NamedTuple):
    """Where a command is, as `module:name`, and what the list of commands says of it: its help's first sentence."""

    where: str
    explained: str


class Commands(Mapping[str, Any]):
    """Each command by its name, made when it is asked for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, self._entries[name].where)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _made(name: str, where: str) -> Any:
    """A function or a group as typer makes it in a program that has it from the beginning."""
    module, _, attribute = where.partition(":")
    found = getattr(import_module(module), attribute)
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    holder.callback()(lambda: None)  # with it, one command alone makes a group too
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return cast(TyperGroup, get_command(holder)).commands[name]


class LazyGroup(TyperGroup):
    """A group of such commands; a subclass says which."""

    entries: ClassVar[Mapping[str, Entry]]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = cast(Any, Commands(self.entries))

    @contextmanager
    def _listed(self) -> Iterator[None]:
        """Meanwhile each command is a stand-in that knows what is to be said of it."""
        commands = self.commands
        self.commands = {
            name: TyperCommand(name, help=entry.explained, rich_markup_mode=None)
            for name, entry in self.entries.items()
        }
        try:
            yield
        finally:
            self.commands = commands

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with self._listed():
            super().format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        with self._listed():
            return super().shell_complete(ctx, incomplete)
