"""The routes of the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

import holdfast
from holdfast.gateway.authentication import AccessRule, allow
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.pages import start
from holdfast.gateway.pages.html import accepts_page, page
from holdfast.gateway.pages.reference import Reference

_LINKS = {"docs": "/docs", "openapi": "/openapi.json", "health": "/healthz", "readiness": "/readyz"}


def path_prefix(config: GatewayConfig) -> str:
    """The path of the service at its public URL; empty at the root of a host."""
    return urlsplit(config.public_url or "").path.rstrip("/")


def router(config: GatewayConfig, document: Callable[[], dict[str, Any]]) -> APIRouter:
    """Create the routes. `document` returns the OpenAPI document."""
    routes = APIRouter(include_in_schema=False)
    base = (config.public_url or config.url).rstrip("/")
    reference = Reference(document, base)

    @routes.get("/", **allow(AccessRule.PUBLIC))
    async def show_start(request: Request) -> Response:
        """Say what this is: as a page to a browser, as JSON to other programs."""
        if accepts_page(request):
            return page("Holdfast", start.content(base))
        about = {"name": "Holdfast", "version": holdfast.__version__, "links": _LINKS}
        return JSONResponse(about, headers={"Vary": "Accept"})

    # No coroutine: it runs in a thread, since the first page takes a second to write.
    @routes.get("/docs", **allow(AccessRule.PUBLIC))
    def show_reference(q: Annotated[str, Query(max_length=100)] = "") -> Response:
        """The reference of the API. With `q`, only the operations that contain all its words."""
        return page("API reference · Holdfast", reference.content(q))

    return routes
