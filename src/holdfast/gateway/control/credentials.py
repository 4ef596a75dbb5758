"""Routes for the keys of a company's users, agents and operators. A key is returned once, when it is issued."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from holdfast.control.schemas import Answer, Asked, Part, to_iso
from holdfast.domain.access import ActorKind, ActorRole
from holdfast.domain.users import MAX_SUBJECTS, Issued, User
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import PAGE, CompanyId, Cursor, Limit, router_of
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals

# The kinds of actors that have keys.
Kind = Literal["user", "agent", "operator"]
KindAsked = Annotated[Kind, Query(description="user, agent or operator.")]
KindInPath = Annotated[Kind, Path(description="user, agent or operator.")]
Name = Annotated[Part, Path()]
Subjects = Annotated[list[Part], Field(max_length=MAX_SUBJECTS)]
_NO_STORE = {"Cache-Control": "no-store"}


class CredentialGiven(Asked):
    """`subjects` are the users that an agent may act for, besides itself."""

    kind: Kind
    id: Part
    role: Annotated[ActorRole, Field(strict=False)] | None = None
    subjects: Subjects | None = None


class Rotation(Asked):
    """Role and subjects stay unchanged if omitted."""

    role: Annotated[ActorRole, Field(strict=False)] | None = None
    subjects: Subjects | None = None


class CredentialTold(Answer):
    kind: str
    id: str
    role: str | None
    subjects: list[str]
    created_at: str
    rotated_at: str | None
    revoked_at: str | None

    @classmethod
    def of(cls, user: User) -> CredentialTold:
        return cls(
            kind=user.kind,
            id=user.id,
            role=user.role,
            subjects=sorted(user.subjects),
            created_at=user.created_at.isoformat(),
            rotated_at=to_iso(user.rotated_at),
            revoked_at=to_iso(user.revoked_at),
        )


class CredentialIssued(Answer):
    """`key` is returned only once; null for a repeated call."""

    credential: CredentialTold
    key: str | None

    @classmethod
    def of(cls, issued: Issued) -> CredentialIssued:
        return cls(credential=CredentialTold.of(issued.user), key=issued.key)


class CredentialList(Answer):
    credentials: list[CredentialTold]
    next_cursor: str | None


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("credentials")
    _add_issue_routes(routes, auth)
    _add_list_routes(routes, auth)
    return routes


def _add_issue_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post("/credentials", status_code=201, **allow(AccessRule.COMPANY), responses=refusals(401, 403, 409, 422))
    async def create_credential(
        request: Request,
        response: Response,
        company_id: CompanyId,
        body: CredentialGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialIssued:
        """Create a key for a user, agent or operator of this company. Only this response contains it."""
        caller = await auth.company(request, company_id)
        issued = await caller.memory.create_user(
            body.id,
            kind=ActorKind(body.kind),
            role=body.role,
            subjects=body.subjects,
            idempotency_key=idempotency_key,
        )
        response.headers.update(_NO_STORE)
        return CredentialIssued.of(issued)

    @routes.post("/credentials/{kind}/{id}/rotate", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def rotate_credential(
        request: Request,
        response: Response,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - the field's name
        body: Rotation | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialIssued:
        """Issue a new key and invalidate the old one. Also restores a revoked credential."""
        change = body or Rotation()
        caller = await auth.company(request, company_id)
        issued = await caller.memory.rotate_user(
            id, kind=ActorKind(kind), role=change.role, subjects=change.subjects, idempotency_key=idempotency_key
        )
        response.headers.update(_NO_STORE)
        return CredentialIssued.of(issued)


def _add_list_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/credentials", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 422))
    async def list_credentials(
        request: Request,
        company_id: CompanyId,
        kind: KindAsked = "agent",
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> CredentialList:
        """List credentials of one kind by id, revoked ones included; never keys."""
        caller = await auth.company(request, company_id)
        page = await caller.memory.users(kind=ActorKind(kind), limit=limit, cursor=cursor)
        return CredentialList(
            credentials=[CredentialTold.of(each) for each in page.items], next_cursor=page.next_cursor
        )

    @routes.delete("/credentials/{kind}/{id}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def revoke_credential(
        request: Request,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - the field's name
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialTold:
        """Revoke a key. The memory stays."""
        caller = await auth.company(request, company_id)
        revoked = await caller.memory.revoke_user(id, kind=ActorKind(kind), idempotency_key=idempotency_key)
        return CredentialTold.of(revoked)
