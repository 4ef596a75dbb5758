"""Isolation, audit and forgetting of every operation of a runtime, for every kind of actor and every owner.

The cases are those of `tests/sdk/test_every_operation.py`, which fails if an operation has none. Each owner has a turn
and a skill with its canary. `test_matrix.py` states the access rule.
"""

from __future__ import annotations

import asyncio
import copy
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import holdfast
from blank import blank
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, OF_THE_RUNTIME, Action, Actor, ActorKind, storewide_grant
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.errors import AccessDenied, HoldfastError, NotFound
from holdfast.sdk import (
    AgentTool,
    AgentToolRegistry,
    AsyncMemoryRuntime,
    GovernanceNoteCandidate,
    MemoryProposal,
    MemorySpaceExportRequest,
    MemoryWriteRequest,
    ProposalRejectRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillWrite,
)
from holdfast.sdk.verbs import VERBS
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent.parent / "sdk")]

from test_every_operation import OPERATIONS, Known, builder, turn
from test_matrix import ACTORS, Asked, admitted, canaries_in, outcome

OWNERS = [
    Asked(space, subject, agent)
    for space in ("north", "south")
    for subject, agent in (("ana", None), ("bob", None), (None, "bot"), (None, "aid"), (None, None), ("ana", "bot"))
]
SKILL = "runtime_skill__reach_"
CANARIES = {owner: f"canary{number:04}" for number, owner in enumerate(OWNERS)}
TRIED = sorted(set(OPERATIONS) - {Action.CLOSE})  # closing ends the engine of all


def readable(asked: Asked) -> set[str]:
    """The canaries of the requested subject, of the agent, and of the shared memory. Subjects come before agents."""
    homes = {("subject", asked.subject), ("agent", asked.agent), ("shared", None)}
    return {canary for owner, canary in CANARIES.items() if owner.space == asked.space and home_of(owner) in homes}


def home_of(owner: Asked) -> tuple[str, str | None]:
    if owner.subject is not None:
        return "subject", owner.subject
    return ("agent", owner.agent) if owner.agent is not None else ("shared", None)


@dataclass
class World:
    """One engine over a store in which every owner keeps something."""

    engine: Engine
    known: dict[Asked, Known] = field(default_factory=dict)

    def acting(self, actor: Actor, asked: Asked) -> Known:
        """The cases of that owner's memory, called by this actor."""
        it = copy.copy(self.known[asked])
        it.runtime = self.runtime(actor, asked)
        return it

    def runtime(self, actor: Actor, asked: Asked) -> Any:
        profile = profile_of(DEFAULT_PROFILE)
        identity = MemoryIdentity(asked.space, asked.subject, asked.agent)
        capabilities = catalogue(profile, Circumstances(model=False))
        return AsyncMemoryRuntime(self.engine, actor, Governance(identity, profile, capabilities))

    async def everything(self) -> list[bytes]:
        """The content of both spaces, to detect changes."""
        request = MemorySpaceExportRequest(include_private=True)
        exports = [
            await self.runtime(LOCAL_OPERATOR, Asked(space)).export_space(request) for space in ("north", "south")
        ]
        return [line for each in exports for line in each.content.splitlines()[1:-1]]


def plant(location: str) -> dict[Asked, Known]:
    known = {}
    for owner in OWNERS:
        canary = CANARIES[owner]
        whose = {"space": owner.space, "subject_id": owner.subject, "agent_id": owner.agent}
        with builder(location, **whose).actor(LOCAL_OPERATOR).open() as runtime:
            known[owner] = Known(runtime)
            runtime.commit_transcript(turn(f"The boat to Porto is {canary}.", f"t-{canary}"))
            steps = f"Take the boat {canary} to Porto, then the tram."
            runtime.write(
                MemoryWriteRequest.procedural(RuntimeSkillWrite(steps, name=f"Reach {canary}", title="Reach"))
            )
            note = GovernanceNoteCandidate("the boat", f"Ask again about {canary}.")
            runtime.propose(
                MemoryProposal(f"proposal_{canary}", DEFAULT_PROFILE, (note,), ("a ticket",), "It was late.")
            )
            tool = AgentTool("book", "schema-1", display_name=f"Book {canary}")
            runtime.upsert_agent_tool_registry(AgentToolRegistry(f"tools_{canary}", (tool,)))
    return known


