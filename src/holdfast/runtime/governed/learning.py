"""What a maintenance job does: have a model propose, judge what it proposes, and keep what it took.

The job names messages; their texts are read when it runs. Whatever became of them meanwhile holds: what was masked,
forgotten or corrected is neither shown to the model nor learned from. The outcome is kept under the messages' ids, so
that the same messages are worked on once, however often somebody asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.candidates import CandidatePrivacy, Verdict, accepts, learned_from
from holdfast.domain.contract import BillingType, Usage
from holdfast.domain.costs import CostEvent, Price
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.jobs import Cause, Job
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.scope import Scope
from holdfast.domain.surface.writing import CandidateVerdict, ModelUsage, SemanticGovernance
from holdfast.domain.transcript import Message, Role
from holdfast.domain.usage import checked_usage
from holdfast.errors import ModelMisconfigured
from holdfast.ports import Answer, Curated, Reader, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.charging import Priced, charged
from holdfast.runtime.extract import lasting
from holdfast.runtime.governed.deciding import (
    Cited,
    Evidence,
    Given,
    Ready,
    Source,
    Writer,
    all_decided,
    from_outline,
    outline,
)
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.perform import Core

# A model may misread what was stated.
_CEILING = Trust.MODEST
_PROVIDER = "model"  # whom calls are paid to where the curator does not say
NOTHING_TO_LEARN = "nothing_to_learn_from"
MAINTAINED = "maintained"


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of some messages: what a model took, and what became of each of its proposals."""

    reason: str
    usage: ModelUsage | None
    dropped: int
    verdicts: tuple[CandidateVerdict, ...]


def learned(reader: Reader, scope: Scope, message_ids: Sequence[str]) -> Learned | None:
    """What came of these messages, if they were worked on."""
    kept = reader.answer(scope.partition, _key(scope, message_ids))
    if kept is None:
        return None
    body = json.loads(kept.body)
    usage = None if body["usage"] is None else ModelUsage(*body["usage"])
    verdicts = tuple(
        from_outline(_named(body["job"], place), each, replayed=False) for place, each in enumerate(body["verdicts"])
    )
    return Learned(body["reason"], usage, body["dropped"], verdicts)


def _key(scope: Scope, message_ids: Sequence[str]) -> str:
    return digest_of("maintained", lasting(scope).given(), sorted(message_ids))


async def maintained(core: Core, job: Job) -> Callable[[Transaction], None]:
    """The effect of a maintenance job. Done twice, it writes nothing twice."""
    if core.curator is None:
        raise ModelMisconfigured("there is no model here that could maintain memory; set HOLDFAST_MODEL")
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    if await core.store.read(grant, lambda reader: learned(reader, job.scope, job.record_ids)) is not None:
        return lambda transaction: None
    messages = await core.store.read(grant, lambda reader: _learnable(reader, job.scope, job.record_ids))
    curated = await core.curator.curate(messages) if messages else None
    prices = tuple(await core.store.read(grant, lambda reader: reader.prices()))
    if curated is not None and curated.failure is not None:
        await _note_failure(core, job, grant, curated, prices)
        raise curated.failure
    givens = _givens(job, curated, {message.id for message in messages})
    analyses = await indexing.analyzed(core, [given.content for given in givens])
    # Here nobody waits for an answer, so a remote embedder is waited for.
    vectors = await indexing.embedded(core, analyses)
    proposed = [
        Ready(given, indexing.Entry(analysis, made))
        for given, analysis, made in zip(givens, analyses, vectors.result, strict=True)
    ]
    return _Learning(core, job, curated, proposed, prices, vectors.took)


@dataclass(slots=True)
class _Learning:
    """The effect of a job whose model has answered: what it learned, and what it took. Done again, it says it again."""

    core: Core
    job: Job
    curated: Curated | None
    proposed: Sequence[Ready]
    prices: tuple[Price, ...]
    embedding: tuple[Usage, ...]
    costs: tuple[CostEvent, ...] = ()

    def __call__(self, transaction: Transaction) -> None:
        # What was asked was paid for, also if somebody else was at the same messages meanwhile.
        self.costs = _charged(self.core, transaction, self.job, self.curated, self.prices, self.embedding)
        if learned(transaction, self.job.scope, self.job.record_ids) is None:
            _commit(self.core, transaction, self.job, self.curated, self.proposed)


async def _note_failure(core: Core, job: Job, grant: Grant, curated: Curated, prices: tuple[Price, ...]) -> None:
    """An attempt at which the model was no use, and was paid for all the same."""
    event = _event(core, job, curated, SemanticGovernance())

    def note(transaction: Transaction) -> tuple[CostEvent, ...]:
        transaction.append_event(event)
        return _charged(core, transaction, job, curated, prices)

    costs = await core.store.write(grant, note)
    if core.watcher is not None and costs:
        core.watcher.cost(costs)


