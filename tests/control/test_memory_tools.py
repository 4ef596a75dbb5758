"""The tools for agents: their definitions, the validation of arguments, and their results."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import jsonschema_rs
import pytest

from holdfast import Actor, ActorKind, AsyncControlPlane
from holdfast.control.tools import NOTICE, MemoryTool, call_tool, tools
from holdfast.errors import AccessDenied, BindingNotFound, InvalidInput, NotFound

GOLDEN = Path(__file__).parent / "golden" / "tools.json"
TOOLS = {tool.name: tool for tool in tools()}
NAMES = ["search", "note", "correct", "forget", "list", "get", "jobs"]
T = TypeVar("T")


def with_plane(place: Path, work: Callable[[AsyncControlPlane], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        async with await AsyncControlPlane.open(
            place / "memory.db", **{"space": "acme", "embedder": "fake", "work": False, **options}
        ) as plane:
            return await work(plane)

    return asyncio.run(run())


def call(place: Path, name: str, arguments: object, **options: Any) -> dict[str, Any]:
    """Call a tool and check its response against the output schema."""
    fixed = options.pop("fixed", None)
    told = with_plane(place, lambda plane: call_tool(plane, name, arguments, fixed=fixed), **options)
    jsonschema_rs.Draft202012Validator(dict(TOOLS[name].output_schema)).validate(told)
    return json.loads(json.dumps(told))  # plain JSON


# --- definitions and validation -------------------------------------------------------------------------------------


def test_there_are_these_tools() -> None:
    assert list(TOOLS) == [f"memory.{name}" for name in NAMES]
    assert {name for name, tool in TOOLS.items() if tool.destroys} == {"memory.forget"}
    assert {name for name, tool in TOOLS.items() if tool.reads} == {
        f"memory.{name}" for name in ("search", "list", "get", "jobs")
    }


def test_the_definitions_are_the_golden_file() -> None:
    told = [
        {"name": tool.name, "description": tool.description, "input": tool.input_schema, "output": tool.output_schema}
        for tool in tools()
    ]
    written = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("HOLDFAST_REFRESH_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(written, "utf-8")
    assert written == GOLDEN.read_text("utf-8"), "HOLDFAST_REFRESH_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_both_schemas_are_json_schema_2020_12_and_closed(tool: MemoryTool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema_rs.meta.validate(dict(schema))
        objects = [schema, *schema.get("$defs", {}).values()]
        assert all(each["additionalProperties"] is False for each in objects if each.get("type") == "object")
    assert all(each.get("description") for each in tool.input_schema["properties"].values())


def test_a_host_may_change_what_it_was_given_and_nobody_else_notices() -> None:
    first = tools()[0]
    dict(first.input_schema)["properties"].clear()
    assert tools()[0].input_schema["properties"]


# The minimal arguments of each tool, and arguments that are refused.
TAKES: dict[str, dict[str, Any]] = {
    "memory.search": {"query": "x"},
    "memory.note": {"text": "x"},
    "memory.correct": {"record_id": "x", "text": "x"},
    "memory.forget": {"record_ids": ["x"]},
    "memory.list": {},
    "memory.get": {"record_id": "x"},
    "memory.jobs": {},
}
WRONG = [
    ("memory.search", {}, "query"),
    ("memory.search", {"query": ""}, "query"),
    ("memory.search", {"query": "x" * 4_001}, "query"),
    ("memory.search", {"query": 3}, "query"),
    ("memory.search", {"query": "x", "top_k": 0}, "top_k"),
    ("memory.search", {"query": "x", "top_k": 26}, "top_k"),
    ("memory.search", {"query": "x", "top_k": "5"}, "top_k"),
    ("memory.search", {"query": "x", "topk": 5}, "topk"),
    ("memory.search", {"query": "x", "agent_id": ""}, "agent_id"),
    ("memory.search", {"query": "x", "binding_key": "No Key"}, "binding_key"),
    ("memory.search", {"query": "x", "metadata_filter": []}, "metadata_filter"),
    ("memory.note", {"text": "x" * 20_001}, "text"),
    ("memory.note", {"text": "x", "summary": "x" * 2_001}, "summary"),
    ("memory.note", {"text": "x", "session_key": "x" * 257}, "session_key"),
    ("memory.forget", {"record_ids": []}, "record_ids"),
    ("memory.forget", {"record_ids": ["x"] * 101}, "record_ids"),
    ("memory.forget", {"record_ids": "x"}, "record_ids"),
    ("memory.forget", {"record_ids": ["x", 3]}, "record_ids[1]"),
    ("memory.correct", {"record_id": "x"}, "text"),
    ("memory.list", {"limit": 201}, "limit"),
    ("memory.jobs", {"state": "lost"}, "state"),
    ("memory.get", {}, "record_id"),
]


@pytest.mark.parametrize("name", TAKES)
def test_what_a_tool_takes_at_least_its_schema_takes_too(name: str) -> None:
    validator = jsonschema_rs.Draft202012Validator(dict(TOOLS[name].input_schema))
    assert validator.is_valid(TAKES[name])
    assert validator.is_valid({**TAKES[name], "subject_id": None, "binding_key": "local-markdown"})


@pytest.mark.parametrize(("name", "arguments", "field"), WRONG, ids=lambda value: str(value)[:40])
def test_what_cannot_be_used_is_refused_by_the_schema_and_by_the_tool_which_names_the_field(
    name: str, arguments: dict[str, Any], field: str
) -> None:
    assert not jsonschema_rs.Draft202012Validator(dict(TOOLS[name].input_schema)).is_valid(arguments)
    nobody: Any = None  # it is not used
    with pytest.raises(InvalidInput) as caught:
        asyncio.run(call_tool(nobody, name, arguments))
    assert caught.value.field == field
    assert "xxxx" not in str(caught.value)


@pytest.mark.parametrize("arguments", [None, [], "query", 3])
def test_arguments_are_an_object(arguments: object) -> None:
    nobody: Any = None
    with pytest.raises(InvalidInput, match="arguments: expected an object"):
        asyncio.run(call_tool(nobody, "memory.search", arguments))


def test_a_tool_that_there_is_not_is_not_found() -> None:
    nobody: Any = None
    with pytest.raises(NotFound, match=r"there is no tool 'memory\.erase'; did you mean memory\.forget"):
        asyncio.run(call_tool(nobody, "memory.erase", {}))


# --- calls ----------------------------------------------------------------------------------------------------------


def test_a_note_is_found_read_corrected_and_forgotten_by_its_id(tmp_path: Path) -> None:
    noted = call(tmp_path, "memory.note", {"text": "Releases go out on Tuesdays.", "agent_id": "builder"})
    (record_id,) = noted["record_ids"]
    found = call(tmp_path, "memory.search", {"query": "When are releases?", "agent_id": "builder"})
    assert found["notice"] == NOTICE
    assert [each["text"] for each in found["snippets"]] == ["Releases go out on Tuesdays."]
    assert found["snippets"][0]["record_id"] == record_id
    assert found["snippets"][0]["source"]["kind"] == "manual_note"
    assert found["binding_key"] == "default"
    shown = call(tmp_path, "memory.get", {"record_id": record_id, "agent_id": "builder"})
    assert shown["snippet"]["text"] == "Releases go out on Tuesdays."
    right = {"record_id": record_id, "text": "Releases go out on Thursdays.", "agent_id": "builder"}
    corrected = call(tmp_path, "memory.correct", {**right, "reason": "Ana said so"})
    listed = call(tmp_path, "memory.list", {"agent_id": "builder"})
    assert [each["text"] for each in listed["snippets"]] == ["Releases go out on Thursdays."]
    forgotten = call(
        tmp_path, "memory.forget", {"record_ids": [corrected["record_id"], "mem_none"], "agent_id": "builder"}
    )
    assert forgotten["forgotten"] == [corrected["record_id"]]
    assert forgotten["missing"] == ["mem_none"]
    assert call(tmp_path, "memory.list", {"agent_id": "builder"})["snippets"] == []


def test_what_was_captured_shows_among_the_jobs(tmp_path: Path) -> None:
    async def capture(plane: AsyncControlPlane) -> object:
        return await plane.capture(
            "I live in Porto.", source={"kind": "run", "run_id": "r1"}, agent="builder", run="r1"
        )

    with_plane(tmp_path, capture)
    (job,) = call(tmp_path, "memory.jobs", {"agent_id": "builder"})["jobs"]
    assert (job["kind"], job["state"], job["source"]["run_id"]) == ("extract", "queued", "r1")
    assert call(tmp_path, "memory.jobs", {"agent_id": "builder", "job_id": job["job_id"]})["jobs"] == [job]
    assert call(tmp_path, "memory.jobs", {"agent_id": "builder", "state": "failed"})["jobs"] == []


def test_an_agent_need_not_say_who_it_is_and_cannot_say_that_it_is_another(tmp_path: Path) -> None:
    mine = Actor(ActorKind.AGENT, "builder", "acme")
    other = Actor(ActorKind.AGENT, "tester", "acme")
    call(tmp_path, "memory.note", {"text": "The build runs on two cores."}, actor=mine)
    assert len(call(tmp_path, "memory.list", {}, actor=mine)["snippets"]) == 1
    assert call(tmp_path, "memory.list", {}, actor=other)["snippets"] == []
    with pytest.raises(AccessDenied):
        call(tmp_path, "memory.list", {"agent_id": "builder"}, actor=other)


def test_what_the_host_fixed_no_model_changes(tmp_path: Path) -> None:
    fixed = {"agent_id": "builder", "run_id": "r9"}
    call(tmp_path, "memory.note", {"text": "The cache is cold after a release."}, fixed=fixed)
    (found,) = call(tmp_path, "memory.list", {"agent_id": "builder"}, fixed=fixed)["snippets"]
    assert found["scope"]["run_id"] == "r9"
    with pytest.raises(InvalidInput, match="agent_id: is set by the host"):
        call(tmp_path, "memory.list", {"agent_id": "tester"}, fixed=fixed)
    with pytest.raises(InvalidInput, match="company_id: is not a part of a scope"):
        call(tmp_path, "memory.list", {}, fixed={"company_id": "other"})


def test_a_binding_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(BindingNotFound, match="'research-kb'"):
        call(tmp_path, "memory.search", {"query": "x", "binding_key": "research-kb"})


def test_a_problem_with_a_part_of_the_scope_has_the_name_that_the_model_used(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(tmp_path, "memory.search", {"query": "x", "session_key": " "})
    assert caught.value.field == "session_key"
