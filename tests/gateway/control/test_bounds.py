"""Every bound of every company route: the maximum in the OpenAPI document is accepted, and one more is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from company import Company

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "openapi.json").read_text("utf-8"))
PREFIX = "/companies/{company_id}/memory"
# A valid request for every route whose body has a bounded field.
SOURCE = {"kind": "run", "run_id": "r1"}
RECORD = {"records": [{"text": "Tea."}], "source": SOURCE}
CAPTURE = {"source": SOURCE, "payload": {"text": "I live in Porto."}}
QUERY = {"query": "tea"}
FEE = {"kind": "other", "description": "x", "amount_micros": 1}
BODIES: dict[str, dict[str, Any]] = {
    "POST /bindings": {"key": "second", "provider": "local"},
    "PATCH /bindings/{key}": {"enabled": True},
    "PUT /default-binding": {"binding_key": "default"},
    "PUT /agents/{agent_id}/binding": {"binding_key": "default"},
    "POST /capture": CAPTURE,
    "POST /records": RECORD,
    "POST /query": QUERY,
    "POST /explain": QUERY,
    "POST /records/{record_id}/correct": {"text": "Coffee."},
    "POST /forget": {"record_ids": ["mem_none"]},
    "POST /hooks/{kind}": {"hook_id": "h1", **CAPTURE},
    "POST /hydrate": QUERY,
    "POST /costs/finance": FEE,
    "PUT /costs/prices": {"provider": "mem0"},
    "POST /credentials": {"kind": "agent", "id": "builder"},
    "POST /credentials/{kind}/{id}/rotate": {},
}
PATHS = {"key": "default", "agent_id": "builder", "record_id": "mem_none", "id": "nobody", "name": "memory.search"}
KINDS = {"/hooks/{kind}": "post_run_capture", "/credentials/{kind}": "agent"}
# Errors about the value itself, not its size.
UNUSABLE = {"unknown_provider", "invalid_configuration", "invalid_cursor"}
# Timestamps: none is as long as its bound.
MOMENTS = {"since", "until", "occurred_at", "triggered_at"}


class Bound(NamedTuple):
    route: str
    place: tuple[str | int, ...]
    most: int
    make: Callable[[int], Any]

    @property
    def named(self) -> str:
        return f"{self.route} {'.'.join(map(str, self.place))} {self.most}"


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolved(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    for each in schema.get("anyOf", ()):
        if each.get("type") != "null":
            return _resolved(each)
    return schema


def _text(length: int) -> str:
    return "k" * length


def _currency(length: int) -> str:
    return "X" * length


def _filter(length: int) -> str:
    return json.dumps({"colour": "r" * (length - len('{"colour": ""}'))})


def _bounds(route: str, place: tuple[str | int, ...], given: dict[str, Any]) -> Iterator[Bound]:
    schema = _resolved(given)
    if place and place[-1] in MOMENTS:
        return
    if "maxLength" in schema:
        text = _currency if place[-1:] == ("currency",) else _text
        yield Bound(route, place, schema["maxLength"], _filter if place == ("metadata_filter",) else text)
    if "maximum" in schema:
        yield Bound(route, place, schema["maximum"], int)
    if "maxProperties" in schema and "$ref" not in schema.get("propertyNames", ()):
        yield Bound(route, place, schema["maxProperties"], lambda most: {f"name{each}": "x" for each in range(most)})
    if "items" in schema:
        item = _resolved(schema["items"])
        if "maxItems" in schema:
            yield Bound(route, place, schema["maxItems"], lambda most: [_one(item, each) for each in range(most)])
        yield from _bounds(route, (*place, 0), item)
    for name, field in schema.get("properties", {}).items():
        yield from _bounds(route, (*place, name), field)


def _one(schema: dict[str, Any], number: int) -> Any:
    """One of several items, distinct where possible."""
    if choice := schema.get("enum"):
        return choice[number % len(choice)]
    return f"one{number}" if schema.get("type") == "string" else {"text": f"Fact number {number}."}


def _all() -> Iterator[Bound]:
    for path, operations in DOCUMENT["paths"].items():
        if not path.startswith(PREFIX):
            continue
        for method, operation in operations.items():
            route = f"{method.upper()} {path.removeprefix(PREFIX)}"
            for each in operation.get("parameters", ()):
                if each["in"] == "query":
                    yield from _bounds(route, (each["name"],), each["schema"])
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body is not None and "/tools/" not in path:  # a tool's own schema has its own bounds
                yield from _bounds(route, (), body)


BOUNDS = list(_all())


def test_the_document_bounds_what_it_should() -> None:
    assert len(BOUNDS) > 150
    assert {each.route for each in BOUNDS if each.route.split()[0] not in ("GET", "DELETE")} <= {
        *BODIES, "POST /provider-jobs/{job_id}/retry"
    }  # fmt: skip


def _sent(acme: Company, bound: Bound, size: int) -> Any:
    method, _, path = bound.route.partition(" ")
    for start, kind in KINDS.items():
        if path.startswith(start):
            path = path.replace("{kind}", kind)
    for name, value in PATHS.items():
        path = path.replace(f"{{{name}}}", value)
    path = path.replace("{", "").replace("}", "")  # an id that does not exist
    value = bound.make(size)
    body = BODIES.get(bound.route)
    if body is None or method in ("GET", "DELETE"):
        needed = {"provider": "mem0"} if path == "/costs/prices" and method == "DELETE" else {}
        return acme.operator(method, path, params={**needed, bound.place[0]: value})
    if "hook_id" in body:  # each event needs its own
        body = {**body, "hook_id": f"{'.'.join(map(str, bound.place))} {size}"}
    return acme.operator(method, path, json=_with(body, bound.place, value))


def _with(given: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """A copy with another value at one place."""
    if not place:
        return value
    first, rest = place[0], place[1:]
    if isinstance(first, int):
        return [_with(given[0] if given else {}, rest, value)]
    held = dict(given or {})
    return {**held, first: _with(held.get(first), rest, value)}


@pytest.mark.parametrize("route", sorted({each.route for each in BOUNDS}))
def test_the_most_that_is_allowed_is_accepted_and_one_more_is_refused(acme: Company, route: str) -> None:
    for bound in (each for each in BOUNDS if each.route == route):
        most = _sent(acme, bound, bound.most)
        code = most.json().get("code") if most.content else None
        assert most.status_code < 500, f"{bound.named}: {most.text[:300]}"
        assert most.status_code != 422 or code in UNUSABLE, f"{bound.named}: {most.text[:300]}"
        more = _sent(acme, bound, bound.most + 1)
        assert more.status_code == 422, f"{bound.named}: {more.text[:300]}"
        assert more.json()["code"] not in UNUSABLE, f"{bound.named}: {more.text[:300]}"
