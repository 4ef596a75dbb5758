"""Groups of commands, and groups of shared options, which a command takes as one typed parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from holdfast.domain.arguments import alternate_names

if TYPE_CHECKING:
    from holdfast.inputs import ScopeKwargs


def option(name: str, metavar: str, explained: str, **limits: Any) -> Any:
    return typer.Option(*option_names(name), metavar=metavar, help=explained, **limits)


def option_names(name: str) -> tuple[str, ...]:
    """Return an option's name and its other names. Only the number of results has any: `--limit`, `--top-k`."""
    own = name.removeprefix("--").replace("-", "_")
    others = sorted(alternate_names(own))
    short = ("-k", "-n") if others else ()
    return (name, *(f"--{each.replace('_', '-')}" for each in others), *short)


# The running command's parameters as typed: an option's name, or an argument's metavar.
typed_names: ContextVar[Mapping[str, str]] = ContextVar("typed_names", default={})  # noqa: B039 (never changed)

# The parts of a scope that the shell added to the running command: its user did not type them.
parts_of_shell: ContextVar[frozenset[str]] = ContextVar("parts_of_shell", default=frozenset())

# The words of the shell's line that were typed with quotes; None outside the shell.
quoted_in_shell: ContextVar[frozenset[str] | None] = ContextVar("quoted_in_shell", default=None)

OnlyText = str | None
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")]
Space = Annotated[OnlyText, option("--space", "NAME", "The space.  [env: HOLDFAST_SPACE; default: default]")]
Most = Annotated[int | None, option("--limit", "N", "At most N.  [default: all]")]


@dataclass(frozen=True, slots=True)
class VerbArgument:
    """An argument of a verb, as far as a command needs it. `make generate` writes them into `verb_arguments.py`.

    `keyword` is its name in the method and `typed` its name as an option, if not its own name. `kind` is text, int,
    float or flag. `choices` are the values of an enumeration.
    """

    name: str
    help: str = ""
    noun: str = ""
    kind: str = "text"
    keyword: str | None = None
    typed: str | None = None
    default: Any = None
    required: bool = False
    positional: bool = False
    many: bool = False
    most: int | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The memory, and its embedder."""

    store: Annotated[
        OnlyText,
        option(
            "--store",
            "PLACE",
            "A path, or a postgresql:// or http:// URL.  [env: HOLDFAST_STORE, HOLDFAST_KEY; default: memory.db]",
        ),
    ] = None
    embedder: Annotated[
        OnlyText,
        option(
            "--embedder",
            "NAME",
            "static, onnx:DIRECTORY or openai:MODEL.  [env: HOLDFAST_EMBEDDER; default: static]",
        ),
    ] = None


LocalStore = Annotated[
    OnlyText,
    option("--store", "PLACE", "A path, or a postgresql:// URL.  [env: HOLDFAST_STORE; default: memory.db]"),
]


@dataclass(frozen=True, slots=True)
class LocalStoreOptions(StoreOptions):
    """The memory, for commands that open the store directly and never through a server."""

    store: LocalStore = None


@dataclass(frozen=True, slots=True)
class ScopeOptions:
    """The parts of a scope."""

    subject: Annotated[OnlyText, option("--subject", "NAME", "The subject it is about.")] = None
    conversation: Annotated[OnlyText, option("--conversation", "NAME", "The thread it belongs to.")] = None
    agent: Annotated[OnlyText, option("--agent", "NAME", "The agent it belongs to.")] = None
    app: Annotated[OnlyText, option("--app", "NAME", "The app it belongs to.")] = None
    project: Annotated[OnlyText, option("--project", "NAME", "The project it belongs to.")] = None
    channel: Annotated[OnlyText, option("--channel", "NAME", "The channel it came through.")] = None
    space: Space = None

    def scope_kwargs(self) -> ScopeKwargs:
        """The given parts, as keyword arguments of the library."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return cast("ScopeKwargs", {name: value for name, value in parts.items() if value is not None})


def group(explained: str) -> typer.Typer:
    """Return a group of commands. Without a command it prints its help."""
    app = typer.Typer(help=explained, rich_markup_mode=None)

    @app.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return app


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to a group of commands. Its parameters may be groups of options."""
    return lambda function: app.command(name=name)(expand_options(function))


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adapt a command to typer: expand each group of options into one keyword per option."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @functools.wraps(command)
    def call(**values: Any) -> None:
        from holdfast.cli.error_names import errors_as_typed

        typed_names.set(names)
        folded = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        with errors_as_typed():
            command(**values, **folded)

    parameters = [
        parameter
        for own in inspect.signature(command).parameters.values()
        for parameter in (
            _parameters(groups[own.name]) if own.name in groups else [own.replace(annotation=hints[own.name])]
        )
    ]
    names = {parameter.name: _typed_name(parameter) for parameter in parameters}
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    del call.__wrapped__
    return call


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(group)
    ]


def _typed_name(parameter: inspect.Parameter) -> str:
    """The parameter as typed: `--at`, or `KEY`."""
    about = next((each for each in getattr(parameter.annotation, "__metadata__", ()) if hasattr(each, "metavar")), None)
    if isinstance(about, typer.models.OptionInfo):
        # In `Annotated`, typer reads the option's name from the first argument, the place of a default.
        return next(str(name) for name in (about.default, *(about.param_decls or ())) if str(name).startswith("--"))
    return getattr(about, "metavar", None) or parameter.name
