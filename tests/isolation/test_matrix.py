"""Isolation: every verb, called by every kind of actor for every scope, on one full store.

A cell is a scope with messages and memories, each marked with a canary. `sees` states the access rule a second time,
plainly; every response, error, count and cursor is compared with it. A new verb without a case fails
`test_every_verb_has_a_case`.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import itertools
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import Actor, ActorKind, AsyncMemory, HoldfastError, open_async
from holdfast.domain.access import OF_THE_CONTROL_PLANE, OF_THE_RUNTIME, Action
from holdfast.domain.memory import Plane
from holdfast.domain.results import Browsed
from holdfast.errors import AccessDenied, NotFound
from holdfast.testing.full_repr import full_repr
from probes import audit_trail

SPACES = ("north", "south")
SUBJECTS = ("ana", "bob", None)
AGENTS = ("bot", "aid", None)
APPS = ("mail", "chat")
CONVERSATIONS = ("c1", "c2")
CANARY = re.compile(r"canary\d{4}")
QUERY = "what is the vault code"
ALL_PLANES = tuple(Plane)


@dataclass(frozen=True)
class Cell:
    space: str
    subject: str | None
    agent: str | None
    app: str
    conversation: str

    @property
    def where(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def owner(self) -> tuple[str, str, str]:
        kind, name = ("subject", self.subject) if self.subject else ("agent", self.agent) if self.agent else ("", "")
        return self.space, kind, name or ""


CELLS = [Cell(*parts) for parts in itertools.product(SPACES, SUBJECTS, AGENTS, APPS, CONVERSATIONS)]
CANARIES = {cell: f"canary{number:04}" for number, cell in enumerate(CELLS)}


@dataclass(frozen=True)
class Asked:
    """A requested scope."""

    space: str
    subject: str | None = None
    agent: str | None = None
    app: str | None = None
    conversation: str | None = None

    @property
    def where(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value is not None}


ASKED = [
    Asked(*parts)
    for parts in itertools.product(
        (*SPACES, "nowhere"), ("ana", "bob", None), ("bot", "aid", None), ("mail", None), ("c1", None)
    )
]

ACTORS = {
    "an operator without walls": Actor(ActorKind.OPERATOR, "root"),
    "an operator of north": Actor(ActorKind.OPERATOR, "warden", space="north"),
    "ana, a user of north": Actor(ActorKind.USER, "ana", space="north"),
    "bob, a user of south": Actor(ActorKind.USER, "bob", space="south"),
    "ana's device in north": Actor(ActorKind.DEVICE, "ana", space="north"),
    "the agent bot in north, with ana mounted": Actor(ActorKind.AGENT, "bot", "north", frozenset({"ana"})),
    "the agent aid in south, with nobody mounted": Actor(ActorKind.AGENT, "aid", "south"),
    "a user of the default space": Actor(ActorKind.USER, "ana"),
}


def admitted(actor: Actor, asked: Asked) -> bool:
    """True if the actor may request this scope."""
    if actor.kind is ActorKind.OPERATOR:
        return actor.space in (None, asked.space)
    if (actor.space or "default") != asked.space:
        return False
    if actor.kind is ActorKind.AGENT:
        return asked.agent == actor.id and (asked.subject is None or asked.subject in actor.subjects)
    return asked.subject == actor.id and asked.agent is None


def sees(actor: Actor, asked: Asked, cell: Cell) -> bool:
    """The access rule: records of the requested subject, of the requested agent, and shared ones; for an operator who
    requests neither, all records; in each case only those that match the app and the conversation."""
    if not admitted(actor, asked) or cell.space != asked.space:
        return False
    if asked.app not in (None, cell.app) or asked.conversation not in (None, cell.conversation):
        return False
    if asked.subject is None and asked.agent is None:
        return True
    readable = {(asked.space, "", "")}
    readable |= {(asked.space, "subject", asked.subject)} if asked.subject else set()
    readable |= {(asked.space, "agent", asked.agent)} if asked.agent else set()
    return cell.owner in readable


@dataclass
class World:
    """A store with every cell filled."""

    memory: AsyncMemory
    messages: dict[Cell, str] = field(default_factory=dict)
    memories: dict[Cell, str] = field(default_factory=dict)

    def acting(self, actor: Actor, space: str) -> AsyncMemory:
        return AsyncMemory(self.memory._service, actor=actor, space=space)

    @property
    def ids(self) -> dict[str, Cell]:
        return {found: cell for known in (self.messages, self.memories) for cell, found in known.items()}

    async def everything(self) -> dict[str, Any]:
        """All records of all spaces, read by an unrestricted operator, to detect changes."""
        pages = [await self.memory.list(space=space, limit=1_000, planes=ALL_PLANES) for space in SPACES]
        return {record.id: record for page in pages for record in page.items}


async def fill(memory: AsyncMemory) -> World:
    world = World(memory)
    for cell in CELLS:
        canary = CANARIES[cell]
        message = {
            "text": f"The vault code is {canary}, said aloud.",
            "sender": f"sender {canary}",
            "id": f"id-{canary}",
            "metadata": {f"key-{canary}": canary},
        }
        added = await memory.add(message, source=f"src-{canary}", idempotency_key=f"key-{canary}", **cell.where)
        world.messages[cell] = str(added.message_ids[0])
        remembered = await memory.remember(
            f"The vault code is {canary}, written down.", evidence=[world.messages[cell]], **cell.where
        )
        world.memories[cell] = remembered.id
    return world


@pytest.fixture(scope="module")
def world(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path = tmp_path_factory.mktemp("isolation") / "memory.db"

    async def opened() -> World:
        return await fill(
            await open_async(path, embedder="fake", work=False, actor=ACTORS["an operator without walls"])
        )

    filled = runner.run(opened())
    yield filled
    runner.run(filled.memory.close())


# --- the visible content of a response --------------------------------------------------------------------------------


def shown(value: object) -> str:
    """Everything that a caller can read in a response or an error, with cursors decoded."""
    if isinstance(value, BaseException):
        causes = [value.__cause__, value.__context__]
        return " ".join(
            [str(value), full_repr(value), full_repr(value.args), *(shown(cause) for cause in causes if cause)]
        )
    text = full_repr(value)
    cursor = getattr(value, "next_cursor", None)
    if cursor:
        text += base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    return text


def canaries_in(value: object) -> set[str]:
    return set(CANARY.findall(shown(value)))


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except HoldfastError as error:
        return error


# --- a case per verb --------------------------------------------------------------------------------------------------

Case = Callable[[AsyncMemory, dict[str, str], str], Awaitable[Any]]

# Each case requests a scope, and an id if it takes one. These change nothing that holds a canary.
CASES: dict[str, Case] = {
    "search": lambda memory, where, _: memory.search(QUERY, top_k=1_000, planes=ALL_PLANES, **where),
    "explain": lambda memory, where, record: memory.explain(QUERY, record_id=record, top_k=3, **where),
    "recall": lambda memory, where, _: memory.recall(QUERY, top_k=500, min_score=0, budget_chars=1_000_000, **where),
    "get": lambda memory, where, record: memory.get(record, **where),
    "list": lambda memory, where, _: memory.list(limit=5, **where),
    "browse": lambda memory, where, _: memory.browse(limit=1_000, **where),
    "history": lambda memory, where, record: memory.history(record, **where),
    "stats": lambda memory, where, _: memory.stats(**where),
    "jobs": lambda memory, where, _: memory.jobs(**where),
    "events": lambda memory, where, _: memory.events(**where),
    "forget_preview": lambda memory, where, record: memory.forget_preview(record, **where),
    "verify": lambda memory, where, _: memory.verify(),
    "drain": lambda memory, where, _: memory.drain(),
    # Writes that name a record: only tried on records out of reach.
    "correct": lambda memory, where, record: memory.correct(record, "Overwritten.", **where),
    "revert": lambda memory, where, record: memory.revert(record, 2, **where),
    "forget": lambda memory, where, record: memory.forget(record, **where),
    "remember": lambda memory, where, record: memory.remember("Rests on this.", evidence=[record], **where),
    # Writes into a scope: only tried by actors without access.
    "add": lambda memory, where, _: memory.add("Slipped in.", **where),
    "flush": lambda memory, where, _: memory.flush(**where),
    "rebuild": lambda memory, where, _: memory.rebuild(),
    "resources": lambda memory, where, _: memory.resources(limit=5, **where),
    "resource": lambda memory, where, record: memory.resource(record, **where),
    "delete_resource": lambda memory, where, record: memory.delete_resource(record, **where),
    "add_resource": lambda memory, where, _: memory.add_resource("Slipped in.", **where),
    # Verbs of a whole space.
    "create_user": lambda memory, where, _: memory.create_user("ana", **where),
    "rotate_user": lambda memory, where, _: memory.rotate_user("ana", **where),
    "revoke_user": lambda memory, where, _: memory.revoke_user("ana", **where),
    "users": lambda memory, where, _: memory.users(**where),
}
READS_A_SCOPE = ("search", "recall", "list", "browse", "stats", "jobs", "resources")
TAKES_AN_ID = (
    "get",
    "history",
    "explain",
    "forget_preview",
    "forget",
    "correct",
    "revert",
    "remember",
    "resource",
    "delete_resource",
)
STOREWIDE = ("verify", "drain", "rebuild")
SPACEWIDE = ("create_user", "rotate_user", "revoke_user", "users", "events")
# Actions whose names differ from their methods' names.
NAMED = {
    "drain": "work",
    "rotate_user": "create_user",
    "users": "list_users",
    "resource": "get_resource",
    "resources": "list_resources",
}
NO_DEVICE = frozenset(
    {
        "explain",
        "list",
        "browse",
        "history",
        "remember",
        "correct",
        "revert",
        "forget_preview",
        "forget",
        "stats",
        "jobs",
        "resources",
        "resource",
        "add_resource",
        "delete_resource",
    }
)


def test_every_verb_has_a_case() -> None:
    verbs = {name for name, _ in inspect.getmembers(AsyncMemory, inspect.isfunction) if not name.startswith("_")}
    assert verbs - {"close"} == set(CASES)
    assert set(Action) - OF_THE_RUNTIME - OF_THE_CONTROL_PLANE == {NAMED.get(verb, verb) for verb in CASES}
    assert set(CASES) == {*READS_A_SCOPE, *TAKES_AN_ID, *STOREWIDE, *SPACEWIDE, "add", "flush", "add_resource"}


@pytest.mark.parametrize("who", ACTORS)
@pytest.mark.parametrize("verb", READS_A_SCOPE)
def test_an_answer_holds_exactly_the_canaries_that_its_actor_sees(
    runner: asyncio.Runner, world: World, who: str, verb: str
) -> None:
    actor = ACTORS[who]

    async def matrix() -> None:
        for asked in ASKED:
            answer = await outcome(CASES[verb](world.acting(actor, asked.space), asked.where, ""))
            visible = {CANARIES[cell] for cell in CELLS if sees(actor, asked, cell)}
            if not admitted(actor, asked) or (actor.kind is ActorKind.DEVICE and verb in NO_DEVICE):
                assert isinstance(answer, AccessDenied), (verb, asked)
                visible = set()
            found = canaries_in(answer)
            assert found <= visible, (verb, asked, sorted(found - visible))
            if verb in ("search", "browse") and visible:
                assert found == visible, (asked, sorted(visible - found))
            if isinstance(answer, Browsed):
                assert answer.total == len(answer.items) == 2 * len(visible), asked

    runner.run(matrix())


@pytest.mark.parametrize("who", ACTORS)
def test_paging_through_a_list_gives_each_visible_record_once_and_no_other(
    runner: asyncio.Runner, world: World, who: str
) -> None:
    actor = ACTORS[who]
    if actor.kind is ActorKind.DEVICE:
        pytest.skip("devices may not list")

    async def paged(asked: Asked) -> list[str]:
        memory, found, cursor = world.acting(actor, asked.space), [], None
        while True:
            page = await memory.list(limit=11, cursor=cursor, **asked.where)
            found += [record.id for record in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def matrix() -> None:
        for asked in (asked for asked in ASKED if admitted(actor, asked)):
            cells = [cell for cell in CELLS if sees(actor, asked, cell)]
            expected = [world.messages[cell] for cell in cells] + [world.memories[cell] for cell in cells]
            assert sorted(await paged(asked)) == sorted(expected), asked

    runner.run(matrix())


@pytest.mark.parametrize("who", ACTORS)
def test_counts_count_only_what_the_actor_sees(runner: asyncio.Runner, world: World, who: str) -> None:
    actor = ACTORS[who]
    if actor.kind is ActorKind.DEVICE:
        pytest.skip("devices may not count")

    async def matrix() -> None:
        for asked in (asked for asked in ASKED if admitted(actor, asked)):
            cells = [cell for cell in CELLS if sees(actor, asked, cell)]
            memory = world.acting(actor, asked.space)
            stats = await memory.stats(**asked.where)
            conversations = {(cell.owner, cell.app, cell.conversation) for cell in cells}
            assert (stats.messages, stats.memories) == (len(cells), len(cells)), asked
            assert stats.conversations == len(conversations), asked
            assert (stats.tombstones, stats.pending_vectors) == (0, 0), asked
            explained = await memory.explain(QUERY, **asked.where)
            assert explained.candidates == 2 * len(cells), asked

    runner.run(matrix())


@pytest.mark.parametrize("who", ACTORS)
@pytest.mark.parametrize("verb", TAKES_AN_ID)
def test_a_foreign_id_and_an_unknown_id_cannot_be_told_apart(
    runner: asyncio.Runner, world: World, who: str, verb: str
) -> None:
    actor = ACTORS[who]

    async def refused(memory: AsyncMemory, where: dict[str, str], record: str) -> tuple[type, str]:
        answer = await outcome(CASES[verb](memory, where, record))
        assert isinstance(answer, HoldfastError), (verb, where, record)
        assert not canaries_in(answer)
        return type(answer), full_repr(answer).replace(record, "<id>")

    async def matrix() -> None:
        before = await world.everything()
        for asked in ASKED:
            memory = world.acting(actor, asked.space)
            hidden = [cell for cell in CELLS if not sees(actor, asked, cell)]
            for cell in hidden[:: max(1, len(hidden) // 4)]:
                for record in (world.messages[cell], world.memories[cell]):
                    unknown = record[:4] + "0" * 32
                    told = await refused(memory, asked.where, record)
                    assert told == await refused(memory, asked.where, unknown), (verb, asked, cell)
                    assert told[0] in (AccessDenied, NotFound) or verb == "correct", told
        assert await world.everything() == before

    runner.run(matrix())


@pytest.mark.parametrize("who", ACTORS)
def test_whoever_may_not_write_into_a_scope_changes_nothing_there(
    runner: asyncio.Runner, world: World, who: str
) -> None:
    actor = ACTORS[who]

    async def matrix() -> None:
        before = await world.everything()
        for asked in (asked for asked in ASKED if not admitted(actor, asked)):
            for verb in ("add", "flush", "remember", "add_resource"):
                answer = await outcome(CASES[verb](world.acting(actor, asked.space), asked.where, "msg_" + "0" * 32))
                assert isinstance(answer, AccessDenied), (verb, asked)
            for wide in ({"subject": asked.subject}, {"conversation": "c1", "subject": asked.subject}):
                target = {"space": asked.space, **{name: value for name, value in wide.items() if value}}
                if len(target) > 1 and not admitted(actor, Asked(**target)):
                    answer = await outcome(world.acting(actor, asked.space).forget(**target))
                    assert isinstance(answer, AccessDenied), (target,)
        assert await world.everything() == before

    runner.run(matrix())


@pytest.mark.parametrize("who", [who for who, actor in ACTORS.items() if actor.kind is not ActorKind.OPERATOR])
@pytest.mark.parametrize("verb", STOREWIDE)
def test_only_operators_look_after_the_whole_store(runner: asyncio.Runner, world: World, who: str, verb: str) -> None:
    answer = runner.run(outcome(CASES[verb](world.acting(ACTORS[who], "north"), {}, "")))
    assert isinstance(answer, AccessDenied)


@pytest.mark.parametrize("who", ACTORS)
@pytest.mark.parametrize("verb", SPACEWIDE)
def test_only_an_operator_of_the_space_looks_after_its_users_and_log(
    runner: asyncio.Runner, world: World, who: str, verb: str
) -> None:
    actor = ACTORS[who]
    for space in SPACES:
        answer = runner.run(outcome(CASES[verb](world.acting(actor, space), {"space": space}, "")))
        if actor.kind is ActorKind.OPERATOR and actor.space in (None, space):
            assert not isinstance(answer, AccessDenied), space
            users = getattr(answer, "items", [getattr(answer, "user", answer)])
            assert {getattr(getattr(user, "scope", user), "space", space) for user in users} <= {space}
        else:
            assert isinstance(answer, AccessDenied), space


@pytest.mark.parametrize("verb", STOREWIDE)
def test_an_operator_with_walls_does_not_look_over_them(runner: asyncio.Runner, world: World, verb: str) -> None:
    answer = runner.run(outcome(CASES[verb](world.acting(ACTORS["an operator of north"], "north"), {}, "")))
    assert isinstance(answer, AccessDenied)


def test_a_space_that_exists_is_refused_like_one_that_does_not(runner: asyncio.Runner, world: World) -> None:
    async def both(verb: str) -> tuple[str, str]:
        memory = world.acting(ACTORS["ana, a user of north"], "north")
        part = {} if verb in SPACEWIDE else {"subject": "ana"}
        told = [
            str(await outcome(CASES[verb](memory, {"space": space, **part}, "mem_" + "0" * 32)))
            for space in ("south", "nowhere")
        ]
        return told[0], told[1]

    for verb in set(CASES) - set(STOREWIDE):
        exists, does_not = runner.run(both(verb))
        assert exists == does_not, verb


def test_every_call_left_a_row_and_no_row_holds_a_canary(runner: asyncio.Runner, world: World) -> None:
    stranger = world.acting(ACTORS["ana, a user of north"], "north")
    for verb, call in CASES.items():
        # Call each verb again: the test must not depend on which tests above ran in this process.
        runner.run(outcome(call(stranger, {} if verb in STOREWIDE else {"space": "south"}, "msg_" + "0" * 32)))
    rows = runner.run(audit_trail(world.memory))
    assert {row.action for row in rows} == set(Action) - OF_THE_RUNTIME - OF_THE_CONTROL_PLANE
    assert not canaries_in(rows)


def test_a_cursor_tells_nothing_but_the_callers_own_last_id(runner: asyncio.Runner, world: World) -> None:
    memory = world.acting(ACTORS["ana, a user of north"], "north")
    page = runner.run(memory.list(subject="ana", limit=1))
    assert page.next_cursor is not None
    padded = page.next_cursor + "=" * (-len(page.next_cursor) % 4)
    decoded = base64.urlsafe_b64decode(padded).decode()
    own = page.items[0].id.partition("_")[2]
    assert re.fullmatch(rf'\["[0-9a-f]{{16}}","{own}"\]', decoded)
