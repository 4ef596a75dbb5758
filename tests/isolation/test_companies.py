"""Two companies on one control plane: no verb, called by any actor, reveals one company's data to the other.

Each company has records of every kind, marked with its canary. A verb of `holdfast.control` without a case fails
`test_every_verb_has_a_case`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast import control
from holdfast.app import Engine, open_engine
from holdfast.control import activity, bindings, costs, deliveries, hooks, hydration, jobs, memory, operations, routing
from holdfast.domain import ids
from holdfast.domain.access import LOCAL_OPERATOR, SYSTEM, Action, Actor, ActorKind, authorize
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import (
    BillingType,
    HookKind,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
    Usage,
)
from holdfast.domain.costs import CostEvent, FinanceKind, Price
from holdfast.domain.ids import CostEventId
from holdfast.domain.scope import Scope
from holdfast.errors import AccessDenied, HoldfastError
from holdfast.runtime.gate import Request
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Company:
    """A company, its canary, and the ids of its records."""

    space: str
    found: dict[str, str] = field(default_factory=dict)

    @property
    def canary(self) -> str:
        return f"canary-{self.space}"

    @property
    def whole(self) -> Scope:
        return Scope(space=self.space)

    @property
    def bot(self) -> Scope:
        return Scope(space=self.space, agent="bot")

    @property
    def source(self) -> SourceRef:
        return SourceRef(SourceKind.ISSUE, self.space, issue_id=f"issue-{self.canary}")

    @property
    def operator(self) -> Actor:
        return Actor(ActorKind.OPERATOR, f"boss-{self.canary}", self.space)

    @property
    def agent(self) -> Actor:
        return Actor(ActorKind.AGENT, "bot", self.space)

    def payload(self, about: str = "The vault code") -> SourcePayload:
        return SourcePayload(f"{about} is {self.canary}.", metadata={"mark": self.canary})


NORTH, SOUTH = Company("north"), Company("south")


@dataclass
class World:
    engine: Engine
    runner: asyncio.Runner

    def do(self, verb: Any, actor: Actor = LOCAL_OPERATOR) -> Any:
        performed = self.engine.perform(actor, verb.action, lambda: verb, space=verb.scope.space)
        return self.runner.run(performed)

    def told(self, make: Callable[[], Any], actor: Actor) -> Any:
        """The response, or the error."""
        try:
            return self.do(make(), actor)
        except HoldfastError as error:
            return error


def fill(world: World, mine: Company) -> None:
    key = f"binding-{mine.space}"
    world.do(bindings.CreateBinding(mine.whole, key, "local"), mine.operator)
    world.do(bindings.SetTarget(mine.whole, TargetKind.AGENT, f"agent-{mine.canary}", key), mine.operator)
    captured = world.do(memory.Capture(mine.bot, mine.source, mine.payload()), mine.agent)
    world.do(memory.UpsertRecords(mine.bot, (NewRecord(f"The vault is {mine.canary}."),), mine.source), mine.agent)
    emitted = world.do(
        hooks.EmitHook(mine.bot, HookKind.POST_RUN_CAPTURE, "hook-of-both", mine.source, mine.payload("It")),
        mine.agent,
    )
    for named in ("of-both", f"price-{mine.canary}"):
        world.do(costs.SetPrice(mine.whole, Price(named, "*", input_micros=1)), mine.operator)
    world.do(
        costs.AddFinanceEvent(mine.whole, FinanceKind.OTHER, f"fee {mine.canary}", 1_000, occurred_at=NOW),
        mine.operator,
    )
    usage = Usage(f"usage-{mine.canary}", billing_type=BillingType.METERED_API, cost_cents=Decimal(1))
    core = world.engine._core
    event = CostEvent(
        CostEventId(core.ids.new(ids.COST_EVENT)),
        captured.operation_id,
        key,
        mine.bot,
        usage,
        10_000,
        "USD",
        False,
        NOW,
    )
    grant = authorize(SYSTEM, Action.CAPTURE, mine.bot)
    world.runner.run(core.store.write(grant, lambda transaction: transaction.costs.add(event)))
    job = world.do(jobs.ListControlJobs(mine.whole), mine.operator).items[0]
    mine.found |= {
        "key": key,
        "record": captured.result.records[0].record_id,
        "operation": captured.operation_id,
        "delivery": emitted.deliveries[0].id,
        "job": job.id,
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, runner: asyncio.Runner) -> Iterator[World]:
    place = str(tmp_path_factory.mktemp("companies") / "memory.db")
    engine = runner.run(open_engine(place, Settings(), embedder="fake", work=False))
    made = World(engine, runner)
    for company in (NORTH, SOUTH):
        fill(made, company)
    yield made
    runner.run(engine.close())


def handle(of: Company) -> RecordHandle:
    return RecordHandle("local", of.found["record"])


# Per verb: a request in this scope, with this company's ids. Verbs in ONE_AGENT get the scope of an agent.
Case = Callable[[Scope, Company], Any]
CASES: dict[type, Case] = {
    activity.ListActivity: lambda scope, of: activity.ListActivity(scope),
    bindings.CreateBinding: lambda scope, of: bindings.CreateBinding(scope, f"new-{of.space}", "local"),
    bindings.UpdateBinding: lambda scope, of: bindings.UpdateBinding(scope, of.found["key"], enabled=True),
    bindings.DeleteBinding: lambda scope, of: bindings.DeleteBinding(scope, of.found["key"]),
    bindings.SetTarget: lambda scope, of: bindings.SetTarget(scope, TargetKind.AGENT, "x", of.found["key"]),
    bindings.ClearTarget: lambda scope, of: bindings.ClearTarget(scope, TargetKind.AGENT, f"agent-{of.canary}"),
    bindings.ListBindings: lambda scope, of: bindings.ListBindings(scope),
    bindings.GetBinding: lambda scope, of: bindings.GetBinding(scope, of.found["key"]),
    bindings.ListTargets: lambda scope, of: bindings.ListTargets(scope),
    bindings.ResolveBinding: lambda scope, of: bindings.ResolveBinding(scope, of.found["key"]),
    bindings.ListProviders: lambda scope, of: bindings.ListProviders(scope),
    costs.SummarizeCosts: lambda scope, of: costs.SummarizeCosts(scope),
    costs.ListCostEvents: lambda scope, of: costs.ListCostEvents(scope),
    costs.ListFinanceEvents: lambda scope, of: costs.ListFinanceEvents(scope),
    costs.AddFinanceEvent: lambda scope, of: costs.AddFinanceEvent(scope, FinanceKind.OTHER, "A fee.", 1),
    costs.ListPrices: lambda scope, of: costs.ListPrices(scope),
    costs.SetPrice: lambda scope, of: costs.SetPrice(scope, Price("x", "*")),
    costs.RemovePrice: lambda scope, of: costs.RemovePrice(scope, "of-both"),
    hooks.EmitHook: lambda scope, of: hooks.EmitHook(
        scope,
        HookKind.POST_RUN_CAPTURE,
        "hook-of-both",
        SourceRef(SourceKind.RUN, scope.space),
        SourcePayload("A run."),
    ),
    hydration.Hydrate: lambda scope, of: hydration.Hydrate(scope, "The vault code"),
    deliveries.ListDeliveries: lambda scope, of: deliveries.ListDeliveries(scope),
    deliveries.GetDelivery: lambda scope, of: deliveries.GetDelivery(scope, of.found["delivery"]),
    deliveries.RetryDelivery: lambda scope, of: deliveries.RetryDelivery(scope, of.found["delivery"]),
    deliveries.DropDelivery: lambda scope, of: deliveries.DropDelivery(scope, of.found["delivery"]),
    jobs.ListControlJobs: lambda scope, of: jobs.ListControlJobs(scope),
    jobs.GetJob: lambda scope, of: jobs.GetJob(scope, of.found["job"]),
    jobs.RetryJob: lambda scope, of: jobs.RetryJob(scope, of.found["job"]),
    jobs.CancelJob: lambda scope, of: jobs.CancelJob(scope, of.found["job"]),
    memory.Capture: lambda scope, of: memory.Capture(
        scope, SourceRef(SourceKind.RUN, scope.space), SourcePayload("A run.")
    ),
    memory.UpsertRecords: lambda scope, of: memory.UpsertRecords(scope, (NewRecord("A note."),)),
    memory.Query: lambda scope, of: memory.Query(scope, "The vault code"),
    memory.ExplainQuery: lambda scope, of: memory.ExplainQuery(scope, "The vault code"),
    memory.ListRecords: lambda scope, of: memory.ListRecords(scope),
    memory.GetRecord: lambda scope, of: memory.GetRecord(scope, handle(of)),
    memory.ForgetProviderRecords: lambda scope, of: memory.ForgetProviderRecords(scope, (handle(of),)),
    memory.CorrectRecord: lambda scope, of: memory.CorrectRecord(scope, handle(of), "Another."),
    memory.ReadProviderProfile: lambda scope, of: memory.ReadProviderProfile(scope),
    memory.ListProviderJobs: lambda scope, of: memory.ListProviderJobs(scope),
    memory.RetryProviderJob: lambda scope, of: memory.RetryProviderJob(scope, of.found["job"]),
    operations.ListOperations: lambda scope, of: operations.ListOperations(scope),
    operations.GetOperation: lambda scope, of: operations.GetOperation(scope, of.found["operation"]),
    operations.GetMetrics: lambda scope, of: operations.GetMetrics(scope),
}
ONE_AGENT = frozenset(
    kind for kind in CASES if kind.__module__ == memory.__name__ or kind in (hooks.EmitHook, hydration.Hydrate)
)
# Wrappers of other verbs, and verbs of the workers.
INNER = {routing.RoutedVerb}


def verbs() -> set[type]:
    for module in pkgutil.iter_modules(control.__path__, "holdfast.control."):
        importlib.import_module(module.name)

    def below(kind: type) -> Iterator[type]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    return {
        found
        for found in below(Request)
        if found.__module__.startswith("holdfast.control.") and not found.__name__.startswith("_")
        if is_dataclass(found) and not inspect.isabstract(found)
        # `slots=True` leaves a duplicate of the class without slots.
        if getattr(importlib.import_module(found.__module__), found.__name__) is found
    }


def test_every_verb_has_a_case() -> None:
    assert verbs() - INNER == set(CASES)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_nobody_of_one_company_is_let_into_the_other(world: World, kind: type) -> None:
    scope = NORTH.bot if kind in ONE_AGENT else NORTH.whole
    for actor in (SOUTH.operator, SOUTH.agent, Actor(ActorKind.USER, "ana", "south"), replace(SOUTH.agent, id="aid")):
        answer = world.told(lambda: CASES[kind](scope, NORTH), actor)
        assert isinstance(answer, AccessDenied), f"{actor}: {answer!r:.200}"
        assert NORTH.canary not in full_repr(answer)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_no_answer_holds_what_is_the_other_companys_whatever_id_is_given(world: World, kind: type) -> None:
    """South calls in its own scope, with north's ids."""
    scope = SOUTH.bot if kind in ONE_AGENT else SOUTH.whole
    before = snapshot(world, NORTH)
    for actor in (SOUTH.operator, LOCAL_OPERATOR, SOUTH.agent):
        answer = world.told(lambda: CASES[kind](scope, NORTH), actor)
        told = full_repr(answer) + str(answer)
        for given in (NORTH.canary, *NORTH.found.values()):
            told = told.replace(full_repr(given), "").replace(
                f"{given!r:.80}", ""
            )  # ids of the request may be repeated
        assert "canary-north" not in told, told[:500]
    assert snapshot(world, NORTH) == before


