"""From what the library answers to what the routes answer."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
from holdfast.domain.memory import Memory, Plane
from holdfast.domain.resources import Resource
from holdfast.domain.results import Added, Hit, Record
from holdfast.domain.scope import Scope
from holdfast.domain.users import User
from holdfast.gateway.models import (
    CHAT,
    AddTold,
    ForgetTold,
    Forgotten,
    MemoryTold,
    ResourceTold,
    ResultTold,
    ScopeName,
    SkippedTold,
    UserListed,
)

RESOURCE_URI = "resource_uri"


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def session_of(scope: Scope, source: str | None, plane: Plane | None) -> str | None:
    """A resource is a session of its own; what was said belongs to its chat; some memories to none."""
    if plane is Plane.RESOURCE:
        return source
    return None if scope.conversation is None else f"{CHAT}{scope.conversation}"


def result(hit: Hit, asked: Collection[ScopeName], conversation: str | None) -> ResultTold:
    return ResultTold(
        id=hit.id,
        session_id=session_of(hit.scope, hit.source, hit.plane),
        text=hit.text,
        score=hit.score,
        source_scope=_source_scope(hit, asked, conversation),
        resource_uri=_resource_uri(hit.plane, hit.metadata),
        raw=_raw(hit),
    )


def _source_scope(hit: Hit, asked: Collection[ScopeName], conversation: str | None) -> ScopeName:
    """The narrowest of the scopes that were asked for through which it came."""
    if hit.plane is Plane.RESOURCE and "resources" in asked:
        return "resources"
    if conversation is not None and hit.scope.conversation == conversation and "current_chat" in asked:
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


def memory(found: Record) -> MemoryTold:
    if isinstance(found, Memory):
        return _revision(found)
    return MemoryTold(
        id=found.id,
        kind="message",
        session_id=session_of(found.scope, found.source, None),
        text=found.text,
        revision=found.revision,
        sender_id=found.sender,
        role=found.role,
        timestamp=millis(found.said_at),
        recorded_at=found.recorded_at.isoformat(),
        plane=None,
        trust=None,
        status=None,
        valid_from=None,
        valid_until=None,
        superseded_at=iso(found.superseded_at),
        reason=None,
        resource_uri=None,
        evidence=[],
        app_id=found.scope.app,
        project_id=found.scope.project,
        metadata=dict(found.metadata),
    )


def _revision(found: Memory) -> MemoryTold:
    return MemoryTold(
        id=found.id,
        kind="memory",
        session_id=session_of(found.scope, found.source, found.plane),
        text=found.text,
        revision=found.revision,
        sender_id=None,
        role=None,
        timestamp=millis(found.recorded_at),
        recorded_at=found.recorded_at.isoformat(),
        plane=found.plane,
        trust=found.trust.name.lower(),
        status=found.status,
        valid_from=iso(found.validity.since),
        valid_until=iso(found.validity.until),
        superseded_at=iso(found.superseded_at),
        reason=found.reason,
        resource_uri=_resource_uri(found.plane, found.metadata),
        evidence=[link.message_id for link in found.evidence],
        app_id=found.scope.app,
        project_id=found.scope.project,
        metadata=dict(found.metadata),
    )


def added(session_id: str, found: Added) -> AddTold:
    return AddTold(
        session_id=session_id,
        message_count=len(found.message_ids),
        status="accumulated",
        message_ids=list(found.message_ids),
        stored=found.stored,
        skipped=[SkippedTold(index=each.index, reason=each.reason, id=each.message_id) for each in found.skipped],
        replayed=found.replayed,
    )


def preview(found: ForgetPreview) -> ForgetTold:
    return ForgetTold(
        token=found.token,
        messages=found.messages,
        memories=found.memories,
        derived=found.derived,
        weakened=found.weakened,
        resources=found.resources,
        ids=list(found.ids),
        truncated=found.truncated,
    )


def forgotten(found: ForgetReceipt) -> Forgotten:
    return Forgotten(
        operation_id=found.operation_id,
        messages=found.messages,
        memories=found.memories,
        revisions=found.revisions,
        resources=found.resources,
        tombstones=found.tombstones,
        remaining=found.remaining,
        scrubbed=found.scrubbed,
        forgotten_at=found.forgotten_at.isoformat(),
    )


def resource(found: Resource, *, reused: bool = False) -> ResourceTold:
    return ResourceTold(
        resource_id=found.id,
        session_id=found.uri,
        uri=found.external_uri or found.uri,
        name=found.name,
        media_type=found.media_type,
        sha256=found.sha256,
        bytes=found.bytes,
        chunks=found.chunks,
        recorded_at=found.recorded_at.isoformat(),
        reused=reused,
    )


def user(found: User) -> UserListed:
    return UserListed(
        user_id=found.id,
        created_at=found.created_at.isoformat(),
        rotated_at=iso(found.rotated_at),
        revoked_at=iso(found.revoked_at),
    )
