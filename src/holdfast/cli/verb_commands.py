"""Commands that are plain calls of the control plane: their options are the arguments of a verb.

A command names its verb and presents the result; `control/verbs.py` has the arguments with their help. `--json` prints
the same document as the HTTP route.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from holdfast.cli.control_plane import MAX_PAGE, Company, open_control_plane
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, LocalStoreOptions, OnlyText, StoreOptions, command
from holdfast.cli.paging import iterate_pages
from holdfast.cli.suggestions import suggest_command
from holdfast.control.json_views import to_json
from holdfast.control.verbs import VERBS
from holdfast.domain.arguments import Argument
from holdfast.runtime.verb_entry import VerbEntry

# Arguments that no command has: whoever runs one sees whether it succeeded, and can look before repeating it.
LEFT_OUT = frozenset({"idempotency_key"})
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class CliOption:
    """An option that differs from its argument: by name (without dashes it is positional), help, or how it is read.

    `repeatable` options are read as a list of texts.
    """

    name: str | None = None
    help: str | None = None
    parse: Callable[[Any, str], Any] | None = None
    noun: str = "TEXT"
    hidden: bool = False
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a command was called: the store, the company, and all its values by parameter."""

    chosen: StoreOptions
    company: str | None
    values: Mapping[str, Any]

    def suggest(self, command: str, *ids: str) -> str:
        """Return a command to run next, on the same store and company."""
        return suggest_command(self.chosen, command, *ids, company=self.company)


Present = Callable[[Any, Invocation], None]
_NO_OPTION = CliOption()


def verb_command(
    app: typer.Typer,
    name: str,
    verb: str,
    *,
    options: Mapping[str, CliOption] | None = None,
    extra: Mapping[str, Any] | None = None,
    adjust: Callable[[dict[str, Any], Invocation], None] | None = None,
    many: str | None = None,
    order: Sequence[str] = (),
    create: bool = False,
    explained: str | None = None,
) -> Callable[[Present], Present]:
    """Add a command that calls a verb. The decorated function presents the result, and its docstring is the help,
    unless it is `explained` here.

    `order` is the order of positional arguments, if it is not the request's. `extra` are options that are no
    arguments; `adjust` may change the values before the call. `many` is the name of a result that is a list, in JSON.
    Of a verb with pages, the result is the list of all items up to `--limit`. With `create` it creates the store.
    """
    entry, named = VERBS[verb], options or {}

    def decorate(present: Present) -> Present:
        def call_verb(chosen: LocalStoreOptions, company: str | None, as_json: bool, **values: Any) -> None:
            call = Invocation(chosen, company, dict(values))
            if adjust is not None:
                adjust(values, call)
            arguments = _arguments(entry, named, values)
            with open_control_plane(chosen, company, create=create) as plane:
                result, document = _call(getattr(plane, verb), entry, arguments, many)
            if as_json:
                print_json(document())
            else:
                present(result, call)

        places = list(_parameters(entry, named, positional=True))
        parameters = sorted(places, key=lambda each: order.index(each.name) if order else 0)
        parameters += [_parameter("chosen", LocalStoreOptions), _parameter("company", Company, None)]
        parameters += _parameters(entry, named, positional=False)
        parameters += [_parameter(each, kind, False) for each, kind in (extra or {}).items()]
        parameters += [_parameter("as_json", Json, False)]
        call_verb.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        call_verb.__annotations__ = {each.name: each.annotation for each in parameters}
        call_verb.__doc__ = explained or present.__doc__ or entry.request.__doc__
        command(app, name)(call_verb)
        return present

    return decorate


def _call(
    method: Callable[..., Any], entry: VerbEntry, arguments: dict[str, Any], many: str | None
) -> tuple[Any, Callable[[], Any]]:
    """Call the verb; return its result, and a function that makes its JSON."""
    if not any(each.name == "cursor" for each in entry.arguments):
        result = method(**arguments)
        return result, lambda: to_json(result) if many is None else {many: to_json(result)}
    pages: list[Any] = []

    def page(most: int, cursor: str | None) -> Any:
        pages.append(method(**{**arguments, "limit": most, "cursor": cursor}))
        return pages[-1]

    items = list(iterate_pages(page, arguments.pop("limit"), MAX_PAGE))
    name = next(iter(to_json(pages[0])))
    return items, lambda: {name: to_json(items)}


def _arguments(entry: VerbEntry, options: Mapping[str, CliOption], values: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for argument in entry.arguments:
        if (value := values.get(argument.name)) is None or value == []:
            continue
        option = options.get(argument.name, _NO_OPTION)
        parsed = value if option.parse is None else option.parse(value, _typed_name(argument, option))
        found[entry.public_name(argument)] = parsed
    return found


def _parameters(entry: VerbEntry, options: Mapping[str, CliOption], *, positional: bool) -> Iterator[Parameter]:
    for argument in entry.arguments:
        if argument.name in LEFT_OUT or argument.name == "cursor":
            continue
        option = options.get(argument.name, _NO_OPTION)
        if option.hidden:
            continue
        at_its_place = argument.required or argument.name in entry.positional
        if option.name is not None:
            at_its_place = not option.name.startswith("--")
        if at_its_place == positional:
            yield _argument(argument, option) if positional else _option(argument, option)


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _typed_name(argument: Argument, option: CliOption) -> str:
    return option.name or f"--{argument.name.replace('_', '-')}"


def _argument(argument: Argument, option: CliOption) -> Parameter:
    noun = _noun(argument)
    metavar = option.name or (noun if noun in ("ID", "KEY") else argument.name.upper())
    about = typer.Argument(metavar=metavar, hidden=True)
    return _parameter(argument.name, Annotated[str, about], Parameter.empty if argument.required else argument.default)


def _option(argument: Argument, option: CliOption) -> Parameter:
    name, text = _typed_name(argument, option), option.help or _help(argument)
    if argument.type is bool:
        return _parameter(argument.name, Annotated[bool, typer.Option(name, help=text)], False)
    about = typer.Option(name, metavar=_noun(argument) if option.parse is None else option.noun, help=text)
    if argument.name == "limit":
        few = typer.Option(name, metavar="N", help="At most N.", min=1)
        return _parameter("limit", Annotated[int, few], argument.default)
    if argument.item is not None or option.repeatable:
        return _parameter(argument.name, Annotated[list[str] | None, about], None)
    if argument.type is int and option.parse is None:
        return _parameter(argument.name, Annotated[int | None, about], argument.default)
    # An enumeration is read as text: the library's error names the values.
    default = argument.default if option.parse is None else None
    return _parameter(argument.name, Annotated[OnlyText, about], None if default is None else str(default))


def _noun(argument: Argument) -> str:
    if argument.rule is not None:
        return argument.rule.noun
    if argument.type is datetime:
        return "TIME"
    name = argument.name.rpartition("_")[2].upper()
    return name if argument.item is None else name.removesuffix("S")


def _help(argument: Argument) -> str:
    kind = argument.item or argument.type
    text = argument.help
    if isinstance(kind, type) and issubclass(kind, Enum) and len(kind) <= _MOST_NAMED:
        *most, last = (str(each.value) for each in kind)
        text += f" One of {', '.join(most)} or {last}."
    return text if argument.item is None else f"{text} Repeatable."
