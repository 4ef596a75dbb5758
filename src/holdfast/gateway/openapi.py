"""The OpenAPI document: FastAPI's own, with problem schemas, security schemes and the responses of the edge added."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from holdfast.gateway import runtime_schemas, verbs
from holdfast.gateway.authentication import RULE, AccessRule
from holdfast.gateway.edge.problem_json import is_everos, is_runtime

_TEXT = {"type": "string"}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "An error, and what to do next (RFC 9457). `instance` is the request id, `operation_id` the id of "
    "the request's row in the audit trail.",
    "required": ["type", "title", "status", "detail", "code", "instance"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": _TEXT,
        "instance": _TEXT,
        "operation_id": _TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "problem"],
                "properties": {"field": _TEXT, "problem": _TEXT},
            },
        },
    },
}
EVEROS_ERROR: dict[str, Any] = {
    "type": "object",
    "title": "EverosError",
    "required": ["request_id", "error"],
    "properties": {
        "request_id": _TEXT,
        "error": {
            "type": "object",
            "required": ["code", "message", "timestamp", "path"],
            "properties": {"code": _TEXT, "message": _TEXT, "timestamp": _TEXT, "path": _TEXT},
        },
    },
}
_KEYS = {
    "userKey": {"type": "http", "scheme": "bearer", "description": "A user's key, uk_…"},
    "agentKey": {"type": "http", "scheme": "bearer", "description": "The key of an agent of one space, ak_…"},
    "operatorKey": {"type": "http", "scheme": "bearer", "description": "The key of an operator of one space, ok_…"},
    "operatorToken": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
}
_SECURITY: dict[AccessRule, list[dict[str, list[str]]]] = {
    AccessRule.PUBLIC: [],
    AccessRule.USER: [{"userKey": []}],
    AccessRule.OPERATOR: [{"operatorToken": []}],
    AccessRule.KNOWN: [{"userKey": []}, {"agentKey": []}, {"operatorKey": []}, {"operatorToken": []}],
    AccessRule.COMPANY: [{"operatorToken": []}, {"operatorKey": []}, {"agentKey": []}, {"userKey": []}],
    # Nothing at all is enough where the operator lets anybody sign up.
    AccessRule.SIGN_UP: [{"operatorToken": []}, {"userKey": []}, {}],
    AccessRule.METRICS: [{"operatorToken": []}],
}


def operation_id(route: APIRoute) -> str:
    """The name of a route's method in generated clients: the name of its function, as `searchMemories`."""
    first, *others = route.name.split("_")
    return first + "".join(map(str.capitalize, others))


def complete_openapi(app: FastAPI) -> None:
    """Make `app.openapi` return the complete document."""
    base_openapi = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = base_openapi()
            schemas = document["components"]["schemas"]
            schemas |= {"Problem": PROBLEM, "EverosError": EVEROS_ERROR, **verbs.schemas()}
            schemas |= {"RuntimeRejection": runtime_schemas.REJECTION, **runtime_schemas.schemas()}
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            document["components"]["securitySchemes"] = _KEYS
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    _complete(operation, path)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]


def _complete(operation: dict[str, Any], path: str) -> None:
    operation["security"] = _SECURITY[AccessRule(operation[RULE])]
    name, kind = "Problem", "application/problem+json"
    if is_everos(path) or is_runtime(path):
        name, kind = "EverosError" if is_everos(path) else "RuntimeRejection", "application/json"
    shape = {"content": {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
    responses = operation["responses"]
    # A repeated key is answered with a report.
    own = {"409"} if is_runtime(path) else set()
    for status in [status for status in responses if int(status) >= 400 and status not in own]:
        responses[status] = {"description": responses[status]["description"], **shape}
    # Any route may respond so: body too large or too slow, rate limit, overload, unknown host, internal error.
    responses["default"] = {"description": "The request was refused, or failed.", **shape}
