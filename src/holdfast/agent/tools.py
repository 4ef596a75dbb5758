"""Tools: plain functions that a model may call.

A tool's schema comes from its signature and its description from its docstring, so that what a model is told and what
is done cannot drift apart. Whatever a model writes is checked before the function sees it, and whatever goes wrong is
an answer to the model, never an error of the run: it can mend its call, or do without.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from holdfast.agent.ports import Json, ToolCall, ToolSpec
from holdfast.domain.projection import one_line
from holdfast.errors import HoldfastError, InvalidInput

TIMEOUT_SECONDS = 60.0
MAX_RESULT_CHARS = 16_000
MAX_ARGUMENT_CHARS = 200_000
MAX_DESCRIPTION_CHARS = 4_000
_MAX_PROBLEM_CHARS = 500
_MAX_PROBLEMS = 8
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")  # what every provider takes
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

ToolFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call came to: the text for the model, and the value that it was made from.

    A function that answers `{"success": False, …}` did not do what it was asked, as one that raised an error.
    """

    content: str
    ok: bool
    value: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with what a model is told of it, and the check of what a model gives it."""

    spec: ToolSpec
    function: ToolFunction
    arguments: type[BaseModel]
    timeout_seconds: float = TIMEOUT_SECONDS
    max_result_chars: int = MAX_RESULT_CHARS

    @classmethod
    def of(cls, function: ToolFunction, name: str | None = None, description: str | None = None) -> Tool:
        """Read the function. Each parameter needs a type; `Annotated[…, Field(description=…)]` describes it."""
        named = name or str(getattr(function, "__name__", ""))
        if not _NAME.fullmatch(named):
            raise InvalidInput("name", f"{named!r} is no name for a tool: letters, digits, _ and -, at most 64")
        told = inspect.cleandoc(description or getattr(function, "__doc__", None) or "")
        if not told:
            raise InvalidInput(named, "says nothing of itself; give the function a docstring, or a description")
        if len(told) > MAX_DESCRIPTION_CHARS:
            raise InvalidInput(named, f"its description is longer than {MAX_DESCRIPTION_CHARS:,} characters")
        arguments = _arguments(function, named)
        return cls(ToolSpec(named, told, _schema(arguments, named)), function, arguments)

    def bound(self, function: ToolFunction) -> Tool:
        """The same tool over another function of the same signature."""
        return replace(self, function=function)

    async def called(self, arguments: str) -> ToolOutcome:
        """Check the arguments, call the function, and put what it gives into words."""
        if len(arguments) > MAX_ARGUMENT_CHARS:
            return _failed(f"the arguments are longer than {MAX_ARGUMENT_CHARS:,} characters")
        try:
            given = self.arguments.model_validate_json(arguments.strip() or "{}")
        except ValidationError as error:
            return _failed("the arguments cannot be used", _problems(error))
        try:
            value = await self._done(_keywords(given))
        except _TooLong:
            return _failed(f"{self.spec.name} did not finish within {self.timeout_seconds:g} seconds")
        except asyncio.CancelledError:
            if _cancelled():
                raise
            return _failed(f"{self.spec.name} was cancelled from within")
        except HoldfastError as error:
            return _failed(_short(str(error)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - told to the model, whatever it is
            return _failed(_short(f"{type(error).__name__}: {error}"))
        return self._told(value)

    async def _done(self, keywords: Mapping[str, Any]) -> object:
        limit = asyncio.timeout(self.timeout_seconds)
        try:
            async with limit:
                if inspect.iscoroutinefunction(self.function):
                    return await self.function(**keywords)
                found = await _beside(lambda: self.function(**keywords))
                return await found if inspect.isawaitable(found) else found
        except TimeoutError:
            if limit.expired():
                raise _TooLong from None
            raise  # the function's own

    def _told(self, value: object) -> ToolOutcome:
        try:
            text = value if isinstance(value, str) else to_json(value, fallback=str).decode()
        except (PydanticSerializationError, ValueError, RecursionError):
            return _failed(f"{self.spec.name} gave something that cannot be written as JSON")
        text = storable(text)
        refused = isinstance(value, Mapping) and value.get("success") is False
        return ToolOutcome(_bounded(text, self.max_result_chars), ok=not refused, value=value)


async def _beside(work: Callable[[], object]) -> object:
    """Do what may block in a thread of its own.

    A thread cannot be stopped: past its time the function goes on, and what it gives is dropped. So it is not one of
    the event loop's own threads, which are waited for at the end and are few.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def tell(value: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def run() -> None:
        found: object = None
        problem: BaseException | None = None
        try:
            found = context.run(work)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, found, problem)

    context = contextvars.copy_context()
    threading.Thread(target=run, name="holdfast-tool", daemon=True).start()
    found, problem = await done
    if problem is not None:
        raise problem
    return found


