"""`/resources`: documents that can be searched together with conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from holdfast.errors import InvalidDocument
from holdfast.gateway import presenters
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.config import GatewayConfig
from holdfast.gateway.control.verb_routes import VerbRoute, add_routes
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.memories import PAGE, USERS
from holdfast.gateway.problem_responses import refusals
from holdfast.gateway.schemas import (
    ExternalResourceRequest,
    ForgetReceiptResponse,
    ResourceListResponse,
    ResourceResponse,
    UploadRequest,
)
from holdfast.gateway.strict_route import StrictRoute

ResourceId = Annotated[str, Path(min_length=1, max_length=80)]
_REUSED: dict[int | str, dict[str, Any]] = {
    200: {"model": ResourceResponse, "description": "The resource already exists."}
}


_ONE = {"resource_id": (ResourceId, ...)}
_ROUTES = (
    VerbRoute(
        "GET", "", "resources", callers=USERS, model=ResourceListResponse, view=presenters.resource_page, fields=PAGE,
    ),
    VerbRoute(
        "GET", "/{resource_id}", "resource", (404,),
        callers=USERS, model=ResourceResponse, view=presenters.resource, fields=_ONE,
        doc="Get a resource by its id. `POST /memories/search` finds its text.",
    ),
    VerbRoute(
        "DELETE", "/{resource_id}", "delete_resource", (404,),
        callers=USERS, model=ForgetReceiptResponse, fields=_ONE,
    ),
)  # fmt: skip


def router(auth: Authenticator, config: GatewayConfig) -> APIRouter:
    routes = APIRouter(prefix="/resources", tags=["resources"], route_class=StrictRoute)
    _add_upload_routes(routes, auth, config)
    add_routes(routes, auth, _ROUTES)
    return routes


def _add_upload_routes(routes: APIRouter, auth: Authenticator, config: GatewayConfig) -> None:
    created: dict[str, Any] = {"status_code": 201, "response_model": ResourceResponse, **allow(AccessRule.USER)}

    @routes.post("", **created, responses={**_REUSED, **refusals(400, 401, 413, 422)})
    async def add_resource(
        request: Request,
        response: Response,
        body: Annotated[UploadRequest, Form(media_type="multipart/form-data")],
        idempotency_key: IdempotencyKey = None,
    ) -> dict[str, Any]:
        """Upload a document. Its text is searchable when this call returns."""
        caller = await auth.user(request, body.user_id, body.user_key)
        if (sent := len((await request.form()).getlist("file"))) > 1:
            raise InvalidDocument(
                "file", f"was sent {sent} times, but only one is accepted; send each file in its own request"
            )
        content = await body.file.read(config.max_upload_bytes + 1)
        if len(content) > config.max_upload_bytes:
            raise InvalidDocument("file", f"is larger than {config.max_upload_bytes:,} bytes; split it")
        with _rename_document_field("file"):
            added = await caller.memory.add_resource(
                content,
                name=body.file.filename or "unnamed",
                media_type=body.file.content_type,
                idempotency_key=idempotency_key,
                **caller.where(body.app_id, body.project_id),
            )
        response.status_code = 200 if added.reused else 201
        return presenters.resource(added.resource, reused=added.reused)

    @routes.post("/external", **created, responses={**_REUSED, **refusals(401, 422)})
    async def add_external_resource(
        request: Request, response: Response, body: ExternalResourceRequest, idempotency_key: IdempotencyKey = None
    ) -> dict[str, Any]:
        """Make an external document searchable. Results contain its URI, which is never fetched."""
        caller = await auth.user(request, body.user_id, body.user_key)
        with _rename_document_field("text"):
            added = await caller.memory.add_resource(
                body.text.encode("utf-8", "surrogatepass"),
                name=body.name or body.uri[-256:],
                media_type=body.media_type,
                external_uri=body.uri,
                idempotency_key=idempotency_key,
                **caller.where(body.app_id, body.project_id),
            )
        response.status_code = 200 if added.reused else 201
        return presenters.resource(added.resource, reused=added.reused)


@contextmanager
def _rename_document_field(field: str) -> Iterator[None]:
    """Report errors of a document under the request's field name."""
    try:
        yield
    except InvalidDocument as error:
        raise InvalidDocument(field, error.problem) from None
