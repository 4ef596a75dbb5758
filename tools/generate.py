"""Write methods, command options and reference from the tables of verbs; `--check` compares. Run by `make generate`.

A method has one real parameter per argument of its request, and builds the request from them. What a caller may give
(a text for an enumeration or a time) is converted by `holdfast/inputs.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from typer.main import get_command

from holdfast.cli.options import ScopeOptions, StoreOptions, VerbArgument
from holdfast.control.verbs import VERBS as CONTROL_VERBS
from holdfast.domain.access import ActorKind
from holdfast.domain.arguments import Argument, result_type_of
from holdfast.domain.checks import Metadata
from holdfast.domain.conditions import Condition
from holdfast.domain.contract import HookKind, NewRecord, RecordHandle, SourcePayload, SourceRef
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Plane, Validity
from holdfast.domain.results import HitKind
from holdfast.domain.scope import SCOPE_PARTS
from holdfast.domain.transcript import Draft
from holdfast.runtime.verb_entry import Reach, VerbEntry
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS
from holdfast.sdk.verbs import VERBS as RUNTIME_VERBS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
INPUTS = "holdfast.inputs"
CONTROL_INPUTS = "holdfast.control_api.arguments"
HEAD = '''"""Every verb of `{table}` as a method. Written by `make generate`; do not edit."""

from __future__ import annotations

{imports}


@pending_methods("{receiver}")
class {name}({base}):
    """{doc}"""

'''
BLOCKING_HEAD = '''

class Blocking{name}(BlockingFacade[A]):
    """The same verbs, which wait for their results."""

'''
# The parts of a scope, in the order of their importance to callers.
SCOPE_ORDER = ("agent", "subject", "project", "issue", "run", "conversation", "namespace", "app", "channel", "space")
assert set(SCOPE_ORDER) == set(SCOPE_PARTS)
FIRST_LINE_CHARS = 120 - len(8 * " " + 6 * '"')
SCOPE_HELP = f"{', '.join(SCOPE_ORDER)}: The parts of the scope."


@dataclass(frozen=True)
class Accepted:
    """A type that a caller may give in another form: its name, and the call that converts it, both of one module.

    A call that `takes_none` is made also if the argument is None.
    """

    module: str
    type: str
    call: str
    takes_none: bool = False


@dataclass(frozen=True)
class Face:
    """A class of methods to write: its table, its base class, and the forms of arguments that it accepts.

    `groups` are the calls that build a group of arguments, where its constructor does not.
    """

    target: Path
    table: str
    verbs: Mapping[str, VerbEntry]
    name: str
    base: tuple[str, str]
    doc: str
    receiver: str
    scopes: Mapping[Reach, str]
    accepted: Mapping[Any, Accepted]
    groups: Mapping[Any, str] = field(default_factory=dict)


def mapping_of_parts(parts: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{part}": {part}' for part in parts) + "}"


CONTROL = Face(
    SOURCE / "control_api" / "verb_methods.py",
    "control/verbs.py",
    CONTROL_VERBS,
    "VerbMethods",
    ("holdfast.control_api.base_calls", "ControlCalls"),
    "The verbs of a company's control plane.",
    "plane",
    {Reach.COMPANY: "self._company()", Reach.SCOPE: "self._scope({})", Reach.VISIBLE: "self._visible_scope({})"},
    {
        SourceRef: Accepted(CONTROL_INPUTS, "Source", "source_from({}, self.space)", takes_none=True),
        SourcePayload: Accepted(CONTROL_INPUTS, "Payload", "payload_from({})"),
        RecordHandle: Accepted(CONTROL_INPUTS, "Handle", "handle_from({})"),
        tuple[RecordHandle, ...]: Accepted(CONTROL_INPUTS, "Handles", "handles_from({})"),
        tuple[NewRecord, ...]: Accepted(CONTROL_INPUTS, "Records", "records_from({})"),
        Mapping[HookKind, bool]: Accepted(CONTROL_INPUTS, "Hooks", "hooks_from({})"),
    },
)
LIBRARY = Face(
    SOURCE / "memory_api" / "verb_methods.py",
    "runtime/verbs.py",
    # Reading the document of `add_resource` is slow, so that method is in `library.py`.
    {name: entry for name, entry in LIBRARY_VERBS.items() if name != "add_resource"},
    "MemoryMethods",
    ("holdfast.memory_api.base_calls", "MemoryCalls"),
    "The verbs of a memory.",
    "memory",
    {Reach.SCOPE: "self._scope({})", Reach.SPACE: "self._space_scope(space)", Reach.STORE: "self._store_scope()"},
    {
        tuple[Draft, ...]: Accepted(INPUTS, "Messages", "drafts_from({})"),
        frozenset[Plane]: Accepted(INPUTS, "Texts", "planes_from({})"),
        HitKind: Accepted(INPUTS, "str", "kind_from({}, planes)", takes_none=True),
        tuple[MessageId, ...]: Accepted(INPUTS, "Texts", "evidence_from({})"),
        Metadata: Accepted(
            INPUTS, "Mapping[str, str | int | float | bool | None]", "metadata_from({})", takes_none=True
        ),
        ActorKind: Accepted(INPUTS, "str", "key_holder_from({})"),
        frozenset[str]: Accepted(INPUTS, "Texts", "subjects_from({})"),
        Condition | None: Accepted("holdfast.domain.conditions", "Condition", "{}", takes_none=True),
    },
    {
        Validity: "validity_from({since}, {until})",
        ForgetTarget: "target_from({ids}, {source}, conversation, subject)",
    },
)


class Imports:
    """The names that the written code uses, by module."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def add(self, module: str, name: str) -> str:
        if module != "builtins":
            self._names.setdefault(module, set()).add(name)
        return name

    def __str__(self) -> str:
        return "\n".join(f"from {module} import {', '.join(sorted(names))}" for module, names in self._names.items())

    def type(self, kind: Any) -> str:
        """Write a type, and import what it needs."""
        if kind is NoneType or kind is None:
            return "None"
        if kind is Any:
            return self.add("typing", "Any")
        if kind is Ellipsis:
            return "..."
        if get_origin(kind) in (Union, UnionType):
            return " | ".join(self.type(part) for part in get_args(kind))
        if (origin := get_origin(kind)) is not None:
            return f"{self.type(origin)}[{', '.join(self.type(part) for part in get_args(kind))}]"
        module = "collections.abc" if kind is Mapping else kind.__module__
        return self.add(module, kind.__name__)


