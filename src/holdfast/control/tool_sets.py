"""Tools for models: a definition of each, from which its schemas, the check of its arguments and its call follow.

A tool calls one verb of a table of verbs, with some of its arguments and some of its result. Arguments are validated
before anything is done, and an error names the field. Results are plain JSON in which stored texts are marked as data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from holdfast.control.json_views import SCOPE_NAMES
from holdfast.control.schemas import RequestModel, ScopedRequest, field_names, json_name, request_field, request_model
from holdfast.domain.arguments import alternate_names
from holdfast.domain.call_errors import likely_method
from holdfast.domain.unknown_fields import explain_unknown
from holdfast.errors import InvalidInput, NotFound
from holdfast.runtime.verb_entry import NAMES, VerbEntry

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# The memory that tools call, opened for one actor: a method per verb.
ToolMemory = Any
ToolArguments = dict[str, Any]
# Runs a tool: the memory, the arguments, and the scope as keyword arguments.
ToolRun = Callable[[ToolMemory, ToolArguments, Mapping[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """A tool as a host describes it to a model. The schemas are JSON Schema 2020-12.

    `reads` means that it changes nothing, `destroys` that its effect cannot be undone.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    reads: bool
    destroys: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToolDefinition:
    """A tool: its verb, the arguments that a model may give with their help, its result, and its implementation.

    `inputs` are arguments that the verb has not, as fields of pydantic; `required` are those that only the tool needs.
    `scoped` tools take the parts of a scope too.
    `repeatable` means that the same call again changes nothing more. `summarize` writes a result as a short text.
    """

    name: str
    title: str = ""
    description: str
    entry: VerbEntry | None
    arguments: Mapping[str, str]
    result: Callable[[], type[BaseModel]]
    run: ToolRun
    summarize: Callable[[Mapping[str, Any]], str] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    required: Container[str] = ()
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False
    scoped: bool = False

    def name_of(self, field: str) -> str:
        """Return the tool's name of a field that an error of the verb names."""
        names = {} if self.entry is None else self.entry.names
        renamed = (theirs for ours, theirs in names.items() if field in (ours, NAMES.get(ours)))
        return next(renamed, json_name(field))


