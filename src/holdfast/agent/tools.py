"""Tools: plain functions that a model may call.

A tool's schema comes from its signature and its description from its docstring, so that description and code cannot
drift apart. A model's arguments are validated before the function is called. A failure is an answer to the model, never
an error of the run: the model can correct its call, or do without.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.agent.ports import Json, ToolCall, ToolSpec
from holdfast.agent.texts import encodable
from holdfast.domain.visible_text import one_line
from holdfast.errors import HoldfastError, InvalidInput

TIMEOUT_SECONDS = 60.0
MAX_RESULT_CHARS = 16_000
MAX_ARGUMENT_CHARS = 200_000
MAX_DESCRIPTION_CHARS = 4_000
_MAX_PROBLEM_CHARS = 500
_MAX_PROBLEMS = 8
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")  # accepted by every provider
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

ToolFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a call: the text for the model, and the value that it was made from.

    A function that returns `{"success": False, …}` failed, like one that raised an error.
    """

    content: str
    ok: bool
    value: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function, its description for a model, and the validation of its arguments."""

    spec: ToolSpec
    function: ToolFunction
    arguments: type[BaseModel]
    timeout_seconds: float = TIMEOUT_SECONDS
    max_result_chars: int = MAX_RESULT_CHARS

    @classmethod
    def of(cls, function: ToolFunction, name: str | None = None, description: str | None = None) -> Tool:
        """Inspect the function. Each parameter needs a type; `Annotated[…, Field(description=…)]` describes it."""
        named = name or str(getattr(function, "__name__", ""))
        if not _NAME.fullmatch(named):
            raise InvalidInput("name", f"{named!r} is not a valid tool name: use letters, digits, _ and -, at most 64")
        text = inspect.cleandoc(description or getattr(function, "__doc__", None) or "")
        if not text:
            raise InvalidInput(named, "has no description; give the function a docstring, or pass a description")
        if len(text) > MAX_DESCRIPTION_CHARS:
            raise InvalidInput(named, f"its description is longer than {MAX_DESCRIPTION_CHARS:,} characters")
        arguments = _arguments(function, named)
        return cls(ToolSpec(named, text, _schema(arguments, named)), function, arguments)

    def with_function(self, function: ToolFunction) -> Tool:
        """Return the same tool with another function of the same signature."""
        return replace(self, function=function)

    async def invoke(self, arguments: str) -> ToolOutcome:
        """Validate the arguments, call the function, and format its result for the model."""
        if len(arguments) > MAX_ARGUMENT_CHARS:
            return _failure_outcome(f"the arguments are longer than {MAX_ARGUMENT_CHARS:,} characters")
        try:
            validated = self.arguments.model_validate_json(arguments.strip() or "{}")
        except ValidationError as error:
            return _failure_outcome("the arguments cannot be used", _problems(error))
        try:
            value = await self._run_function(_keywords(validated))
        except _TooLong:
            return _failure_outcome(f"{self.spec.name} did not finish within {self.timeout_seconds:g} seconds")
        except asyncio.CancelledError:
            if _is_run_cancelled():
                raise
            return _failure_outcome(f"{self.spec.name} was cancelled from within")
        except HoldfastError as error:
            return _failure_outcome(_short(str(error)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reported to the model, whatever it is
            return _failure_outcome(_short(f"{type(error).__name__}: {error}"))
        return self._to_outcome(value)

    async def _run_function(self, keywords: Mapping[str, Any]) -> object:
        limit = asyncio.timeout(self.timeout_seconds)
        try:
            async with limit:
                if inspect.iscoroutinefunction(self.function):
                    return await self.function(**keywords)
                result = await _run_in_thread(lambda: self.function(**keywords))
                return await result if inspect.isawaitable(result) else result
        except TimeoutError:
            if limit.expired():
                raise _TooLong from None
            raise  # the function's own timeout

    def _to_outcome(self, value: object) -> ToolOutcome:
        try:
            text = value if isinstance(value, str) else to_json(value, fallback=str).decode()
        except (PydanticSerializationError, ValueError, RecursionError):
            return _failure_outcome(f"{self.spec.name} gave something that cannot be written as JSON")
        text = storable(text)
        refused = isinstance(value, Mapping) and value.get("success") is False
        return ToolOutcome(_truncate(text, self.max_result_chars), ok=not refused, value=value)


async def _run_in_thread(work: Callable[[], object]) -> object:
    """Run blocking work in a thread of its own.

    A thread cannot be stopped: after its timeout the function goes on, and its result is dropped. So it is not one of
    the event loop's own threads, which are few and are joined at the end.
    """
    # A pair, since a future cannot hold every error.
    done: Future[tuple[object, BaseException | None]] = Future()

    def run() -> None:
        result: object = None
        problem: BaseException | None = None
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - passed to the caller, whatever it is
            problem = error
        with contextlib.suppress(InvalidStateError):  # cancelled: nothing waits
            done.set_result((result, problem))

    context = contextvars.copy_context()
    threading.Thread(target=run, name="holdfast-tool", daemon=True).start()
    result, problem = await asyncio.wrap_future(done)
    if problem is not None:
        raise problem
    return result


class _TooLong(Exception):
    """A tool exceeded its time limit."""


def _is_run_cancelled() -> bool:
    """True if the run was cancelled, and not something that a tool was waiting for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class ToolBox:
    """The tools of an agent, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def register(
        self,
        function: ToolFunction,
        name: str | None = None,
        description: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Tool:
        """Register a function that models may call."""
        tool = replace(Tool.of(function, name, description), timeout_seconds=timeout_seconds)
        self.add(tool)
        return tool

    def add(self, tool: Tool) -> None:
        if tool.spec.name in self._tools:
            raise InvalidInput(tool.spec.name, "there is a tool of this name already; register it under another name")
        self._tools[tool.spec.name] = tool

    def with_functions(self, functions: Mapping[str, ToolFunction]) -> ToolBox:
        """Return the same tools, some with other functions: for tools that belong to one run."""
        known = self._tools.items()
        return ToolBox(tool.with_function(functions[name]) if name in functions else tool for name, tool in known)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, call: ToolCall) -> ToolOutcome:
        """Run a model's tool call."""
        tool = self._tools.get(call.name)
        if tool is None:
            return _failure_outcome(
                f"there is no tool named {_short(repr(call.name))}", [f"there is {name}" for name in self._tools]
            )
        return await tool.invoke(call.arguments)


