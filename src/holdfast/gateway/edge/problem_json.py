"""The body of an error response: `application/problem+json` (RFC 9457), or the envelope of EverOS or of the runtime
under their paths.

Uses ASGI only, so that the edge can refuse a request before the framework sees it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from starlette.types import Scope, Send

REQUEST_ID = "holdfast.request_id"
_EVEROS = ("/api/v1/memory", "/api/v2/memory")
_EVEROS_ROUTES = ("/add", "/flush", "/search", "/get")
# Codes that EverOS's clients know; for other statuses, our own code in capitals.
_EVEROS_CODES = {
    400: "BAD_REQUEST",
    404: "NOT_FOUND",
    409: "CONFLICT",
    415: "UNSUPPORTED_FORMAT",
    422: "INVALID_INPUT",
    500: "INTERNAL_ERROR",
    503: "EXTERNAL_SERVICE_UNAVAILABLE",
}
RUNTIME_PREFIX = "/memory"
# The error keys of the runtime's envelope for refusals that it does not make itself.
_RUNTIME_KEYS = {
    400: "invalid_json",
    401: "unauthorized",
    403: "forbidden",
    405: "unsupported_operation",
    413: "payload_too_large",
    415: "invalid_json",
    429: "runtime_unavailable",
    500: "runtime_failed",
    503: "runtime_unavailable",
}
# A path that is none of its routes is a problem, like any other.
_NO_ROUTE = 404
# From RFC 9110: Python's own differ between versions.
_PHRASES = {413: "Content Too Large", 422: "Unprocessable Content"}
Headers = Iterable[tuple[bytes, bytes]]


def request_id(scope: MutableMapping[str, Any]) -> str:
    """The request's id: from `X-Request-Id` if valid, else generated."""
    return str(scope.get(REQUEST_ID, ""))


def phrase(status: int) -> str:
    """The reason phrase of a status."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase


def is_everos(path: str) -> bool:
    """True if errors at this path have EverOS's format."""
    return any(path == prefix or path.startswith(prefix + "/") for prefix in _EVEROS)


def is_runtime(path: str) -> bool:
    """True if errors at this path have the format of the runtime's envelope."""
    return path.startswith(f"{RUNTIME_PREFIX}/")


def _known_path(path: str) -> str:
    """The path, if it is a route's; else the part that all have: what was sent is not repeated."""
    prefix = next(each for each in _EVEROS if path.startswith(each))
    return path if path.removeprefix(prefix) in _EVEROS_ROUTES else prefix


def problem_body(
    scope: MutableMapping[str, Any],
    status: int,
    code: str,
    detail: str,
    fields: Sequence[Mapping[str, str]] = (),
    operation_id: str | None = None,
) -> tuple[bytes, bytes]:
    """The content type and body of an error response. `fields` are the problems by field.

    `operation_id` is the request's row in the audit trail, if any.
    """
    path = str(scope.get("path", ""))
    if is_everos(path):
        return b"application/json", _to_json(
            {
                "request_id": request_id(scope),
                "error": {
                    "code": _EVEROS_CODES.get(status, code.upper()),
                    "message": detail,
                    "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
                    "path": _known_path(path),
                },
            }
        )
    if is_runtime(path) and status != _NO_ROUTE:
        return b"application/json", _to_json(
            {
                "status": "rejected",
                "request_id": request_id(scope),
                "audit_id": operation_id,
                "error_key": _RUNTIME_KEYS.get(status, "runtime_rejected"),
                "reason": detail,
            }
        )
    return b"application/problem+json", _to_json(
        {
            "type": f"urn:holdfast:problem:{code}",
            "title": phrase(status),
            "status": status,
            "detail": detail,
            "code": code,
            "instance": request_id(scope),
            **({} if operation_id is None else {"operation_id": operation_id}),
            **({"errors": list(fields)} if fields else {}),
        }
    )


async def problem_response(
    scope: Scope, send: Send, status: int, code: str, detail: str, headers: Headers = ()
) -> None:
    """Send the complete response. `headers` are added; HEAD gets no body."""
    media_type, body = problem_body(scope, status, code, detail)
    sent = [(b"content-type", media_type), (b"content-length", str(len(body)).encode("ascii")), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
