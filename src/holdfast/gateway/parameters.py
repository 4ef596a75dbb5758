"""Query parameters that a route does not have are refused by name, as unknown fields of a body are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response


class StrictRoute(APIRoute):
    """A mistyped `app_id` must not answer for another app."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = {parameter.alias for parameter in self.dependant.query_params}

        async def handled(request: Request) -> Response:
            if request.scope["query_string"] and (unknown := request.query_params.keys() - known):
                raise RequestValidationError(
                    [{"type": "extra_forbidden", "loc": ("query", name), "msg": ""} for name in sorted(unknown)]
                )
            return await handle(request)

        return handled
