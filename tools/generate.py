"""Write methods, command options and reference from the tables of verbs; `--check` compares. Run by `make generate`.

A method has one real parameter per argument of its request, and builds the request from them. What a caller may give
(a text for an enumeration or a time) is converted by `holdfast/inputs.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from holdfast.control.verbs import VERBS as CONTROL_VERBS
from holdfast.domain.access import ActorKind
from holdfast.domain.arguments import Argument, result_type_of
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

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
INPUTS = "holdfast.inputs"
CONTROL_INPUTS = "holdfast.control_api.arguments"
HEAD = '''"""Every verb of `{table}` as a method. Written by `make generate`; do not edit."""

from __future__ import annotations

{imports}


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
    {Reach.SCOPE: "self._scope({})", Reach.SPACE: "self._space_scope(space)", Reach.STORE: "self._store_scope()"},
    {
        tuple[Draft, ...]: Accepted(INPUTS, "Messages", "drafts_from({})"),
        frozenset[Plane]: Accepted(INPUTS, "Texts", "planes_from({})"),
        HitKind: Accepted(INPUTS, "str", "kind_from({}, planes)", takes_none=True),
        tuple[MessageId, ...]: Accepted(INPUTS, "Texts", "evidence_from({})"),
        Mapping[str, str]: Accepted(INPUTS, "Mapping[str, str]", "metadata_from({})", takes_none=True),
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
        return f'''
    async def {entry.name}(
        {signature}
    ) -> {imports.type(kind)}:
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
    body = "".join(MethodWriter(face, entry, imports).write() for entry in face.verbs.values())
    waiting = ""
    for name, entry in face.verbs.items():
        wrap = imports.add("holdfast.loops", "inline" if entry.short else "blocking")
        waiting += f"    {name} = {wrap}({face.name}.{name})\n"
    head = HEAD.format(table=face.table, imports=imports, name=face.name, base=face.base[1], doc=face.doc)
    return format_source(head + body + BLOCKING_HEAD.format(name=face.name) + waiting, face.target)


# --- command options --------------------------------------------------------------------------------------------------

FILTERS = SOURCE / "cli" / "search_filters.py"
FILTERS_HEAD = '''"""The options of `search`, `explain` and `recall`. Written by `make generate`; do not edit.

Text, because importing the requests would slow down every command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from holdfast.cli.options import OnlyText, option
'''
# The classes of options, by verb.
FILTER_CLASSES = {
    "search": ("SearchFilters", "Search options besides the query."),
    "recall": ("RecallOptions", "Options of `recall` besides the query."),
}
# A condition is a tree, which no option can hold.
NO_OPTIONS = frozenset({"condition"})


def written_filters() -> str:
    return format_source(FILTERS_HEAD + "".join(map(written_options, FILTER_CLASSES)), FILTERS)


def written_options(verb: str) -> str:
    entry, (name, explained) = LIBRARY_VERBS[verb], FILTER_CLASSES[verb]
    shown = [each for each in entry.arguments if not entry.is_positional(each) and each.name not in NO_OPTIONS]
    pairs = ", ".join(f'"{each.name}": self.{option_name(each)}{" or None" * bool(each.item)}' for each in shown)
    body = "".join(f"    {option_field(each, entry.default_of(each))}\n" for each in shown)
    return f'''

@dataclass(frozen=True, slots=True)
class {name}:
    """{explained}"""

{body}
    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments of the library."""
        return {{{pairs},}}
'''


def option_name(argument: Argument) -> str:
    return argument.name if argument.item is None else argument.name.removesuffix("s")


def option_field(argument: Argument, default: Any) -> str:
    name, text, noun = option_name(argument), argument.help, option_noun(argument)
    kind = {int: "int", float: "float"}.get(argument.type, "str")
    if argument.item is not None:
        kind, text = "list[str]", f"{text} Repeatable."
    elif argument.type is bool:
        raise ValueError(f"{name}: write how a flag becomes an option")
    accepted = f"{kind} | None" if argument.optional else kind
    accepted = "OnlyText" if accepted == "str | None" else accepted
    value = default.value if isinstance(default, Enum) else default
    return f'{name}: Annotated[{accepted}, option("--{name.replace("_", "-")}", "{noun}", {text!r})] = {value!r}'


def option_noun(argument: Argument) -> str:
    if argument.rule is not None:
        return argument.rule.noun
    return "TIME" if argument.type is datetime else option_name(argument).upper()


# --- reference --------------------------------------------------------------------------------------------------------

REFERENCE = ROOT / "docs" / "reference"


def written_reference(page: str) -> str:
    """Return a page of the reference with its tables of arguments written anew."""
    text, entry = (REFERENCE / page).read_text("utf-8"), LIBRARY_VERBS["search"]
    named = [each for each in entry.arguments if not entry.is_positional(each)]
    typed = {each: f"--{option_name(each).replace('_', '-')}" for each in named if each.name not in NO_OPTIONS}
    for name, table in {
        "search options": table_of("option", {f"{typed[each]} {option_noun(each)}": each for each in typed}),
        "explain options": ", ".join(f"`{typed[each]}`" for each in typed),
        "recall options": recall_table(),
        "search arguments": table_of("argument", {f"{entry.public_name(each)}=": each for each in named}),
    }.items():
        start = f"<!-- written by make generate: {name} -->"
        text = re.sub(f"{start}.*?<!-- end -->", f"{start}\n{table}\n<!-- end -->", text, flags=re.DOTALL)
    return text


def recall_table() -> str:
    entry = LIBRARY_VERBS["recall"]
    shown = [each for each in entry.arguments if not entry.is_positional(each) and each.name not in NO_OPTIONS]
    rows = {f"--{option_name(each).replace('_', '-')} {option_noun(each)}": each for each in shown}
    return table_of("option", rows, {each: entry.default_of(each) for each in shown})


def table_of(head: str, rows: Mapping[str, Argument], defaults: Mapping[Argument, Any] | None = None) -> str:
    lines = [f"| {head} | meaning |", "|---|---|"]
    for name, each in rows.items():
        value = each.default if defaults is None else defaults[each]
        default = f" Default: `{value}`." if value is not None else ""
        most = f" Up to {each.rule.most:,}." if each.type is int and each.rule is not None and each.rule.most else ""
        lines.append(
            f"| `{name}` | {each.help}{' Repeatable.' * bool(each.item and head == 'option')}{default}{most} |"
        )
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
    texts = {face.target: written(face) for face in (CONTROL, LIBRARY)} | {FILTERS: written_filters()}
    texts |= {REFERENCE / page: written_reference(page) for page in ("command-line.md", "library.md")}
    for target, text in texts.items():
        if "--check" not in sys.argv:
            target.write_text(text, "utf-8")
        elif not target.exists() or target.read_text("utf-8") != text:
            print(f"{target.relative_to(ROOT)} is out of date; run `make generate`", file=sys.stderr)
            outdated = 1
    return outdated


if __name__ == "__main__":
    sys.exit(main())
