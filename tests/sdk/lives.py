"""Random lives of random turns, and a look at everything that can be read.

Every text, sender, note, id and label carries its own canary. The visible canaries are derived here from the
transitions of each turn, and compared with the output of library, runtime, jobs, models, embedders, events and errors.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from writers import Proposing

from holdfast import AsyncMemory
from holdfast.app import Engine, open_engine
from holdfast.domain.access import LOCAL_OPERATOR, storewide_grant
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.ranking import FloatArray
from holdfast.domain.transcript import Message
from holdfast.domain.transcript_turns import HostOpaqueRef, HostRefVisibility, Relation, View
from holdfast.errors import HoldfastError
from holdfast.ports import Purpose
from holdfast.sdk import (
    AsyncMemoryRuntime,
    CanonicalTurnDelta,
    MemoryExportRequest,
    MemoryImportRequest,
    MemoryInspectionRequest,
    MemoryMaintainRequest,
    MemoryProjectionRequest,
    MemoryRecallRequest,
    MemoryReplayRequest,
    MemorySpaceExportRequest,
    MemorySpaceImportRequest,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayRequest,
    MemoryWriteCandidate,
    MemoryWriteRequest,
    TranscriptTurnInput,
    TurnMessage,
)
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.settings import Settings
from holdfast.testing.full_repr import full_repr

CANARY = re.compile(r"(?:text|sender|note|id|label)\d+x")
# Two people and an agent, whose conversations have the same names.
OWNERS = [MemoryIdentity(subject_id="ana"), MemoryIdentity(subject_id="bob"), MemoryIdentity(agent_id="ana")]
THREADS = [
    MemoryScope(conversation_id="c1"),
    MemoryScope("web", conversation_id="c1"),
    MemoryScope("web", "chat", "c2"),
]
PRIVATE = ["private_garden_internal", "soul_governance", "operator_diagnostic"]
QUERY = "lamp on the table"
AFTER = {
    "archive": {"active": "archived"},
    "restore": {"archived": "active", "masked": "active"},
    "mask": {"active": "masked", "archived": "masked"},
    "delete_raw": {"active": "raw_deleted", "archived": "raw_deleted", "masked": "raw_deleted"},
}


@dataclass
class Said:
    number: int
    authority: str | None
    role: str = "user"
    id: str = ""
    forgotten: bool = False

    def message(self, role: str | None = None) -> TurnMessage:
        n = self.number
        note = {"note": f"note{n}x"}
        return TurnMessage(
            f"text{n}x {QUERY}", role or self.role, f"id{n}x", f"sender{n}x", self.authority, metadata=note
        )

    @property
    def private(self) -> bool:
        """True if it is in the raw view alone. Unlabelled, what tools and systems say is the operator's own."""
        unlabelled = self.authority is None and self.role in ("tool", "system")
        return unlabelled or self.authority in PRIVATE

    def sent_again(self) -> TurnMessage:
        """Return it as a host's history has it: without label and id."""
        return TurnMessage(self.message().text, self.role)

    @property
    def canaries(self) -> set[str]:
        return {f"{kind}{self.number}x" for kind in ("text", "sender", "note", "id")}


@dataclass
class Turn:
    owner: MemoryIdentity
    where: MemoryScope
    id: str
    said: list[Said]
    state: str = "active"

    @property
    def label(self) -> str:
        return f"label{self.said[0].number}x"

    def request(self, turn_id: str | None = None) -> MemoryTranscriptCommitRequest:
        messages = tuple(each.message() for each in self.said)
        ref = HostOpaqueRef("crm", "ticket", "T-1", Relation.ORIGIN, HostRefVisibility.HOST_UI, self.label)
        return MemoryTranscriptCommitRequest(TranscriptTurnInput(turn_id or self.id, messages, self.where), (ref,))

    def withheld(self, *states: str, private: bool = False, of: MemoryIdentity | None = None) -> set[str]:
        """Return the canaries that are hidden if turns in these states and, if `private`, private ground are closed."""
        closed = self.state in states or (of is not None and of != self.owner)
        found = {self.label} if closed else set()
        for each in self.said:
            if closed or each.forgotten or (private and each.private):
                found |= each.canaries
        return found


