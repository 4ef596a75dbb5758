"""A route class that refuses unknown query parameters, as unknown fields of a body are refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from holdfast.domain.unknown_fields import explain_unknown


class StrictRoute(APIRoute):
    """Refuses unknown query parameters: a mistyped `app_id` must not return another app's data."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = sorted(set(_names(self.dependant)))

        async def strict_handle(request: Request) -> Response:
            unknown = request.query_params.keys() - set(known) if request.scope["query_string"] else ()
            for wrong in sorted(unknown):
                name, problem = explain_unknown(wrong, known, "parameter")
                loc = ("query",) if name is None else ("query", name)
                raise RequestValidationError([{"type": "unknown_parameter", "loc": loc, "msg": problem}])
            return await handle(request)

        return strict_handle


def _names(dependant: Dependant) -> Iterator[str]:
    """Names of all query parameters of a route, including those of its dependencies."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for part in dependant.dependencies:
        yield from _names(part)
