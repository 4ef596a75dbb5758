"""Random conversations, candidates and transitions of turns, compared with the rules for each candidate."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from writers import CHAT, Host, candidate, hosting

from holdfast import AsyncMemory
from holdfast.domain.candidates import TARGETS, CandidatePrivacy, Reason, Verdict, evidence_authority, judge_candidate
from holdfast.domain.memory import GUARDED_PLANES, Plane, Status, Trust
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptLifecycleRequest
from holdfast.domain.runtime_api.writing import CandidateVerdict, MemoryWriteRequest
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority

STEPS = 120
_CONTENTS = [f"Ana likes number {number}." for number in range(12)]
# Reasons that depend on earlier memories.
_OF_THE_PAST = {Reason.CONFIRMED, Reason.MERGED, Reason.ALREADY_KNOWN, Reason.CORRECTED_SINCE}


@dataclass
class World:
    """The messages, their turns and authorities, and those whose turns were archived, masked or deleted."""

    host: Host
    chance: random.Random
    said: dict[str, tuple[str, Authority]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    turns: int = 0
    candidates: int = 0
    verdicts: dict[Verdict, int] = field(default_factory=dict)
    accepted: set[tuple[Plane, str]] = field(default_factory=set)

    async def step(self) -> None:
        kinds = [self._say, self._say, self._propose, self._propose, self._propose, self._put_away]
        await self.chance.choice(kinds)()

    async def _say(self) -> None:
        self.turns += 1
        role, authority = self.chance.choice(list(Role)), self.chance.choice(list(Authority))
        turn = f"t{self.turns}"
        (message,) = await self.host.said(f"It is {self.turns}.", role=role, authority=authority, turn=turn)
        self.said[message] = (turn, evidence_authority(authority, role))

    async def _put_away(self) -> None:
        if not self.said:
            return
        message, (turn, _) = self.chance.choice(list(self.said.items()))
        how = self.chance.choice(["mask", "archive", "delete_raw", "forget"])
        if how == "forget":
            await AsyncMemory(self.host.engine).forget(message, subject="ana")
            self.said.pop(message)
            self.away.discard(message)
            return
        await self.host.request_transcript_lifecycle(
            MemoryTranscriptLifecycleRequest(transition=how, reason="chance", scope=CHAT, turn_id=turn)
        )
        self.away.add(message)

    async def _propose(self) -> None:
        self.candidates += 1
        cited = self.chance.sample(list(self.said), min(len(self.said), self.chance.randint(0, 2)))
        authority, privacy = self.chance.choice(list(Authority)), self.chance.choice(list(CandidatePrivacy))
        target, content = self.chance.choice(TARGETS), self.chance.choice(_CONTENTS)
        given = candidate(
            content, *cited, authority=authority, privacy=privacy, target=target, candidate_id=f"c{self.candidates}"
        )
        report = await self.host.write(MemoryWriteRequest.candidates(given))
        (verdict,) = report.semantic_governance.verdicts
        self._check(verdict, cited, authority, privacy, content)

    def _check(
        self,
        verdict: CandidateVerdict,
        cited: list[str],
        authority: Authority,
        privacy: CandidatePrivacy,
        content: str,
    ) -> None:
        self.verdicts[verdict.verdict] = self.verdicts.get(verdict.verdict, 0) + 1
        if self.away & set(cited):
            assert verdict.verdict is Verdict.REJECTED
            return
        expected = judge_candidate(authority, verdict.target, privacy, [self.said[each][1] for each in cited])
        assert verdict.verdict is expected.verdict
        assert verdict.reason in {expected.reason} | _OF_THE_PAST
        if verdict.reason is not Reason.MERGED:
            assert verdict.trust == expected.trust
        if verdict.verdict is Verdict.ACCEPTED:
            self.accepted.add((verdict.target, content))

    async def check(self) -> None:
        memory = AsyncMemory(self.host.engine)
        kept = await self.host.memories()
        current = [each for each in kept if each.superseded_at is None]
        places = [(each.plane, each.text) for each in current]
        assert len(set(places)) == len(places), "one memory per plane and content"
        for each in current:
            if each.status is Status.ACCEPTED:
                assert (each.plane, each.text) in self.accepted
            else:
                assert each.trust <= Trust.LOW
        for content in _CONTENTS:
            hits = await memory.search(content, subject="ana", kind="memory", top_k=50)
            found = {(hit.plane, hit.text) for hit in hits}
            assert found <= {place for place in self.accepted if place[0] not in GUARDED_PLANES}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_candidates_are_judged_by_the_rules_and_only_the_accepted_are_found(
    location: str, seed: int
) -> None:
    async def whole() -> None:
        async with hosting(location) as host:
            world = World(host, random.Random(seed))
            for _ in range(STEPS):
                await world.step()
            await world.check()
            assert len(world.verdicts) == 3, "not every verdict was seen"

    asyncio.run(whole())


def test_nothing_of_a_candidate_is_left_in_the_file_when_its_subject_is_forgotten(tmp_path: Path) -> None:
    names = ["canary-accepted", "canary-deferred", "canary-rejected", "canary-id"]

    async def whole() -> None:
        async with hosting(str(tmp_path / "memory.db")) as host:
            (message,) = await host.said("I live in Porto.")
            report = await host.write(
                MemoryWriteRequest.candidates(
                    candidate("canary-accepted", message, candidate_id="canary-id 1"),
                    candidate("canary-deferred", candidate_id="canary-id 2"),
                    candidate("canary-rejected", "msg_none", candidate_id="canary-id 3"),
                )
            )
            assert len({each.verdict for each in report.semantic_governance.verdicts}) == 3
            assert left_of(tmp_path, names) == names[:2], "what is kept is in the file, and can be found there"
            memory = AsyncMemory(host.engine)
            await memory.forget(subject="ana")
            await memory.drain()

    asyncio.run(whole())
    assert left_of(tmp_path, names) == []


def left_of(folder: Path, names: list[str]) -> list[str]:
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [name for name in names if name.encode() in content]
