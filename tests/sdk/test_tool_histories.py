"""Random histories of tools against a plain model: registered, changed, called, reported, drifted, deleted, forgotten.

`HOLDFAST_TOOL_HISTORIES` is their number; `make soak` runs 10,000.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from writers import hosting

from holdfast.app import Engine
from holdfast.domain.access import LOCAL_OPERATOR, Action
from holdfast.domain.capabilities import catalogue
from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.retrieval import MemoryProjectionRequest, MemoryRecallRequest
from holdfast.domain.runtime_api.tools import AgentToolRegistryDeleteRequest, AgentToolUsageFeedback
from holdfast.domain.runtime_api.writing import MemoryWriteRequest
from holdfast.domain.scope import Scope
from holdfast.domain.tool_experience import AgentToolObservation, CallOutcome, ExperienceKey
from holdfast.domain.tool_registries import AgentTool, AgentToolRegistry, ToolRegistryRef, registry_fingerprint
from holdfast.runtime.forget import Forget
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.tools import ToolOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.testing import FixedClock
from holdfast.testing.store_suite.scribe import EVERYTHING

HISTORIES = int(os.environ.get("HOLDFAST_TOOL_HISTORIES", "100"))
STEPS = 20
REGISTRIES, TOOLS, SCHEMAS, TASKS = ("host", "host", "host", "zoo"), ("read", "ship"), ("s1", "s2"), ("fix", "build")
CHATS = ("home", "work")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
Key = tuple[str, str, str, str]


def word(number: int) -> str:
    return "canary" + "".join(_LETTERS[number // 26**place % 26] for place in range(5))


@dataclass
class ModelExperience:
    """What was observed of a tool and a task, by observation id: its outcome."""

    calls: dict[str, str] = field(default_factory=dict)
    chats: set[str] = field(default_factory=set)
    noted: bool = False
    updated_at: datetime | None = None
    summary: tuple[str, str] | None = None  # and its chat

    @property
    def successes(self) -> int:
        return list(self.calls.values()).count("succeeded")

    @property
    def confidence(self) -> str | None:
        if self.noted or self.successes >= 3:
            return "high"
        return "medium" if self.successes >= 2 else None


class History(ToolOperations, WritingOperations, RetrievalOperations):
    """One owner's tools in a shared store, and the model of them."""

    def __init__(self, engine: Engine, owner: str, seed: int, clock: FixedClock) -> None:
        profile = profile_of(DEFAULT_PROFILE)
        governance = Governance(MemoryIdentity(subject_id=owner), profile, catalogue(profile))
        super().__init__(engine, LOCAL_OPERATOR, governance)
        self.owner, self.seed, self.clock, self.chance = owner, seed, clock, random.Random(seed)
        self.registries: dict[str, AgentToolRegistry] = {}
        self.known: dict[Key, ModelExperience] = {}
        self.canaries: list[str] = []
        self.sent = self.shown = 0

    def new_word(self) -> str:
        self.canaries.append(word(self.seed * 200 + len(self.canaries)))
        return self.canaries[-1]

    async def step(self) -> None:
        self.clock.step(timedelta(minutes=self.chance.randrange(1, 600)))
        acts = [self.register, self.register, *[self.report] * 16, self.delete, self.forget_chat]
        await self.chance.choice(acts)()

    async def register(self) -> None:
        chance = self.chance
        name = chance.choice(REGISTRIES)
        tools = tuple(
            AgentTool(tool, chance.choice((*SCHEMAS[:1] * 8, *SCHEMAS)), disabled=chance.random() < 0.1)
            for tool in TOOLS
            if chance.random() < 0.95
        )
        made = AgentToolRegistry(name, tools, scope=chance.choice((*["global"] * 5, "project")))
        claimed = chance.choice((None, None, registry_fingerprint(made), "wrong"))
        report = await self.upsert_agent_tool_registry(replace(made, fingerprint=claimed))
        assert report.accepted is (claimed != "wrong")
        if report.accepted:
            self.registries[name] = replace(made, fingerprint=registry_fingerprint(made))
        else:
            assert (report.changed, report.reason) == (False, "agent_tool_registry_fingerprint_mismatch")

    async def delete(self) -> None:
        name, thoroughly = self.chance.choice(REGISTRIES), self.chance.random() < 0.3
        there = name in self.registries or (thoroughly and any(key[0] == name for key in self.known))
        report = await self.delete_agent_tool_registry(AgentToolRegistryDeleteRequest(name, thoroughly))
        assert report.accepted is report.changed is there
        self.registries.pop(name, None)
        if thoroughly:
            self.known = {key: each for key, each in self.known.items() if key[0] != name}

    async def forget_chat(self) -> None:
        chat = self.chance.choice(CHATS)
        scope = Scope(subject=self.owner)
        target = ForgetTarget(conversation=chat)
        receipt = await self._service.perform(
            LOCAL_OPERATOR, Action.FORGET, lambda: Forget(scope, target), space=scope.space
        )
        taken = 0
        for key, each in list(self.known.items()):
            if each.chats == {chat}:
                del self.known[key]
                taken += 1
            elif each.summary is not None and each.summary[1] == chat:
                each.summary, taken = None, taken + 1
        assert receipt.tool_entries == taken

    async def report(self) -> None:
        chance, chat = self.chance, self.chance.choice(CHATS)
        registry = chance.choice(REGISTRIES)
        ref = self.ref_of(registry)
        note = "An operator looked at it." if chance.random() < 0.1 else None
        outcome = chance.choice(("neutral", *["succeeded"] * 6, "mismatch"))
        observations = [self.observe(registry) for _ in range(chance.choice((1, 2, 4)))]
        bad = chance.random() < 0.05
        if bad:
            observations[0] = replace(observations[0], summary=f"password: {self.new_word()}")
        feedback = AgentToolUsageFeedback(ref, observations, reuse_outcome=outcome, operator_note=note)
        report = await self.write(
            MemoryWriteRequest.agent_tool_usage_feedback(feedback, MemoryScope(conversation_id=chat))
        )
        if bad:
            assert (report.reason, report.changed) == ("observation_holds_secret", False)
            return
        groups: dict[tuple[str, str], list[AgentToolObservation]] = {}
        for each in observations:
            groups.setdefault((each.tool_id, each.task_signature), []).append(each)
        expected = [self.fold(ref, group, chat, outcome, note) for group in groups.values()]
        assert [str(each.disposition) for each in report.agent_tool_experience] == expected
        assert report.accepted is ("accepted_as_evidence" in expected)

    def ref_of(self, registry: str) -> ToolRegistryRef:
        known = self.registries.get(registry)
        if known is None or self.chance.random() < 0.05:
            return ToolRegistryRef(registry, "stale")
        return replace(known.ref, scope=self.chance.choice((*[known.ref.scope] * 19, "owner")))

    def observe(self, registry: str) -> AgentToolObservation:
        chance = self.chance
        # One in five was reported before.
        self.sent += chance.random() < 0.8
        return AgentToolObservation(
            f"call-{self.sent}",
            chance.choice((*[registry] * 29, "zoo")),
            chance.choice(TOOLS),
            chance.choice((*SCHEMAS[:1] * 29, *SCHEMAS)),
            chance.choice(TASKS),
            chance.choice(("succeeded", "succeeded", "succeeded", *CallOutcome)),
            summary=chance.choice(("", f"It made the {self.new_word()}.")),
            external_content=chance.random() < 0.1,
            private_content_used=chance.random() < 0.05,
        )

    # --- the model ---

    def fold(
        self, ref: ToolRegistryRef, group: Sequence[AgentToolObservation], chat: str, outcome: str, note: str | None
    ) -> str:
        if outcome == "mismatch":
            return "rejected_by_low_confidence"
        registry, first = self.registries.get(ref.registry_id), group[0]
        current = {} if registry is None else {tool.tool_id: tool.schema_fingerprint for tool in registry.tools}
        if (
            registry is None
            or registry.ref != ref
            or {(each.registry_id, each.schema_fingerprint) for each in group}
            != {(ref.registry_id, current.get(first.tool_id))}
        ):
            return "rejected_by_schema_drift"
        if any(each.private_content_used for each in group):
            return "rejected_by_privacy"
        key = (ref.registry_id, first.tool_id, first.schema_fingerprint, first.task_signature)
        old = self.known.get(key, ModelExperience())
        new = {each.observation_id: each for each in reversed(group) if each.observation_id not in old.calls}
        order = [each for each in dict.fromkeys(each.observation_id for each in group) if each in new]
        calls = {**old.calls, **{name: str(new[name].outcome) for name in order}}
        after = replace(old, calls=calls, noted=old.noted or note is not None)
        if after.successes == 0:
            return "rejected_by_low_confidence"
        if order or after.noted != old.noted:
            after.chats = old.chats | {chat}
            after.updated_at = self.clock.now()
            said = [
                new[name].summary
                for name in order
                if new[name].outcome == "succeeded" and not new[name].external_content and new[name].summary
            ]
            if said and (old.summary is None or after.successes.bit_length() > old.successes.bit_length()):
                after.summary = (said[-1], chat)
            self.known[key] = after
        return "accepted_as_evidence" if after.confidence else "deferred_until_repeated"

    def hints(self, refs: Sequence[ToolRegistryRef]) -> list[tuple[str, str, str, int, int]]:
        """Return what must be hinted at: the best task of each tool that is registered as it was."""
        best: dict[tuple[str, str], tuple[Any, ...]] = {}
        for (name, tool, schema, task), each in self.known.items():
            registry = self.registries.get(name)
            if registry is None or each.confidence is None or (refs and registry.ref not in refs):
                continue
            current = registry.by_id.get(tool)
            if current is None or current.disabled or current.schema_fingerprint != schema:
                continue
            digest = ExperienceKey(name, tool, schema, task).digest
            rank = (each.confidence == "high", each.successes, each.updated_at, digest)
            found = (rank, task, len(each.calls))
            if (name, tool) not in best or found[0] > best[name, tool][0]:
                best[name, tool] = found
        ordered = sorted(best.items(), key=lambda item: item[1][0], reverse=True)
        return [(name, tool, task, rank[1], calls) for (name, tool), (rank, task, calls) in ordered]

    async def compare(self) -> None:
        stale = ToolRegistryRef("host", "stale")
        choices: list[tuple[ToolRegistryRef, ...]] = [(), (), (), (stale,)]
        choices += [(registry.ref, stale) for registry in self.registries.values()]
        refs = self.chance.choice(choices)
        recalled = await self.recall(MemoryRecallRequest("What now?", tool_registry_refs=refs))
        shown = [
            (hint.registry_id, hint.tool_id, hint.task_signature, hint.success_count, hint.call_count)
            for hint in recalled.agent_tool_hints
        ]
        assert shown == self.hints(refs)
        self.shown = len(shown)
        reason = "governed_tool_experience_available" if shown else "no_governed_tool_experience"
        assert recalled.tool_experience_status.reason == reason
        projected = await self.project(MemoryProjectionRequest("What now?", tool_registry_refs=refs))
        assert projected.agent_tool_hints == recalled.agent_tool_hints
        lines = [line for line in projected.system_memory_block.splitlines() if line.startswith("- [tool ")]
        assert len(lines) == sum(tool.chars > 0 for tool in projected.audit.agent_tools)
        report = (await self.list_agent_tool_registries()).report
        counted = sum(each.governed + each.deferred + each.drifted for each in report.registries)
        assert counted + report.unregistered == len(self.known)

    def summaries(self) -> str:
        return "\n".join(each.summary[0] for each in self.known.values() if each.summary is not None)


