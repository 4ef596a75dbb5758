"""The API keeps its schema: the OpenAPI document is a golden file, and Schemathesis finds no response outside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import TOKEN, Gateway, serving

from holdfast.gateway.app import create_route_app
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.edge.observers import Metrics

GOLDEN = Path(__file__).parent / "golden" / "openapi.json"
EXAMPLES = int(os.environ.get("HOLDFAST_SCHEMA_EXAMPLES", "16"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@cache
def app() -> FastAPI:
    return create_route_app(None, None, GatewayConfig(operator_token=TOKEN), Metrics())  # type: ignore[arg-type]


def document() -> dict[str, Any]:
    return app().openapi()


def test_the_document_names_every_route() -> None:
    """Tests that go through the document, such as those of authority, leave none out."""
    named = {(method.upper(), path) for path, found in document()["paths"].items() for method in found}
    table = {(method, route.path.replace(":path", "")) for route in app().state.table for method in route.methods}
    protocol = {(method, path) for method, path in table if path.startswith("/mcp")}  # which describes itself
    assert protocol == {("POST", "/mcp"), ("POST", "/mcp/company"), ("POST", "/mcp/runtime")}
    assert table - named - protocol == {("GET", "/"), ("GET", "/docs")}, "pages for people"
    assert named <= table
    paths = {path for found in app().routes if (path := getattr(found, "path", None)) is not None}
    assert paths - {path for _, path in table} <= {"/openapi.json"}


def test_the_document_is_the_golden_file() -> None:
    written = json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("HOLDFAST_REFRESH_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(written, "utf-8")
    assert written == GOLDEN.read_text("utf-8"), "HOLDFAST_REFRESH_GOLDEN=1 writes it anew"


def test_operation_ids_make_names_of_methods() -> None:
    """Generated clients name their methods after them: `searchMemories`, not `search_memories_search_post`."""
    ids = [operation["operationId"] for found in document()["paths"].values() for operation in found.values()]
    assert len(set(ids)) == len(ids)
    for each in ids:
        assert re.fullmatch(r"(?=.{6,36}$)[a-z]+([A-Z][a-z0-9]*)+", each), each
    assert {"searchMemories", "addMemories", "recallMemories", "getMemory", "listMemories", "createUser"} <= set(ids)


def test_the_document_is_openapi_3_1() -> None:
    assert document()["openapi"].startswith("3.1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("schema") / "memory.db", token=TOKEN, rate_per_minute=0) as found:
        yield found


schema = schemathesis.openapi.from_dict(document())
OPERATIONS = [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("who", ["a user", "the operator", "nobody"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_answer_is_outside_the_schema(served: Gateway, operation: Any, who: str) -> None:
    headers = {"a user": served.user("schema").headers, "the operator": served.operator, "nobody": {}}[who]
    for mode, share in ((GenerationMode.POSITIVE, 2), (GenerationMode.NEGATIVE, 1)):

        @settings(
            max_examples=max(1, EXAMPLES * share // (9 if who != "a user" else 4)),
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode))
        def holds(case: Any) -> None:
            case.call_and_validate(base_url=served.url, headers=headers, checks=CHECKS, timeout=30)

        try:
            holds()
        except Unsatisfiable:
            # A request without parts cannot be invalid.
            assert mode is GenerationMode.NEGATIVE