def is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def is_mapping(argument: Argument) -> bool:
    return get_origin(argument.type) is Mapping


def group_of(entry: VerbEntry, argument: Argument) -> Any:
    """Return the class of the group that an argument belongs to; None if to none."""
    if len(argument.path) == 1:
        return None
    kind = get_type_hints(entry.request)[argument.path[0]]
    return next((part for part in get_args(kind) if part is not NoneType), kind)


class MethodWriter:
    """Writes the method of one verb, and notes what it imports."""

    def __init__(self, face: Face, entry: VerbEntry, imports: Imports) -> None:
        self._face = face
        self._entry = entry
        self._imports = imports
        self._own = {entry.public_name(argument) for argument in entry.arguments}

    def write(self) -> str:
        entry, imports = self._entry, self._imports
        request = imports.type(entry.request)
        positional = [each for each in entry.arguments if entry.is_positional(each)]
        lines = [self._parameter(each) for each in positional]
        named = [self._parameter(each) for each in entry.arguments if each not in positional]
        named += [f"{part}: str | None = {entry.defaults.get(part)!r}," for part in self._scope_parameters()]
        signature = "\n        ".join(["self,", *lines, *(["*,", *named] if named else [])])
        performed = f"await self._perform({request}.action, lambda: {request}({self._construction()}))"
        kind = result_type_of(entry.request)
        if entry.result is not None:
            kind, performed = get_type_hints(kind)[entry.result], f"({performed}).{entry.result}"
        returned = imports.type(kind)
        if get_origin(kind) is tuple:
            results = imports.add("holdfast.domain.presentable", "Results")
            returned, performed = f"{results}[{imports.type(get_args(kind)[0])}]", f"{results}({performed})"
        return f'''
    async def {entry.name}(
        {signature}
    ) -> {returned}:
        """{self._docstring()}"""
        return {performed}
'''

    def _parameter(self, argument: Argument) -> str:
        name, optional = self._entry.public_name(argument), argument.optional or is_mapping(argument)
        note = "  # noqa: A002" if argument.name in ("type", "filter") else ""
        kind = self._accepted_type(argument)
        if group_of(self._entry, argument) is ForgetTarget:
            # None would turn an unset variable into "everything".
            missing, value = (self._imports.add(INPUTS, each) for each in ("Missing", "MISSING"))
            return f"{name}: {kind} | {missing} = {value},"
        text = f"{name}: {kind}{' | None' if optional else ''}"
        return f"{text}," if argument.required else f"{text} = {self._default(argument)},{note}"

    def _accepted_type(self, argument: Argument) -> str:
        """Write the type that a caller may give for an argument."""
        imports = self._imports
        if argument.type is datetime:
            return imports.add(INPUTS, "Moment")
        if (accepted := self._face.accepted.get(argument.type)) is not None:
            return self._import_accepted(accepted)
        if is_enum(argument.type):
            return f"{imports.type(argument.type)} | str"
        if argument.item is not None:
            return f"str | {imports.add('collections.abc', 'Iterable')}[str]"
        return imports.type(argument.type)

    def _import_accepted(self, accepted: Accepted) -> str:
        name = accepted.type
        if name.startswith("Mapping"):
            self._imports.add("collections.abc", "Mapping")
        elif name != "str":
            self._imports.add(accepted.module, name)
        return name

    def _conversion(self, argument: Argument) -> str:
        """Write the expression that makes the request's value from the parameter."""
        imports, public = self._imports, self._entry.public_name(argument)
        if argument.type is datetime:
            return f"{imports.add(INPUTS, 'moment_from')}({public}, {argument.name!r})"
        if (accepted := self._face.accepted.get(argument.type)) is not None:
            if function := accepted.call.partition("(")[0].strip("{}"):
                imports.add(accepted.module, function)
            if accepted.takes_none:
                return accepted.call.format(public)
            if argument.optional:
                return f"None if {public} is None else {accepted.call.format(public)}"
            return accepted.call.format(f"{public} or {{}}" if is_mapping(argument) else public)
        if is_mapping(argument):
            return f"None if {public} is None else dict({public})" if argument.optional else f"dict({public} or {{}})"
        kind = argument.type if is_enum(argument.type) else argument.item
        if not is_enum(kind):
            return public
        parse = "parse_enum" if kind is argument.type else "enums_from"
        parse = imports.add(INPUTS, f"optional_{parse}" if argument.optional else parse)
        return f"{parse}({imports.type(kind)}, {public}, {argument.name!r})"

    def _default(self, argument: Argument) -> str:
        value = self._entry.default_of(argument)
        if isinstance(value, Enum):
            return f"{self._imports.type(type(value))}.{value.name}"
        return repr(value or None) if is_mapping(argument) else repr(value)

    def _scope_parameters(self) -> list[str]:
        match self._entry.reach:
            case Reach.COMPANY | Reach.STORE:
                return []
            case Reach.SPACE:
                return ["space"]
        return [part for part in SCOPE_ORDER if part not in self._own]

    def _construction(self) -> str:
        """Write the arguments of the request's constructor; groups are built inside it."""
        groups: dict[str, list[Argument]] = {}
        for argument in self._entry.arguments:
            groups.setdefault(argument.path[0], []).append(argument)
        parts = [f"scope={self._scope()}"]
        for name, members in groups.items():
            kind = group_of(self._entry, members[0])
            parts.append(f"{name}={self._conversion(members[0]) if kind is None else self._group(kind, members)}")
        parts += [f"{name}={value!r}" for name, value in self._entry.constants.items()]
        return ", ".join(parts)

    def _scope(self) -> str:
        expression = self._face.scopes[self._entry.reach]
        if self._face is LIBRARY:
            return expression.format(", ".join(SCOPE_PARTS))
        return expression.format(mapping_of_parts(part for part in SCOPE_ORDER if self._has_part(part)))

    def _has_part(self, part: str) -> bool:
        return part in self._own or part in self._scope_parameters()

    def _group(self, kind: Any, members: list[Argument]) -> str:
        if (call := self._face.groups.get(kind)) is None:
            return (
                f"{self._imports.type(kind)}({', '.join(f'{each.name}={self._conversion(each)}' for each in members)})"
            )
        self._imports.add(INPUTS, call.partition("(")[0])
        public = {each.name: self._entry.public_name(each) for each in members}
        built = call.format(**public)
        if get_type_hints(self._entry.request)[members[0].path[0]] is kind:
            return built
        return f"None if {' and '.join(f'{name} is None' for name in public.values())} else {built}"

    def _docstring(self) -> str:
        entry = self._entry
        text = (entry.doc or entry.request.__doc__ or "").strip().replace("\n    ", "\n        ")
        if len(text.partition("\n")[0]) > FIRST_LINE_CHARS:
            raise ValueError(f"{entry.request.__name__}: shorten the first line of its docstring")
        ordered = sorted(entry.arguments, key=entry.is_positional, reverse=True)
        lines = [f"{entry.public_name(each)}: {each.help}" for each in ordered if each.help]
        lines += [SCOPE_HELP] if len(self._scope_parameters()) > 1 else []
        return text + ("" if not lines else "\n\n        " + "\n        ".join(lines) + "\n        ")


