"""Commands that call a verb: their options are its arguments.

`verb_arguments.py`, which `make generate` writes from the tables of verbs, has the arguments with their help. A command
adds what differs, and presents the result. `memory_command` is for the verbs of the library, `verb_command` for those
of the control plane, `operation_command` for the operations of a runtime. `--json` prints the same document as the
library and the HTTP routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.control_plane import MAX_PAGE, Company, open_control_plane
from holdfast.cli.error_names import errors_as_typed
from holdfast.cli.exits import ExitCode
from holdfast.cli.json_output import print_json
from holdfast.cli.options import (
    Json,
    LocalStoreOptions,
    OnlyText,
    ScopeOptions,
    StoreOptions,
    VerbArgument,
    command,
    expand_options,
)
from holdfast.cli.options import option as cli_option
from holdfast.cli.paging import iterate_pages
from holdfast.cli.store_access import open_memory
from holdfast.cli.suggestions import suggest_command
from holdfast.cli.verb_arguments import CONTROL, LIBRARY, RUNTIME

if TYPE_CHECKING:
    import holdfast
    from holdfast.inputs import ScopeKwargs

_KINDS: Mapping[str, Any] = {"text": str, "int": int, "float": float, "flag": bool}


@dataclass(frozen=True, slots=True)
class CliOption:
    """An option that differs from its argument: by name (without dashes it is positional), help, or how it is read.

    `repeatable` options are read as a list of texts. The `words` of a positional text need no quotes, and an `optional`
    one may be left out.
    """

    name: str | None = None
    help: str | None = None
    parse: Callable[[Any, str], Any] | None = None
    noun: str | None = None
    hidden: bool = False
    repeatable: bool = False
    words: bool = False
    optional: bool = False


HIDDEN = CliOption(hidden=True)
_NO_OPTION = CliOption()


# --- the library ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """A call of a verb of the library: the arguments of its method, the scope, and all values by parameter."""

    verb: str
    chosen: StoreOptions
    place: ScopeOptions
    arguments: dict[str, Any]
    values: Mapping[str, Any]
    as_json: bool

    @property
    def where(self) -> ScopeKwargs:
        return self.place.scope_kwargs()

    def suggest(self, command: str, *ids: str) -> str:
        """Return a command to run next, on the same store and space."""
        return suggest_command(self.chosen, command, *ids, space=self.place.space)


Perform = Callable[["holdfast.Memory", MemoryCall], Any]
PresentMemory = Callable[[Any, MemoryCall], None]


def memory_command(
    verb: str,
    *,
    options: Mapping[str, CliOption] | None = None,
    extra: Mapping[str, tuple[Any, Any]] | None = None,
    check: Callable[[MemoryCall], None] | None = None,
    perform: Perform | None = None,
    run: Callable[[MemoryCall], Any] | None = None,
    document: Callable[[Any, MemoryCall], Any] | None = None,
    failed: Callable[[Any, MemoryCall], bool] | None = None,
    create: bool = False,
) -> Callable[[PresentMemory], Callable[..., None]]:
    """Make a command of a verb of the library. The decorated function presents the result; its docstring is the help.

    `extra` are options that are no arguments, with their defaults. `check` may refuse or change a call before the store
    is opened. `perform` is for a command that does more than call the method; `run` is for one that opens the store
    itself. `document` makes the JSON of a result; by default it is the result. If it `failed`, the exit code says so.
    With `create` it creates the store.
    """
    arguments, named = LIBRARY[verb], options or {}

    def decorate(present: PresentMemory) -> Callable[..., None]:
        def call_verb(place: ScopeOptions, chosen: StoreOptions, as_json: bool, **values: Any) -> None:
            with errors_as_typed({each.keyword: each.name for each in arguments if each.keyword}):
                call = MemoryCall(verb, chosen, place, _method_arguments(arguments, named, values), values, as_json)
                if check is not None:
                    check(call)
                result = (run or open_and_perform)(call)
            if as_json:
                print_json(result if document is None else document(result, call))
            else:
                present(result, call)
            if failed is not None and failed(result, call):
                raise typer.Exit(ExitCode.PROBLEM)

        def open_and_perform(call: MemoryCall) -> Any:
            with open_memory(call.chosen, create=create) as memory:
                if perform is not None:
                    return perform(memory, call)
                return getattr(memory, verb)(**call.arguments, **call.where)

        parameters = [
            *_parameters(arguments, named, positional=True),
            *_parameters(arguments, named, positional=False),
            *(_parameter(each, kind, default) for each, (kind, default) in (extra or {}).items()),
            _parameter("place", ScopeOptions),
            _parameter("chosen", StoreOptions),
            _parameter("as_json", Json, False),
        ]
        return expand_options(_with_parameters(call_verb, parameters, present.__doc__))

    return decorate


# --- the control plane ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a command was called: the store, the space, and all its values by parameter."""

    chosen: StoreOptions
    company: str | None
    values: Mapping[str, Any]

    def suggest(self, command: str, *ids: str) -> str:
        """Return a command to run next, on the same store and space."""
        return suggest_command(self.chosen, command, *ids, company=self.company)


