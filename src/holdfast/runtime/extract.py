"""Extract facts from sealed messages, by a model or by rules; `reconcile.py` compares them with what is known.

If the model fails for good, rules learn from the messages in its place; the job ends as failed, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.contract import Usage
from holdfast.domain.jobs import Job, is_last_attempt
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.results import Record
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Message
from holdfast.errors import ModelMisconfigured
from holdfast.ports import Candidate, CurationResult, Curator, Extractor, Transaction
from holdfast.runtime.attempts import AttemptFailed, Effect, Failure
from holdfast.runtime.gate import Core
from holdfast.runtime.metering import report_costs, with_costs
from holdfast.runtime.reconcile import IndexedProposal, learnable_messages, prepare_proposals, reconcile_proposals

if TYPE_CHECKING:
    from holdfast.runtime.model_extraction import ModelReading

# Attempts at a job whose model answers, and is paid, but not as asked.
_PAID_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LazyExtractor:
    """An extractor that is loaded on first use. Implements `ports.Extractor`."""

    name: str
    load: Callable[[], Extractor]

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]:
        return await self.load().extract(messages, subject)


class LazyCurator:
    """A curator that is loaded on first use. Implements `ports.Curator`."""

    def __init__(self, name: str, load: Callable[[], Curator | None]) -> None:
        self.name = name
        self._load = load
        self._loaded: Curator | None = None

    @property
    def _curator(self) -> Curator:
        if self._loaded is None:
            self._loaded = self._load()
        if self._loaded is None:
            raise ModelMisconfigured("no model is configured to learn; set HOLDFAST_MODEL")
        return self._loaded

    @property
    def max_chars(self) -> int:
        return self._curator.max_chars

    @property
    def provider(self) -> str:
        return str(getattr(self._curator, "provider", self.name))

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        return await self._curator.curate(messages, known)

    async def close(self) -> None:
        if self._loaded is not None:
            await self._loaded.close()


@dataclass(frozen=True, slots=True)
class _PreparedFacts:
    """Proposed facts, ready to be reconciled, and what embedding them took."""

    author: str
    proposed: tuple[IndexedProposal, ...]
    took: tuple[Usage, ...]


async def run_extraction(
    core: Core, job: Job, report_progress: Callable[[int, int], None] = lambda done, total: None
) -> Effect:
    """Return the effect of an extraction job. It is idempotent: a fact with the same text is not rewritten."""
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    flush_model = core.flush_model
    if flush_model is None:
        return await _learn_by_rules(core, grant, job)
    # Imported here because it loads the transcript modules, which only a model needs.
    from holdfast.runtime.model_extraction import read_with_model

    reading = await read_with_model(core, flush_model, job, grant, report_progress)
    if reading.failure is not None:
        await _note_failure(core, grant, job, reading)
        raise await _failed_attempt(core, grant, job, reading)
    # The model reads the newest messages, so what it learned is reconciled last.
    by_rules = await _apply_rules(core, job, reading.unread)
    by_model = await _prepare(core, job, f"curator:{flush_model.curator.name}", reading.candidates)
    event = reading.event(core, job)

    def effect(transaction: Transaction) -> None:
        _reconcile_all(core, job.scope, (by_rules, by_model), transaction)
        if reading.used.requests or reading.unread:
            transaction.events.append(event)

    return await with_costs(core, grant, (*reading.usage, *by_rules.took, *by_model.took), effect, job)


def learn_by_rules_instead(transaction: Transaction, job: Job, failure: Failure) -> None:
    """Write what rules learned from the messages of a job whose model failed for good."""
    if callable(failure.about):
        failure.about(transaction)


async def _learn_by_rules(core: Core, grant: Grant, job: Job) -> Effect:
    messages = await core.store.read(grant, lambda reader: learnable_messages(reader, job.record_ids))
    learned = await _apply_rules(core, job, messages)
    return await with_costs(core, grant, learned.took, partial(_reconcile_all, core, job.scope, (learned,)), job)


async def _apply_rules(core: Core, job: Job, messages: Sequence[Message]) -> _PreparedFacts:
    candidates = await core.extractor.extract(messages, job.scope.subject)
    return await _prepare(core, job, f"extractor:{core.extractor.name}", candidates)


async def _prepare(core: Core, job: Job, author: str, candidates: Sequence[Candidate]) -> _PreparedFacts:
    return _PreparedFacts(author, *await prepare_proposals(core, lasting_scope(job.scope), candidates))


def _reconcile_all(core: Core, scope: Scope, learned: Sequence[_PreparedFacts], transaction: Transaction) -> None:
    for each in learned:
        reconcile_proposals(core, transaction, lasting_scope(scope), each.proposed, each.author)


async def _note_failure(core: Core, grant: Grant, job: Job, reading: ModelReading) -> None:
    """Record a failed attempt, with the costs of the model's requests."""
    event = reading.event(core, job)
    effect = await with_costs(core, grant, reading.usage, lambda transaction: transaction.events.append(event), job)
    await core.store.write(grant, effect)
    report_costs(core, effect)


async def _failed_attempt(core: Core, grant: Grant, job: Job, reading: ModelReading) -> AttemptFailed:
    """Return the failure of an attempt; if no other follows, with what rules learn instead."""
    assert reading.failure is not None
    paid_in_vain = reading.used.requests > 0 and job.attempt >= _PAID_ATTEMPTS
    if not (paid_in_vain or is_last_attempt(job)):
        return AttemptFailed(reading.failure)
    problem = f"{reading.failure}. Rules learned from the messages instead; a retry of the job asks the model again"
    return AttemptFailed(type(reading.failure)(problem), await _learn_by_rules(core, grant, job), final=True)


def lasting_scope(scope: Scope) -> Scope:
    """The scope without conversation and run: a learned memory outlives both."""
    return Scope(
        space=scope.space,
        app=scope.app,
        project=scope.project,
        agent=scope.agent,
        subject=scope.subject,
        namespace=scope.namespace,
    )
