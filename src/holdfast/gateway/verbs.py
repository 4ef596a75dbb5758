"""All verbs over HTTP: `POST /verbs/<name>` with the verb's fields as body; the response is its result.

`holdfast.open("http://…")` and `ControlPlane.open("http://…")` call these routes. The name of a library's verb is its
action, that of a control plane's verb the name of its request, such as `list_operations`. `wire.py` defines the format;
the app authenticates callers and formats errors. A body is decoded inside the gate, so that a body that cannot be
decoded leaves an audit row too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

import holdfast
from holdfast.control.json_views import own_docstring
from holdfast.domain.access import Action, Actor
from holdfast.gateway.strict_route import StrictRoute
from holdfast.ports import Verb
from holdfast.wire import GREETING, Greeting, WireVerb, all_verbs, openapi_definitions

Perform = Callable[[Request, Action, Callable[[], Verb[Any]]], Awaitable[Any]]
Named = Callable[[Request], Awaitable[Actor]]
_JSON = "application/json"
_PREFIX = "verbs."
_REFERENCE = f"#/components/schemas/{_PREFIX}{{model}}"


def router(perform: Perform, caller: Named, extra: Mapping[str, Any] | None = None) -> APIRouter:
    """Create the routes. `perform` runs a verb as the request's caller; `caller` returns it; `extra` is for OpenAPI."""
    routes = APIRouter(prefix="/verbs", tags=["verbs"], route_class=StrictRoute)
    extras = dict(extra or {})

    @routes.get("", response_class=Response, openapi_extra=extras, responses={200: _json_content(_GREETING)})
    async def list_verbs(request: Request) -> Response:
        """Return the server's version, the owner of the key, and the supported verbs."""
        greeting = Greeting(holdfast.__version__, await caller(request), tuple(all_verbs()))
        return Response(GREETING.encode(greeting), media_type=_JSON)

    requests, responses_by_name, _ = openapi_definitions(_REFERENCE)
    for name, spoken in all_verbs().items():
        routes.add_api_route(
            f"/{name}",
            _endpoint(spoken, perform),
            methods=["POST"],
            name=f"perform_{name}",
            summary=f"Perform {name}",
            description=(own_docstring(spoken.request_type) or "").partition("\n\n")[0],
            response_class=Response,
            responses={200: _json_content(responses_by_name[name])},
            openapi_extra={**extras, "requestBody": {"required": True, **_json_content(requests[name])}},
        )
    return routes


def schemas() -> dict[str, Any]:
    """The schemas that the routes refer to, for `components.schemas` of the OpenAPI document."""
    return {f"{_PREFIX}{name}": schema for name, schema in openapi_definitions(_REFERENCE)[2].items()}


def _endpoint(spoken: WireVerb, perform: Perform) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise HTTPException(415, f"the body must be {_JSON}")
        body = await request.body()
        result = await perform(request, spoken.action, lambda: spoken.request.decode(body))
        return Response(spoken.answer.encode(result), media_type=_JSON)

    return endpoint


def _json_content(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {_JSON: {"schema": dict(schema)}}}


_GREETING = {
    "type": "object",
    "required": ["holdfast", "actor", "verbs"],
    "properties": {
        "holdfast": {"type": "string", "description": "The version."},
        "actor": {
            "type": "object",
            "required": ["kind", "id"],
            "properties": {
                "kind": {"type": "string"},
                "id": {"type": "string"},
                "space": {"type": ["string", "null"]},
                "subjects": {"type": "array", "items": {"type": "string"}},
                "role": {"type": ["string", "null"]},
            },
        },
        "verbs": {"type": "array", "items": {"type": "string"}},
    },
}