Present = Callable[[Any, Invocation], None]


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
    arguments, named = CONTROL[verb], options or {}

    def decorate(present: Present) -> Present:
        def call_verb(chosen: LocalStoreOptions, company: str | None, as_json: bool, **values: Any) -> None:
            call = Invocation(chosen, company, dict(values))
            if adjust is not None:
                adjust(values, call)
            made = _method_arguments(arguments, named, values)
            with open_control_plane(chosen, company, create=create) as plane:
                result, document = _call_control(getattr(plane, verb), arguments, made, many)
            if as_json:
                print_json(document())
            else:
                present(result, call)

        places = list(_parameters(arguments, named, positional=True))
        parameters = [
            *sorted(places, key=lambda each: order.index(each.name) if order else 0),
            *_parameters(arguments, named, positional=False),
            *(_parameter(each, kind, False) for each, kind in (extra or {}).items()),
            _parameter("company", Company, None),
            _parameter("chosen", LocalStoreOptions),
            _parameter("as_json", Json, False),
        ]
        command(app, name)(_with_parameters(call_verb, parameters, explained or present.__doc__))
        return present

    return decorate


def _call_control(
    method: Callable[..., Any], arguments: Sequence[VerbArgument], values: dict[str, Any], many: str | None
) -> tuple[Any, Callable[[], Any]]:
    """Call the verb; return its result, and a function that makes its JSON."""
    from holdfast.control.json_views import to_json

    if not any(each.name == "cursor" for each in arguments):
        result = method(**values)
        return result, lambda: to_json(result) if many is None else {many: to_json(result)}
    pages: list[Any] = []

    def page(most: int, cursor: str | None) -> Any:
        pages.append(method(**{**values, "limit": most, "cursor": cursor}))
        return pages[-1]

    items = list(iterate_pages(page, values.pop("limit"), MAX_PAGE))
    name = next(iter(to_json(pages[0])))
    return items, lambda: {name: to_json(items)}


# --- a runtime --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperationCall:
    """A call of an operation of a runtime: the arguments of its request, whose memory it is, and all values."""

    chosen: StoreOptions
    whose: Any
    arguments: dict[str, Any]
    values: Mapping[str, Any]


def operation_command(
    app: typer.Typer,
    name: str,
    verb: str | None,
    whose: type[Any],
    perform: Callable[[OperationCall], Any],
    *,
    options: Mapping[str, CliOption] | None = None,
    extra: Mapping[str, tuple[Any, Any]] | None = None,
    exit_code: Callable[[Any], ExitCode] = lambda report: ExitCode.OK,
) -> Callable[[Callable[[Any, OperationCall], None]], None]:
    """Add a command of an operation. The decorated function presents the report, and its docstring is the help.

    `whose` are the options of the owner and the conversation, `extra` those that are no arguments, with their defaults.
    `perform` runs the operation. Without a `verb` it has no arguments.
    """
    # A request is built by the names of its fields.
    arguments = [replace(each, keyword=None) for each in (() if verb is None else RUNTIME[verb])]
    named = options or {}

    def decorate(present: Callable[[Any, OperationCall], None]) -> None:
        def call_operation(whose: Any, chosen: LocalStoreOptions, as_json: bool, **values: Any) -> None:
            call = OperationCall(chosen, whose, _method_arguments(arguments, named, values), values)
            report = perform(call)
            if as_json:
                print_json(report)
            else:
                present(report, call)
            if code := exit_code(report):
                raise typer.Exit(code)

        parameters = [
            *_parameters(arguments, named, positional=True),
            *_parameters(arguments, named, positional=False),
            *(_parameter(each, kind, default) for each, (kind, default) in (extra or {}).items()),
            _parameter("whose", whose),
            _parameter("chosen", LocalStoreOptions),
            _parameter("as_json", Json, False),
        ]
        command(app, name)(_with_parameters(call_operation, parameters, present.__doc__))

    return decorate


