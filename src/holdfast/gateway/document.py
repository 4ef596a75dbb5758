"""The OpenAPI document: what FastAPI writes, and what it cannot know: problems, keys, and answers of the edge."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from holdfast.gateway import verbs
from holdfast.gateway.access import RULE, Rule
from holdfast.gateway.edge.refusals import is_everos

_TEXT = {"type": "string"}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "What was wrong, and what to do next (RFC 9457). `instance` is the id of the request, "
    "`operation_id` the row that it left in the trail.",
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
    "agentKey": {"type": "http", "scheme": "bearer", "description": "The key of an agent of one company, ak_…"},
    "operatorKey": {"type": "http", "scheme": "bearer", "description": "The key of an operator of one company, ok_…"},
    "operatorToken": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
}
_SECURITY: dict[Rule, list[dict[str, list[str]]]] = {
    Rule.PUBLIC: [],
    Rule.USER: [{"userKey": []}],
    Rule.OPERATOR: [{"operatorToken": []}],
    Rule.KNOWN: [{"userKey": []}, {"operatorToken": []}],
    Rule.COMPANY: [{"operatorToken": []}, {"operatorKey": []}, {"agentKey": []}, {"userKey": []}, {}],
    Rule.SIGN_UP: [{"operatorToken": []}, {"userKey": []}, {}],
    Rule.METRICS: [{"operatorToken": []}, {}],
}


def describe(app: FastAPI) -> None:
    """Have the app tell the whole document."""
    written = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = written()
            schemas = document["components"]["schemas"]
            schemas |= {"Problem": PROBLEM, "EverosError": EVEROS_ERROR, **verbs.schemas()}
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
    operation["security"] = _SECURITY[Rule(operation[RULE])]
    name, kind = ("EverosError", "application/json") if is_everos(path) else ("Problem", "application/problem+json")
    shape = {"content": {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
    answers = operation["responses"]
    for status in [status for status in answers if int(status) >= 400]:
        answers[status] = {"description": answers[status]["description"], **shape}
    # Too large, too slow, too many, no such host, or our own fault: any route may answer so.
    answers["default"] = {"description": "Refused, or failed.", **shape}
