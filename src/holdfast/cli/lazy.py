"""Commands imported only when they run, so that `--version` and `--help` are fast."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


class CommandEntry(NamedTuple):
    """A command: its location as `module:name`, and its help's first sentence for the command list."""

    where: str
    explained: str


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each built on first access."""

    def __init__(self, entries: Mapping[str, CommandEntry]) -> None:
        self._entries = entries
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _build_command(name, self._entries[name].where)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _build_command(name: str, where: str) -> Any:
    """Build a command or group exactly as typer does in a program without lazy loading."""
    module, _, attribute = where.partition(":")
    target = getattr(import_module(module), attribute)
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    holder.callback()(lambda: None)  # with a callback, typer makes a group even of one command
    if isinstance(target, typer.Typer):
        holder.add_typer(target, name=name)
    else:
        holder.command(name)(target)
    command = cast(TyperGroup, get_command(holder)).commands[name]
    _complete_help(command)
    return command


def _complete_help(command: Any) -> None:
    """Make lists of commands show whole sentences, and the help of arguments no Python types."""
    command.short_help = _first_sentence(command.help or "")
    for each in command.params:
        if each.param_type_name == "argument" and each.metavar:
            each.display_type_rich = lambda ctx: None
    if not isinstance(command, LazyGroup):  # its commands are made when they are used
        for child in getattr(command, "commands", {}).values():
            _complete_help(child)


def _first_sentence(text: str) -> str:
    return re.split(r"\n\n|(?<=\.)\s", text.strip(), maxsplit=1)[0]


class LazyGroup(TyperGroup):
    """A group of lazy commands; subclasses define `entries`, and may define `sections` of them for the help."""

    entries: ClassVar[Mapping[str, CommandEntry]]
    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast(Any, LazyCommands(self.entries))

    @contextmanager
    def _with_stand_ins(self) -> Iterator[None]:
        """Temporarily replace each command by a stand-in that only has its help text."""
        commands = self.commands
        self.commands = {
            name: TyperCommand(name, help=entry.explained, short_help=entry.explained, rich_markup_mode=None)
            for name, entry in self.entries.items()
        }
        try:
            yield
        finally:
            self.commands = commands

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with self._with_stand_ins():
            if not self.sections:
                super().format_commands(ctx, formatter)
                return
            widest = max(map(len, self.commands))
            for title, names in self.sections.items():
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(widest), self.entries[name].explained) for name in names])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        with self._with_stand_ins():
            return super().shell_complete(ctx, incomplete)
