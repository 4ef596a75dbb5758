"""Background work as a company sees it: what waits, what runs, what failed and why, and what set it off."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import ClassVar

from holdfast.control import given
from holdfast.control.deliveries import revived
from holdfast.domain.access import Action, Grant
from holdfast.domain.bindings import checked_key
from holdfast.domain.contract import DEFAULT_PAGE, MAX_PAGE, HookKind
from holdfast.domain.events import EventKind
from holdfast.domain.hooks import DeliveryStatus
from holdfast.domain.ids import DeliveryId, JobId, OperationId, checked_id
from holdfast.domain.jobs import Job, JobFilter, JobKind, JobPage, JobState
from holdfast.domain.scope import Scope, check_part
from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.ports import Reader, Transaction
from holdfast.runtime.activity import activity
from holdfast.runtime.cursors import Paged
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.perform import Core, Read, Write

_CANCELLED = "cancelled"
_Prepared = tuple[Core, Grant]


@dataclass(frozen=True, slots=True)
class ListControlJobs(Paged, Read[datetime, JobPage]):
    """Newest first, one for each attempt. What is wanted is part of the cursor. What is stuck is so by our clock."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    filter: JobFilter = field(default_factory=JobFilter)
    cursor: str | None = None
    limit: int = DEFAULT_PAGE

    def __post_init__(self) -> None:
        given.check_one_company(self.scope)
        _check_filter(self.filter)
        self._check_page(MAX_PAGE)

    async def prepare(self, core: Core, grant: Grant) -> datetime:
        return core.clock.now()

    def apply(self, reader: Reader, prepared: datetime) -> JobPage:
        return JobPage(*self._page(reader.jobs_page(self.filter, prepared, self._before(), self.limit + 1)))

    def _query(self) -> str:
        given_kinds = self.filter.kinds
        kinds = None if given_kinds is None else sorted(given_kinds)
        wanted = [str(getattr(self.filter, each.name)) for each in fields(self.filter) if each.name != "kinds"]
        return digest_of("jobs", self.scope.given(), kinds, wanted)[:16]

    def touched(self, result: JobPage) -> int:
        return len(result.items)


@dataclass(frozen=True, slots=True)
class GetJob(Read[None, Job]):
    """One attempt, with what caused it. `retry_of` is the attempt before."""

    action: ClassVar[Action] = Action.JOBS
    scope: Scope
    job_id: str

    def __post_init__(self) -> None:
        given.check_one_company(self.scope)
        checked_id(self.job_id, "job_id")

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> Job:
        return _there(reader, self.job_id)

    def touched(self, result: Job) -> int:
        return 1


class _OnOne(Write[_Prepared, Job]):
    """What is done to one job."""

    __slots__ = ()
    job_id: str

    def __post_init__(self) -> None:
        given.check_one_company(self.scope)
        checked_id(self.job_id, "job_id")

    async def prepare(self, core: Core, grant: Grant) -> _Prepared:
        return core, grant

    def touched(self, result: Job) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class RetryJob(_OnOne):
    """A new attempt at what failed or was cancelled, due at once. Of a delivery, it is pending again with it."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    scope: Scope
    job_id: str

    def apply(self, transaction: Transaction, prepared: _Prepared) -> Job:
        core, grant = prepared
        found = _there(transaction, self.job_id)
        again = transaction.retry_job(found.id, core.clock.now())
        if again is None:
            raise Conflict(
                f"the job {found.id} is {found.status}, or was tried again already; only what failed or was cancelled"
                " can be tried again, once"
            )
        if found.kind is JobKind.DELIVER:
            for delivery_id in found.record_ids:
                delivery = transaction.delivery(delivery_id)
                if delivery is None or not revived(core, grant, transaction, delivery):
                    raise Conflict(f"what the job {found.id} was to deliver is not dead; look at the delivery")
        transaction.append_event(activity(core, grant, EventKind.JOB_RETRIED, again.id, {"kind": again.kind}))
        return again

    async def finish(self, core: Core, result: Job, operation_id: OperationId) -> Job:
        core.wake()
        return result


@dataclass(frozen=True, slots=True)
class CancelJob(_OnOne):
    """From now on, whoever is at work on it commits nothing. What it was to deliver is dead, and can be revived."""

    action: ClassVar[Action] = Action.MANAGE_JOBS
    scope: Scope
    job_id: str

    def apply(self, transaction: Transaction, prepared: _Prepared) -> Job:
        core, grant = prepared
        found = _there(transaction, self.job_id)
        now = core.clock.now()
        cancelled = transaction.cancel_job(JobId(found.id), now)
        if cancelled is None:
            raise Conflict(f"the job {found.id} is {found.status}; only what has not ended can be cancelled")
        if found.kind is JobKind.DELIVER:
            # A job that a worker has taken is an attempt, whatever comes of it.
            tried = cancelled.started_at is not None
            for each in map(DeliveryId, found.record_ids):
                transaction.end_delivery(each, DeliveryStatus.DEAD, now, _CANCELLED, None, tried=tried)
        transaction.append_event(activity(core, grant, EventKind.JOB_CANCELLED, found.id, {"kind": found.kind}))
        return cancelled


def _there(reader: Reader, job_id: str) -> Job:
    found = reader.job(job_id)
    if found is None:
        raise NotFound(f"there is no job {job_id!r:.80} in this scope")
    return found


def _check_filter(wanted: JobFilter) -> None:
    if not isinstance(wanted, JobFilter):
        raise InvalidInput("filter", f"expected a JobFilter, got {type(wanted).__name__}")
    for name in ("agent", "project", "issue", "run"):
        if (value := getattr(wanted, name)) is not None:
            check_part(name, value)
    if wanted.binding is not None:
        checked_key(wanted.binding, "binding")
    if wanted.state is not None:
        given.check_enum(wanted.state, JobState, "state")
    if wanted.hook is not None:
        given.check_enum(wanted.hook, HookKind, "hook")
    if wanted.kinds is not None:
        if not isinstance(wanted.kinds, frozenset):
            raise InvalidInput("kinds", f"expected a frozenset, got {type(wanted.kinds).__name__}")
        for kind in wanted.kinds:
            given.check_enum(kind, JobKind, "kinds")
    given.check_span(wanted.since, wanted.until)
