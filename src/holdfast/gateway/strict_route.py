"""A route class that refuses unknown query parameters, as unknown fields of a body are refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response


class StrictRoute(APIRoute):
    """Refuses unknown query parameters: a mistyped `app_id` must not return another app's data."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = set(_names(self.dependant))
        # The unknown one is not named: it may be a key.
        problem = f"has an unknown parameter; known are {', '.join(sorted(known)) or 'none'}"

        async def strict_handle(request: Request) -> Response:
            if request.scope["query_string"] and request.query_params.keys() - known:
                raise RequestValidationError([{"type": "unknown_parameter", "loc": ("query",), "msg": problem}])
            return await handle(request)

        return strict_handle


def _names(dependant: Dependant) -> Iterator[str]:
    """Names of all query parameters of a route, including those of its dependencies."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for part in dependant.dependencies:
        yield from _names(part)