def written(face: Face) -> str:
    imports = Imports()
    imports.add(*face.base)
    for name in ("A", "BlockingFacade", "blocking"):
        imports.add("holdfast.loops", name)
    imports.add("holdfast.pending_call", "pending_methods")
    body = "".join(MethodWriter(face, entry, imports).write() for entry in face.verbs.values())
    waiting = ""
    for name, entry in face.verbs.items():
        wrap = imports.add("holdfast.loops", "inline" if entry.short else "blocking")
        waiting += f"    {name} = {wrap}({face.name}.{name})\n"
    head = HEAD.format(
        table=face.table, imports=imports, name=face.name, base=face.base[1], doc=face.doc, receiver=face.receiver
    )
    return format_source(head + body + BLOCKING_HEAD.format(name=face.name) + waiting, face.target)


# --- command options --------------------------------------------------------------------------------------------------

ARGUMENTS = SOURCE / "cli" / "verb_arguments.py"
ARGUMENTS_HEAD = '''"""The arguments of every verb, as commands need them. Written by `make generate`; do not edit.

Data, because importing the requests would slow down every command.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.options import VerbArgument as Arg
'''
# Whoever runs a command sees whether it succeeded, and can look before repeating it; a condition is a tree.
NO_OPTIONS = frozenset({"idempotency_key", "condition"})
# Help lists the values of an enumeration, if they are few.
MOST_NAMED = 8


