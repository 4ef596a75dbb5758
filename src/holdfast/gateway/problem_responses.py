"""Maps errors to HTTP responses: `application/problem+json`, or EverOS's envelope under its prefix.

One table maps error classes to statuses; a test checks that it covers every class, itself or by its parent. A problem
never repeats a value or a name from the request: it may be a key. Errors quote such a value by its `repr`, and it is
withheld here; a name that we know, such as that of a binding, is in backticks or in `public`.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from holdfast import errors
from holdfast.control.schemas import RequestModel, field_names, json_name
from holdfast.domain.arguments import alternate_names
from holdfast.domain.bindings import KEY_PATTERN
from holdfast.domain.contract import CURSOR_PATTERN
from holdfast.domain.unknown_fields import explain_unknown, names_at
from holdfast.gateway.edge.problem_json import NOT_SUPPORTED, phrase, problem_body
from holdfast.gateway.everos.schemas import EverosRequest
from holdfast.gateway.pages import start
from holdfast.gateway.pages.html import accepts_page, page
from holdfast.transports.reasons import withhold_quoted
from holdfast.wire import PROBLEMS, field_path

log = logging.getLogger("holdfast.gateway")

RETRY_SECONDS = 1
_SHOWN_ISSUES = 20
_UNKNOWN = "extra_forbidden"

STATUS: dict[type[errors.HoldfastError], int] = {
    errors.InvalidInput: 422,
    errors.Unauthenticated: 401,
    errors.AccessDenied: 403,
    errors.NotFound: 404,
    errors.IdempotencyConflict: 422,
    errors.Conflict: 409,
    errors.LeaseLost: 409,
    errors.StoreBusy: 503,
    errors.StoreUnavailable: 503,
    errors.StoreClosed: 503,
    errors.StoreFull: 507,
    errors.StoreError: 500,
    errors.EmbedderUnavailable: 503,
    errors.EmbedderError: 500,
    errors.ModelError: 500,
    errors.ProviderTimeout: 504,
    errors.ProviderError: 502,
    errors.DocumentsBusy: 503,
    errors.SecretUnavailable: 502,
    errors.ConfigurationError: 500,
    errors.HoldfastError: 500,
}
# Statuses that get a Retry-After header.
_PASSING = (503,)
_COMPANIES = "/companies/"


def status_of(error: errors.HoldfastError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route for OpenAPI; their schema is added later."""
    return {status: {"description": phrase(status)} for status in statuses}


def refusal(
    request: Request,
    status: int,
    code: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    fields: Sequence[Mapping[str, str]] = (),
    operation_id: str | None = None,
) -> Response:
    media_type, body = problem_body(request.scope, status, code, detail, fields, operation_id)
    return Response(body, status, headers, media_type.decode("ascii"))


def install(app: FastAPI) -> None:
    """Install handlers that turn every error of a route, or of routing, into a problem response."""
    app.add_exception_handler(errors.HoldfastError, _holdfast_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(Exception, _unexpected_error)


async def _holdfast_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.HoldfastError)
    status, detail = status_of(error), withhold_quoted(str(error))
    if isinstance(error, errors.RevisionConflict) and "if-match" in request.headers:
        status = 412
    if status >= 500:
        # The message may contain the store's location: it goes to the log, for the operator only.
        log.error("%s: %s%s", error.code, error, _log_context(request, error))
        detail = error.public or (type(error).__doc__ or "").strip()
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="holdfast"'
    if status in _PASSING:
        headers["Retry-After"] = str(RETRY_SECONDS)
    fields: list[dict[str, str]] = []
    if isinstance(error, errors.InvalidInput):
        field, problem = _route_field(request.url.path, withhold_quoted(error.field)), withhold_quoted(error.problem)
        detail, fields = f"{field}: {problem}", [{"field": field, "problem": problem}]
    elif error.field is not None and request.url.path.startswith(_COMPANIES):
        # Only these routes know bindings.
        fields = [{"field": error.field, "problem": detail}]
    return refusal(request, status, error.code, detail, headers, fields, error.operation_id)


def _log_context(request: Request, error: errors.HoldfastError) -> str:
    """The space and operation for the log, so that the operator can find more."""
    context = {"company": request.path_params.get("company_id"), "operation": error.operation_id}
    shown = ", ".join(f"{name} {value!s:.80}" for name, value in context.items() if value is not None)
    return f" ({shown})" if shown else ""


def _route_field(path: str, field: str) -> str:
    """The route's name for a field of the library."""
    if path.startswith("/verbs/"):
        return field
    return json_name(field) if path.startswith(_COMPANIES) else _HERE.get(field, field)


# Fields of the library that the routes call by another name.
_HERE = {
    "app": "app_id",
    "project": "project_id",
    "subject": "user_id",
    "conversation": "session_id",
    "memory_id": "id",
    "presented_key": "user_key",
    "record_id": "id",
    "external_uri": "uri",
}