class ToolSet:
    """Tools by name: what a host shows to a model, and the calls of the model."""

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self.definitions: Mapping[str, ToolDefinition] = {each.name: each for each in definitions}

    def tools(self) -> tuple[MemoryTool, ...]:
        """Return every tool, for a host to show to a model. The schemas are new copies: a host may modify them."""
        return tuple(
            MemoryTool(
                one.name,
                one.description,
                deepcopy(_build_schema(_input_model(one))),
                deepcopy(_build_schema(one.result())),
                one.reads,
                one.destroys,
            )
            for one in self.definitions.values()
        )

    async def call(
        self,
        memory: ToolMemory,
        name: str,
        arguments: object,
        *,
        fixed: Mapping[str, str] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run a model's tool call. `fixed` are parts of the scope that the host sets and the model may not change.

        `where` is the scope, as keyword arguments, of tools that take none of it.

        An unknown tool is `NotFound`. Invalid arguments are `InvalidInput`, and nothing is done.
        """
        tool = self.find(name)
        request = _parse_arguments(_input_model(tool), arguments)
        if isinstance(request, ScopedRequest):
            where = _apply_fixed_scope(request.where(), fixed or {})
        of_scope = tuple(SCOPE_NAMES.values()) if tool.scoped else ()
        given = {field: value for field, value in request if value is not None and field not in of_scope}
        try:
            return await tool.run(memory, given, where or {})
        except InvalidInput as error:
            renamed = type(error)(tool.name_of(error.field), error.problem)
        raise renamed

    def find(self, name: str) -> ToolDefinition:
        if name in self.definitions:
            return self.definitions[name]
        short = {each.rpartition(".")[2].removeprefix("memory_"): each for each in self.definitions}
        likely = likely_method(name.rpartition(".")[2].removeprefix("memory_"), list(short))
        hint = f"there are {', '.join(self.definitions)}" if likely is None else f"did you mean {short[likely]}?"
        raise NotFound(f"there is no tool {name!r:.80}; {hint}")


@cache
def _input_model(tool: ToolDefinition) -> type[RequestModel]:
    shown, entry = {}, tool.entry
    if entry is not None:
        declared = {each.name: each for each in entry.arguments}
        for argument, explained in tool.arguments.items():
            own = declared[argument]
            needed = own.required or argument in tool.required
            changed = replace(own, required=needed, default=entry.default_of(own))
            shown[entry.public_name(own)] = request_field(changed, explained)
    name = "".join(part.capitalize() for part in tool.name.removeprefix("memory.").split("_"))
    return request_model(f"{name}ToolInput", tool.entry if tool.scoped else None, {**tool.inputs, **shown})


def _parse_arguments(form: type[Any], arguments: object) -> Any:
    if not isinstance(arguments, Mapping):
        raise InvalidInput("arguments", f"expected an object, got {type(arguments).__name__}")
    try:
        return form.model_validate(dict(arguments))
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False, include_context=False)
        # A missing argument was probably given by another name.
        found = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    # Raised outside the except block, because the original error quotes the input.
    if found["type"] == "extra_forbidden":
        raise _unknown_field(form, found["loc"])
    raise InvalidInput(_field_path(found["loc"]), _describe_problem(found["type"], found["msg"]))


def _unknown_field(form: type[Any], loc: tuple[int | str, ...]) -> InvalidInput:
    if len(loc) > 1:
        return InvalidInput(_field_path(loc[:-1]), "has an unknown field; leave it out")
    known = [other for name in form.model_fields for other in (name, *alternate_names(name))]
    repeated, problem = explain_unknown(str(loc[0]), known)
    return InvalidInput(repeated or "arguments", problem)


def _apply_fixed_scope(parts: dict[str, Any], fixed: Mapping[str, str]) -> dict[str, Any]:
    ours = {theirs: part for part, theirs in SCOPE_NAMES.items()}
    for theirs, value in fixed.items():
        if theirs not in ours:
            raise InvalidInput(theirs, f"is not a part of a scope; use one of {', '.join(ours)}")
        if parts.get(ours[theirs], value) != value:
            raise InvalidInput(theirs, "is set by the host and cannot be changed; leave it out")
        parts[ours[theirs]] = value
    return parts


def _field_path(loc: tuple[int | str, ...]) -> str:
    named, known = "", field_names(RequestModel)
    for part in loc:
        if isinstance(part, int):
            named += f"[{part}]"
        else:
            named += f"{'.' if named else ''}{part}" if part in known else f"[{part!r:.60}]"
    return named or "arguments"


_PROBLEMS = {
    "missing": "is missing",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "list_type": "expected a list",
    "dict_type": "expected an object",
}


def _describe_problem(kind: str, message: str) -> str:
    found = _PROBLEMS.get(kind, message.removeprefix("Value error, "))
    return f"{found[:1].lower()}{found[1:]}"


@cache
def _build_schema(form: type[BaseModel]) -> dict[str, Any]:
    is_input, is_scoped = issubclass(form, RequestModel), issubclass(form, ScopedRequest)
    mode: Literal["validation", "serialization"] = "validation" if is_input else "serialization"
    # A missing argument is simply left out; plain types are what most models and clients know.
    schema = _shorten_schema(form.model_json_schema(mode=mode), nullable=is_scoped or not is_input)
    # A tool's own properties come before those of the scope.
    schema["properties"] = dict(
        sorted(schema["properties"].items(), key=lambda each: each[0] in ScopedRequest.model_fields)
    )
    return {"$schema": DIALECT, **schema} if is_scoped or not is_input else schema


def _shorten_schema(schema: Any, *, nullable: bool) -> Any:
    """Shorten the schema, since models read all of it."""
    if isinstance(schema, list):
        return [_shorten_schema(part, nullable=nullable) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: {each: _shorten_schema(part, nullable=nullable) for each, part in inner.items()}
        if name in ("properties", "$defs")
        else _shorten_schema(inner, nullable=nullable)
        for name, inner in schema.items()
        if name != "title" and not (name == "default" and inner is None)
    }
    match plain.get("anyOf"):
        case [{"type": str(kind), **rest}, {"type": "null"}]:
            del plain["anyOf"]
            return {"type": [kind, "null"] if nullable else kind, **rest, **plain}
    return plain
