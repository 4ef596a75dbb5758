"""Routes for memory records: capture, upsert, query, correct and forget, through the caller's provider."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from holdfast.control.schemas import (
    MAX_METADATA,
    Asked,
    Filter,
    Metadata,
    Placed,
    RecordGiven,
    RecordId,
    SnippetTold,
    SourceGiven,
)
from holdfast.control.validation import MAX_TYPE_CHARS
from holdfast.domain.contract import (
    DEFAULT_TOP_K,
    MAX_CONTENT_CHARS,
    MAX_HANDLES,
    MAX_QUERY_CHARS,
    MAX_RECORDS,
    MAX_TOP_K,
    CaptureMode,
    Intent,
    SourcePayload,
)
from holdfast.errors import InvalidInput
from holdfast.gateway.authentication import AccessRule, Authenticator, allow
from holdfast.gateway.control.dependencies import (
    PAGE,
    ByKey,
    CompanyId,
    Cursor,
    Id,
    Limit,
    Where,
    plane_of,
    router_of,
)
from holdfast.gateway.control.schemas import (
    Bundle,
    Captured,
    Corrected,
    Explained,
    Forgotten,
    ProfileTold,
    ProviderJobList,
    ProviderJobTold,
    RecordList,
    RecordTold,
    Upserted,
    served_fields,
)
from holdfast.gateway.headers import IdempotencyKey
from holdfast.gateway.problem_responses import refusals
from holdfast.runtime.remember import MAX_REASON_CHARS

Content = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS)]
ByMetadata = Annotated[
    str | None,
    Query(
        min_length=2,
        max_length=4_096,
        description="Only records whose metadata has these values: a JSON object.",
        examples=['{"colour": "red"}'],
    ),
]
_FILTER: TypeAdapter[dict[str, Any]] = TypeAdapter(Filter, config=ConfigDict(strict=True))
# Errors of an external provider: bad gateway (down or invalid response) and timeout.
_OUTSIDE = (502, 504)


class PayloadGiven(Asked):
    """The content of an event: a text, a structured object, or both."""

    text: Content | None = None
    mime_type: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TYPE_CHARS)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    object: dict[str, Any] | None = None

    def payload(self) -> SourcePayload:
        return SourcePayload(self.text, self.mime_type, self.metadata, self.object)


class CaptureGiven(Placed):
    source: SourceGiven
    payload: PayloadGiven
    mode: Annotated[CaptureMode, Field(strict=False)] = CaptureMode.RESIDUE
    metadata: Metadata = Field(default_factory=dict)


class UpsertGiven(Placed):
    records: Annotated[list[RecordGiven], Field(min_length=1, max_length=MAX_RECORDS)]
    source: SourceGiven | None = None


class QueryGiven(Placed):
    query: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)]
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = DEFAULT_TOP_K
    intent: Annotated[Intent, Field(strict=False)] = Intent.ANSWER
    metadata_filter: Filter | None = None


class ForgetRecordsRequest(Placed):
    record_ids: Annotated[list[RecordId], Field(min_length=1, max_length=MAX_HANDLES)]


class CorrectGiven(Placed):
    text: Content
    reason: Annotated[str, StringConstraints(min_length=1, max_length=MAX_REASON_CHARS)] | None = None


def _filter(value: str) -> dict[str, Any]:
    try:
        return _FILTER.validate_json(value)
    except ValidationError:
        raise InvalidInput(
            "metadata_filter",
            f"must be a JSON object with at most {MAX_METADATA} names, each with a text, a number, true or false",
        ) from None


def router(auth: Authenticator) -> APIRouter:
    routes = router_of("records")
    _add_write_routes(routes, auth)
    _add_query_routes(routes, auth)
    _add_read_routes(routes, auth)
    _add_change_routes(routes, auth)
    _add_provider_job_routes(routes, auth)
    return routes


def _add_write_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post("/capture", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def capture(
        request: Request, company_id: CompanyId, body: CaptureGiven, idempotency_key: IdempotencyKey = None
    ) -> Captured:
        """Capture an event: as evidence for extraction, or stored unchanged."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.capture(
            body.payload.payload(),
            source=body.source.source(company_id),
            mode=body.mode,
            metadata=body.metadata,
            binding_key=body.binding_key,
            idempotency_key=idempotency_key,
            **body.where(),
        )
        return Captured(
            **served_fields(found),
            record_ids=[each.record_id for each in found.result.records],
            jobs=[ProviderJobTold.of(each) for each in found.result.jobs],
        )

    @routes.post("/records", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def upsert_records(
        request: Request, company_id: CompanyId, body: UpsertGiven, idempotency_key: IdempotencyKey = None
    ) -> Upserted:
        """Store facts unchanged. A fact with a `key` in its metadata replaces the fact with the same key."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.upsert(
            [each.record() for each in body.records],
            source=None if body.source is None else body.source.source(company_id),
            binding_key=body.binding_key,
            idempotency_key=idempotency_key,
            **body.where(),
        )
        return Upserted(**served_fields(found), record_ids=[each.record_id for each in found.result.records])


def _add_query_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post("/query", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def query(request: Request, company_id: CompanyId, body: QueryGiven) -> Bundle:
        """Query records; best matches first."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.query(
            body.query,
            top_k=body.top_k,
            intent=body.intent,
            metadata_filter=body.metadata_filter,
            binding_key=body.binding_key,
            **body.where(),
        )
        return Bundle(
            **served_fields(found),
            snippets=[SnippetTold.of(each) for each in found.result.snippets],
            profile_summary=found.result.profile_summary,
        )

    @routes.post("/explain", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def explain(request: Request, company_id: CompanyId, body: QueryGiven) -> Explained:
        """Explain the result of a query, in the provider's own format."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.explain(
            body.query,
            top_k=body.top_k,
            intent=body.intent,
            metadata_filter=body.metadata_filter,
            binding_key=body.binding_key,
            **body.where(),
        )
        return Explained(**served_fields(found), trace=dict(found.result.trace))

    @routes.get("/profile", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def profile(request: Request, company_id: CompanyId, where: Where, binding_key: ByKey = None) -> ProfileTold:
        """Summarize what is known about a subject."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.profile(binding_key=binding_key, **where)
        return ProfileTold(**served_fields(found), summary=found.result.summary)


def _add_read_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/records", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def list_records(
        request: Request,
        company_id: CompanyId,
        where: Where,
        metadata_filter: ByMetadata = None,
        binding_key: ByKey = None,
        limit: Limit = PAGE,
        cursor: Cursor = None,
    ) -> RecordList:
        """List records, newest first, in pages. Every given part of the scope must match."""
        plane = await plane_of(auth, request, company_id)
        values = None if metadata_filter is None else _filter(metadata_filter)
        found = await plane.list(limit=limit, cursor=cursor, metadata_filter=values, binding_key=binding_key, **where)
        return RecordList(
            **served_fields(found),
            records=[SnippetTold.of(each) for each in found.result.items],
            next_cursor=found.result.next_cursor,
        )

    @routes.get(
        "/records/{record_id:path}", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE)
    )
    async def get_record(
        request: Request, company_id: CompanyId, record_id: Id, where: Where, binding_key: ByKey = None
    ) -> RecordTold:
        """Get one record by its provider's id."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.get(record_id, binding_key=binding_key, **where)
        return RecordTold(**served_fields(found), record=SnippetTold.of(found.result))


def _add_change_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.post(
        "/records/{record_id:path}/correct",
        **allow(AccessRule.COMPANY),
        responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE),
    )
    async def correct_record(
        request: Request,
        company_id: CompanyId,
        record_id: Id,
        body: CorrectGiven,
        idempotency_key: IdempotencyKey = None,
    ) -> Corrected:
        """Replace the text of a record."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.correct(
            record_id,
            body.text,
            reason=body.reason,
            binding_key=body.binding_key,
            idempotency_key=idempotency_key,
            **body.where(),
        )
        before = found.result.superseded
        return Corrected(
            **served_fields(found),
            record_id=found.result.record.record_id,
            superseded_id=None if before is None else before.record_id,
        )

    @routes.post("/forget", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def forget_records(
        request: Request, company_id: CompanyId, body: ForgetRecordsRequest, idempotency_key: IdempotencyKey = None
    ) -> Forgotten:
        """Permanently forget records by id. The response lists those that were forgotten."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.forget(
            body.record_ids, binding_key=body.binding_key, idempotency_key=idempotency_key, **body.where()
        )
        return Forgotten(
            **served_fields(found),
            forgotten=[each.record_id for each in found.result.forgotten],
            missing=[each.record_id for each in found.result.missing],
        )


def _add_provider_job_routes(routes: APIRouter, auth: Authenticator) -> None:
    @routes.get("/provider-jobs", **allow(AccessRule.COMPANY), responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE))
    async def list_provider_jobs(
        request: Request, company_id: CompanyId, where: Where, binding_key: ByKey = None, cursor: Cursor = None
    ) -> ProviderJobList:
        """List the provider's own extraction jobs, if it reports any."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.provider_jobs(cursor=cursor, binding_key=binding_key, **where)
        return ProviderJobList(
            **served_fields(found),
            jobs=[ProviderJobTold.of(each) for each in found.result.items],
            next_cursor=found.result.next_cursor,
        )

    @routes.post(
        "/provider-jobs/{job_id}/retry",
        **allow(AccessRule.COMPANY),
        responses=refusals(401, 403, 404, 409, 422, *_OUTSIDE),
    )
    async def retry_provider_job(
        request: Request, company_id: CompanyId, job_id: Id, where: Where, binding_key: ByKey = None
    ) -> Captured:
        """Retry one of the provider's own jobs."""
        plane = await plane_of(auth, request, company_id)
        found = await plane.retry_provider_job(job_id, binding_key=binding_key, **where)
        return Captured(
            **served_fields(found),
            record_ids=[each.record_id for each in found.result.records],
            jobs=[ProviderJobTold.of(each) for each in found.result.jobs],
        )
