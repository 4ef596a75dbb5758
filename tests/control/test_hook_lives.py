"""Hooks under random events: none is lost, none reaches the wrong provider, and every attempt is recorded.

Two companies use the same hook ids; each is bound to an external provider. Bindings, workers and records change at
random. In the end, each hook that was enabled when emitted, and was neither dropped nor forgotten, has been delivered.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from misbehaving import HostileProvider

from holdfast.control.bindings import CreateBinding, SetTarget, UpdateBinding
from holdfast.control.deliveries import DropDelivery, ListDeliveries, RetryDelivery
from holdfast.control.hooks import EmitHook
from holdfast.control.jobs import CancelJob, ListControlJobs
from holdfast.domain.access import Action, storewide_grant
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import CaptureRequest, CaptureResult, HookKind, SourceKind, SourcePayload, SourceRef
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.hooks import Delivery, DeliveryFilter, HookDeliveryStatus
from holdfast.domain.jobs import LEASE, JobFilter, JobKind, JobState
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import Scope
from holdfast.errors import Conflict, NotFound, ProviderUnavailable
from holdfast.runtime.forget import Forget
from postgres import Server
from probes import SteppingClock

EXAMPLES = int(os.environ.get("HOLDFAST_HOOK_LIVES", "12"))
COMPANIES = ("acme", "globex")
HOOK = HookKind.POST_RUN_CAPTURE

_company = st.sampled_from(COMPANIES)
_hook = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("emit"), _company, _hook),
        st.tuples(st.just("emit"), _company, _hook),
        st.tuples(st.just("work")),
        st.tuples(st.just("wait"), st.sampled_from([3, 700])),
        st.tuples(st.just("lose_a_worker")),
        st.tuples(st.just("break"), _company, st.booleans()),
        st.tuples(st.just("enable"), _company, st.booleans()),
        st.tuples(st.just("switch"), _company, st.booleans()),
        st.tuples(st.just("reconfigure"), _company),
        st.tuples(st.just("forget"), _company, _hook),
        st.tuples(st.just("drop"), _company, _hook),
        st.tuples(st.just("cancel"), _company, _hook),
        st.tuples(st.just("revive"), _company, _hook),
    ),
    min_size=4,
    max_size=25,
)


@dataclass
class World:
    """The expected state of each company."""

    enabled: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(COMPANIES, True))
    on: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(COMPANIES, True))
    broken: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(COMPANIES, False))
    wanted: dict[tuple[str, int], bool] = field(default_factory=dict)  # by hook: enabled at any emission
    given_up: set[tuple[str, int]] = field(default_factory=set)
    forgotten: set[tuple[str, int]] = field(default_factory=set)
    arrived: list[tuple[str, int]] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)

    async def capture(self, request: CaptureRequest) -> CaptureResult:
        """Capture as the external provider does, and note deliveries that are wrong."""
        company = request.scope.space
        which = (company, int(str(request.idempotency_id)[1:]))
        wrong = {
            "asked while it was disabled": not self.enabled[company],
            "asked while the hook was off": not self.on[company],
            "given what was forgotten": which in self.forgotten,
            "given what was dropped": which in self.given_up,
            "given something else": request.payload.text != f"{company} {which[1]}",
            "given another company's": request.source.space != company,
        }
        # Noted, not raised: an exception in a provider is only another failed attempt.
        self.wrongs += [f"{which}: {what}" for what, so in wrong.items() if so]
        if self.broken[company]:
            raise ProviderUnavailable("not today")
        self.arrived.append(which)
        return CaptureResult()


@dataclass
class Life:
    desk: Desk
    clock: SteppingClock
    world: World = field(default_factory=World)
    colour: int = 0

    async def begin(self) -> None:
        self.desk.hostile.does["capture"] = self.world.capture
        for company in COMPANIES:
            whole = Scope(space=company)
            await self.desk.do(CreateBinding(whole, "elsewhere", "hostile"))
            await self.desk.do(SetTarget(whole, TargetKind.COMPANY, company, "elsewhere"))

    async def step(self, name: str, *given: Any) -> None:
        await getattr(self, f"_{name}")(*given)

    async def _emit(self, company: str, number: int) -> None:
        which = (company, number)
        source = SourceRef(SourceKind.RUN, company, run_id=f"r{number}")
        scope = Scope(space=company, agent="bot")
        hook = EmitHook(scope, HOOK, f"h{number}", source, SourcePayload(text=f"{company} {number}"))
        emitted = await self.desk.do(hook)
        wanted = self.world.enabled[company] and self.world.on[company]
        # A skipped hook is delivered when it is emitted again, if it is enabled by then and was not forgotten.
        goes_now = wanted and not self.world.wanted.get(which) and which not in self.world.forgotten
        assert emitted.repeated == (which in self.world.wanted and not goes_now)
        self.world.wanted[which] = self.world.wanted.get(which, False) or goes_now

    async def _work(self) -> None:
        await self.desk.engine.crew.drain()

    async def _wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    async def _lose_a_worker(self) -> None:
        """Claim a job and abandon it, as a worker that dies."""
        store, now = self.desk.engine._core.store, self.clock.now()
        await store.write(storewide_grant(), lambda t: t.jobs.claim(frozenset({JobKind.DELIVER}), now, LEASE))

    async def _break(self, company: str, broken: bool) -> None:
        self.world.broken[company] = broken

    async def _enable(self, company: str, enabled: bool) -> None:
        self.world.enabled[company] = enabled
        await self.desk.do(UpdateBinding(Scope(space=company), "elsewhere", enabled=enabled))

    async def _switch(self, company: str, on: bool) -> None:
        self.world.on[company] = on
        await self.desk.do(UpdateBinding(Scope(space=company), "elsewhere", hooks={HOOK: on}))

    async def _reconfigure(self, company: str) -> None:
        self.colour += 1
        await self.desk.do(UpdateBinding(Scope(space=company), "elsewhere", {"colour": str(self.colour)}))

    async def _forget(self, company: str, number: int) -> None:
        try:
            await self.desk.do(Forget(Scope(space=company), ForgetTarget(source=f"r{number}")))
        except NotFound:
            return
        if (company, number) in self.world.wanted:
            self.world.forgotten.add((company, number))

    async def _drop(self, company: str, number: int) -> None:
        await self._acted(DropDelivery, company, number)

    async def _revive(self, company: str, number: int) -> None:
        if (company, number) not in self.world.given_up:
            await self._acted(RetryDelivery, company, number)

    async def _acted(self, verb: Any, company: str, number: int) -> None:
        delivery = (await self.deliveries(company)).get(number)
        if delivery is None:
            return
        try:
            await self.desk.do(verb(Scope(space=company), delivery.id))
        except Conflict:
            return
        if verb is DropDelivery:
            self.world.given_up.add((company, number))

    async def _cancel(self, company: str, number: int) -> None:
        page = await self.desk.do(ListControlJobs(Scope(space=company), JobFilter(state=JobState.QUEUED)))
        for job in page.items:
            if job.cause is not None and job.cause.hook is not None and job.cause.hook.hook_id == f"h{number}":
                await self.desk.do(CancelJob(Scope(space=company), job.id))

    async def deliveries(self, company: str) -> dict[int, Delivery]:
        found = (await self.desk.do(ListDeliveries(Scope(space=company)))).items
        assert {each.to for each in found} <= {"binding:elsewhere"}
        return {int(each.hook.hook_id[1:]): each for each in found}

    async def end(self) -> None:
        """Enable and repair everything, and revive dead deliveries until no work is left."""
        for company in COMPANIES:
            await self._enable(company, True)
            await self._switch(company, True)
            await self._break(company, False)
        for _ in range(3):
            for company in COMPANIES:
                wanted = DeliveryFilter(status=HookDeliveryStatus.DEAD)
                for dead in (await self.desk.do(ListDeliveries(Scope(space=company), wanted))).items:
                    await self.desk.do(RetryDelivery(Scope(space=company), dead.id))
            self.clock.advance(hours=1)
            await self.desk.engine.crew.drain()

    async def check(self) -> None:
        assert self.world.wrongs == []
        rows = [row for row in await self.desk.rows() if row.action is Action.CAPTURE and row.attribution is not None]
        for company in COMPANIES:
            found = await self.deliveries(company)
            assert set(found) == {number for of, number in self.world.wanted if of == company}
            for number, delivery in found.items():
                which = (company, number)
                self._check_end(which, delivery)
                # One row per attempt, in order; the delivery names the last one.
                attempts = [
                    row
                    for row in rows
                    if row.scope.space == company and row.attribution.hook.hook_id == delivery.hook.hook_id
                ]
                assert [row.id for row in attempts] == sorted(row.id for row in attempts)
                assert len(attempts) == delivery.attempts
                if attempts:
                    assert attempts[-1].id == delivery.operation_id
                succeeded = [row for row in attempts if row.outcome is Outcome.SUCCEEDED]
                assert len(succeeded) == self.world.arrived.count(which)

    def _check_end(self, which: tuple[str, int], delivery: Delivery) -> None:
        times = self.world.arrived.count(which)
        if not self.world.wanted[which]:
            status = HookDeliveryStatus.DROPPED if which in self.world.forgotten else HookDeliveryStatus.SKIPPED
            assert (delivery.status, times) == (status, 0)
        elif delivery.status is HookDeliveryStatus.DROPPED:
            assert which in self.world.given_up | self.world.forgotten
            assert times == 0
        else:
            assert (delivery.status, times) == (HookDeliveryStatus.DELIVERED, 1)


async def lived(location: str, steps: list[tuple[Any, ...]]) -> None:
    clock = SteppingClock()
    desk = await Desk.opened(location, HostileProvider(), clock=clock)
    try:
        life = Life(desk, clock)
        await life.begin()
        for step in steps:
            await life.step(*step)
        await life.end()
        await life.check()
    finally:
        await desk.close()


_unhurried = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@_unhurried
@given(steps=STEPS)
def test_hooks_through_random_lives_on_sqlite(tmp_path_factory: pytest.TempPathFactory, steps: Any) -> None:
    folder: Path = tmp_path_factory.mktemp("life")
    asyncio.run(lived(str(folder / "memory.db"), steps))


@_unhurried
@given(steps=STEPS)
def test_hooks_through_random_lives_on_postgres(postgres: Server, steps: Any) -> None:
    url = postgres.store_url()
    try:
        asyncio.run(lived(url, steps))
    finally:
        postgres.drop(url)
