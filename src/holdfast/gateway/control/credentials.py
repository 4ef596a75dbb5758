"""Routes for the keys of a company's users, agents and operators. A key is returned once, when it is issued."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from holdfast.control.json_views import response_model, to_json
from holdfast.control.schemas import Part, RequestModel
from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.users import MAX_SUBJECTS, Issued, User, UserPage
from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control.dependencies import PAGE, CompanyId, Cursor, Limit, route_options, router_of
from holdfast.gateway.headers import IdempotencyKey

# The kinds of actors that have keys.
Kind = Literal["user", "agent", "operator"]
KindAsked = Annotated[Kind, Query(description="user, agent or operator.")]
KindInPath = Annotated[Kind, Path(description="user, agent or operator.")]
Name = Annotated[Part, Path()]
Subjects = Annotated[list[Part], Field(max_length=MAX_SUBJECTS)]
_NO_STORE = {"Cache-Control": "no-store"}


class CredentialRequest(RequestModel):
    """`subjects` are the users that an agent may act for, besides itself."""

    kind: Kind
    id: Part
    role: Annotated[ActorRole, Field(strict=False)] | None = None
    subjects: Subjects | None = None


class RotationRequest(RequestModel):
    """Role and subjects stay unchanged if omitted."""

    role: Annotated[ActorRole, Field(strict=False)] | None = None
    subjects: Subjects | None = None


_CREDENTIAL, _ISSUED, _LIST = (response_model(kind) for kind in (User, Issued, UserPage))


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("credentials")
    _add_issue_routes(routes, auth)
    _add_list_routes(routes, auth)
    return routes


def _add_issue_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post(
        "/credentials",
        status_code=201,
        **route_options(_ISSUED, 409),
    )
    async def create_credential(
        request: Request,
        company_id: CompanyId,
        body: CredentialRequest,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Create a key for a user, agent or operator of this company. Only this response contains it."""
        caller = await auth.company(request, company_id)
        issued = await caller.memory.create_user(
            body.id,
            kind=ActorKind(body.kind),
            role=body.role,
            subjects=body.subjects,
            idempotency_key=idempotency_key,
        )
        return JSONResponse(to_json(issued), 201, headers=_NO_STORE)

    @routes.post(
        "/credentials/{kind}/{id}/rotate",
        **route_options(_ISSUED, 404),
    )
    async def rotate_credential(
        request: Request,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - the field's name
        body: RotationRequest | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Issue a new key and invalidate the old one. Also restores a revoked credential."""
        change = body or RotationRequest()
        caller = await auth.company(request, company_id)
        issued = await caller.memory.rotate_user(
            id, kind=ActorKind(kind), role=change.role, subjects=change.subjects, idempotency_key=idempotency_key
        )
        return JSONResponse(to_json(issued), 200, headers=_NO_STORE)


def _add_list_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/credentials", **route_options(_LIST))
    async def list_credentials(
        request: Request,
        company_id: CompanyId,
        kind: KindAsked = "agent",
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> Response:
        """List credentials of one kind by id, revoked ones included; never keys."""
        caller = await auth.company(request, company_id)
        page = await caller.memory.users(kind=ActorKind(kind), limit=limit, cursor=cursor)
        return JSONResponse(to_json(page))

    @routes.delete(
        "/credentials/{kind}/{id}",
        **route_options(_CREDENTIAL, 404),
    )
    async def revoke_credential(
        request: Request,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - the field's name
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Revoke a key. The memory stays."""
        caller = await auth.company(request, company_id)
        revoked = await caller.memory.revoke_user(id, kind=ActorKind(kind), idempotency_key=idempotency_key)
        return JSONResponse(to_json(revoked))
