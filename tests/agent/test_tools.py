"""Tools: the schema comes from the signature, and every error is returned to the model."""

from __future__ import annotations

import asyncio
import contextvars
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from holdfast.agent.ports import ToolCall
from holdfast.agent.tools import MAX_ARGUMENT_CHARS, MAX_RESULT_CHARS, Tool, ToolBox, ToolOutcome
from holdfast.errors import InvalidInput, NotFound


class Unit(StrEnum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


@dataclass
class Place:
    name: str
    title: str = ""


def weather(
    place: Annotated[str, Field(description="A town.", min_length=2)],
    days: Annotated[int, Field(ge=1, le=7)] = 1,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["short", "long"] = "short",
) -> dict[str, Any]:
    """The weather at a place."""
    return {"place": place, "days": days, "unit": unit, "detail": detail}


def box(*functions: Any) -> ToolBox:
    made = ToolBox()
    for function in functions:
        made.register(function)
    return made


def called(function: Any, arguments: str | dict[str, Any] = "{}", **changes: Any) -> ToolOutcome:
    tool = replace(Tool.of(function), **changes)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return asyncio.run(ToolBox([tool]).call(ToolCall("1", tool.spec.name, text)))


# --- schemas --------------------------------------------------------------------------------------------------------


def test_the_schema_is_the_signature() -> None:
    spec = Tool.of(weather).spec
    assert (spec.name, spec.description) == ("weather", "The weather at a place.")
    assert spec.parameters["type"] == "object"
    assert spec.parameters["required"] == ["place"]
    assert spec.parameters["additionalProperties"] is False
    properties = spec.parameters["properties"]
    assert properties["place"] == {"description": "A town.", "minLength": 2, "type": "string"}
    assert properties["days"] == {"default": 1, "maximum": 7, "minimum": 1, "type": "integer"}
    assert properties["detail"] == {"default": "short", "enum": ["short", "long"], "type": "string"}
    assert set(properties) == {"place", "days", "unit", "detail"}
    json.dumps(spec.parameters)


def test_names_that_pydantic_uses_itself_can_be_parameters() -> None:
    def odd(model_config: str, json: int, copy: bool, title: str, properties: list[str]) -> list[Any]:
        """Odd names."""
        return [model_config, json, copy, title, properties]

    given = {"model_config": "a", "json": 1, "copy": True, "title": "t", "properties": ["p"]}
    assert set(Tool.of(odd).spec.parameters["properties"]) == set(given)
    assert json.loads(called(odd, given).content) == ["a", 1, True, "t", ["p"]]


def test_values_within_values_are_read_as_their_types() -> None:
    def visit(place: Place, on: date) -> str:
        """Visit."""
        assert isinstance(place, Place)
        return f"{place.name} ({place.title}) on {on:%d.%m.%Y}"

    properties = Tool.of(visit).spec.parameters["$defs"]["Place"]["properties"]
    assert set(properties) == {"name", "title"}
    outcome = called(visit, {"place": {"name": "Lisbon", "title": "city"}, "on": "2026-11-15"})
    assert outcome == ToolOutcome("Lisbon (city) on 15.11.2026", True, outcome.value)


def test_a_function_without_parameters_is_a_tool() -> None:
    def now() -> str:
        """The time."""
        return "noon"

    assert Tool.of(now).spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert called(now, "").content == "noon"


def test_methods_and_other_names_and_descriptions_can_be_given() -> None:
    class Shop:
        def price(self, of: str) -> str:
            return f"{of}: 3"

    tools = ToolBox()
    tools.register(Shop().price, name="price_of", description="What it costs.")
    assert [(spec.name, spec.description) for spec in tools.specs] == [("price_of", "What it costs.")]
    assert asyncio.run(tools.call(ToolCall("1", "price_of", '{"of": "tea"}'))).content == "tea: 3"


def test_two_tools_of_one_name_are_refused() -> None:
    tools = box(weather)
    with pytest.raises(InvalidInput, match="already"):
        tools.register(weather)
    assert tools.names == ("weather",)
    assert tools.register(weather, "weather_2").spec.name == "weather_2"


def test_tools_over_other_functions_leave_the_others_as_they_were() -> None:
    def elsewhere(place: str, days: int = 1, unit: Unit = Unit.CELSIUS, detail: str = "") -> str:
        return f"{place} is elsewhere"

    tools = box(weather)
    rebound = tools.with_functions({"weather": elsewhere, "unknown": elsewhere})
    assert rebound.specs == tools.specs
    call = ToolCall("1", "weather", '{"place": "Lisbon"}')
    assert asyncio.run(rebound.call(call)).content == "Lisbon is elsewhere"
    assert "celsius" in asyncio.run(tools.call(call)).content
    assert "weather" in tools
    assert len(tools) == 1


def undescribed(place: str) -> None: ...
def untyped(place) -> None:  # type: ignore[no-untyped-def]
    """A place."""


def rest(*places: str) -> None:
    """Places."""


def unreadable(lock: threading.Lock) -> None:
    """A lock."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [(undescribed, "docstring"), (untyped, "place"), (rest, "places"), (unreadable, "type"), (lambda: 1, "<lambda>")],
)
def test_a_function_that_a_model_could_not_call_is_refused_when_it_is_registered(function: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        Tool.of(function)


# --- arguments ------------------------------------------------------------------------------------------------------


def test_arguments_arrive_as_the_types_that_were_asked_for() -> None:
    outcome = called(weather, {"place": "Lisbon", "days": "3", "unit": "fahrenheit"})
    assert outcome.ok
    assert json.loads(outcome.content) == {"place": "Lisbon", "days": 3, "unit": "fahrenheit", "detail": "short"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{", "arguments"),
        ("[]", "arguments"),
        ("null", "arguments"),
        ("{}", "place"),
        ('{"place": "Lisbon", "days": 9}', "days"),
        ('{"place": "Lisbon", "days": "many"}', "days"),
        ('{"place": 7}', "place"),
        ('{"place": "Lisbon", "unit": "kelvin"}', "unit"),
        ('{"place": "Lisbon", "planet": "Mars"}', "planet"),
        ('{"argument_0": "Lisbon"}', "argument_0"),
        ('{"place": "\\ud800x"}', "arguments"),
        ("[" * 100_000, "arguments"),
    ],
)
def test_arguments_that_cannot_be_used_are_told_to_the_model(arguments: str, told: str) -> None:
    outcome = called(weather, arguments)
    assert not outcome.ok
    answer = json.loads(outcome.content)
    assert "arguments" in answer["error"]
    assert any(told in problem for problem in answer["problems"])
    assert len(outcome.content) < 5_000


def test_the_values_of_arguments_are_not_repeated_in_the_answer() -> None:
    outcome = called(weather, {"place": "L", "days": "hunter2"})
    assert "hunter2" not in outcome.content


def test_arguments_without_end_are_not_even_read() -> None:
    outcome = called(weather, json.dumps({"place": "x" * MAX_ARGUMENT_CHARS}))
    assert not outcome.ok
    assert "longer than" in outcome.content


def test_a_tool_that_is_not_there_is_told_with_those_that_are() -> None:
    outcome = asyncio.run(box(weather).call(ToolCall("1", "wether\n" * 1000, "{}")))
    assert not outcome.ok
    assert "no tool named" in outcome.content
    assert "weather" in outcome.content
    assert len(outcome.content) < 1_000


@given(st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_nothing_that_a_model_can_write_is_an_error_of_the_run(arguments: str) -> None:
    outcome = called(weather, arguments)
    assert not outcome.ok
    json.loads(outcome.content)


# --- functions ------------------------------------------------------------------------------------------------------


def test_a_function_that_blocks_runs_beside_the_event_loop() -> None:
    threads = list[int]()

    def where() -> None:
        """Where."""
        threads.append(threading.get_ident())

    async def there() -> None:
        """There."""
        threads.append(threading.get_ident())

    called(where)
    called(there)
    assert threads[0] != threading.get_ident() == threads[1]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain", "plain"),
        (None, "null"),
        ({"a": [1, 2.5, None], "day": date(2026, 1, 2)}, '{"a":[1,2.5,null],"day":"2026-01-02"}'),
        (Place("Lisbon"), '{"name":"Lisbon","title":""}'),
        ("a\x00b\ud800", "a\ufffdb?"),
    ],
)
def test_whatever_a_function_gives_becomes_text(value: object, content: str) -> None:
    def give() -> Any:
        """Give."""
        return value

    assert called(give).content == content


def test_what_cannot_be_written_as_json_is_an_answer_too() -> None:
    ring: list[Any] = []
    ring.append(ring)

    def give() -> Any:
        """Give."""
        return ring

    outcome = called(give)
    assert not outcome.ok
    assert "JSON" in outcome.content


def test_a_function_that_says_it_did_not_succeed_is_believed() -> None:
    def keep(what: str) -> dict[str, Any]:
        """Keep."""
        return {"success": what == "this"}

    assert [called(keep, {"what": what}).ok for what in ("this", "that")] == [True, False]


def test_a_long_result_is_cut_and_says_so() -> None:
    def give() -> str:
        """Give."""
        return "x" * (MAX_RESULT_CHARS + 1234)

    content = called(give).content
    assert content.startswith("x" * MAX_RESULT_CHARS)
    assert content.endswith("[1,234 more characters were left out]")


@pytest.mark.parametrize("error", [ValueError("no such town"), NotFound("no such town"), SystemExit("no such town")])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_error_of_a_function_is_told_to_the_model(error: BaseException, kind: str) -> None:
    def plain() -> None:
        """Fail."""
        raise error

    async def later() -> None:
        """Fail."""
        raise error

    outcome = called(plain if kind == "plain" else later)
    assert not outcome.ok
    assert "no such town" in outcome.content


def test_an_error_that_python_itself_uses_is_no_different() -> None:
    def stop() -> None:
        """Stop."""
        next(iter(()))

    outcome = called(stop)
    assert not outcome.ok
    assert "StopIteration" in outcome.content


def test_a_function_that_takes_too_long_is_given_up() -> None:
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    outcome = called(wait, timeout_seconds=0.01)
    assert not outcome.ok
    assert "within 0.01 seconds" in outcome.content


def test_a_function_that_blocks_for_too_long_is_given_up_too() -> None:
    let_go = threading.Event()

    def wait() -> None:
        """Wait."""
        let_go.wait(300)

    # The event loop ends although the function is still running.
    assert "within 0.01 seconds" in asyncio.run(replace(Tool.of(wait), timeout_seconds=0.01).invoke("{}")).content
    let_go.set()


def test_a_function_that_never_ends_does_not_keep_the_program_from_ending() -> None:
    program = """
import asyncio, dataclasses, threading
from holdfast.agent.tools import Tool

def wait() -> None:
    'Wait.'
    threading.Event().wait()

print(asyncio.run(dataclasses.replace(Tool.of(wait), timeout_seconds=0.01).invoke("{}")).content)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "did not finish" in ended.stdout


def test_what_is_set_for_the_run_is_set_for_the_function_too() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    def whoever() -> str:
        """Who."""
        return who.get()

    who.set("ana")
    assert called(whoever).content == "ana"


def test_a_timeout_of_the_functions_own_is_its_own() -> None:
    async def ask() -> None:
        """Ask."""
        raise TimeoutError("the oracle sleeps")

    assert "the oracle sleeps" in called(ask).content


def test_something_cancelled_within_a_tool_does_not_cancel_the_run() -> None:
    async def ask() -> None:
        """Ask."""
        raise asyncio.CancelledError

    assert not called(ask).ok


def test_cancelling_the_run_cancels_the_tool() -> None:
    async def run() -> bool:
        started, ended = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            """Wait."""
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(Tool.of(wait).invoke("{}"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended.is_set()

    assert asyncio.run(run())
