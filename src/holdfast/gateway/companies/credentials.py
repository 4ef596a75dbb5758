"""Who may come in: keys of a company's users, agents and operators. A key is told once."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from holdfast.control.forms import Answer, Asked, Part, iso
from holdfast.domain.access import ActorKind, Role
from holdfast.domain.users import MAX_SUBJECTS, Issued, User
from holdfast.gateway.access import Door, Rule, ruled
from holdfast.gateway.companies.calling import PAGE, CompanyId, Cursor, Limit, router_of
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problems import refusals

# Those that have keys.
Kind = Literal["user", "agent", "operator"]
KindAsked = Annotated[Kind, Query(description="user, agent or operator.")]
KindInPath = Annotated[Kind, Path(description="user, agent or operator.")]
Name = Annotated[Part, Path()]
Subjects = Annotated[list[Part], Field(max_length=MAX_SUBJECTS)]
_KEPT_NOWHERE = {"Cache-Control": "no-store"}


class CredentialGiven(Asked):
    """`subjects` are whom an agent may speak for besides itself."""

    kind: Kind
    id: Part
    role: Annotated[Role, Field(strict=False)] | None = None
    subjects: Subjects | None = None


class Rotation(Asked):
    """Role and subjects stay as they are, unless they are given."""

    role: Annotated[Role, Field(strict=False)] | None = None
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
    def of(cls, found: User) -> CredentialTold:
        return cls(
            kind=found.kind,
            id=found.id,
            role=found.role,
            subjects=sorted(found.subjects),
            created_at=found.created_at.isoformat(),
            rotated_at=iso(found.rotated_at),
            revoked_at=iso(found.revoked_at),
        )


class CredentialIssued(Answer):
    """`key` is told this once; null if the call was made before."""

    credential: CredentialTold
    key: str | None

    @classmethod
    def of(cls, found: Issued) -> CredentialIssued:
        return cls(credential=CredentialTold.of(found.user), key=found.key)


class CredentialList(Answer):
    credentials: list[CredentialTold]
    next_cursor: str | None


def router(door: Door) -> APIRouter:
    routes = router_of("credentials")
    _issuing(routes, door)
    _looking(routes, door)
    return routes


def _issuing(routes: APIRouter, door: Door) -> None:
    @routes.post("/credentials", status_code=201, **ruled(Rule.COMPANY), responses=refusals(401, 403, 409, 422))
    async def create_credential(
        request: Request,
        response: Response,
        company_id: CompanyId,
        given: CredentialGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialIssued:
        """Let a user, an agent or an operator of this company in. The key is in the answer, and nowhere else."""
        caller = await door.company(request, company_id)
        issued = await caller.memory.create_user(
            given.id,
            kind=ActorKind(given.kind),
            role=given.role,
            subjects=given.subjects,
            idempotency_key=idempotency_key,
        )
        response.headers.update(_KEPT_NOWHERE)
        return CredentialIssued.of(issued)

    @routes.post("/credentials/{kind}/{id}/rotate", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def rotate_credential(
        request: Request,
        response: Response,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - as its field is called
        given: Rotation | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialIssued:
        """A new key; the old one opens nothing from then on. It lets somebody in again who was revoked."""
        change = given or Rotation()
        caller = await door.company(request, company_id)
        issued = await caller.memory.rotate_user(
            id, kind=ActorKind(kind), role=change.role, subjects=change.subjects, idempotency_key=idempotency_key
        )
        response.headers.update(_KEPT_NOWHERE)
        return CredentialIssued.of(issued)


def _looking(routes: APIRouter, door: Door) -> None:
    @routes.get("/credentials", **ruled(Rule.COMPANY), responses=refusals(401, 403, 422))
    async def list_credentials(
        request: Request,
        company_id: CompanyId,
        kind: KindAsked = "agent",
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> CredentialList:
        """Those of one kind, by their ids, the revoked too; never their keys."""
        caller = await door.company(request, company_id)
        page = await caller.memory.users(kind=ActorKind(kind), limit=limit, cursor=cursor)
        return CredentialList(
            credentials=[CredentialTold.of(each) for each in page.items], next_cursor=page.next_cursor
        )

    @routes.delete("/credentials/{kind}/{id}", **ruled(Rule.COMPANY), responses=refusals(401, 403, 404, 422))
    async def revoke_credential(
        request: Request,
        company_id: CompanyId,
        kind: KindInPath,
        id: Name,  # noqa: A002 - as its field is called
        idempotency_key: IdempotencyKey = None,
    ) -> CredentialTold:
        """Let somebody in no longer. What was remembered stays."""
        caller = await door.company(request, company_id)
        gone = await caller.memory.revoke_user(id, kind=ActorKind(kind), idempotency_key=idempotency_key)
        return CredentialTold.of(gone)
