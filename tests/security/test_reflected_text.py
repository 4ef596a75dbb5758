"""A problem repeats nothing that was sent, `Allow` names every method, and a path's company is the caller's.

Every route of the OpenAPI document gets a canary in each part of its request: as a value, as a name, in path, query,
headers and body. No problem may hold it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from test_limits_of_verbs import DOCUMENT, Place, Schema, changed, example, places

from gateway.served import TOKEN, Gateway, serving
from holdfast.gateway.problem_responses import withhold_quoted

CANARY = "canary-8f3a-of-this-test"
DEFINITIONS = DOCUMENT["components"]["schemas"]
# Of the canaries in bodies, every so many: `make soak` tries all.
EVERY = int(os.environ.get("HOLDFAST_CANARY_STEP", "25"))
METHODS = {"get", "put", "post", "delete", "patch"}
JSON = "application/json"


class Sending(NamedTuple):
    """A request with a canary somewhere."""

    method: str
    path: str
    query: Mapping[str, Any] = MappingProxyType({})
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place: Path = tmp_path_factory.mktemp("problems") / "memory.db"
    with serving(place, token=TOKEN, rate_per_minute=0) as found:
        yield found


def operations() -> Iterator[tuple[str, str, Schema]]:
    for path, found in DOCUMENT["paths"].items():
        for method in METHODS & found.keys():
            yield method, path, found[method]


def filled(path: str, value: str) -> str:
    """Return a path with a value for each of its parameters but the company."""
    parts = [value if part.startswith("{") and part != "{company_id}" else part for part in path.split("/")]
    return "/".join(parts).replace("{company_id}", "acme")


def with_name(schema: Schema, place: Place) -> Any:
    """Return an object with a name that is a canary, and a value of no use."""
    return {**example(place.schema, DEFINITIONS), CANARY: {CANARY: [CANARY]}}


def bodies(schema: Schema) -> Iterator[Any]:
    whole = example(schema, DEFINITIONS)
    yield {CANARY: CANARY}
    for place in places(schema, DEFINITIONS, ()):
        if not {"{}", "{name}"} & set(place.path):
            if place.schema.get("type") == "object":
                yield changed(whole, schema, place.path, with_name(schema, place), DEFINITIONS)
            yield changed(whole, schema, place.path, CANARY, DEFINITIONS)


def sendings() -> Iterator[Sending]:
    for method, path, operation in operations():
        plain, content = filled(path, "none"), operation.get("requestBody", {}).get("content", {})
        body = example(content[JSON]["schema"], DEFINITIONS) if JSON in content else None
        yield Sending(method, filled(path, CANARY), body=body)
        yield Sending(method, plain.replace("acme", CANARY), body=body)
        yield Sending(method, f"{plain}/{CANARY}", body=body)
        yield Sending(method, plain, {CANARY: CANARY}, body)
        yield Sending(method, plain, body=body, headers={"idempotency-key": CANARY, "if-match": CANARY})
        for each in operation.get("parameters", ()):
            if each["in"] == "query":
                yield Sending(method, plain, {each["name"]: CANARY}, body)
                yield Sending(method, plain, {each["name"]: json.dumps({CANARY: {CANARY: CANARY}})}, body)
        if JSON in content:
            for number, wrong in enumerate(bodies(content[JSON]["schema"])):
                if number < 2 or hash_of(plain, number) % EVERY == 0:
                    yield Sending(method, plain, body=wrong)


def hash_of(path: str, number: int) -> int:
    return sum(path.encode()) + number


@pytest.mark.parametrize("who", ["the operator", "a user", "nobody"])
def test_no_problem_repeats_what_was_sent(gateway: Gateway, who: str) -> None:
    callers = {"the operator": gateway.operator, "a user": gateway.user("ana").headers, "nobody": {}}
    refused = 0
    for number, each in enumerate(sendings()):
        if hash_of(each.path, number) % (max(1, EVERY // 6) if who == "the operator" else 3 * EVERY):
            continue
        headers = {**callers[who], **each.headers}
        answer = gateway.http.request(each.method, each.path, params=dict(each.query), json=each.body, headers=headers)
        assert answer.status_code < 500 or answer.status_code == 502, (each, answer.text)
        if answer.status_code >= 400:
            refused += 1
            assert CANARY not in answer.text, (each, answer.text)
    assert refused >= 10


@pytest.mark.parametrize(
    "value", ["plain", "it's", 'say "it"', """both ' and " of them""", "back\\slash'", "new\nline"]
)
def test_a_quoted_value_is_withheld_whole(value: str) -> None:
    for cut in (None, 5, len(repr(value)) - 1):
        shown = withhold_quoted(f"the company's key is {repr(value)[:cut]} in callers' hands")
        assert shown.startswith("the company's key is '…'")
        assert not any(part in shown for part in ("plain", "say", "both", "back", "new", "line", "of them"))


def test_an_allow_header_names_every_method(gateway: Gateway) -> None:
    paths = {path: found.keys() & METHODS for path, found in DOCUMENT["paths"].items()}
    for path, methods in paths.items():
        for method in ("OPTIONS", "TRACE"):
            answer = gateway.http.request(method, filled(path, "one"), headers=gateway.operator)
            assert answer.status_code == 405, path
            allowed = {each.strip().lower() for each in answer.headers["allow"].split(",")}
            assert allowed >= methods, path
            assert allowed <= {each for other, found in paths.items() if is_same(other, path) for each in found}, path


def is_same(one: str, other: str) -> bool:
    """True if both paths can be that of one request."""
    parts = list(zip(one.split("/"), filled(other, "one").split("/"), strict=False))
    rest = "record_id" in one or len(one.split("/")) == len(other.split("/"))
    return rest and all(ours == theirs or ours.startswith("{") for ours, theirs in parts)


def test_no_key_reaches_another_company(gateway: Gateway) -> None:
    made = [
        gateway.http.post(
            "/companies/elsewhere/memory/credentials", json={"kind": kind, "id": "one"}, headers=gateway.operator
        )
        for kind in ("agent", "operator", "user")
    ]
    keys = [each.json()["key"] for each in made]
    count = 0
    for method, path, operation in operations():
        if not path.startswith("/companies/"):
            continue
        content = operation.get("requestBody", {}).get("content", {})
        body = example(content[JSON]["schema"], DEFINITIONS) if JSON in content else None
        name = "memory.search" if "tools" in path else "one"
        for key in keys:
            headers = {"Authorization": f"Bearer {key}"}
            answer = gateway.http.request(method, filled(path, name), json=body, headers=headers)
            assert answer.status_code in (401, 403, 404, 422), (method, path, answer.text)
            # A body that is refused before the caller is checked says nothing about the company.
            assert answer.status_code != 422 or operation.get("requestBody") or operation.get("parameters"), path
            count += 1
    assert count > 100