class Elsewhere(FakeEmbedder):
    """A remote embedder that records the texts it is sent."""

    def __init__(self) -> None:
        super().__init__(local=False)
        self.sent: list[str] = []

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        self.sent += texts
        return await super().embed(texts, purpose)


def proposed(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """Propose a memory without a canary: memories stay when their evidence is masked."""
    return [(f"The {QUERY}.", [message.id for message in messages])]


@dataclass
class Life:
    engine: Engine
    embedder: Elsewhere
    curator: Proposing
    chance: random.Random
    turns: list[Turn] = field(default_factory=list)
    spaces: list[bytes] = field(default_factory=list)
    snapshots: list[tuple[MemoryIdentity, str]] = field(default_factory=list)
    deltas: list[tuple[MemoryIdentity, CanonicalTurnDelta]] = field(default_factory=list)
    said: int = 0

    def runtime(self, owner: MemoryIdentity) -> AsyncMemoryRuntime:
        profile = profile_of(DEFAULT_PROFILE)
        return AsyncMemoryRuntime(
            self.engine, LOCAL_OPERATOR, Governance(owner, profile, catalogue(profile, Circumstances(model=True)))
        )

    def memory(self, owner: MemoryIdentity) -> tuple[AsyncMemory, dict[str, Any]]:
        who = {"subject": owner.subject_id, "agent": owner.agent_id}
        return AsyncMemory(self.engine, space=owner.space), {name: value for name, value in who.items() if value}

    def withheld(self, *states: str, private: bool = False, of: MemoryIdentity | None = None) -> set[str]:
        return {each for turn in self.turns for each in turn.withheld(*states, private=private, of=of)}

    def there(self, owner: MemoryIdentity, where: MemoryScope) -> set[str]:
        """Return the texts that the owner must be shown."""
        return {
            f"text{each.number}x"
            for turn in self.turns
            if (turn.owner, turn.where) == (owner, where) and turn.state in ("active", "archived")
            for each in turn.said
            if not each.forgotten
        }

    # --- actions ---

    async def step(self, *chosen: Callable[[], Awaitable[None]]) -> None:
        """Do something at random, of the deeds given or of all."""
        gone = self.withheld("masked", "raw_deleted")
        closed = self.withheld("archived", "masked", "raw_deleted", private=True)
        self.embedder.sent.clear()
        self.curator.shown.clear()
        deeds = [self.commit] * 4 + [self.age] * 6 + [self.repeat, self.add_again, self.cite, self.correct]
        deeds += [
            self.work,
            self.rebuild,
            self.maintain,
            self.flush,
            self.keep,
            self.take_in,
            self.forget,
            self.history,
            self.deliver_again,
        ]
        try:
            await self.chance.choice(chosen or deeds)()
        except HoldfastError as error:
            check(gone, "an error", full_repr(error), str(error))
        check(gone, "an embedder", *self.embedder.sent)
        check(closed, "a model", *(text for shown in self.curator.shown for text in shown))

    async def commit(self) -> None:
        said = [self.say(role) for role in ("user", "assistant", "user")[: self.chance.randint(1, 3)]]
        for each in said:
            each.role = self.chance.choice([each.role] * 4 + ["tool", "system"])
        turn = Turn(self.chance.choice(OWNERS), self.chance.choice(THREADS), f"turn-{said[0].number}", said)
        report = await self.runtime(turn.owner).commit_transcript(turn.request())
        for each, message_id in zip(said, report.message_ids, strict=True):
            each.id = message_id
        self.turns.append(turn)

    def say(self, role: str = "user") -> Said:
        self.said += 1
        return Said(self.said, self.chance.choice([None] * 4 + PRIVATE), role)

    async def age(self) -> None:
        """Change the state of one turn, or of its whole conversation."""
        if not self.turns:
            return
        turn = self.chance.choice(self.turns)
        transition = self.chance.choice([*AFTER, "mask", "delete_raw"])
        whole = self.chance.random() < 0.2
        request = MemoryTranscriptLifecycleRequest(transition, "asked to", turn.where, None if whole else turn.id)
        matching = (
            [each for each in self.turns if (each.owner, each.where) == (turn.owner, turn.where)] if whole else [turn]
        )
        for each in matching:
            each.state = AFTER[transition].get(each.state, each.state)
        report = await self.runtime(turn.owner).request_transcript_lifecycle(request)
        check(self.withheld("masked", "raw_deleted"), "a lifecycle report", full_repr(report))

    async def repeat(self) -> None:
        """Commit a turn again, under its own id or another."""
        if self.turns:
            turn = self.chance.choice(self.turns)
            await self.runtime(turn.owner).commit_transcript(
                turn.request(self.chance.choice([None, f"{turn.id}-again"]))
            )

    async def add_again(self) -> None:
        if self.turns:
            turn = self.chance.choice(self.turns)
            memory, who = self.memory(turn.owner)
            given = [each.message("user") for each in turn.said]
            channel = {} if turn.where.channel == "local" else {"channel": turn.where.channel}
            again = [{"text": each.text, "sender": each.sender, "id": each.message_id} for each in given]
            await memory.add(again, conversation=turn.where.conversation_id, **channel, **who)

    async def history(self) -> None:
        """Deliver a question and its answer, after the conversation so far as a host may send it."""
        if not self.turns:
            return
        turn = self.chance.choice(self.turns)
        same = [each for each in self.turns if (each.owner, each.where) == (turn.owner, turn.where)]
        before = [each for one in same for each in one.said]
        if any(each.forgotten for each in before):
            return  # a forgotten message leaves nothing to compare with
        before = before[self.chance.choice([0, 0, self.chance.randint(0, len(before))]) :]
        private, tools = self.chance.random() < 0.5, self.chance.random() < 0.5
        before = [
            each for each in before if (private or not each.private) and (tools or each.role in ("user", "assistant"))
        ]
        question, answer, result = self.say(), self.say("assistant"), self.say("tool")
        status = self.chance.choice(["delivered", "delivered", "upstream_failed"])
        prompt = [TurnMessage("Be kind.", "system")] * self.chance.randint(0, 1)
        delta = CanonicalTurnDelta(
            f"turn-{question.number}",
            status,
            (*prompt, *(each.sent_again() for each in before), question.message()),
            answer.message(),
            turn.where,
            tool_observations=(result.message(),),
        )
        said = [question, result, answer] if status == "delivered" else [question]
        report = await self.runtime(turn.owner).finalize_turn_and_maintain(delta)
        committed = report.transcript_commit.message_ids
        assert len(committed) - len(said) in (0, len(prompt)), "a message of the history was committed again"
        for each, message_id in zip(said, committed[-len(said) :], strict=True):
            each.id = message_id
        self.turns.append(Turn(turn.owner, turn.where, delta.turn_id, said))
        self.deltas.append((turn.owner, delta))

    async def deliver_again(self) -> None:
        if self.deltas:
            owner, delta = self.chance.choice(self.deltas)
            report = await self.runtime(owner).finalize_turn_and_maintain(delta)
            assert not report.transcript_commit.committed

    async def cite(self) -> None:
        """Write a candidate with any message as evidence; only active turns count as evidence."""
        if not self.turns:
            return
        turn = self.chance.choice(self.turns)
        message = self.chance.choice(turn.said)
        candidate = MemoryWriteCandidate(
            f"candidate-{self.chance.random()}",
            "user_asserted",
            f"A fact about the {QUERY}.",
            evidence_refs=(message.id,),
        )
        report = await self.runtime(turn.owner).write(MemoryWriteRequest.candidates(candidate))
        if turn.state != "active" or message.forgotten:
            assert report.semantic_governance.rejected == 1
        memory, who = self.memory(turn.owner)
        if turn.state in ("masked", "raw_deleted") or message.forgotten:
            with pytest.raises(HoldfastError):
                await memory.remember("Rests on nothing.", evidence=[message.id], **who)

    async def correct(self) -> None:
        if self.turns:
            turn = self.chance.choice(self.turns)
            memory, who = self.memory(turn.owner)
            await memory.correct(self.chance.choice(turn.said).id, "Something else.", **who)

    async def work(self) -> None:
        await self.runtime(OWNERS[0]).recover()

    async def rebuild(self) -> None:
        await AsyncMemory(self.engine).rebuild()

    async def maintain(self) -> None:
        if self.turns:
            turn = self.chance.choice(self.turns)
            await self.runtime(turn.owner).maintain(MemoryMaintainRequest(scope=turn.where))

    async def flush(self) -> None:
        if self.turns:
            turn = self.chance.choice(self.turns)
            memory, who = self.memory(turn.owner)
            channel = {} if turn.where.channel == "local" else {"channel": turn.where.channel}
            await memory.flush(conversation=turn.where.conversation_id, **channel, **who)

    async def keep(self) -> None:
        """Export, to import again after more was withheld."""
        exported = await self.runtime(OWNERS[0]).export_space(MemorySpaceExportRequest(include_private=True))
        assert exported.content is not None
        self.spaces.append(exported.content)
        if self.turns:
            turn = self.chance.choice(self.turns)
            request = MemoryExportRequest(scope=turn.where, include_private=self.chance.random() < 0.5)
            snapshot = await self.runtime(turn.owner).export(request)
            assert snapshot.document is not None
            self.snapshots.append((turn.owner, snapshot.document))

    async def take_in(self) -> None:
        if self.spaces:
            await self.runtime(OWNERS[0]).import_space(
                MemorySpaceImportRequest(content=self.chance.choice(self.spaces))
            )
        if self.snapshots:
            owner, document = self.chance.choice(self.snapshots)
            await self.runtime(owner).import_(MemoryImportRequest(document, include_private=True))

    async def forget(self) -> None:
        if self.turns and self.chance.random() < 0.5:
            turn = self.chance.choice(self.turns)
            memory, who = self.memory(turn.owner)
            message = self.chance.choice(turn.said)
            preview = await memory.forget_preview(message.id, **who)
            check({each for turn in self.turns for each in turn.withheld(turn.state)}, "a preview", full_repr(preview))
            message.forgotten = True
            await memory.forget(message.id, **who)

    # --- checks ---

    async def look(self) -> None:
        gone = self.withheld("masked", "raw_deleted")
        for owner in OWNERS:
            shut = gone | self.withheld(of=owner)
            closed = shut | self.withheld("archived", "masked", "raw_deleted", private=True)
            inner = shut | self.withheld("masked", "raw_deleted", private=True)
            await self.look_through_library(owner, shut, inner, closed)
            await self.look_through_runtime(owner, shut, inner, closed)
        runtime = self.runtime(OWNERS[0])
        public, whole = [
            (await runtime.export_space(MemorySpaceExportRequest(include_private=private))).content
            for private in (False, True)
        ]
        check(self.withheld("masked", "raw_deleted", private=True), "a public space", (public or b"").decode())
        check(gone, "a private space", (whole or b"").decode())
        await self.look_at_papers()

    async def look_through_library(
        self, owner: MemoryIdentity, shut: set[str], inner: set[str], closed: set[str]
    ) -> None:
        memory, who = self.memory(owner)
        check(closed, "search", full_repr(await memory.search(QUERY, top_k=200, **who)))
        for each in (await memory.browse(limit=1000, **who), await memory.recall(QUERY, top_k=200, min_score=0, **who)):
            check(closed, type(each).__name__, full_repr(each))
        check(closed, "explain", full_repr(await memory.explain(QUERY, top_k=200, **who)))
        check(
            closed,
            "the past",
            full_repr(await memory.search(QUERY, top_k=200, as_of=self.engine._core.clock.now(), **who)),
        )
        check(shut | self.withheld("archived", "masked", "raw_deleted"), "private planes", full_repr(
            await memory.search(QUERY, top_k=200, planes=["private", "soul_candidate"], kind="message", **who)
        ))  # fmt: skip
        listed = await memory.list(limit=1000, **who)
        check(inner, "list", full_repr(listed))
        everybody = [each.id for turn in self.turns for each in turn.said] + [item.id for item in listed.items]
        for record_id in everybody:
            for call in (memory.get, memory.history, lambda one, **of: memory.explain(QUERY, record_id=one, **of)):
                try:
                    check(shut, "a look-up", full_repr(await call(record_id, **who)))  # type: ignore[operator]
                except HoldfastError as error:
                    check(shut, "an error", full_repr(error))

    async def look_through_runtime(
        self, owner: MemoryIdentity, shut: set[str], inner: set[str], closed: set[str]
    ) -> None:
        runtime = self.runtime(owner)
        for where in THREADS:
            elsewhere = {each for turn in self.turns if turn.where != where for each in turn.withheld(turn.state)}
            recalled = await runtime.recall(MemoryRecallRequest(QUERY, 200, scope=where))
            block = await runtime.project(MemoryProjectionRequest(QUERY, 16_000, 64, scope=where))
            inspected = await runtime.inspect(MemoryInspectionRequest(QUERY, scope=where))
            check(closed | elsewhere, "what a model gets", full_repr(recalled), full_repr(block), full_repr(inspected))
            chat = MemoryReplayRequest(where.conversation_id, 64, where.channel)
            ledger, repaired = (
                await runtime.replay(chat),
                await runtime.repair_transcript(MemoryTranscriptRepairRequest(where)),
            )
            check(everything(self.turns), "a ledger", full_repr(ledger), full_repr(repaired))
            assert not repaired.issues
            for view, hidden in (
                (View.RAW_OWNER_ONLY, shut), (View.MODEL_CONTEXT, closed), (View.HOST_UI, inner),
                (View.OPERATOR_AUDIT, inner), (View.EXPORT, inner),
            ):  # fmt: skip
                page = await runtime.replay_transcript(MemoryTranscriptReplayRequest(view, where, 64))
                leaving = await runtime.export_transcript(MemoryTranscriptExportRequest(where, 64, view=view))
                check(hidden | elsewhere, view, full_repr(page), full_repr(leaving))
                if view is View.RAW_OWNER_ONLY:
                    assert self.there(owner, where) <= set(CANARY.findall(full_repr(page)))
            for private, hidden in ((False, inner), (True, shut)):
                for mode in ("bootstrap", "full_restore"):
                    try:
                        request = MemoryExportRequest(scope=where, mode=mode, include_private=private)
                        check(hidden | elsewhere, "a snapshot", full_repr(await runtime.export(request)))
                    except HoldfastError as error:
                        check(everything(self.turns), "an error", full_repr(error))

    async def look_at_papers(self) -> None:
        """Check that events, operations and jobs contain nothing that was said."""
        store = self.engine._core.store
        await store.wait_for_audits()
        events, operations, jobs = await store.read(
            storewide_grant(),
            lambda reader: (
                reader.events.page(10_000),
                reader.operations.page(limit=10_000),
                reader.jobs.newest(limit=10_000),
            ),
        )
        check(everything(self.turns), "papers", full_repr(events), full_repr(operations), full_repr(jobs))


def everything(turns: Iterable[Turn]) -> set[str]:
    return {each for turn in turns for each in turn.withheld(turn.state)}


def check(hidden: set[str], where: object, *told: str) -> None:
    for each in told:
        shown = hidden & set(CANARY.findall(each))
        assert not shown, f"{where} tells {sorted(shown)}"


@asynccontextmanager
async def living(location: str, seed: int) -> AsyncIterator[Life]:
    embedder, curator = Elsewhere(), Proposing(proposed)
    engine = await open_engine(location, Settings(), embedder=embedder, curator=curator, work=False)
    try:
        yield Life(engine, embedder, curator, random.Random(seed))
    finally:
        await engine.close()