def _charged(
    core: Core,
    transaction: Transaction,
    job: Job,
    curated: Curated | None,
    prices: tuple[Price, ...],
    embedding: tuple[Usage, ...] = (),
) -> tuple[CostEvent, ...]:
    """What asking the model and the embedder took, by our prices, put down to the call that the job goes back to."""
    usage = (*_asking(core, job, curated), *embedding)
    if not usage:
        return ()
    ledger, cause = Priced(transaction, prices), job.cause or Cause()
    return charged(ledger, core, cause.operation_id, cause.binding, job.scope, usage, core.clock.now())


def _asking(core: Core, job: Job, curated: Curated | None) -> tuple[Usage, ...]:
    """What asking the model took; nothing of one that is not paid for by requests."""
    if curated is None or not curated.usage.requests:
        return ()
    took = curated.usage
    told = Usage(
        getattr(core.curator, "provider", _PROVIDER),
        model=took.model,
        billing_type=BillingType.METERED_API,
        input_tokens=took.input_tokens,
        output_tokens=took.output_tokens,
        details={"requests": took.requests, "job": job.id},
    )
    return checked_usage((told,), _PROVIDER)


def _learnable(reader: Reader, scope: Scope, message_ids: Sequence[str]) -> list[Message]:
    """The messages that a model may see; none if nothing could be accepted of them."""
    evidence = Evidence(reader, scope)
    shown, grounds = [], []
    for message in map(evidence.message, message_ids):
        # Whatever a tool's words rest on, strangers may have written them, and for the model.
        if message is None or message.plane is not None or message.role is Role.TOOL:
            continue
        cited = evidence.cited(message)
        if isinstance(cited, Cited) and learned_from(cited.ground):
            shown.append(message)
            grounds.append(cited.ground)
    return shown if any(accepts(ground, Plane.LONG_TERM) for ground in grounds) else []


def _givens(job: Job, curated: Curated | None, shown: set[str]) -> list[Given]:
    """A model's proposals as candidates. What it says they rest on must be something that it was shown."""
    if curated is None:
        return []
    return [
        Given(
            id=_named(job.id, place),
            authority=None,
            target=Plane.LONG_TERM,
            privacy=CandidatePrivacy.STANDARD,
            content=proposal.text,
            sources=tuple(Source(message_id, None, None) for message_id in proposal.evidence if message_id in shown),
            worded_by_model=True,
        )
        for place, proposal in enumerate(curated.proposals)
    ]


def _named(job_id: str, place: int) -> str:
    """A proposal's id: the same in every attempt at the job."""
    return f"{job_id.partition('.')[0]}/{place}"


def _commit(core: Core, transaction: Transaction, job: Job, curated: Curated | None, proposed: Sequence[Ready]) -> None:
    now = core.clock.now()
    name = "none" if core.curator is None else core.curator.name
    writer = Writer(core, lasting(job.scope), f"curator:{name}", _CEILING, now)
    verdicts = all_decided(transaction, writer, proposed)
    usage = None if curated is None else curated.usage
    transaction.append_event(_event(core, job, curated, SemanticGovernance(verdicts)))
    body = {
        "job": job.id,
        "reason": NOTHING_TO_LEARN if curated is None else MAINTAINED,
        "usage": usage and [usage.model, usage.requests, usage.input_tokens, usage.output_tokens],
        "dropped": curated.dropped if curated else 0,
        "verdicts": [outline(verdict) for verdict in verdicts],
    }
    key = _key(job.scope, job.record_ids)
    transaction.keep_answer(job.scope.partition, key, Answer(key, json.dumps(body)), now)


def _event(core: Core, job: Job, curated: Curated | None, governed: SemanticGovernance) -> Event:
    """What one attempt took, and what came of it."""
    usage = None if curated is None else curated.usage
    failure = None if curated is None else curated.failure
    return Event(
        id=EventId(core.ids.new(ids.EVENT)),
        kind=EventKind.MAINTENANCE,
        scope=job.scope,
        at=core.clock.now(),
        record_key=job.id,
        details={
            "model": usage.model if usage else None,
            "requests": usage.requests if usage else 0,
            "input_tokens": usage.input_tokens if usage else 0,
            "output_tokens": usage.output_tokens if usage else 0,
            "dropped": curated.dropped if curated else 0,
            "failure": failure.code if failure else None,
            **{verdict.value: governed.count(verdict) for verdict in Verdict},
        },
    )
