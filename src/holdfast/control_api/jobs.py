"""Calls on background jobs, one row per attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from holdfast.control.jobs import CancelJob, GetJob, ListControlJobs, RetryJob
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action, ActorKind
from holdfast.domain.contract import DEFAULT_PAGE, HookKind
from holdfast.domain.jobs import ControlJob, ControlJobPage, JobFilter, JobKind, JobState
from holdfast.domain.scope import Scope
from holdfast.inputs import Moment, ScopeKwargs, as_texts, moment_from, parse_enum

_FILTERS = ("agent", "project", "issue", "run")


class JobCalls(ControlCalls):
    async def jobs(
        self,
        *,
        state: str | None = None,
        kinds: str | Iterable[str] | None = None,
        binding_key: str | None = None,
        hook: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_PAGE,
        **where: Unpack[ScopeKwargs],
    ) -> ControlJobPage:
        """List job attempts, newest first. The state `stuck` means running after its lease expired."""

        def make() -> ListControlJobs:
            scope, named = self._visible_scope(where), self._scope(where)
            criteria = JobFilter(
                state=None if state is None else parse_enum(JobState, state, "state"),
                kinds=None if kinds is None else _kinds(kinds),
                binding=binding_key,
                hook=None if hook is None else parse_enum(HookKind, hook, "hook"),
                since=moment_from(since, "since"),
                until=moment_from(until, "until"),
                **{name: getattr(named, name) for name in _FILTERS},
            )
            return ListControlJobs(scope, criteria, cursor, limit)

        return await self._perform(Action.JOBS, make)

    async def job(self, job_id: str, **where: Unpack[ScopeKwargs]) -> ControlJob:
        """Get one job attempt by its id, with its cause."""
        return await self._perform(Action.JOBS, lambda: GetJob(self._visible_scope(where), job_id))

    async def retry_job(self, job_id: str) -> ControlJob:
        """Queue a new attempt of a failed or cancelled job, due at once."""
        return await self._perform(Action.MANAGE_JOBS, lambda: RetryJob(self._company(), job_id))

    async def cancel_job(self, job_id: str) -> ControlJob:
        """Cancel a job; a running worker can no longer commit."""
        return await self._perform(Action.MANAGE_JOBS, lambda: CancelJob(self._company(), job_id))

    def _visible_scope(self, where: Mapping[str, Any]) -> Scope:
        """Return the scope to read: an operator sees the whole company's jobs, other actors only their own."""
        if self.actor.kind is not ActorKind.OPERATOR:
            return self._scope(where)
        return self._scope({name: value for name, value in where.items() if name not in _FILTERS})


def _kinds(kinds: str | Iterable[str]) -> frozenset[JobKind]:
    return frozenset(parse_enum(JobKind, each, "kinds") for each in as_texts(kinds, "kinds"))