async def texts_of(engine: Engine) -> str:
    def read(reader: Any) -> str:
        found = reader.scope.database.execute(
            "SELECT t.text FROM tool_experience e JOIN texts t ON t.number = e.words"
        ).fetchall()
        return "\n".join(text for (text,) in found)

    return await engine._core.store.read(EVERYTHING, read)


def test_hints_are_those_of_a_plain_model_and_what_is_gone_leaves_no_byte(location: str, tmp_path: Path) -> None:
    async def whole() -> tuple[list[str], list[str]]:
        clock, kept, gone, shown = FixedClock(), list[str](), list[str](), 0
        async with hosting(location, clock=clock) as host:
            for seed in range(HISTORIES):
                history = History(host.engine, f"owner-{seed}", seed, clock)
                await history.register()
                for _ in range(STEPS):
                    await history.step()
                await history.compare()
                shown += history.shown
                there = history.summaries()
                kept += [each for each in history.canaries if each in there]
                gone += [each for each in history.canaries if each not in there]
            assert shown > HISTORIES // 2
            stored = await texts_of(host.engine)
            assert [each for each in kept if each not in stored] == []
            assert [each for each in gone if each in stored] == []
            verified = await host.engine._core.store.read(
                EVERYTHING, lambda reader: reader.maintenance.integrity(host.engine._core.embedder.fingerprint)
            )
            assert verified[1] == []
        return kept, gone

    kept, gone = asyncio.run(whole())
    assert kept
    assert gone
    if not location.startswith("postgresql"):
        raw = b"".join(path.read_bytes() for path in Path(location).parent.glob(f"{Path(location).name}*"))
        assert [each for each in gone if each.encode() in raw] == []