class _TooLong(Exception):
    """A tool's time is over."""


def _cancelled() -> bool:
    """Whether it is the run that was cancelled, and not something that a tool was waiting for."""
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
        """Let models call a function."""
        tool = replace(Tool.of(function, name, description), timeout_seconds=timeout_seconds)
        self.add(tool)
        return tool

    def add(self, tool: Tool) -> None:
        if tool.spec.name in self._tools:
            raise InvalidInput(tool.spec.name, "there is a tool of this name already; register it under another")
        self._tools[tool.spec.name] = tool

    def rebound(self, functions: Mapping[str, ToolFunction]) -> ToolBox:
        """The same tools, some of them over other functions: for what belongs to one run."""
        known = self._tools.items()
        return ToolBox(tool.bound(functions[name]) if name in functions else tool for name, tool in known)

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
        """Do what a model asked for."""
        tool = self._tools.get(call.name)
        if tool is None:
            return _failed(
                f"there is no tool named {_short(repr(call.name))}", [f"there is {name}" for name in self._tools]
            )
        return await tool.called(call.arguments)


def _arguments(function: ToolFunction, name: str) -> type[BaseModel]:
    """A model of the parameters. Its fields are numbered, so that no parameter's name can be one of pydantic's own."""
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
            raise InvalidInput(name, f"{parameter}: every parameter must have a name that arguments can be given by")
        if parameter.annotation is parameter.empty:
            raise InvalidInput(name, f"{parameter.name}: has no type; a model must be told what to give")
    return found


def _schema(arguments: type[BaseModel], name: str) -> Json:
    try:
        schema = arguments.model_json_schema(by_alias=True)
    except PydanticUserError:
        problem = "has a parameter of a type that no JSON schema describes"
    else:
        return {"type": "object", "properties": {}, **_untitled(schema)}
    raise InvalidInput(name, problem)


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that repeat names: every schema is sent with every call. A property named so stays."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _untitled(inner) for name, inner in value.items()}
        elif isinstance(value, dict):
            kept[key] = _untitled(value)
        elif isinstance(value, list):
            kept[key] = [_untitled(item) if isinstance(item, dict) else item for item in value]
        elif key != "title":
            kept[key] = value
    return kept


def _keywords(given: BaseModel) -> dict[str, Any]:
    """Each argument as it was read, under its parameter's name; what was not given is left to the function."""
    fields = type(given).model_fields
    return {str(fields[name].alias): getattr(given, name) for name in fields if name in given.model_fields_set}


def _problems(error: ValidationError) -> list[str]:
    """What is wrong with which argument. The values are left out: the model knows what it wrote."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    told = [_short(f"{'.'.join(str(part) for part in each['loc']) or 'arguments'}: {each['msg']}") for each in found]
    return [*told[:_MAX_PROBLEMS], *([f"and {len(told) - _MAX_PROBLEMS} more"] if len(told) > _MAX_PROBLEMS else [])]


def _failed(problem: str, more: Iterable[str] = ()) -> ToolOutcome:
    details = list(more)
    told = {"error": problem, **({"problems": details} if details else {})}
    return ToolOutcome(to_json(told).decode(), ok=False, value=told)


def storable(text: str) -> str:
    """The text as every store and wire can carry it: without lone surrogates and NUL characters."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def _short(text: str) -> str:
    return _bounded(one_line(storable(text)), _MAX_PROBLEM_CHARS)


def _bounded(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… [{len(text) - max_chars:,} more characters were left out]"
