"""An actor of one company leaves nothing in another, not even a row in its audit trail, whatever it calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from desk import ACME, AGENT, BOT, NOTE, OTHER, WHOLE, Desk, text

from holdfast.control.activity import ListActivity
from holdfast.control.bindings import CreateBinding, DeleteBinding, ListBindings, ResolveBinding, SetTarget
from holdfast.control.costs import ListCostEvents, ListPrices
from holdfast.control.deliveries import ListDeliveries
from holdfast.control.hooks import EmitHook
from holdfast.control.hydration import Hydrate
from holdfast.control.jobs import CancelJob, ListControlJobs
from holdfast.control.memory import Capture, ForgetProviderRecords, GetRecord, ListRecords, Query, UpsertRecords
from holdfast.control.operations import GetMetrics, GetOperation, ListOperations
from holdfast.domain.access import Actor, ActorKind
from holdfast.domain.bindings import TargetKind
from holdfast.domain.contract import HookKind, NewRecord, RecordHandle, SourceKind, SourceRef
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.errors import AccessDenied
from holdfast.providers.local import LocalProvider
from holdfast.runtime.search import Search
from holdfast.runtime.users import CreateUser, ListUsers
from holdfast.testing.full_repr import full_repr

STRANGERS = (
    Actor(ActorKind.AGENT, "bot", OTHER),
    Actor(ActorKind.USER, "ann", OTHER),
    Actor(ActorKind.OPERATOR, "boss", OTHER),
)
HANDLE = RecordHandle(LocalProvider.key, "mem_1")
# Text chosen by the stranger, in a field that the audit trail stores.
PLANTED = SourceRef(SourceKind.EXTERNAL_DOCUMENT, ACME, external_ref="planted")
VERBS: tuple[Any, ...] = (
    Capture(BOT, PLANTED, text("One.")),
    UpsertRecords(BOT, (NewRecord("One."),), source=PLANTED),
    Query(BOT, "cat"),
    ListRecords(BOT),
    GetRecord(BOT, HANDLE),
    ForgetProviderRecords(BOT, (HANDLE,)),
    EmitHook(BOT, HookKind.MANUAL_CAPTURE, "h1", NOTE, text("One.")),
    Hydrate(BOT, "cat"),
    ResolveBinding(BOT),
    ListBindings(WHOLE),
    CreateBinding(WHOLE, "mine", "local"),
    DeleteBinding(WHOLE, "default"),
    SetTarget(WHOLE, TargetKind.AGENT, "bot", "default"),
    ListDeliveries(WHOLE),
    ListControlJobs(WHOLE),
    CancelJob(WHOLE, "job_1"),
    ListOperations(WHOLE),
    GetOperation(WHOLE, "op_1"),
    GetMetrics(WHOLE),
    ListActivity(WHOLE),
    ListCostEvents(WHOLE),
    ListPrices(WHOLE),
    Search(BOT, "cat"),
    Search(Scope(space=EVERYWHERE), "cat"),
    CreateUser(WHOLE, "eve"),
    ListUsers(WHOLE),
)


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
def test_what_is_refused_to_a_stranger_is_in_the_strangers_own_trail(
    desk: Desk, runner: asyncio.Runner, stranger: Actor
) -> None:
    for verb in VERBS:
        with pytest.raises(AccessDenied):
            runner.run(desk.do(verb, stranger))
    rows = runner.run(desk.rows())
    assert [(row.action, row.outcome) for row in rows] == [(verb.action, Outcome.REFUSED) for verb in VERBS]
    assert {row.scope for row in rows} == {Scope(space=OTHER)}
    assert not any("planted" in full_repr(row.attribution) for row in rows)
    assert runner.run(desk.do(ListOperations(WHOLE))).items == ()


def test_what_an_agent_is_refused_within_its_own_company_says_what_it_asked_for(
    desk: Desk, runner: asyncio.Runner
) -> None:
    elsewhere = Scope(space=ACME, agent="another")
    with pytest.raises(AccessDenied):
        runner.run(desk.do(Query(elsewhere, "cat"), AGENT))
    (row,) = runner.run(desk.rows())
    assert (row.scope, row.outcome, str(row.actor)) == (elsewhere, Outcome.REFUSED, "agent:bot")