async def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    issues = error.errors()
    if (expected := _expected_type(request, issues)) is not None:
        return refusal(request, 415, "unsupported_media_type", f"the Content-Type must be {expected}")
    if any(each["type"] == "json_invalid" for each in issues):
        return refusal(request, 400, "malformed_json", "the body is not valid JSON; check its syntax")
    names = field_names(RequestModel) | field_names(EverosRequest)
    # An unknown field often explains why another is missing.
    issues = sorted(issues, key=lambda each: each["type"] != _UNKNOWN)
    fields = [
        _unknown_field(request, each, names)
        if each["type"] == _UNKNOWN
        else {"field": _format_location(each, names), "problem": _problem(each)}
        for each in issues[:_SHOWN_ISSUES]
    ]
    first = fields[0]
    detail = f"{first['field']}: {first['problem']}"
    if len(issues) > 1:
        detail += f" (and {len(issues) - 1} more)"
    return refusal(request, 422, "invalid_input", detail, fields=fields)


def _unknown_field(request: Request, issue: Mapping[str, Any], names: Container[str]) -> dict[str, str]:
    *holder, wrong = issue["loc"]
    where = _format_location(issue, names)
    body = getattr(request.scope.get("route"), "body_field", None)
    known = () if body is None else names_at(body.field_info.annotation, holder[1:], _field_types)
    if both := [name for name in alternate_names(str(wrong)) if name in known]:
        return {"field": str(wrong), "problem": f"is another name of {both[0]}; send one of them"}
    name, problem = explain_unknown(str(wrong), known)
    if name is not None:
        where = name if where == "body" else f"{where}.{name}"
    return {"field": where, "problem": problem}


def _field_types(kind: Any) -> Mapping[str, Any] | None:
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    return {name: field.annotation for name, field in kind.model_fields.items()}


def _expected_type(request: Request, issues: Sequence[Mapping[str, Any]]) -> str | None:
    """The expected Content-Type, if the request's own is the problem."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if any(each["loc"] == ("body", "file") for each in issues):
        return None if sent == "multipart/form-data" else "multipart/form-data"
    whole_body = any(tuple(each["loc"]) == ("body",) and each["type"] != "missing" for each in issues)
    return "application/json" if whole_body and not sent.endswith("json") else None


def _format_location(issue: Mapping[str, Any], names: Container[str]) -> str:
    """Format a location such as `messages[0].timestamp`, without names that are not ours."""
    loc = issue["loc"][:-1] if issue["type"] == _UNKNOWN else issue["loc"]
    parameter = loc[:1] in (("query",), ("path",), ("header",), ("cookie",))
    parts = [part for part in loc[1 if parameter or loc[:1] == ("body",) else 0 :] if part != _OF_A_NAME]
    if not parts:
        return str(loc[0]) if loc else "body"
    return withhold_quoted(field_path(parts, parts[:1] if parameter else names))


_OF_A_NAME = "[key]"  # pydantic appends this if a mapping's key is invalid
_PATTERNS = {
    KEY_PATTERN: "must be lowercase letters, digits, - and _, and begin with a letter or digit",
    CURSOR_PATTERN: "is malformed; pass on the `next_cursor` of a page unchanged",
}
_PROBLEMS = {
    **PROBLEMS,
    "list_type": "expected a list",
    "model_attributes_type": "expected an object",
}


def _problem(issue: Mapping[str, Any]) -> str:
    if (problem := _PROBLEMS.get(issue["type"])) is not None:
        return problem
    if (problem := _PATTERNS.get(issue.get("ctx", {}).get("pattern"))) is not None:
        return problem
    message = str(issue["msg"])
    if "UploadFile" in message:
        return "expected a file; with curl, -F file=@notes.md"
    return f"{message[:1].lower()}{message[1:]}".removeprefix("value error, ")


_HTTP = {
    # FastAPI raises this for a body that its parser cannot handle: nested too deeply, or with huge numbers.
    400: ("malformed_json", "the body cannot be read; check its syntax, and that nothing in it is nested too deeply"),
    404: ("not_found", "this route does not exist; GET /openapi.json lists all routes"),
    405: ("method_not_allowed", "this route does not support that method; the Allow header lists the supported ones"),
}
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_FORM = "the form cannot be read; send complete multipart/form-data with its boundary and one file"


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, detail = _HTTP.get(error.status_code, (_code(error.status_code), str(error.detail)))
    if error.status_code == 400 and request.headers.get("content-type", "").lower().startswith(_FORMS):
        code, detail = "malformed_form", _FORM
    headers = dict(error.headers or {})
    if error.status_code == 404:
        if accepts_page(request):
            return page("Not found · Holdfast", start.not_found(request.app.state.path_prefix), status=404)
        headers["Vary"] = "Accept"
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods_of(request))
    return refusal(request, error.status_code, code, detail, headers)


def _methods_of(request: Request) -> list[str]:
    """Return all methods of a path: the framework names those of one route only."""
    matching = [each for each in request.app.state.table if each.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in matching for method in route.methods or ()})


def _code(status: int) -> str:
    # A 422 of another kind is an `InvalidInput`.
    known = {413: "too_large", 415: "unsupported_media_type", 422: NOT_SUPPORTED}
    return known.get(status, "http_error")


async def _unexpected_error(request: Request, error: Exception) -> Response:
    log.error("unexpected: %s", type(error).__name__, exc_info=error)
    detail = "internal error; the service's log has the details under this request id"
    return refusal(request, 500, "internal_error", detail)