def written_arguments() -> str:
    tables = {"CONTROL": CONTROL_VERBS, "LIBRARY": LIBRARY_VERBS, "RUNTIME": RUNTIME_VERBS}
    body = "".join(
        f"\n{name}: Mapping[str, tuple[Arg, ...]] = {{{''.join(map(verb_arguments, verbs.values()))}}}\n"
        for name, verbs in tables.items()
    )
    return format_source(ARGUMENTS_HEAD + body, ARGUMENTS)


def verb_arguments(entry: VerbEntry) -> str:
    return f'"{entry.name}": ({"".join(f"{each!r}, " for each in command_arguments(entry))}),'


def command_arguments(entry: VerbEntry) -> list[CommandArgument]:
    return [command_argument(entry, each) for each in entry.arguments if each.name not in NO_OPTIONS]


def command_argument(entry: VerbEntry, argument: Argument) -> CommandArgument:
    kinds = {int: "int", float: "float", bool: "flag"}
    public, typed = entry.public_name(argument), entry.names.get(argument.name, argument.name)
    values = (
        [str(each.value) for each in argument.item or argument.type] if is_enum(argument.item or argument.type) else []
    )
    default = entry.default_of(argument)
    if isinstance(default, Enum):
        default = str(default.value)
    return CommandArgument(
        argument.name,
        argument.help,
        option_noun(argument),
        kinds.get(argument.type, "text"),
        keyword=None if public == argument.name else public,
        typed=option_name(typed, argument) if option_name(typed, argument) != argument.name else None,
        default=default if isinstance(default, int | float | str) and default is not False else None,
        required=argument.required,
        positional=argument.required or argument.name in entry.positional,
        many=argument.item is not None,
        most=argument.rule.most if argument.type is int and argument.rule else None,
        choices=tuple(values) if len(values) <= MOST_NAMED else (),
    )


