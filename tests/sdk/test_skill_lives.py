"""Random lives of runtime skills, against a plain model: written, used, failed, edited, switched, merged and deleted.

`HOLDFAST_SKILL_LIVES` is the number of lives; `make soak` runs 2,000.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from writers import CHAT, hosting

from holdfast.app import Engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.memory import Plane
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.retrieval import MemoryRecallRequest
from holdfast.domain.runtime_api.skills import (
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListRequest,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillSummary,
    RuntimeSkillWrite,
    SkillAction,
)
from holdfast.domain.runtime_api.writing import MemoryMaintainRequest, MemoryWriteRequest
from holdfast.domain.search import ListFilter
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.skills import SkillOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.testing import FixedClock
from holdfast.testing.store_suite.scribe import EVERYTHING

LIVES = int(os.environ.get("HOLDFAST_SKILL_LIVES", "100"))
STEPS = 12
VALVES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def name_of(valve: int) -> str:
    return f"runtime_skill__valve_{valve}"


def word(number: int) -> str:
    """A word of its own for each number: no digits, which would make two procedures differ."""
    letters = "".join(_LETTERS[number // 26**place % 26] for place in range(5))
    return f"canary{letters}"


@dataclass
class ModelSkill:
    """What a skill must be: its texts, newest last, and its counts."""

    texts: list[str]
    updated_at: datetime
    enabled: bool = True
    pending: bool = False
    uses: list[datetime] = field(default_factory=list)
    successes: int = 0
    mismatches: int = 0
    note: str | None = None

    def status(self, now: datetime) -> str:
        age = now - max([self.updated_at, *self.uses[-1:]])
        old = age > timedelta(days=90)
        if self.pending and self.mismatches - self.successes >= 2:
            return "retired" if old else "low_value"
        return "stale" if old else "active"

    def is_recalled(self) -> bool:
        return self.enabled and self.status(self.updated_at) == "active"

    def revise(self, text: str, now: datetime) -> None:
        self.texts.append(text)
        self.updated_at, self.pending = now, False


class Life(SkillOperations, WritingOperations, RetrievalOperations):
    """One owner's skills in a shared store, and the model of them."""

    def __init__(self, engine: Engine, owner: str, seed: int, clock: FixedClock) -> None:
        profile = profile_of(DEFAULT_PROFILE)
        governance = Governance(MemoryIdentity(subject_id=owner), profile, catalogue(profile))
        super().__init__(engine, LOCAL_OPERATOR, governance)
        self.chance = random.Random(seed)
        self.clock = clock
        self.model: dict[int, ModelSkill] = {}
        self.canaries: list[str] = []
        self._seed = seed

    def new_word(self) -> str:
        self.canaries.append(word(self._seed * 100 + len(self.canaries)))
        return self.canaries[-1]

    def new_text(self, valve: int) -> str:
        """Texts of one valve are near-duplicates; texts of two valves never are."""
        return (
            f"Open the valve {valve} slowly, wait for the green lamp, log the pressure reading,"
            f" then close the steel panel and tell the {self.new_word()} team."
        )

    async def step(self) -> None:
        self.clock.step(timedelta(hours=self.chance.choice([1, 5, 7, 24 * 40, 24 * 100])))
        valve = self.chance.randrange(VALVES)
        act = self.chance.choice(
            [self.write, self.write, self.use, self.use, self.use, self.edit, self.switch, self.delete]
        )
        await act(valve, self.model.get(valve))

    async def write(self, valve: int, known: ModelSkill | None) -> None:
        text, named = self.new_text(valve), self.chance.random() < 0.3
        write = RuntimeSkillWrite(
            text, name=name_of(valve) if named else None, title=f"Valve {valve}", summary="How to read the pressure."
        )
        report = await super().write(MemoryWriteRequest.procedural(write))  # type: ignore[misc]
        (verdict,) = report.procedural_evolution.reports
        assert verdict.detail == name_of(valve)
        if known is None:
            assert verdict.action is SkillAction.CREATED
            self.model[valve] = ModelSkill([text], self.clock.now())
        else:
            assert verdict.action is (SkillAction.REVISED if named else SkillAction.MERGED)
            known.revise(text, self.clock.now())

    async def use(self, valve: int, known: ModelSkill | None) -> None:
        outcome = self.chance.choice(["neutral", "succeeded", "mismatch", "mismatch"])
        note = self.chance.choice([None, f"It was {self.new_word()}."])
        (reuse,) = (
            await self.maintain(
                MemoryMaintainRequest(
                    runtime_skill_selected_ids=(name_of(valve),),
                    reuse_outcome=outcome,
                    reuse_outcome_note=note,
                    scope=CHAT,
                )
            )
        ).runtime_skill_reuse
        if known is None:
            assert reuse.reason == "no_such_runtime_skill"
            return
        now = self.clock.now()
        if not known.uses or now - known.uses[-1] >= timedelta(hours=6):
            known.uses.append(now)
        known.successes += outcome == "succeeded"
        known.mismatches += outcome == "mismatch"
        known.pending = {"succeeded": False, "mismatch": True}.get(outcome, known.pending)
        known.note = note or known.note

    async def edit(self, valve: int, known: ModelSkill | None) -> None:
        text = self.new_text(valve)
        report = await self.edit_runtime_skill(RuntimeSkillEditRequest(name_of(valve), procedure=text))
        assert report.accepted is report.changed is (known is not None)
        if known is not None:
            known.revise(text, self.clock.now())

    async def switch(self, valve: int, known: ModelSkill | None) -> None:
        enabled = self.chance.random() < 0.5
        report = await self.set_runtime_skill_enabled(RuntimeSkillSetEnabledRequest(name_of(valve), enabled))
        assert report.accepted is (known is not None)
        assert report.changed is (known is not None and known.enabled is not enabled)
        if known is not None:
            known.enabled = enabled

    async def delete(self, valve: int, known: ModelSkill | None) -> None:
        report = await self.delete_runtime_skill(RuntimeSkillDeleteRequest(name_of(valve)))
        assert report.accepted is report.changed is (known is not None)
        self.model.pop(valve, None)

    # --- comparing ---

    async def compare(self) -> None:
        now = self.clock.now()
        everything = RuntimeSkillListRequest(include_disabled=True, include_retired=True)
        report = await self.list_runtime_skills(everything)
        assert {each.name: counts(each) for each in report.runtime_skills} == {
            name_of(valve): (
                *(str(skill.status(now)), skill.enabled, len(skill.uses), skill.successes, skill.mismatches),
                *(skill.pending, skill.updated_at, skill.uses[-1] if skill.uses else None),
            )
            for valve, skill in self.model.items()
        }
        assert (report.total, report.disabled) == (
            len(self.model),
            sum(not skill.enabled for skill in self.model.values()),
        )
        for valve, skill in self.model.items():
            shown = await self.get_runtime_skill(RuntimeSkillDetailRequest(name_of(valve)))
            assert (shown.procedure_text, shown.last_outcome_note) == (skill.texts[-1], skill.note)
            assert len(shown.lineage) == min(8, len(skill.texts))
            assert len(shown.strategy_diffs) == min(8, len(skill.texts) - 1)
        recalled = await self.recall(MemoryRecallRequest("How do I read the pressure of a valve?", min_score=0))
        may = {name_of(valve) for valve, skill in self.model.items() if skill.is_recalled()}
        assert {hit.skill_name for hit in recalled.procedural_hits} <= may
        assert bool(recalled.procedural_hits) is bool(may)


