"""Converts results of the library into response bodies."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.memory import MemoryRecord, Plane
from holdfast.domain.resources import Resource
from holdfast.domain.results import Added, Hit, Record
from holdfast.domain.scope import Scope
from holdfast.domain.users import User
from holdfast.gateway.schemas import (
    CHAT,
    AddMessagesResponse,
    ForgetReceiptResponse,
    ForgetResponse,
    MemoryResponse,
    ResourceResponse,
    ScopeName,
    SearchResultResponse,
    SkippedMessageResponse,
    UserResponse,
)

RESOURCE_URI = "resource_uri"


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def session_of(scope: Scope, source: str | None, plane: Plane | None) -> str | None:
    """The session of a record: a resource's URI, a message's chat, or none."""
    if plane is Plane.RESOURCE:
        return source
    return None if scope.conversation is None else f"{CHAT}{scope.conversation}"


def result(hit: Hit, scopes: Collection[ScopeName], conversation: str | None) -> SearchResultResponse:
    return SearchResultResponse(
        id=hit.id,
        session_id=session_of(hit.scope, hit.source, hit.plane),
        text=hit.text,
        score=hit.score,
        source_scope=_source_scope(hit, scopes, conversation),
        resource_uri=_resource_uri(hit.plane, hit.metadata),
        raw=_raw(hit),
    )


def _source_scope(hit: Hit, scopes: Collection[ScopeName], conversation: str | None) -> ScopeName:
    """The narrowest requested scope that contains the hit."""
    if hit.plane is Plane.RESOURCE and "resources" in scopes:
        return "resources"
    if conversation is not None and hit.scope.conversation == conversation and "current_chat" in scopes:
        return "current_chat"
    return "all_user_memory"


def _resource_uri(plane: Plane | None, metadata: Any) -> str | None:
    return metadata.get(RESOURCE_URI) if plane is Plane.RESOURCE else None


def _raw(hit: Hit) -> dict[str, Any]:
    return {
        "kind": hit.kind.value,
        "sender_id": hit.sender,
        "role": hit.role,
        "timestamp": millis(hit.said_at or hit.recorded_at),
        "plane": hit.plane,
        "trust": None if hit.trust is None else hit.trust.name.lower(),
        "revision": hit.revision,
        "evidence": [link.message_id for link in hit.evidence],
        "metadata": dict(hit.metadata),
        "app_id": hit.scope.app,
        "project_id": hit.scope.project,
    }


def memory(record: Record) -> MemoryResponse:
    if isinstance(record, MemoryRecord):
        return _revision(record)
    return MemoryResponse(
        id=record.id,
        kind="message",
        session_id=session_of(record.scope, record.source, None),
        text=record.text,
        revision=record.revision,
        sender_id=record.sender,
        role=record.role,
        timestamp=millis(record.said_at),
        recorded_at=record.recorded_at.isoformat(),
        plane=None,
        trust=None,
        status=None,
        valid_from=None,
        valid_until=None,
        superseded_at=iso(record.superseded_at),
        reason=None,
        resource_uri=None,
        evidence=[],
        app_id=record.scope.app,
        project_id=record.scope.project,
        metadata=dict(record.metadata),
    )


def _revision(memory: MemoryRecord) -> MemoryResponse:
    return MemoryResponse(
        id=memory.id,
        kind="memory",
        session_id=session_of(memory.scope, memory.source, memory.plane),
        text=memory.text,
        revision=memory.revision,
        sender_id=None,
        role=None,
        timestamp=millis(memory.recorded_at),
        recorded_at=memory.recorded_at.isoformat(),
        plane=memory.plane,
        trust=memory.trust.name.lower(),
        status=memory.status,
        valid_from=iso(memory.validity.since),
        valid_until=iso(memory.validity.until),
        superseded_at=iso(memory.superseded_at),
        reason=memory.reason,
        resource_uri=_resource_uri(memory.plane, memory.metadata),
        evidence=[link.message_id for link in memory.evidence],
        app_id=memory.scope.app,
        project_id=memory.scope.project,
        metadata=dict(memory.metadata),
    )


def add_response(session_id: str, result: Added) -> AddMessagesResponse:
    return AddMessagesResponse(
        session_id=session_id,
        message_count=len(result.message_ids),
        status="accumulated",
        message_ids=list(result.message_ids),
        stored=result.stored,
        skipped=[
            SkippedMessageResponse(index=each.index, reason=each.reason, id=each.message_id) for each in result.skipped
        ],
        replayed=result.replayed,
    )


def preview(plan: ForgetPreview) -> ForgetResponse:
    return ForgetResponse(
        token=plan.token,
        messages=plan.messages,
        memories=plan.memories,
        derived=plan.derived,
        weakened=plan.weakened,
        resources=plan.resources,
        ids=list(plan.ids),
        truncated=plan.truncated,
    )


def forget_response(receipt: ForgetReceipt) -> ForgetReceiptResponse:
    return ForgetReceiptResponse(
        operation_id=receipt.operation_id,
        messages=receipt.messages,
        memories=receipt.memories,
        revisions=receipt.revisions,
        resources=receipt.resources,
        tombstones=receipt.tombstones,
        remaining=receipt.remaining,
        scrubbed=receipt.scrubbed,
        forgotten_at=receipt.forgotten_at.isoformat(),
    )


def resource(record: Resource, *, reused: bool = False) -> ResourceResponse:
    return ResourceResponse(
        resource_id=record.id,
        session_id=record.uri,
        uri=record.external_uri or record.uri,
        name=record.name,
        media_type=record.media_type,
        sha256=record.sha256,
        bytes=record.bytes,
        chunks=record.chunks,
        recorded_at=record.recorded_at.isoformat(),
        reused=reused,
    )


def user(record: User) -> UserResponse:
    return UserResponse(
        user_id=record.id,
        created_at=record.created_at.isoformat(),
        rotated_at=iso(record.rotated_at),
        revoked_at=iso(record.revoked_at),
    )
