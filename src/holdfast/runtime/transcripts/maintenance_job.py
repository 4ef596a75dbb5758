"""Run a maintenance job: let a model propose memories, judge the proposals, and record the metered usage.

The job names messages; their texts are read when it runs. Messages that were masked, forgotten or corrected meanwhile
are neither shown to the model nor learned from. The outcome is stored under the messages' ids, so that the same
messages are processed once, however often it is requested.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.domain import ids
from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.candidates import CandidatePrivacy, Verdict
from holdfast.domain.contract import Usage
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.jobs import Job
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.runtime_api.writing import CandidateVerdict, ModelUsage, SemanticGovernance
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.domain.transcript_turns import Authority
from holdfast.errors import ModelMisconfigured
from holdfast.ports import CurationResult, Curator, ProcedureCurator, Proposal, Reader, StoredResponse, Transaction
from holdfast.runtime import indexing
from holdfast.runtime.extract import lasting_scope
from holdfast.runtime.gate import Core
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.metering import report_costs, with_costs
from holdfast.runtime.skills.near_skills import near_procedures
from holdfast.runtime.skills.tool_context import ToolContext, read_tool_use
from holdfast.runtime.transcripts.candidate_writer import (
    CandidateAuthor,
    CandidateSource,
    IndexedCandidate,
    ValidatedCandidate,
    verdict_from_json,
    verdict_to_json,
    write_candidates,
)
from holdfast.runtime.transcripts.model_input import model_usage, select_visible

# Maximum trust of a model's proposals: it may misread a message.
_CEILING = Trust.MODEST
NOTHING_TO_LEARN = "nothing_to_learn_from"
MAINTAINED = "maintained"


@dataclass(frozen=True, slots=True)
class LearningOutcome:
    """The outcome of learning from some messages: the model's usage, and the verdict on each of its proposals."""

    reason: str
    usage: ModelUsage | None
    dropped: int
    verdicts: tuple[CandidateVerdict, ...]


def load_outcome(reader: Reader, scope: Scope, message_ids: Sequence[str]) -> LearningOutcome | None:
    """Load the outcome for these messages; None if they were not processed yet."""
    stored = reader.records.response(scope.partition, _outcome_key(scope, message_ids))
    if stored is None:
        return None
    body = json.loads(stored.body)
    usage = None if body["usage"] is None else ModelUsage(*body["usage"])
    verdicts = tuple(
        verdict_from_json(_proposal_id(body["job"], place), each, replayed=False)
        for place, each in enumerate(body["verdicts"])
    )
    return LearningOutcome(body["reason"], usage, body["dropped"], verdicts)


def _outcome_key(scope: Scope, message_ids: Sequence[str]) -> str:
    return digest_of("maintained", lasting_scope(scope).given(), sorted(message_ids))


async def run_maintenance(core: Core, job: Job) -> Callable[[Transaction], None]:
    """Return the effect of a maintenance job. It is idempotent."""
    if core.curator is None:
        raise ModelMisconfigured("no model is configured to maintain memory; set HOLDFAST_MODEL")
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    if await core.store.read(grant, lambda reader: load_outcome(reader, job.scope, job.record_ids)) is not None:
        return lambda transaction: None
    visible = await core.store.read(grant, lambda reader: select_visible(reader, job.scope, job.record_ids))
    messages = [each.message for each in visible]
    tool_use = await core.store.read(grant, lambda reader: read_tool_use(reader, job.scope, job.record_ids))
    curated = await _curate(core.curator, messages, tool_use) if messages else None
    if curated is not None and curated.failure is not None:
        await _note_failure(core, job, grant, curated)
        raise curated.failure
    givens = _to_candidates(job, curated, {message.id for message in messages}, tool_use)
    analyses = await indexing.analyze_texts(core, [given.content for given in givens])
    # No caller waits for this job, so it can wait for a remote embedder.
    vectors = await indexing.embed_analyses(core, analyses)
    entries = [indexing.IndexedText(analysis, made) for analysis, made in zip(analyses, vectors.result, strict=True)]
    texts = [(given.target, given.content, entry) for given, entry in zip(givens, entries, strict=True)]
    home = lasting_scope(job.scope)
    near = await near_procedures(core, authorize(SYSTEM, Action.WORK, home), home, texts)
    proposed = [IndexedCandidate(*each) for each in zip(givens, entries, near, strict=True)]
    usage = (*_usage_of(core, job, curated), *vectors.took)
    return await with_costs(core, grant, usage, partial(_commit, core, job, curated, proposed), job)


