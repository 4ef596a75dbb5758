"""Converts results of the library into response bodies, where `schemas.py` cannot read them as they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from holdfast.domain.memory import ALWAYS, MemoryRecord, Plane
from holdfast.domain.resources import Resource, ResourcePage
from holdfast.domain.results import Hit, Page, Record
from holdfast.gateway.schemas import CHAT, ScopeName
from holdfast.runtime.search import to_hit

RESOURCE_URI = "resource_uri"


def millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def result(hit: Hit, scopes: Collection[ScopeName], conversation: str | None) -> dict[str, Any]:
    return {
        **_origin(hit),
        "score": hit.score,
        "source_scope": _source_scope(hit, scopes, conversation),
        "raw": {**_raw(hit), "relevant": hit.relevant},
    }


def _source_scope(hit: Hit, scopes: Collection[ScopeName], conversation: str | None) -> ScopeName:
    """The narrowest requested scope that contains the hit."""
    if hit.plane is Plane.RESOURCE and "resources" in scopes:
        return "resources"
    if conversation is not None and hit.scope.conversation == conversation and "current_chat" in scopes:
        return "current_chat"
    return "all_user_memory"


def _origin(hit: Hit) -> dict[str, Any]:
    """The id and text of a record, and its session: a resource's URI, a message's chat, or none."""
    session_id = None if hit.scope.conversation is None else f"{CHAT}{hit.scope.conversation}"
    of_resource = hit.plane is Plane.RESOURCE
    uri = hit.metadata.get(RESOURCE_URI) if of_resource else None
    return {
        "id": hit.id,
        "text": hit.text,
        "session_id": hit.source if of_resource else session_id,
        "resource_uri": uri if isinstance(uri, str) else None,
    }


def _raw(hit: Hit) -> dict[str, Any]:
    return {
        "kind": hit.kind.value,
        "sender_id": hit.sender,
        "role": hit.role,
        "timestamp": millis(hit.said_at or hit.recorded_at),
        "plane": hit.plane,
        "trust": hit.trust,
        "revision": hit.revision,
        "evidence": [link.message_id for link in hit.evidence],
        "metadata": dict(hit.metadata),
        "app_id": hit.scope.app,
        "project_id": hit.scope.project,
    }


def memory(record: Record) -> dict[str, Any]:
    """A record. Unlike a hit, a message has no evidence: it is its own."""
    hit = to_hit(record, 0.0)
    validity = hit.validity or ALWAYS
    return {
        **_origin(hit),
        **_raw(hit),
        "evidence": [link.message_id for link in hit.evidence] if isinstance(record, MemoryRecord) else [],
        "revision": record.revision,
        "recorded_at": record.recorded_at,
        "status": hit.status,
        "valid_from": validity.since,
        "valid_until": validity.until,
        "superseded_at": record.superseded_at,
        "reason": record.reason if isinstance(record, MemoryRecord) else None,
        "contradicts": list(hit.contradicts),
    }


def resource(record: Resource, *, reused: bool = False) -> dict[str, Any]:
    return {
        **{name: getattr(record, name) for name in ("name", "media_type", "sha256", "bytes", "chunks", "recorded_at")},
        "resource_id": record.id,
        "session_id": record.uri,
        "uri": record.external_uri or record.uri,
        "reused": reused,
    }


def memory_page(page: Page) -> dict[str, Any]:
    return {"memories": [memory(each) for each in page.items], "next_cursor": page.next_cursor}


def history(records: Sequence[Record]) -> dict[str, Any]:
    return {"revisions": [memory(each) for each in records]}


def resource_page(page: ResourcePage) -> dict[str, Any]:
    return {"resources": [resource(each) for each in page.items], "next_cursor": page.next_cursor}
