"""Answers that the edge gives itself: one function, `application/problem+json`, or EverOS's envelope under its paths.

It works on ASGI alone, so that a request can be refused before any framework has seen it.
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
# The names that EverOS's clients know; for other statuses, our own code in capitals.
_EVEROS_CODES = {
    400: "BAD_REQUEST",
    404: "NOT_FOUND",
    409: "CONFLICT",
    415: "UNSUPPORTED_FORMAT",
    422: "INVALID_INPUT",
    500: "INTERNAL_ERROR",
    503: "EXTERNAL_SERVICE_UNAVAILABLE",
}
# As RFC 9110 has them: Python's own differ from version to version.
_PHRASES = {413: "Content Too Large", 422: "Unprocessable Content"}
Headers = Iterable[tuple[bytes, bytes]]


def request_id(scope: MutableMapping[str, Any]) -> str:
    """The request's id: what was sent in `X-Request-Id` if it was sane, else made here."""
    return str(scope.get(REQUEST_ID, ""))


def phrase(status: int) -> str:
    """What a status is called."""
    return _PHRASES.get(status) or HTTPStatus(status).phrase


def is_everos(path: str) -> bool:
    """Whether errors at this path have EverOS's shape."""
    return any(path == prefix or path.startswith(prefix + "/") for prefix in _EVEROS)


def problem_body(
    scope: MutableMapping[str, Any],
    status: int,
    code: str,
    detail: str,
    fields: Sequence[Mapping[str, str]] = (),
    operation_id: str | None = None,
) -> tuple[bytes, bytes]:
    """The content type and the body of a refusal of this request. `fields` are what is wrong with it, by name.

    `operation_id` is the row that it left in the trail, if it did.
    """
    path = str(scope.get("path", ""))
    if is_everos(path):
        return b"application/json", _dumped(
            {
                "request_id": request_id(scope),
                "error": {
                    "code": _EVEROS_CODES.get(status, code.upper()),
                    "message": detail,
                    "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
                    "path": path,
                },
            }
        )
    return b"application/problem+json", _dumped(
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
    """Send the whole answer. `headers` come on top; the body is left out for HEAD."""
    media_type, body = problem_body(scope, status, code, detail)
    sent = [(b"content-type", media_type), (b"content-length", str(len(body)).encode("ascii")), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