def _arguments(function: ToolFunction, name: str) -> type[BaseModel]:
    """Build a pydantic model of the parameters. Its fields are numbered, so no name clashes with pydantic's own."""
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(_parameters(function, name)):
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"argument_{index}"] = (parameter.annotation, Field(default, alias=parameter.name))
    try:
        return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticSchemaGenerationError, PydanticUserError):
        problem = "has a parameter of a type that cannot be read from JSON"
    raise InvalidInput(name, problem)


def _parameters(function: ToolFunction, name: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function, eval_str=True).parameters.values())
    except (TypeError, ValueError, NameError) as error:
        raise InvalidInput(name, f"its signature cannot be read: {error}") from None
    for parameter in found:
        if parameter.kind not in _NAMED:
            raise InvalidInput(name, f"{parameter}: every parameter must be passable by name")
        if parameter.annotation is parameter.empty:
            raise InvalidInput(name, f"{parameter.name}: has no type; annotate it, so that a model knows what to pass")
    return found


def _schema(arguments: type[BaseModel], name: str) -> Json:
    try:
        schema = arguments.model_json_schema(by_alias=True)
    except PydanticUserError:
        problem = "has a parameter of a type that no JSON schema describes"
    else:
        return {"type": "object", "properties": {}, **_drop_titles(schema)}
    raise InvalidInput(name, problem)


def _drop_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop titles that only repeat names: every schema is sent with every call. A property named `title` stays."""
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _drop_titles(inner) for name, inner in value.items()}
        elif isinstance(value, dict):
            cleaned[key] = _drop_titles(value)
        elif isinstance(value, list):
            cleaned[key] = [_drop_titles(item) if isinstance(item, dict) else item for item in value]
        elif key != "title":
            cleaned[key] = value
    return cleaned


def _keywords(arguments: BaseModel) -> dict[str, Any]:
    """Return each argument that was passed, by its parameter's name; the function has defaults for the others."""
    fields = type(arguments).model_fields
    return {str(fields[name].alias): getattr(arguments, name) for name in fields if name in arguments.model_fields_set}


def _problems(error: ValidationError) -> list[str]:
    """List the problem of each argument. The values are left out: the model knows what it wrote."""
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    lines = [_short(f"{'.'.join(str(part) for part in each['loc']) or 'arguments'}: {each['msg']}") for each in errors]
    return [*lines[:_MAX_PROBLEMS], *([f"and {len(lines) - _MAX_PROBLEMS} more"] if len(lines) > _MAX_PROBLEMS else [])]


def _failure_outcome(problem: str, more: Iterable[str] = ()) -> ToolOutcome:
    details = list(more)
    content = {"error": problem, **({"problems": details} if details else {})}
    return ToolOutcome(to_json(content).decode(), ok=False, value=content)


def storable(text: str) -> str:
    """Replace lone surrogates and NUL characters, which some stores and protocols cannot carry."""
    return encodable(text).replace("\x00", "\ufffd")


def _short(text: str) -> str:
    return _truncate(one_line(storable(text)), _MAX_PROBLEM_CHARS)


def _truncate(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… [{len(text) - max_chars:,} more characters were left out]"
