"""Every text, list, map and number of every request has a limit, on every surface; the OpenAPI document says it.

The document is derived from the declarations of the requests, and the validators are held to it here: a value at a
limit is accepted by it, one beyond is refused with an error that names the argument and the limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.control.tools import tools
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Draft
from holdfast.errors import InvalidInput
from holdfast.runtime.add import MAX_MESSAGES, MAX_SERVED_MESSAGES, Add
from holdfast.runtime.idempotency import check_key
from holdfast.wire import JsonCodec, WireVerb, all_verbs, openapi_definitions

Schema = Mapping[str, Any]
DOCUMENT: Schema = json.loads((Path(__file__).parents[1] / "gateway" / "golden" / "openapi.json").read_text("utf-8"))
JOINED = ("anyOf", "oneOf", "allOf")
# The edge bounds files by their bytes. EverOS's clients may send fields that we do not know.
OPEN = {"contentMediaType"}


class Place(NamedTuple):
    """A part of a request: the names that lead to it, and its schema."""

    path: tuple[str, ...]
    schema: Schema


def places(schema: Schema, definitions: Schema, path: tuple[str, ...], seen: tuple[str, ...] = ()) -> Iterator[Place]:
    """Return all parts of a schema. A type within itself is visited once."""
    if (name := schema.get("$ref", "").rpartition("/")[2]) and name not in seen:
        yield from places(definitions[name], definitions, path, (*seen, name))
    if "type" in schema:
        yield Place(path, schema)
    for part in (each for keyword in JOINED for each in schema.get(keyword, ())):
        yield from places(part, definitions, path, seen)
    for name, part in schema.get("properties", {}).items():
        yield from places(part, definitions, (*path, name), seen)
    if isinstance(schema.get("items"), Mapping):
        yield from places(schema["items"], definitions, (*path, "[]"), seen)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from places(schema["additionalProperties"], definitions, (*path, "{}"), seen)
    if "propertyNames" in schema:
        yield from places({"type": "string", **schema["propertyNames"]}, definitions, (*path, "{name}"), seen)


def is_bounded(schema: Schema) -> bool:
    if {"enum", "const", "$ref"} & schema.keys():
        return True
    if isinstance(schema["type"], list):
        return all(is_bounded({**schema, "type": kind}) for kind in schema["type"])
    match schema["type"]:
        case "string":
            return "maxLength" in schema or schema.get("format") == "date-time" or bool(OPEN & schema.keys())
        case "integer" | "number":
            return schema.get("format") == "double" or bool(
                {"minimum", "exclusiveMinimum"} & schema.keys() and {"maximum", "exclusiveMaximum"} & schema.keys()
            )
        case "array":
            return "maxItems" in schema
        case "object" if "properties" not in schema:
            return "maxProperties" in schema
    return True


def is_closed(schema: Schema) -> bool:
    return "properties" not in schema or schema.get("additionalProperties") is False


def document_places() -> Iterator[tuple[str, Place]]:
    """Return all parts of all requests in the OpenAPI document, each with its route."""
    definitions = DOCUMENT["components"]["schemas"]
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            parts = {each["name"]: each["schema"] for each in operation.get("parameters", ())}
            parts |= {
                kind: each["schema"] for kind, each in operation.get("requestBody", {}).get("content", {}).items()
            }
            for name, schema in parts.items():
                for place in places(schema, definitions, (name,)):
                    yield f"{method} {path}", place


def test_every_part_of_every_request_is_bounded() -> None:
    found = list(document_places())
    assert len(found) > 1_000
    assert [(route, place.path) for route, place in found if not is_bounded(place.schema)] == []


def test_every_input_of_every_tool_is_bounded_and_closed() -> None:
    for tool in tools():
        found = list(places(tool.input_schema, tool.input_schema.get("$defs", {}), ()))
        assert [each.path for each in found if not (is_bounded(each.schema) and is_closed(each.schema))] == [], (
            tool.name
        )


def test_every_object_of_our_own_requests_is_closed() -> None:
    ours = [(route, place) for route, place in document_places() if "/api/v" not in route]
    assert [(route, place.path) for route, place in ours if not is_closed(place.schema)] == []


# --- the validators are as strict as the document, and no stricter ----------------------------------------------------

REQUESTS, _, DEFINITIONS = openapi_definitions("#/{model}")


def example(schema: Schema, definitions: Schema = DEFINITIONS) -> Any:
    """Return the smallest valid value of a schema."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return example(definitions[name], definitions)
    for keyword in JOINED:
        if keyword in schema:
            return example(schema[keyword][0], definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    match schema["type"]:
        case "string" if schema.get("format") == "date-time":
            return "2026-11-15T09:30:00Z"
        case "string":
            return sized(schema, max(1, schema.get("minLength", 1)))
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "array":
            return [example(schema["items"], definitions) for _ in range(schema.get("minItems", 0))]
        case "object":
            return {name: example(schema["properties"][name], definitions) for name in schema.get("required", ())}
    return None if schema["type"] == "null" else False


def is_set_of_names(schema: Schema) -> bool:
    """True if the array holds each of an enumeration's names at most once, which is its limit."""
    return "enum" in DEFINITIONS.get(schema["items"].get("$ref", "").rpartition("/")[2], {})


def numbered(value: Any, number: int) -> Any:
    return f"{value}{number}" if isinstance(value, str) else value


def sized(schema: Schema, length: int) -> str:
    return ("A" if "[A-Z]" in schema.get("pattern", "") else "a") * length


def at_limit(schema: Schema, beyond: int) -> Iterator[tuple[Any, int]]:
    """Return values at each limit of a schema, or beyond it, with the limit."""
    match schema.get("type"):
        case "string" if (most := schema.get("maxLength")) is not None and "format" not in schema:
            yield sized(schema, most + beyond), most
        case "integer" | "number" if "maximum" in schema:
            yield int(schema["maximum"]) + beyond, int(schema["maximum"])
            yield int(schema["minimum"]) - beyond, int(schema["minimum"])
        case "array" if (most := schema.get("maxItems")) is not None and not is_set_of_names(schema):
            yield [numbered(example(schema["items"]), number) for number in range(most + beyond)], most
        case "object" if (most := schema.get("maxProperties")) is not None and "propertyNames" not in schema:
            yield {f"n{number}": example(schema["additionalProperties"]) for number in range(most + beyond)}, most


def changed(value: Any, schema: Schema, path: tuple[str, ...], leaf: Any, definitions: Schema = DEFINITIONS) -> Any:
    """Return an example with another value at a path."""
    if not path:
        return leaf
    name, *rest = path
    if ref := schema.get("$ref", "").rpartition("/")[2]:
        return changed(value, definitions[ref], path, leaf, definitions)
    for part in (each for keyword in JOINED for each in schema.get(keyword, ())):
        if leads(part, name, definitions):
            return changed(value, part, path, leaf, definitions)
    if name == "[]":
        inner = schema["items"]
        return [changed(example(inner, definitions), inner, tuple(rest), leaf, definitions)]
    inner = schema["properties"][name]
    # The example of a union may be of a variant without this part, such as a text.
    whole = value if isinstance(value, dict) else example(schema, definitions)
    start = whole.get(name)
    if not isinstance(start, dict | list):
        start = example(inner, definitions)
    return {**whole, name: changed(start, inner, tuple(rest), leaf, definitions)}


def leads(schema: Schema, name: str, definitions: Schema) -> bool:
    """True if a part of that name is in the schema."""
    if ref := schema.get("$ref", "").rpartition("/")[2]:
        schema = definitions[ref]
    inside = [each for keyword in JOINED for each in schema.get(keyword, ())]
    return (
        "items" in schema
        if name == "[]"
        else name in schema.get("properties", {}) or any(leads(each, name, definitions) for each in inside)
    )


# What an example needs besides its required fields, and the names of fields in errors, where they differ.
NEEDS: Mapping[str, Schema] = {
    "add": {"scope": {"conversation": "c"}, "drafts": [{"text": "a"}]},
    "flush": {"scope": {"conversation": "c"}},
    "forget_preview": {"target": {"ids": ["a"]}},
    "forget": {"target": {"ids": ["a"]}},
    "add_resource": {"content": "YQ=="},
    "create_user": {"kind": "agent"},
    "capture": {"payload": {"text": "a"}, "source": {"kind": "run", "space": "default"}},
    "emit_hook": {"payload": {"text": "a"}, "source": {"kind": "run", "space": "default"}},
}
NAMES = {"external_id": "id", "top_k": "limit", "ids": "record_id", "drafts": "messages"}
# Places whose value is fixed by another, or whose example cannot be so long.
FIXED = {("source", "space"), ("content",)}


def refusal(codec: JsonCodec, body: Any) -> InvalidInput | None:
    try:
        request = codec.decode(json.dumps(body).encode())
        check_key(request.idempotency_key)
    except InvalidInput as error:
        return error
    return None


def cases(spoken: WireVerb, beyond: int) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    """Return a body for each limit of a request, with a value at it or beyond: its path, the body, the limit."""
    schema = REQUESTS[spoken.name]
    needed = NEEDS.get(spoken.name, {})
    for path, limited in places(schema, DEFINITIONS, ()):
        if {"condition", "{}", "{name}"} & set(path) or path in FIXED:
            continue
        # A forget has one target.
        whole = {**example(schema), **needed, **({"target": {}} if path[:1] == ("target",) else {})}
        for value, limit in at_limit(limited, beyond):
            yield path, changed(whole, schema, path, value), limit


@pytest.mark.parametrize("spoken", all_verbs().values(), ids=lambda spoken: spoken.name)
def test_a_value_beyond_a_limit_is_refused_by_name(spoken: WireVerb) -> None:
    # An open codec leaves the lengths of lists to the request itself, as in process.
    own = JsonCodec(spoken.request_type, closed=False)
    for path, body, limit in cases(spoken, 1):
        for codec in (spoken.request,) if path == ("drafts",) else (spoken.request, own):
            error = refusal(codec, body)
            assert error is not None, (path, limit)
            name = next(name for name in reversed(path) if name != "[]")
            assert name in error.field or NAMES.get(name, name) in error.field, (path, error)
            assert f"{limit:,}" in error.problem or name == "currency", (path, error)


@pytest.mark.parametrize("spoken", all_verbs().values(), ids=lambda spoken: spoken.name)
def test_a_value_at_a_limit_is_not_too_large(spoken: WireVerb) -> None:
    for path, body, limit in cases(spoken, 0):
        error = refusal(spoken.request, body)
        # The example may break a rule between arguments, or of the form of a value, that no schema says.
        assert error is None or not (f"{limit:,}" in error.problem or "at most" in error.problem), (path, limit, error)


def test_a_library_call_takes_more_messages_than_a_service() -> None:
    scope = Scope(conversation="c")
    assert len(Add(scope, (Draft("a"),) * (MAX_SERVED_MESSAGES + 1)).drafts) == MAX_SERVED_MESSAGES + 1
    with pytest.raises(InvalidInput, match="messages: has 100,001 items; at most 100,000 are allowed"):
        Add(scope, (Draft("a"),) * (MAX_MESSAGES + 1))