# --- shared -----------------------------------------------------------------------------------------------------------


def _with_parameters(
    call_verb: Callable[..., None], parameters: list[Parameter], explained: str | None
) -> Callable[..., None]:
    """Give the function the parameters and the help that typer reads."""
    call_verb.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call_verb.__annotations__ = {each.name: each.annotation for each in parameters}
    call_verb.__doc__ = explained
    return call_verb


def _method_arguments(
    arguments: Sequence[VerbArgument], options: Mapping[str, CliOption], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of the method, by their public names; options that are not given are left out."""
    found = {}
    for argument in arguments:
        if (value := values.get(argument.name)) is None or value == []:
            continue
        option = options.get(argument.name, _NO_OPTION)
        value = " ".join(value) if option.words else value
        parsed = value if option.parse is None else option.parse(value, _typed_name(argument, option))
        found[argument.keyword or argument.name] = parsed
    return found


def _parameters(
    arguments: Sequence[VerbArgument], options: Mapping[str, CliOption], *, positional: bool
) -> Iterator[Parameter]:
    for argument in arguments:
        option = options.get(argument.name, _NO_OPTION)
        if argument.name == "cursor" or option.hidden:
            continue
        at_its_place = argument.positional
        if option.name is not None:
            at_its_place = not option.name.startswith("--")
        if at_its_place == positional:
            yield _argument(argument, option) if positional else _option(argument, option)


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _typed_name(argument: VerbArgument, option: CliOption) -> str:
    return option.name or f"--{(argument.typed or argument.name).replace('_', '-')}"


def _argument(argument: VerbArgument, option: CliOption) -> Parameter:
    noun = option.name or (argument.noun if argument.noun in ("ID", "KEY") else argument.name.upper())
    about = typer.Argument(metavar=noun, hidden=True, autocompletion=_completion(argument))
    kind: Any = list[str] if argument.many or option.words else str if option.parse else _KINDS[argument.kind]
    if argument.required and not option.optional:
        return _parameter(argument.name, Annotated[kind, about])
    return _parameter(argument.name, Annotated[kind | None, about], argument.default)


def _option(argument: VerbArgument, option: CliOption) -> Parameter:
    name, text = _typed_name(argument, option), option.help or _help(argument)
    if argument.kind == "flag":
        return _parameter(argument.name, Annotated[bool, typer.Option(name, help=text)], False)
    about = cli_option(name, option.noun or argument.noun, text, autocompletion=_completion(argument))
    if argument.name == "limit":
        few = cli_option(name, "N", "At most N.", min=1)
        return _parameter("limit", Annotated[int, few], argument.default)
    if argument.many or option.repeatable:
        return _parameter(argument.name, Annotated[list[str] | None, about], None)
    if argument.kind in ("int", "float") and option.parse is None:
        kind = _KINDS[argument.kind]
        return _parameter(argument.name, Annotated[kind | None, about], argument.default)
    # An enumeration is read as text: the library's error names the values.
    default = argument.default if option.parse is None else None
    return _parameter(argument.name, Annotated[OnlyText, about], default)


def _completion(argument: VerbArgument) -> Callable[[str], list[str]] | None:
    """Return the values that a shell completes."""
    if not argument.choices:
        return None
    return lambda incomplete: [each for each in argument.choices if each.startswith(incomplete)]


def _help(argument: VerbArgument) -> str:
    text = argument.help
    if argument.choices and any(each not in text for each in argument.choices):
        *most, last = argument.choices
        text += f" One of {', '.join(most)} or {last}."
    return f"{text} Repeatable." if argument.many else text
