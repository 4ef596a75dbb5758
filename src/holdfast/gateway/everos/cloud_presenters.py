"""Converts Holdfast's records to those of EverOS's cloud: episodes, agent cases, agent skills and raw messages.

As on EverOS's own routes, every record becomes one item, with its complete text and its own id.
"""

from __future__ import annotations

from typing import Any

from holdfast.domain.results import Hit, HitKind
from holdfast.domain.transcript import Message
from holdfast.gateway.everos.cloud_schemas import (
    AgentCase,
    CloudEpisode,
    CloudFact,
    FoundAgentCase,
    FoundCloudEpisode,
    FoundProceduralSkill,
    ProceduralSkill,
    RawMessage,
)
from holdfast.gateway.everos.messages import to_unprocessed_message
from holdfast.gateway.everos.presenters import SessionNames
from holdfast.gateway.everos.presenters import episode as own_episode
from holdfast.gateway.everos.schemas import format_time


def episode(hit: Hit, sessions: SessionNames) -> CloudEpisode:
    return CloudEpisode(**_episode_fields(hit, sessions))


def found_episode(hit: Hit, sessions: SessionNames) -> FoundCloudEpisode:
    fact = CloudFact(id=hit.id, atomic_fact=hit.text, score=hit.score)
    facts = [fact] if hit.kind is HitKind.MEMORY else []
    return FoundCloudEpisode(**_episode_fields(hit, sessions), score=hit.score, atomic_facts=facts)


def case(hit: Hit, sessions: SessionNames) -> AgentCase:
    return AgentCase(**_case_fields(hit, sessions))


def found_case(hit: Hit, sessions: SessionNames) -> FoundAgentCase:
    return FoundAgentCase(**_case_fields(hit, sessions), score=hit.score)


def skill(hit: Hit, sessions: SessionNames) -> ProceduralSkill:
    return ProceduralSkill(**_skill_fields(hit, sessions))


def found_skill(hit: Hit, sessions: SessionNames) -> FoundProceduralSkill:
    return FoundProceduralSkill(**_skill_fields(hit, sessions), score=hit.score)


def raw_message(message: Message, session_id: str) -> RawMessage:
    found = to_unprocessed_message(message, session_id)
    recorded = format_time(message.recorded_at)
    return RawMessage(
        id=found.id,
        request_id=message.turn_id,
        message_id=found.id,
        sender_id=found.sender_id,
        sender_name=found.sender_name,
        session_id=session_id,
        content_items=[{"type": "text", "text": message.text}],
        timestamp=found.timestamp,
        created_at=recorded,
        updated_at=recorded,
    )


def _owner(hit: Hit) -> str | None:
    """The user that the client names: a subject, or an agent for its own memory; None for shared records."""
    return hit.scope.subject or hit.scope.agent


def _episode_fields(hit: Hit, sessions: SessionNames) -> dict[str, Any]:
    fields = own_episode(hit, sessions).model_dump()
    return {**fields, "user_id": _owner(hit), "participants": fields["sender_ids"]}


def _case_fields(hit: Hit, sessions: SessionNames) -> dict[str, Any]:
    """An agent case says what was to be done and how; a message says it itself."""
    fields = own_episode(hit, sessions)
    return {
        "id": hit.id,
        "user_id": _owner(hit),
        "session_id": fields.session_id,
        "task_intent": fields.subject,
        "approach": hit.text,
        "timestamp": fields.timestamp,
    }


def _skill_fields(hit: Hit, sessions: SessionNames) -> dict[str, Any]:
    fields = own_episode(hit, sessions)
    return {
        "id": hit.id,
        "user_id": _owner(hit),
        "name": fields.subject,
        "description": fields.summary,
        "content": hit.text,
    }