def snapshot(world: World, of: Company) -> list[str]:
    """All data of the company, except the audit trail, to which these reads add rows."""
    looks = [
        bindings.ListBindings(of.whole), bindings.ListTargets(of.whole), costs.ListPrices(of.whole),
        costs.ListFinanceEvents(of.whole), costs.ListCostEvents(of.whole), deliveries.ListDeliveries(of.whole),
        jobs.ListControlJobs(of.whole), activity.ListActivity(of.whole),
    ]  # fmt: skip
    records = world.do(memory.ListRecords(of.bot), of.agent).result
    return [full_repr(records), *(full_repr(world.do(look, of.operator)) for look in looks)]


def test_a_company_that_looks_at_itself_sees_itself(world: World) -> None:
    """A company sees its own canaries; otherwise the tests above would prove nothing."""
    for look in (
        bindings.ListTargets(NORTH.whole), costs.ListPrices(NORTH.whole), costs.ListFinanceEvents(NORTH.whole),
        costs.ListCostEvents(NORTH.whole), deliveries.ListDeliveries(NORTH.whole), activity.ListActivity(NORTH.whole),
        operations.ListOperations(NORTH.whole), memory.ListRecords(NORTH.bot), memory.Query(NORTH.bot, "vault code"),
    ):  # fmt: skip
        assert NORTH.canary in full_repr(world.do(look)), look