async def _curate(curator: Curator, messages: Sequence[Message], tool_use: ToolContext) -> CurationResult:
    """Ask for memories and, if tools were used, for procedures."""
    curated = await curator.curate(messages)
    if curated.failure is None and tool_use.tools and isinstance(curator, ProcedureCurator):
        return curated + await curator.curate_procedures(messages)
    return curated


async def _note_failure(core: Core, job: Job, grant: Grant, curated: CurationResult) -> None:
    """Record a failed attempt, with the costs of the model's requests."""
    event = _event(core, job, curated, SemanticGovernance())
    usage = _usage_of(core, job, curated)
    effect = await with_costs(core, grant, usage, lambda transaction: transaction.events.append(event), job)
    await core.store.write(grant, effect)
    report_costs(core, effect)


def _usage_of(core: Core, job: Job, curated: CurationResult | None) -> tuple[Usage, ...]:
    return model_usage(core.curator, job, None if curated is None else curated.usage)


def _to_candidates(
    job: Job, curated: CurationResult | None, shown: set[str], tool_use: ToolContext
) -> list[ValidatedCandidate]:
    """Convert a model's proposals to candidates. Citations of messages it was not shown are dropped.

    A procedure from a turn with external content may say what a stranger wants: it waits for an approval.
    """
    if curated is None:
        return []
    return [
        ValidatedCandidate(
            id=_proposal_id(job.id, place),
            authority=_authority_of(proposal, tool_use),
            target=proposal.plane,
            privacy=CandidatePrivacy.STANDARD,
            content=proposal.text,
            sources=tuple(
                CandidateSource(message_id, None, None) for message_id in proposal.evidence if message_id in shown
            ),
            worded_by_model=True,
        )
        for place, proposal in enumerate(curated.proposals)
    ]


def _authority_of(proposal: Proposal, tool_use: ToolContext) -> Authority | None:
    external = tool_use.external and proposal.plane is Plane.PROCEDURAL
    return Authority.EXTERNAL_CONTENT if external else None


def _proposal_id(job_id: str, place: int) -> str:
    """The id of a proposal, the same in every attempt at the job."""
    return f"{job_id.partition('.')[0]}/{place}"


def _commit(
    core: Core, job: Job, curated: CurationResult | None, proposed: Sequence[IndexedCandidate], transaction: Transaction
) -> None:
    # Another worker may have processed the same messages meanwhile. The model's requests are billed all the same.
    if load_outcome(transaction, job.scope, job.record_ids) is not None:
        return
    now = core.clock.now()
    name = "none" if core.curator is None else core.curator.name
    writer = CandidateAuthor(core, lasting_scope(job.scope), f"curator:{name}", _CEILING, now)
    verdicts = write_candidates(transaction, writer, proposed)
    usage = None if curated is None else curated.usage
    transaction.events.append(_event(core, job, curated, SemanticGovernance(verdicts)))
    body = {
        "job": job.id,
        "reason": NOTHING_TO_LEARN if curated is None else MAINTAINED,
        "usage": usage and [usage.model, usage.requests, usage.input_tokens, usage.output_tokens],
        "dropped": curated.dropped if curated else 0,
        "verdicts": [verdict_to_json(verdict) for verdict in verdicts],
    }
    key = _outcome_key(job.scope, job.record_ids)
    transaction.records.put_response(job.scope.partition, key, StoredResponse(key, json.dumps(body)), now)


def _event(core: Core, job: Job, curated: CurationResult | None, governed: SemanticGovernance) -> Event:
    """The event of one attempt: the model's usage and the counts of verdicts."""
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
