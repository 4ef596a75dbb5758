"""Converts Holdfast's records to EverOS episodes.

Every message and every memory becomes one episode. EverOS summarizes parts of a conversation and lists single facts
below them; Holdfast stores messages unchanged and memories beside them. With one episode per record, texts are
complete, ids work with `/memories/{id}`, ranks and pages are exact, and `search` and `get` agree. A memory is also its
own atomic fact, for clients that read only those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.domain.memory import Plane
from holdfast.domain.results import Hit, HitKind
from holdfast.gateway.everos.schemas import AtomicFact, Episode, FoundEpisode, conversation_of, format_time
from holdfast.gateway.schemas import RESOURCE

_SUMMARY_CHARS = 200
_SUBJECT_CHARS = 80


class SessionNames:
    """Names of sessions: as the request's filters write them, else the conversation without a prefix."""

    def __init__(self, filters: Mapping[str, Any] | None) -> None:
        self._asked = {conversation_of(name): name for name in _filtered_session_ids(filters or {})}

    def display_name(self, conversation: str) -> str:
        return self._asked.get(conversation, conversation)

    def of(self, hit: Hit) -> str:
        """The session of a hit. A resource is its own session; a memory belongs to the conversation of its evidence."""
        if hit.source is not None and (hit.plane is Plane.RESOURCE or hit.source.startswith(RESOURCE)):
            return hit.source
        if hit.scope.conversation is not None:
            return self.display_name(hit.scope.conversation)
        learned = [link.conversation for link in hit.evidence if link.conversation is not None]
        return self.display_name(learned[-1]) if learned else ""


def _filtered_session_ids(node: Any) -> Iterator[str]:
    """All session ids in validated filters, at any depth."""
    for name, value in node.items():
        if name in ("AND", "OR"):
            for part in value:
                yield from _filtered_session_ids(part)
        elif name == "session_id":
            for values in value.values() if isinstance(value, Mapping) else (value,):
                yield from values if isinstance(values, list) else (values,)


def episode(hit: Hit, sessions: SessionNames) -> Episode:
    return Episode(**_episode_fields(hit, sessions))


def found_episode(hit: Hit, sessions: SessionNames) -> FoundEpisode:
    fact = AtomicFact(id=hit.id, content=hit.text, score=hit.score)
    return FoundEpisode(
        **_episode_fields(hit, sessions), score=hit.score, atomic_facts=[fact] if hit.kind is HitKind.MEMORY else []
    )


def _episode_fields(hit: Hit, sessions: SessionNames) -> dict[str, Any]:
    senders = [hit.sender] if hit.kind is HitKind.MESSAGE else [link.sender for link in hit.evidence]
    return {
        "id": hit.id,
        "user_id": hit.scope.subject,
        "app_id": hit.scope.app or "",
        "project_id": hit.scope.project or "",
        "session_id": sessions.of(hit),
        "timestamp": format_time(hit.said_at or hit.recorded_at),
        "sender_ids": list(dict.fromkeys(sender for sender in senders if sender is not None)),
        "summary": shorten(hit.text, _SUMMARY_CHARS),
        "subject": shorten(hit.text.strip().splitlines()[0], _SUBJECT_CHARS),
        "episode": hit.text,
    }


def shorten(text: str, most: int) -> str:
    """Shorten to one line, cut between words if possible."""
    plain = " ".join(text[: most * 4].split())
    if len(plain) <= most and len(text) <= most * 4:
        return plain
    cut = plain[: most - 1]
    words = cut.rpartition(" ")[0] if " " in cut[most // 2 :] else cut
    return f"{words}…"
