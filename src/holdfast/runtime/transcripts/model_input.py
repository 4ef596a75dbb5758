"""The texts that a model may see, the acceptable evidence of its proposals, and its metered usage.

Never shown are messages that were masked, deleted, forgotten, superseded or quarantined, those on a private plane, and
the output of tools: strangers may have written it to steer the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.domain.candidates import can_accept, may_learn_from
from holdfast.domain.contract import BillingType, Usage
from holdfast.domain.jobs import Job
from holdfast.domain.memory import MemoryRecord, Plane, Status
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message, Role
from holdfast.domain.transcript_turns import Authority
from holdfast.domain.usage import checked_usage
from holdfast.ports import Curator, ModelCallUsage, Reader
from holdfast.runtime.transcripts.candidate_writer import CitedMessage, EvidenceResolver

_PROVIDER = "model"  # the billed provider if the curator names none


class GroundedMessage(NamedTuple):
    """A message that a model may see, with the authority that it has as evidence."""

    message: Message
    ground: Authority


def select_visible(reader: Reader, scope: Scope, message_ids: Sequence[str]) -> list[GroundedMessage]:
    """Return the messages a model may see; none if no proposal from them could be accepted."""
    evidence = EvidenceResolver(reader, scope)
    visible = []
    for message in map(evidence.message, message_ids):
        if message is None or not _is_open(message):
            continue
        cited = evidence.cite(message)
        if isinstance(cited, CitedMessage) and may_learn_from(cited.ground):
            visible.append(GroundedMessage(message, cited.ground))
    return visible if any(can_accept(each.ground, Plane.LONG_TERM) for each in visible) else []


def select_visible_memories(reader: Reader, memories: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the memories a model may see: none that rests on a message that it may not see."""
    links = reader.records.links([memory.id for memory in memories])
    evidence = {memory.id: links.get((memory.id, memory.revision), ()) for memory in memories}
    readable = reader.records.messages([each for found in evidence.values() for each in found])
    visible = {message.id for message in readable.values() if _is_open(message)}
    return [memory for memory in memories if visible.issuperset(evidence[memory.id])]


def _is_open(message: Message) -> bool:
    """True if the message is active, on no private plane, and not the output of a tool."""
    active = message.status is Status.ACCEPTED and message.superseded_at is None
    return active and message.plane is None and message.role is not Role.TOOL


def model_usage(curator: Curator | None, job: Job | None, used: ModelCallUsage | None) -> tuple[Usage, ...]:
    """The model's metered usage; empty for a model that is not billed by requests."""
    if used is None or not used.requests:
        return ()
    usage = Usage(
        getattr(curator, "provider", _PROVIDER),
        model=used.model,
        billing_type=BillingType.METERED_API,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        details={"requests": used.requests} | ({} if job is None else {"job": job.id}),
    )
    return checked_usage((usage,), _PROVIDER)
