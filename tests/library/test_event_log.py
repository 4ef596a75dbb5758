"""Every verb that writes leaves exactly its events, in the commit of the write; one that fails leaves none."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

import holdfast
from holdfast.domain.access import LOCAL_OPERATOR, Action, authorize
from holdfast.domain.events import Event, EventKind
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.memory import ALWAYS, Plane, Status, Trust
from holdfast.errors import HoldfastError
from holdfast.ports import NewRevision, Transaction
from holdfast.runtime.indexing import make_entries
from holdfast.runtime.record_writes import add_revision, forget_records
from holdfast.runtime.verbs import VERBS
from holdfast.testing.full_repr import full_repr
from probes import engine_of

SUBJECTS = ("ana", "ben")
Expected = list[tuple[EventKind, Any]]
WRITE, MERGE, DELETE = EventKind.WRITE, EventKind.MERGE, EventKind.DELETE


@dataclass
class Life:
    """A memory, and what a plain model of it holds: the ids of messages and memories by subject."""

    memory: holdfast.Memory
    luck: random.Random
    messages: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SUBJECTS})
    memories: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SUBJECTS})
    said: dict[str, str] = field(default_factory=dict)
    resources: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SUBJECTS})
    forgotten: set[str] = field(default_factory=set)

    def events(self) -> list[Event]:
        """Return the whole log, oldest first, read in pages of different sizes."""
        found: list[Event] = []
        cursor = None
        while True:
            page = self.memory.events(limit=self.luck.randint(1, 40), cursor=cursor)
            found += page.items
            if (cursor := page.next_cursor) is None:
                return found[::-1]

    def word(self) -> str:
        return f"canary{self.luck.randrange(10**9)}"


def _add(life: Life, who: str) -> Expected:
    texts = [f"The {life.word()} sings." for _ in range(life.luck.randint(1, 4))]
    added = life.memory.add(texts, subject=who)
    life.messages[who] += added.message_ids
    return [(WRITE, (added.turn_id, {"messages": len(texts)}))]


def _remember(life: Life, who: str) -> Expected:
    evidence = life.messages[who][-1:] if life.luck.random() < 0.3 else []
    text = f"{who} keeps a {life.word()}."
    found = life.memory.remember(text, subject=who, evidence=evidence).id
    life.memories[who].append(found)
    life.said[found] = "" if evidence else text
    return [(WRITE, (found, {"revision": 1}))]


def _restate(life: Life, who: str) -> Expected:
    stated = [each for each in life.memories[who] if life.said.get(each)]
    if not stated:
        return _remember(life, who)
    chosen = life.luck.choice(stated)
    again = life.memory.remember(life.said[chosen], subject=who)
    assert again.id == chosen
    return [(MERGE, (chosen, {"revision": again.revision}))]


def _correct(life: Life, who: str) -> Expected:
    if not life.memories[who]:
        return []
    chosen = life.luck.choice(life.memories[who])
    corrected = life.memory.correct(chosen, f"{who} lost the {life.word()}.", subject=who)
    life.said[chosen] = ""
    return [(WRITE, (chosen, {"revision": corrected.revision}))]


def _revert(life: Life, who: str) -> Expected:
    revised = [each for each in life.memories[who] if len(life.memory.history(each, subject=who)) > 1]
    if not revised:
        return []
    reverted = life.memory.revert(revised[0], 1, subject=who)
    life.said[revised[0]] = ""
    return [(WRITE, (revised[0], {"revision": reverted.revision}))]


def _forget(life: Life, who: str) -> Expected:
    pool = life.messages[who] + life.memories[who]
    if not pool:
        return []
    chosen = life.luck.choice(pool)
    before = {each.id for each in life.memory.list(limit=1_000, subject=who).items}
    life.memory.forget(chosen, subject=who)
    gone = before - {each.id for each in life.memory.list(limit=1_000, subject=who).items}
    life.forgotten |= gone
    for kept in (life.messages[who], life.memories[who]):
        kept[:] = [each for each in kept if each not in gone]
    return [(DELETE, gone)]


def _forget_subject(life: Life, who: str) -> Expected:
    gone = {*life.messages[who], *life.memories[who], *life.resources[who]}
    gone |= {each.id for each in life.memory.list(limit=1_000, subject=who).items}
    life.memory.forget(subject=who)
    for kept in (life.messages, life.memories, life.resources):
        kept[who] = []
    life.forgotten |= gone
    return [(DELETE, gone)] if gone else []


def _add_resource(life: Life, who: str) -> Expected:
    added = life.memory.add_resource(f"The {life.word()} is a bird.", name="bird.txt", subject=who).resource
    life.resources[who].append(added.id)
    return [(WRITE, (added.id, {"chunks": added.chunks}))]


def _delete_resource(life: Life, who: str) -> Expected:
    if not life.resources[who]:
        return []
    chosen = life.memory.resource(life.resources[who].pop(), subject=who)
    gone = {each.id for each in life.memory.list(limit=1_000, source=chosen.uri, subject=who).items}
    life.memory.delete_resource(chosen.id, subject=who)
    life.forgotten |= gone | {chosen.id}
    return [(DELETE, gone | {chosen.id})]


def _nothing(call: Callable[[Life, str], object]) -> Callable[[Life, str], Expected]:
    def perform(life: Life, who: str) -> Expected:
        with suppress(HoldfastError):
            call(life, who)
        return []

    return perform


NOBODY = "mem_" + "0" * 32
STEPS: dict[str, list[Callable[[Life, str], Expected]]] = {
    "add": [_add, _nothing(lambda life, who: life.memory.add("x" * 2_000_000, subject=who))],
    "remember": [
        _remember,
        _restate,
        _nothing(lambda life, who: life.memory.remember("A canary.", evidence=["msg_" + "0" * 32], subject=who)),
    ],
    "correct": [_correct, _nothing(lambda life, who: life.memory.correct(NOBODY, "A canary.", subject=who))],
    "revert": [_revert, _nothing(lambda life, who: life.memory.revert(NOBODY, 1, subject=who))],
    "forget": [_forget, _forget_subject, _nothing(lambda life, who: life.memory.forget(NOBODY, subject=who))],
    "add_resource": [_add_resource, _nothing(lambda life, who: life.memory.add_resource(" ", subject=who))],
    "delete_resource": [_delete_resource],
    # These change no message, no memory and no resource.
    "flush": [_nothing(lambda life, who: life.memory.flush(subject=who))],
    "search": [_nothing(lambda life, who: life.memory.search("canary", subject=who))],
    "explain": [_nothing(lambda life, who: life.memory.explain("canary", subject=who))],
    "recall": [_nothing(lambda life, who: life.memory.recall("canary", subject=who))],
    "get": [_nothing(lambda life, who: life.memory.get(NOBODY, subject=who))],
    "list": [_nothing(lambda life, who: life.memory.list(subject=who))],
    "browse": [_nothing(lambda life, who: life.memory.browse(subject=who))],
    "history": [_nothing(lambda life, who: life.memory.history(NOBODY, subject=who))],
    "forget_preview": [_nothing(lambda life, who: life.memory.forget_preview(subject=who))],
    "resource": [_nothing(lambda life, who: life.memory.resource(NOBODY, subject=who))],
    "resources": [_nothing(lambda life, who: life.memory.resources(subject=who))],
    "create_user": [_nothing(lambda life, who: life.memory.create_user(who))],
    "rotate_user": [_nothing(lambda life, who: life.memory.rotate_user(who))],
    "revoke_user": [_nothing(lambda life, who: life.memory.revoke_user(who))],
    "users": [_nothing(lambda life, who: life.memory.users())],
    "jobs": [_nothing(lambda life, who: life.memory.jobs())],
    "stats": [_nothing(lambda life, who: life.memory.stats())],
    "events": [_nothing(lambda life, who: life.memory.events())],
    "verify": [_nothing(lambda life, who: life.memory.verify())],
    "rebuild": [_nothing(lambda life, who: life.memory.rebuild())],
    "drain": [_nothing(lambda life, who: None)],  # below: it learns
}


def test_every_verb_is_tried() -> None:
    assert set(STEPS) == set(VERBS)


def _told(event: Event) -> tuple[EventKind, Any]:
    if event.kind is not DELETE:
        return event.kind, (event.record_key, dict(event.details))
    named = [event.record_key] if event.record_key else str(event.details["ids"]).split()
    counts = sum(int(count) for name, count in event.details.items() if name != "ids" and isinstance(count, int))
    assert counts == len(named)
    return event.kind, set(named)


@pytest.mark.parametrize("seed", range(3))
def test_every_verb_leaves_exactly_its_events(memory: holdfast.Memory, seed: int) -> None:
    life = Life(memory, random.Random(seed))
    likely = [name for name, steps in STEPS.items() if len(steps) > 1]
    log: list[Event] = []
    names = list(STEPS) + [life.luck.choice(likely) for _ in range(40)]
    life.luck.shuffle(names)
    for name in names:
        step, who = life.luck.choice(STEPS[name]), life.luck.choice(SUBJECTS)
        expected = step(life, who)
        now = life.events()
        new = now[len(log) :]
        assert [event.id for event in now[: len(log)]] == [event.id for event in log]
        assert [_told(event) for event in new] == expected, (name, step)
        assert all(event.scope.subject == who for event in new)
        log = now
    assert "canary" not in full_repr(log)
    for event in log:
        if event.record_key in life.forgotten and event.kind is not DELETE and event.record_key.startswith("mem_"):
            assert (event.content_hash, event.plane, event.details) == (None, None, {})
    assert {event.scope.subject for event in memory.events(subject="ana").items} <= {"ana"}
    merged = memory.events(kind="memory.merge", limit=1_000).items
    assert [event.id for event in merged] == [event.id for event in log[::-1] if event.kind is MERGE]


def test_what_is_learned_leaves_its_events(memory: holdfast.Memory) -> None:
    for text in ("I live in Porto.", "I live in Porto!", "I moved to Lisbon."):
        memory.add(text, subject="ana")
        memory.flush(subject="ana")
        memory.drain()
    learned = [event for event in memory.events().items[::-1] if event.plane is not None]
    revisions = [each for found in memory.list(kind="memory", subject="ana").items for each in memory.history(found.id)]
    assert len(revisions) >= 2
    assert sorted((event.record_key, event.details["revision"]) for event in learned) == sorted(
        (each.id, each.revision) for each in revisions
    )


def test_an_idempotent_repeat_leaves_no_event(memory: holdfast.Memory) -> None:
    for _ in range(2):
        memory.add("I like tea.", subject="ana", idempotency_key="one")
        memory.remember("Ana likes tea.", subject="ana", idempotency_key="two")
    assert [event.kind for event in memory.events().items] == [WRITE, WRITE]


@pytest.mark.embedded
def test_what_is_rolled_back_leaves_no_event(memory: holdfast.Memory) -> None:
    added = memory.add("I like tea.", subject="ana")
    before = memory.events().items
    core = engine_of(memory._behind)._core

    class Undone(Exception):
        pass

    async def undone() -> None:
        (entry,) = await make_entries(core, ["Ana likes coffee."])
        scope = holdfast.Scope(subject="ana")

        def work(transaction: Transaction) -> None:
            now = core.clock.now()
            revision = NewRevision(
                core.ids.new("mem"), scope, Plane.LONG_TERM, "Ana likes coffee.", Trust.STATED, Status.ACCEPTED,
                ALWAYS, now, None, "a test", None, (), {}, entry.analysis, entry.vectors,
            )  # fmt: skip
            add_revision(transaction, core, revision)
            target = ForgetTarget(ids=added.message_ids)
            assert forget_records(transaction, core, transaction.records.plan_forget(target))[0] == 1
            assert len(transaction.events.page(10)) == len(before) + 2
            raise Undone

        with pytest.raises(Undone):
            await core.store.write(authorize(LOCAL_OPERATOR, Action.FORGET, scope), work)

    memory._portal.run(undone())
    assert memory.events().items == before