@pytest.fixture(scope="module")
def world(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    location = str(blank(tmp_path_factory.mktemp("runtimes") / "memory.db"))
    known = plant(location)
    engine = runner.run(open_engine(location, Settings.model_construct(), embedder="fake", work=False))
    yield World(engine, known)
    runner.run(engine.close())


# --- isolation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ACTORS)
def test_an_operation_of_somebody_elses_memory_is_refused_and_changes_nothing(
    runner: asyncio.Runner, world: World, who: str
) -> None:
    actor = ACTORS[who]

    async def matrix() -> None:
        before = await world.everything()
        for asked in (asked for asked in OWNERS if not admitted(actor, asked)):
            for action in TRIED:
                answer = await outcome(OPERATIONS[action](world.acting(actor, asked)))
                assert isinstance(answer, AccessDenied), (action, asked, answer)
                assert not canaries_in(answer)
        assert await world.everything() == before

    runner.run(matrix())


@pytest.mark.parametrize("who", ACTORS)
def test_an_answer_holds_no_canary_but_those_of_its_owner(runner: asyncio.Runner, world: World, who: str) -> None:
    actor = ACTORS[who]

    async def matrix() -> None:
        for asked in (asked for asked in OWNERS if admitted(actor, asked)):
            for action in TRIED:
                answer = await outcome(OPERATIONS[action](world.acting(actor, asked)))
                visible = readable(asked)
                if action is Action.EXPORT_SPACE:  # of an operator: the whole space
                    visible = {canary for owner, canary in CANARIES.items() if owner.space == asked.space}
                found = canaries_in(answer)
                assert found <= visible, (action, asked, sorted(found - visible))
                if isinstance(answer, AccessDenied):
                    assert actor.kind is not ActorKind.OPERATOR, (action, asked)
                elif action is Action.LIST_SKILLS:
                    assert len(answer.runtime_skills) >= len(visible), asked

    runner.run(matrix())


# Operations that name one record, with that name as the only thing that differs. A name ends with its owner's canary.
NAMED: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "get_runtime_skill": (SKILL, lambda runtime, name: runtime.get_runtime_skill(RuntimeSkillDetailRequest(name))),
    "edit_runtime_skill": (
        SKILL,
        lambda runtime, name: runtime.edit_runtime_skill(RuntimeSkillEditRequest(name, title="Mine")),
    ),
    "set_runtime_skill_enabled": (
        SKILL,
        lambda runtime, name: runtime.set_runtime_skill_enabled(RuntimeSkillSetEnabledRequest(name, enabled=False)),
    ),
    "delete_runtime_skill": (SKILL, lambda runtime, name: runtime.delete_runtime_skill(name)),
    "get_proposal": ("proposal_", lambda runtime, name: runtime.get_proposal(name)),
    "approve_proposal": ("proposal_", lambda runtime, name: runtime.approve_proposal(name)),
    "reject_proposal": (
        "proposal_",
        lambda runtime, name: runtime.reject_proposal(ProposalRejectRequest(name, reason="Mine.")),
    ),
    "get_agent_tool_registry": ("tools_", lambda runtime, name: runtime.get_agent_tool_registry(name)),
    "delete_agent_tool_registry": ("tools_", lambda runtime, name: runtime.delete_agent_tool_registry(name)),
}


def test_every_operation_that_names_a_record_has_a_case() -> None:
    """A required name or id, besides those of conversations, names a record."""
    naming = {
        entry.name
        for entry in VERBS.values()
        for argument in entry.arguments
        if argument.required and (argument.name == "name" or argument.name.endswith("_id"))
    }
    assert naming == set(NAMED)


@pytest.mark.parametrize("who", ACTORS)
@pytest.mark.parametrize("operation", NAMED)
def test_a_foreign_name_and_an_unknown_name_cannot_be_told_apart(
    runner: asyncio.Runner, world: World, who: str, operation: str
) -> None:
    actor = ACTORS[who]
    kind, call = NAMED[operation]

    def changed_by(answer: Any) -> bool:
        return bool(getattr(answer, "changed", False))

    async def told(asked: Asked, name: str) -> str:
        answer = await outcome(call(world.runtime(actor, asked), name))
        refused = isinstance(answer, AccessDenied | NotFound) or not (answer.accepted or changed_by(answer))
        assert refused, (asked, name, answer)
        return f"{type(answer)}{full_repr(answer)}".replace(name, "<name>")

    async def matrix() -> None:
        before = await world.everything()
        for asked in OWNERS:
            hidden = [owner for owner in OWNERS if CANARIES[owner] not in readable(asked) or not admitted(actor, asked)]
            for owner in hidden[::3]:
                assert await told(asked, f"{kind}{CANARIES[owner]}") == await told(asked, f"{kind}canary9999")
        assert await world.everything() == before

    runner.run(matrix())


# --- audit ------------------------------------------------------------------------------------------------------------


def test_every_operation_left_rows_and_neither_rows_nor_events_hold_a_canary(
    runner: asyncio.Runner, world: World
) -> None:
    stranger = ACTORS["bob, a user of south"]

    async def rows() -> Any:
        store = world.engine._core.store
        await store.wait_for_audits()
        found = await store.read(storewide_grant(), lambda reader: reader.operations.page(limit=1_000_000))
        events = await store.read(storewide_grant(), lambda reader: reader.events.page(1_000_000))
        assert not canaries_in([found, events])
        return found

    async def call_each() -> Counter[Action]:
        before = len(await rows())
        for action in TRIED:
            await outcome(OPERATIONS[action](world.acting(stranger, OWNERS[0])))
        found = await rows()
        return Counter(row.action for row in found[: len(found) - before])

    assert runner.run(call_each()) == dict.fromkeys((OF_THE_RUNTIME | {Action.RECALL}) - {Action.CLOSE}, 1)


# --- forgetting -------------------------------------------------------------------------------------------------------

# A value with three words in a row is somebody's text: the store's own words are names, ids and numbers.
_ID = re.compile(r"\b[a-z]+_[0-9a-f]{32}\b")
_TEXT = re.compile(r"\w+[,;:.]? \w+[,;:.]? \w+")


def texts_in(path: str) -> set[str]:
    """Every text of a sentence in the file, in whatever table and form."""
    found = set()
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
                    text = _ID.sub("", text)
                    found |= {text} if _TEXT.search(text) else set()
    return found


def test_what_any_operation_wrote_is_forgotten_with_its_subject(tmp_path: Path) -> None:
    path = str(blank(tmp_path / "memory.db"))
    with builder(path).open() as runtime:
        it = Known(runtime)
        for action in (*TRIED, Action.CLOSE):
            try:
                OPERATIONS[action](it)
            except HoldfastError as error:
                raise AssertionError(action) from error
    written = texts_in(path)
    assert len(written) >= 5
    with holdfast.open(path, embedder="fake", work=False) as memory:
        assert memory.forget(subject="ana").scrubbed
        memory.drain()
    assert texts_in(path) == set()
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert [text for text in written if text.encode() in raw] == []
