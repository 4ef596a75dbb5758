"""Write the Python methods of the faces from the tables of verbs; `--check` only compares. Run by `make generate`.

A method has one real parameter per argument of its request, and builds the request from them. What a caller may give
(a text for an enumeration or a time) is converted by `holdfast/inputs.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from holdfast.control.verbs import VERBS, Reach, VerbEntry
from holdfast.domain.arguments import Argument, result_type_of
from holdfast.domain.contract import HookKind, NewRecord, RecordHandle, SourcePayload, SourceRef
from holdfast.domain.scope import SCOPE_PARTS

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "holdfast" / "control_api" / "verb_methods.py"
HEAD = '''"""Every verb of `control/verbs.py` as a method. Written by `make generate`; do not edit."""

from __future__ import annotations

{imports}


class VerbMethods(ControlCalls):
    """The verbs of a company's control plane."""

'''
BLOCKING_HEAD = '''

class BlockingVerbMethods(BlockingFacade[A]):
    """The same verbs, which wait for their results."""

'''
# The parts of a scope, in the order of their importance to callers.
SCOPE_ORDER = ("agent", "subject", "project", "issue", "run", "conversation", "namespace", "app", "channel", "space")
assert set(SCOPE_ORDER) == set(SCOPE_PARTS)
PARSERS = "holdfast.control_api.arguments"
FIRST_LINE_CHARS = 120 - len(8 * " " + 6 * '"')
SCOPES = {Reach.COMPANY: "self._company()", Reach.SCOPE: "self._scope({})", Reach.VISIBLE: "self._visible_scope({})"}

SCOPE_HELP = f"{', '.join(SCOPE_ORDER)}: The parts of the scope."
# The types that a caller may give, and the functions that convert them, of `control_api/arguments.py`.
STRUCTURES = {
    SourceRef: ("Source", "source_from"),
    SourcePayload: ("Payload", "payload_from"),
    RecordHandle: ("Handle", "handle_from"),
    tuple[RecordHandle, ...]: ("Handles", "handles_from"),
    tuple[NewRecord, ...]: ("Records", "records_from"),
    Mapping[HookKind, bool]: ("Hooks", "hooks_from"),
}


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


def accepted_type(argument: Argument, imports: Imports) -> str:
    """Write the type that a caller may give for an argument."""
    if argument.type is datetime:
        return imports.add("holdfast.inputs", "Moment")
    if argument.type in STRUCTURES:
        return imports.add(PARSERS, STRUCTURES[argument.type][0])
    if is_enum(argument.type):
        return f"{imports.type(argument.type)} | str"
    if is_enum(argument.item):
        return f"str | {imports.add('collections.abc', 'Iterable')}[str]"
    return imports.type(argument.type)


def conversion(argument: Argument, public: str, imports: Imports) -> str:
    """Write the expression that makes the request's value from the parameter."""
    if argument.type is datetime:
        return f"{imports.add('holdfast.inputs', 'moment_from')}({public}, {argument.name!r})"
    if is_mapping(argument) or argument.type in STRUCTURES:
        parse = imports.add(PARSERS, STRUCTURES[argument.type][1]) if argument.type in STRUCTURES else "dict"
        if argument.type is SourceRef:
            return f"{parse}({public}, self.space)"
        if argument.optional:
            return f"None if {public} is None else {parse}({public})"
        return f"{parse}({public} or {{}})" if is_mapping(argument) else f"{parse}({public})"
    kind = argument.type if is_enum(argument.type) else argument.item
    if not is_enum(kind):
        return public
    parse = "parse_enum" if kind is argument.type else "enums_from"
    parse = imports.add("holdfast.inputs", f"optional_{parse}" if argument.optional else parse)
    return f"{parse}({imports.type(kind)}, {public}, {argument.name!r})"


def default(argument: Argument, imports: Imports) -> str:
    value = argument.default
    if isinstance(value, Enum):
        return f"{imports.type(type(value))}.{value.name}"
    return repr(value or None) if is_mapping(argument) else repr(value)


def parameter(entry: VerbEntry, argument: Argument, imports: Imports) -> str:
    kind = accepted_type(argument, imports) + (" | None" if argument.optional or is_mapping(argument) else "")
    note = "  # noqa: A002" if argument.name in ("type", "filter") else ""
    text = f"{entry.public_name(argument)}: {kind}"
    return f"{text}," if argument.required else f"{text} = {default(argument, imports)},{note}"


def scope_parameters(entry: VerbEntry) -> list[str]:
    own = {entry.public_name(argument) for argument in entry.arguments}
    return [part for part in SCOPE_ORDER if part not in own] if entry.reach is not Reach.COMPANY else []


def scope_expression(entry: VerbEntry) -> str:
    own = {entry.public_name(argument) for argument in entry.arguments}
    named = [part for part in SCOPE_ORDER if part in own or part in scope_parameters(entry)]
    return SCOPES[entry.reach].format("{" + ", ".join(f'"{part}": {part}' for part in named) + "}")


def construction(request: type, arguments: Iterable[Argument], values: Mapping[str, str], imports: Imports) -> str:
    """Write the call of a request's constructor; groups are built inside it."""
    groups: dict[str, list[Argument]] = {}
    for argument in arguments:
        groups.setdefault(argument.path[0], []).append(argument)
    parts = []
    for name, members in groups.items():
        if len(members[0].path) == 1:
            parts.append(f"{name}={values[name]}")
        else:
            kind = imports.type(get_type_hints(request)[name])
            inner = ", ".join(f"{each.name}={values[each.name]}" for each in members)
            parts.append(f"{name}={kind}({inner})")
    return ", ".join(parts)


def docstring(entry: VerbEntry) -> str:
    text = (entry.request.__doc__ or "").strip().replace("\n    ", "\n        ")
    if len(text.partition("\n")[0]) > FIRST_LINE_CHARS:
        raise ValueError(f"{entry.request.__name__}: shorten the first line of its docstring")
    ordered = sorted(entry.arguments, key=entry.is_positional, reverse=True)
    lines = [f"{entry.public_name(each)}: {each.help}" for each in ordered if each.help]
    lines += [SCOPE_HELP] if entry.reach is not Reach.COMPANY else []
    return text + ("" if not lines else "\n\n        " + "\n        ".join(lines) + "\n        ")


def method(entry: VerbEntry, imports: Imports) -> str:
    request = imports.type(entry.request)
    positional = [each for each in entry.arguments if entry.is_positional(each)]
    keywords = [each for each in entry.arguments if each not in positional]
    lines = [parameter(entry, each, imports) for each in positional]
    named = [parameter(entry, each, imports) for each in keywords]
    named += [f"{part}: str | None = None," for part in scope_parameters(entry)]
    signature = "\n        ".join(["self,", *lines, *(["*,", *named] if named else [])])
    values = {each.name: conversion(each, entry.public_name(each), imports) for each in entry.arguments}
    built = construction(entry.request, entry.arguments, values, imports)
    return f'''
    async def {entry.name}(
        {signature}
    ) -> {imports.type(result_type_of(entry.request))}:
        """{docstring(entry)}"""
        return await self._perform(
            {request}.action, lambda: {request}(scope={scope_expression(entry)}, {built})
        )
'''


def written() -> str:
    imports = Imports()
    imports.add("holdfast.control_api.base_calls", "ControlCalls")
    imports.add("holdfast.loops", "A")
    imports.add("holdfast.loops", "BlockingFacade")
    imports.add("holdfast.loops", "blocking")
    body = "".join(method(entry, imports) for entry in VERBS.values())
    waiting = "".join(f"    {name} = blocking(VerbMethods.{name})\n" for name in VERBS)
    return format_source(HEAD.format(imports=imports) + body + BLOCKING_HEAD + waiting)


def format_source(text: str) -> str:
    """Format as `make format` does."""
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        text = subprocess.run(
            [ruff, *command, "--stdin-filename", TARGET, "-"], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> int:
    text = written()
    if "--check" not in sys.argv:
        TARGET.write_text(text, "utf-8")
    elif not TARGET.exists() or TARGET.read_text("utf-8") != text:
        print(f"{TARGET.relative_to(ROOT)} is out of date; run `make generate`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
