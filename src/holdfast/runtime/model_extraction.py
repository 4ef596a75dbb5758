"""Let a model read the messages of an extraction job, and check what it proposes.

It is asked a bounded number of times, and no further after a time limit. Messages that it did not read are named, so
that rules can learn from them. A proposal becomes a candidate if messages that can support a memory say it; the model's
word for it counts for nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.authorship import is_own_statement, mentions
from holdfast.domain.candidates import GROUNDS, can_accept
from holdfast.domain.contract import Usage
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId, MemoryId, MessageId
from holdfast.domain.jobs import Job
from holdfast.domain.memory import Candidate, MemoryRecord, Plane, Trust
from holdfast.domain.results import HitKind
from holdfast.domain.search import ListFilter
from holdfast.domain.transcript import Message, Role
from holdfast.errors import ModelError
from holdfast.ports import Curator, ModelCallUsage, Proposal, Reader
from holdfast.runtime.extract import lasting_scope
from holdfast.runtime.gate import Core
from holdfast.runtime.reconcile import learnable_messages
from holdfast.runtime.related import find_related
from holdfast.runtime.requests import FlushModel
from holdfast.runtime.transcripts.model_input import (
    GroundedMessage,
    model_usage,
    select_visible,
    select_visible_memories,
)

MAX_REQUESTS = 8
MAX_KNOWN = 24
# The most characters of a message that are compared with known memories.
_COMPARED_CHARS = 500
# Maximum trust of a model's proposals: it may misread a message.
_CEILING = Trust.MODEST


@dataclass(slots=True)
class ModelReading:
    """The outcome of letting a model read: candidates, and the messages that it did not read to their end.

    With a `failure` there are no candidates. A rejected proposal rests on no message that supports it.
    """

    used: ModelCallUsage
    candidates: tuple[Candidate, ...] = ()
    unread: tuple[Message, ...] = ()
    read_count: int = 0
    rejected: int = 0
    dropped: int = 0
    usage: tuple[Usage, ...] = ()
    failure: ModelError | None = None

    def event(self, core: Core, job: Job) -> Event:
        """The event of one attempt: the model's usage, and the numbers of messages and proposals."""
        details: dict[str, str | int | None] = {
            "model": self.used.model,
            "requests": self.used.requests,
            "input_tokens": self.used.input_tokens,
            "output_tokens": self.used.output_tokens,
            "messages_read": self.read_count,
            "messages_left_to_rules": len(self.unread),
            "proposals": len(self.candidates),
            "rejected": self.rejected,
            "dropped": self.dropped,
            "failure": self.failure.code if self.failure else None,
        }
        event_id = EventId(core.ids.new(ids.EVENT))
        now = core.clock.now()
        return Event(event_id, EventKind.MAINTENANCE, job.scope, now, record_key=job.id, details=details)


async def read_with_model(
    core: Core, flush_model: FlushModel, job: Job, grant: Grant, report_progress: Callable[[int, int], None]
) -> ModelReading:
    """Let the model read the job's messages, one request after the other."""
    stop_at = time.monotonic() + flush_model.max_seconds
    visible, others, newest = await core.store.read(grant, lambda reader: _find_messages(reader, job))
    by_id = {each.message.id: each for each in visible}
    reading = ModelReading(ModelCallUsage(flush_model.curator.name))
    recent = [each.message for each in visible if each.message.position > newest - flush_model.max_messages]
    try:
        requests = _split(recent, flush_model.curator.max_chars)
        # The pieces of each message that the model did not read.
        left = Counter(message.id for request in requests for message in request)
        # If there are too many requests, the first are left out: what was said last is true for longest.
        for request in requests[-MAX_REQUESTS:]:
            if time.monotonic() > stop_at:
                break
            await _ask(core, flush_model.curator, job, request, by_id, reading)
            left.subtract(message.id for message in request)
            reading.read_count = sum(not pieces for pieces in left.values())
            report_progress(reading.read_count, job.total)
        unread = [*others, *(each.message for each in visible if left.get(each.message.id, 1))]
        reading.unread = tuple(sorted(unread, key=lambda message: message.position))
    except ModelError as error:
        reading.failure, reading.candidates = error, ()
    reading.usage = model_usage(flush_model.curator, job, reading.used)
    return reading


