"""Extract facts from sealed messages; `reconcile.py` compares them with what is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.domain.access import SYSTEM, Action, authorize
from holdfast.domain.jobs import Job
from holdfast.domain.results import Record
from holdfast.domain.scope import Scope
from holdfast.ports import Candidate, Extractor, Transaction
from holdfast.runtime.gate import Core
from holdfast.runtime.metering import with_costs
from holdfast.runtime.reconcile import learnable_messages, prepare_proposals, reconcile_proposals


@dataclass(frozen=True, slots=True)
class LazyExtractor:
    """An extractor that is loaded on first use. Implements `ports.Extractor`."""

    name: str
    load: Callable[[], Extractor]

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]:
        return await self.load().extract(messages, subject)


async def run_extraction(core: Core, job: Job) -> Callable[[Transaction], None]:
    """Return the effect of an extraction job. It is idempotent: a slot with the same text is not rewritten."""
    grant = authorize(SYSTEM, Action.WORK, job.scope)
    messages = await core.store.read(grant, lambda reader: learnable_messages(reader, job.record_ids))
    candidates = await core.extractor.extract(messages, job.scope.subject)
    scope = lasting_scope(job.scope)
    proposed, took = await prepare_proposals(core, scope, candidates)

    def effect(transaction: Transaction) -> None:
        reconcile_proposals(core, transaction, scope, proposed, f"extractor:{core.extractor.name}")

    return await with_costs(core, grant, took, effect, job)


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
