"""`stats`, `verify`, `rebuild` and `drain`: maintenance of a store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, cast

from holdfast.domain.access import SYSTEM, Action, Grant, authorize
from holdfast.domain.ids import OperationId
from holdfast.domain.jobs import Job, JobKind, JobStatus
from holdfast.domain.results import RebuildResult, Stats, Verification
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, Transaction
from holdfast.ports.models import AbsentEmbedder
from holdfast.runtime.cursors import PageLimit
from holdfast.runtime.gate import Core, Read, Write
from holdfast.runtime.job_queue import enqueue_for_store
from holdfast.runtime.requests import SimpleRead


@dataclass(frozen=True, slots=True)
class GetStats(SimpleRead[Stats]):
    """Count the records and jobs of a scope."""

    action: ClassVar[Action] = Action.STATS
    scope: Scope

    def apply(self, reader: Reader, prepared: Core) -> Stats:
        fingerprint = prepared.embedder.fingerprint
        counts = reader.maintenance.counts(fingerprint, prepared.analyzer.version)
        return Stats(**counts, jobs=reader.jobs.counts(), embedder=fingerprint)


@dataclass(frozen=True, slots=True)
class ListJobs(SimpleRead[tuple[Job, ...]]):
    """List background jobs, newest first, with their progress: one row per attempt. `space="*"` lists all."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    status: Annotated[JobStatus | None, "Jobs of this status."] = None
    limit: PageLimit = 100

    def apply(self, reader: Reader, prepared: Core) -> tuple[Job, ...]:
        return tuple(reader.jobs.newest(self.status, self.limit))

    def record_count(self, result: tuple[Job, ...]) -> int:
        return len(result)


@dataclass(frozen=True, slots=True)
class Verify(SimpleRead[Verification]):
    """Check the whole store for damage: the file, and the consistency of its tables."""

    action: ClassVar[Action] = Action.VERIFY
    scope: Scope

    def apply(self, reader: Reader, prepared: Core) -> Verification:
        checked, findings = reader.maintenance.integrity(prepared.embedder.fingerprint)
        return Verification(checked, tuple(findings), tuple(reader.users.unproven_operators()))


@dataclass(frozen=True, slots=True)
class Rebuild(Write[Core, RebuildResult]):
    """Rebuild all indexes from the texts, and wait for it. Search uses the old ones meanwhile."""

    action: ClassVar[Action] = Action.REBUILD
    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> Core:
        # Without a configured embedder the rebuild would wait forever.
        if hasattr(core.embedder, "missing_error"):
            raise cast(AbsentEmbedder, core.embedder).missing_error()
        return core

    def apply(self, transaction: Transaction, prepared: Core) -> RebuildResult:
        records = transaction.index.mark_stale()
        enqueue_for_store(transaction, prepared, JobKind.REEMBED)
        return RebuildResult(records, records)

    async def finish(self, core: Core, result: RebuildResult, operation_id: OperationId) -> RebuildResult:
        await core.drain()
        grant = authorize(SYSTEM, Action.WORK, self.scope)
        fingerprint, version = core.embedder.fingerprint, core.analyzer.version
        counts = await core.store.read(grant, lambda reader: reader.maintenance.counts(fingerprint, version))
        return replace(result, pending_vectors=counts["pending_vectors"])

    def record_count(self, result: RebuildResult) -> int:
        return result.records


@dataclass(frozen=True, slots=True)
class Drain(Read[int, int]):
    """Run the background jobs that are due now, and wait for them; return their number."""

    action: ClassVar[Action] = Action.WORK
    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> int:
        return await core.drain()

    def apply(self, reader: Reader, prepared: int) -> int:
        return prepared

    def record_count(self, result: int) -> int:
        return result
