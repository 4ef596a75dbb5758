"""Permissions of each role, written out a second time: every action, kind and role, in `authorize` and the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from holdfast.app import Engine, open_engine
from holdfast.domain.access import Action, Actor, ActorKind, ActorRole, Grant, authorize, storewide_grant
from holdfast.domain.operations import Outcome
from holdfast.domain.scope import Scope
from holdfast.domain.users import ROLES
from holdfast.errors import AccessDenied
from holdfast.ports import Reader
from holdfast.runtime.gate import Core, Read
from holdfast.settings import Settings

READS = set(
    "browse capabilities close explain export export_transcript get get_agent_tool_registry get_proposal get_resource"
    " get_runtime_skill history inspect jobs list list_agent_tool_registries list_proposals list_resources"
    " list_runtime_skills profile project query recall replay"
    " replay_transcript resolve_binding search stats validate_proposal".split()
)
WRITES = set(
    "add add_resource capture commit_transcript deliver_hook finalize_turn_and_maintain flush maintain propose"
    " record_upsert remember upsert_agent_tool_registry write".split()
)
TAKES_AWAY = set(
    "correct delete_agent_tool_registry delete_resource delete_runtime_skill edit_runtime_skill forget forget_preview"
    " import request_transcript_lifecycle revert set_runtime_skill_enabled".split()
)
AUDITS = set(
    "events jobs list_users read_bindings read_costs read_deliveries read_operations resolve_binding stats".split()
)
ALLOWED: dict[tuple[ActorKind, ActorRole], set[str]] = {
    (ActorKind.OPERATOR, ActorRole.ADMIN): {action.value for action in Action},
    (ActorKind.OPERATOR, ActorRole.AUDITOR): AUDITS,
    (ActorKind.AGENT, ActorRole.CURATOR): READS | WRITES | TAKES_AWAY,
    (ActorKind.AGENT, ActorRole.MEMBER): READS | WRITES,
    (ActorKind.AGENT, ActorRole.READER): READS,
    (ActorKind.USER, ActorRole.MEMBER): READS | WRITES | TAKES_AWAY,
    (ActorKind.USER, ActorRole.READER): READS,
}
KINDS = (ActorKind.OPERATOR, ActorKind.AGENT, ActorKind.USER)
EVERY = list(product(KINDS, ActorRole))
SCOPES = {
    ActorKind.OPERATOR: Scope(space="acme"),
    ActorKind.AGENT: Scope(space="acme", agent="sam"),
    ActorKind.USER: Scope(space="acme", subject="sam"),
}


def allowed(kind: ActorKind, role: ActorRole) -> set[str]:
    return ALLOWED.get((kind, role), set())


def test_every_role_that_a_credential_can_have_is_in_the_table() -> None:
    assert set(ALLOWED) == {(kind, role) for kind, roles in ROLES.items() for role in roles}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_a_role_may_do_exactly_what_its_table_says(kind: ActorKind, role: ActorRole, action: Action) -> None:
    actor = Actor(kind, "sam", "acme", role=role)
    if action.value in allowed(kind, role):
        assert authorize(actor, action, SCOPES[kind]).actor == actor
    else:
        with pytest.raises(AccessDenied, match="may not"):
            authorize(actor, action, SCOPES[kind])


@pytest.mark.parametrize("action", Action)
def test_a_role_never_gives_more_than_its_kind_has(action: Action) -> None:
    for kind, role in ALLOWED:
        if action.value in allowed(kind, role):
            authorize(Actor(kind, "sam", "acme"), action, SCOPES[kind])


@dataclass(frozen=True, slots=True)
class Probe(Read[None, bool]):
    """A read that does nothing; only its authorization matters."""

    scope: Scope

    async def prepare(self, core: Core, grant: Grant) -> None:
        return None

    def apply(self, reader: Reader, prepared: None) -> bool:
        return True


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, runner: asyncio.Runner) -> Iterator[Engine]:
    place: Path = tmp_path_factory.mktemp("roles") / "memory.db"
    opened = runner.run(open_engine(str(place), Settings(), embedder="fake", work=False))
    yield opened
    runner.run(opened.close())


@pytest.mark.parametrize(("kind", "role"), EVERY)
def test_the_gate_lets_through_exactly_that_and_writes_down_what_it_refused(
    engine: Engine, runner: asyncio.Runner, kind: ActorKind, role: ActorRole
) -> None:
    actor = Actor(kind, f"{kind}-{role}", "acme", role=role)
    own = {ActorKind.AGENT: Scope("acme", agent=actor.id), ActorKind.USER: Scope("acme", subject=actor.id)}
    scope = own.get(kind, Scope("acme"))

    async def tried() -> dict[str, Outcome]:
        for action in Action:
            try:
                await engine.perform(actor, action, lambda: Probe(scope), space="acme")
            except AccessDenied:
                continue
        store = engine._core.store
        await store.wait_for_audits()
        rows = await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=10_000))
        return {row.action.value: row.outcome for row in rows if row.actor.id == actor.id}

    outcomes = runner.run(tried())
    assert set(outcomes) == {action.value for action in Action}
    assert {action for action, outcome in outcomes.items() if outcome is Outcome.SUCCEEDED} == allowed(kind, role)


@pytest.mark.parametrize(("kind", "role"), list(ALLOWED))
def test_no_role_reaches_another_company_or_another_ones_memory(kind: ActorKind, role: ActorRole) -> None:
    actor = Actor(kind, "sam", "acme", frozenset({"ana"}) if kind is ActorKind.AGENT else frozenset(), role)
    foreign = [
        Scope(space="globex"),
        Scope(space="globex", agent="sam"),
        Scope(space="globex", subject="sam"),
        Scope("*"),
    ]
    others = [
        Scope(space="acme"),
        Scope(space="acme", agent="other"),
        Scope(space="acme", subject="ben"),
        Scope(space="acme", agent="sam", subject="ben"),
    ]
    for action, scope in product(Action, foreign + ([] if kind is ActorKind.OPERATOR else others)):
        with pytest.raises(AccessDenied):
            authorize(actor, action, scope)