class CommandArgument(VerbArgument):
    """An argument that is written as the call that makes it."""

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        shown += [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)[1:]
            if getattr(self, each.name) != each.default
        ]
        return f"Arg({', '.join(shown)})"


def option_name(name: str, argument: Argument) -> str:
    return name if argument.item is None else name.removesuffix("s")


def option_noun(argument: Argument) -> str:
    if argument.rule is not None:
        return argument.rule.noun
    if argument.type is datetime:
        return "TIME"
    if argument.type in (int, float):
        return "N"
    noun = argument.name.rpartition("_")[2].upper()
    return noun if argument.item is None else noun.removesuffix("S")


# --- reference --------------------------------------------------------------------------------------------------------

REFERENCE = ROOT / "docs" / "reference"


# Options that the page explains once, for all commands.
SHARED_OPTIONS = {"as_json", "help", *(each.name for kind in (ScopeOptions, StoreOptions) for each in fields(kind))}


def written_reference(page: str) -> str:
    """Return a page of the reference with its tables of arguments written anew."""
    text, entry = (REFERENCE / page).read_text("utf-8"), LIBRARY_VERBS["search"]
    named = {f"{entry.public_name(each)}=": each for each in entry.arguments if not entry.is_positional(each)}
    text = write_between(text, r"(search) arguments", lambda _: argument_table(named))
    return write_between(text, r"holdfast ([a-z -]+) options", options_table)


def write_between(text: str, marker: str, table: Callable[[str], str]) -> str:
    pattern = f"(<!-- written by make generate: {marker} -->\n).*?(?=<!-- end -->)"
    return re.sub(pattern, lambda found: f"{found[1]}{table(found[2])}\n", text, flags=re.DOTALL)


def argument_table(rows: Mapping[str, Argument]) -> str:
    lines = ["| argument | meaning |", "|---|---|"]
    for name, each in rows.items():
        default = f" Default: `{each.default}`." if each.default is not None else ""
        most = f" Up to {each.rule.most:,}." if each.type is int and each.rule is not None and each.rule.most else ""
        lines.append(f"| `{name}` | {each.help}{default}{most} |")
    return "\n".join(lines)


def options_table(path: str) -> str:
    """Return the table of a command's own options, as the command has them."""
    from holdfast.cli.program import app

    command: Any = get_command(app)
    for name in path.split():
        command = command.commands[name]
    # Requests of the runtime declare no limits.
    entry = LIBRARY_VERBS.get(path)
    most = {} if entry is None else {each.name: each.most for each in command_arguments(entry)}
    lines = ["| option | meaning |", "|---|---|"]
    for each in command.params:
        if not each.opts[0].startswith("-") or each.name in SHARED_OPTIONS:
            continue
        named = [f"{each.opts[0]} {each.metavar or ''}".strip(), *each.opts[1:]]
        typed = ", ".join(f"`{name}`" for name in named)
        default = f" Default: `{each.default}`." if each.default not in (None, False) else ""
        limit = f" Up to {most[each.name]:,}." if most.get(each.name) else ""
        explained = re.sub(r" {2}\[default: (.*)\]$", r" Default: `\1`.", each.help)
        lines.append(f"| {typed} | {explained}{default}{limit} |")
    return "\n".join(lines)


def format_source(text: str, target: Path) -> str:
    """Format as `make format` does."""
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        text = subprocess.run(
            [ruff, *command, "--stdin-filename", target, "-"], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> int:
    outdated = 0
    methods: dict[Path, Callable[[], str]] = {face.target: partial(written, face) for face in (CONTROL, LIBRARY)}
    pages = {REFERENCE / page: partial(written_reference, page) for page in ("command-line.md", "library.md")}
    # The pages read the commands, which read the arguments.
    for target, write in (methods | {ARGUMENTS: written_arguments} | pages).items():
        text = write()
        if "--check" not in sys.argv:
            target.write_text(text, "utf-8")
        elif not target.exists() or target.read_text("utf-8") != text:
            print(f"{target.relative_to(ROOT)} is out of date; run `make generate`", file=sys.stderr)
            outdated = 1
    return outdated


if __name__ == "__main__":
    sys.exit(main())