def counts(skill: RuntimeSkillSummary) -> tuple[Any, ...]:
    return (
        *(str(skill.status), skill.enabled, skill.use_count, skill.validated_success_count, skill.mismatch_count),
        *(skill.revision_pending, skill.updated_at, skill.last_used_at),
    )


async def texts_of_skills(engine: Engine) -> set[str]:
    """The texts of all revisions of all skills in the store."""
    wanted = ListFilter(planes=frozenset({Plane.PROCEDURAL}))

    def read(reader: Any) -> set[str]:
        memories = reader.records.page(wanted, None, 100_000)
        histories = reader.records.histories([memory.id for memory in memories])
        return {revision.text for history in histories for revision in history}

    return await engine._core.store.read(EVERYTHING, read)


def test_skills_live_as_a_plain_model_says_and_deleted_ones_leave_no_byte(location: str, tmp_path: Path) -> None:
    async def whole() -> tuple[list[str], list[str]]:
        clock, kept, gone = FixedClock(), list[str](), list[str]()
        async with hosting(location, clock=clock) as host:
            for seed in range(LIVES):
                life = Life(host.engine, f"owner-{seed}", seed, clock)
                for _ in range(STEPS):
                    await life.step()
                await life.compare()
                if seed % 2:
                    for valve, skill in list(life.model.items()):
                        await life.delete(valve, skill)
                there = [text for skill in life.model.values() for text in skill.texts]
                there += [skill.note for skill in life.model.values() if skill.note]
                kept += [each for each in life.canaries if any(each in text for text in there)]
                gone += [each for each in life.canaries if not any(each in text for text in there)]
            stored = "\n".join(await texts_of_skills(host.engine))
            assert all(each not in stored for each in gone)
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
        assert all(each.encode() in raw for each in kept)
        assert [each for each in gone if each.encode() in raw] == []