def _find_messages(reader: Reader, job: Job) -> tuple[list[GroundedMessage], list[Message], int]:
    """Return the messages the model may see, those of others, and the position of the newest of the conversation.

    Rules read what others said: they word it as theirs, and a model would take it for the subject's words.
    """
    visible = select_visible(reader, job.scope, job.record_ids)
    readable = learnable_messages(reader, job.record_ids)
    others = [message for message in readable if message.role is Role.USER and not is_own_statement(message)]
    newest = reader.records.page(ListFilter(kind=HitKind.MESSAGE), None, 1) if visible else []
    return visible, others, max((each.position for each in newest if isinstance(each, Message)), default=0)


def _split(messages: Sequence[Message], max_chars: int) -> list[list[Message]]:
    """Split messages into requests, and the text of a message that is too long for one into pieces."""
    requests: list[list[Message]] = [[]]
    left = max_chars
    for message in messages:
        for start in range(0, len(message.text), max_chars):
            piece = message.text[start : start + max_chars]
            if len(piece) > left:
                requests.append([])
                left = max_chars
            requests[-1].append(replace(message, text=piece))
            left -= len(piece)
    return [request for request in requests if request]


async def _ask(
    core: Core,
    curator: Curator,
    job: Job,
    request: Sequence[Message],
    visible: Mapping[MessageId, GroundedMessage],
    reading: ModelReading,
) -> None:
    """Ask the model about some messages, and add what it proposes. Raises what the model failed with."""
    known = await _find_known(core, job, request)
    curated = await curator.curate(request, known)
    reading.used += curated.usage
    reading.dropped += curated.dropped
    if curated.failure is not None:
        raise curated.failure
    shown = {memory.id: memory.text for memory in known}
    for proposal in curated.proposals:
        cited = [visible[message_id] for message_id in proposal.evidence if message_id in visible]
        candidate = _to_candidate(proposal, cited, shown)
        if candidate is None:
            reading.rejected += 1
        else:
            reading.candidates += (candidate,)


async def _find_known(core: Core, job: Job, request: Sequence[Message]) -> list[MemoryRecord]:
    """Return the memories that new facts may repeat, update or contradict, if the model may see them."""
    texts = [message.text[:_COMPARED_CHARS] for message in request]
    now, scope = core.clock.now(), lasting_scope(job.scope)
    # The job's own grant reaches its conversation alone.
    grant = authorize(SYSTEM, Action.WORK, scope)
    related = await find_related(core, grant, scope, texts, limit=MAX_KNOWN)
    current = [memory for memory in related if memory.validity.until is None or memory.validity.until > now]
    return await core.store.read(grant, lambda reader: select_visible_memories(reader, current))


def _to_candidate(
    proposal: Proposal, cited: Sequence[GroundedMessage], shown: Mapping[MemoryId, str]
) -> Candidate | None:
    """Return the candidate of a proposal, resting on the messages that can support a memory; None if none does."""
    grounded = [each for each in cited if can_accept(each.ground, Plane.LONG_TERM)]
    # An assistant's words are no evidence of what its user says.
    context = "" if proposal.target is None else shown.get(proposal.target, "")
    if not mentions([each.message for each in grounded], proposal.text, context):
        return None
    return Candidate(
        text=proposal.text,
        evidence=tuple(each.message.id for each in grounded),
        trust=min(_CEILING, *(GROUNDS[each.ground].trust for each in grounded)),
        validity=proposal.validity,
        key="",
        relation=proposal.relation,
        target=proposal.target,
    )
