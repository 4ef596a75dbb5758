"""Random proposals against a plain model: made, validated, approved, rejected. Only an approval changes what is shown.

`HOLDFAST_PROPOSAL_LIVES` is the number of lives; `make soak` runs 500.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

from writers import hosting

from holdfast.app import Engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import Circumstances, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.profiles import PROFILES, profile_of
from holdfast.domain.proposals import (
    Candidate,
    GovernanceNoteCandidate,
    MemoryProposal,
    ProceduralMemoryCandidate,
)
from holdfast.domain.runtime_api.evolution import ProposalListRequest
from holdfast.domain.runtime_api.retrieval import MemoryProjectionRequest, MemoryRecallRequest
from holdfast.domain.runtime_api.skills import RuntimeSkillListRequest, RuntimeSkillWrite
from holdfast.sdk.evolution import EvolutionOperations
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.skills import SkillOperations
from holdfast.testing import FixedClock

LIVES = int(os.environ.get("HOLDFAST_PROPOSAL_LIVES", "20"))
STEPS = 12
NAMES = ("p-0", "p-1", "p-2", "p-3", "")
POLICY = ("proposal_preview", "compact_proposal_sandbox", "full_proposal_sandbox", "proposal_submission")
TASKS = ("bake bread with rye flour", "wash wool in cold water", "prune roses before spring", "tune a piano at night")


def expected(proposal: MemoryProposal, profile: str, off: frozenset[str]) -> list[str]:
    """Return the reason for each candidate, as the rules say in plain words."""
    hidden = off | profile_of(profile).without
    whole = (
        ("proposal_preview_not_allowed_for_profile" if "proposal_preview" in hidden else "")
        or ("proposal_profile_mismatch" if proposal.profile != profile else "")
        or ("" if proposal.proposal_id else "proposal_id_empty")
        or ("" if proposal.evidence_refs else "proposal_evidence_empty")
        or ("" if proposal.rationale else "proposal_rationale_empty")
        or ("" if proposal.candidates else "proposal_candidates_empty")
    )
    if whole:
        return [whole] * (len(proposal.candidates) or 1)
    sandbox = not {"compact_proposal_sandbox", "full_proposal_sandbox"} <= hidden
    return [reason_of(candidate, sandbox) for candidate in proposal.candidates]


def reason_of(candidate: Candidate, sandbox: bool) -> str:
    if isinstance(candidate, GovernanceNoteCandidate):
        return "accepted" if candidate.target and candidate.summary else "governance_note_incomplete"
    if not sandbox:
        return "procedural_candidate_sandbox_not_allowed"
    write = candidate.write
    return "accepted" if write.topic and write.summary and write.content else "procedural_candidate_incomplete"


class ProposalLife(EvolutionOperations, SkillOperations, RetrievalOperations):
    """One owner's proposals in a shared store, and the model of them: status and proposal by id."""

    def __init__(self, engine: Engine, seed: int, clock: FixedClock) -> None:
        self.chance = random.Random(seed)
        # Most profiles try procedures; a few do not.
        self.profile = self.chance.choice([*PROFILES, "server-linux-dev-full", "server-linux-dev-full"])
        self.off = frozenset(name for name in POLICY if self.chance.random() < 0.1)
        profile = profile_of(self.profile)
        shown = catalogue(profile, Circumstances(switched_off=self.off))
        governance = Governance(MemoryIdentity(subject_id=f"owner-{seed}"), profile, shown)
        super().__init__(engine, LOCAL_OPERATOR, governance)
        self.clock = clock
        self.model: dict[str, tuple[str, MemoryProposal]] = {}
        self.skills: set[str] = set()

    def maybe(self, value: Any, empty: Any) -> Any:
        return value if self.chance.random() < 0.93 else empty

    def new_proposal(self) -> MemoryProposal:
        candidates = tuple(self.new_candidate() for _ in range(self.maybe(self.chance.choice([1, 1, 2]), 0)))
        return MemoryProposal(
            self.chance.choice(NAMES[:-1] if self.chance.random() < 0.95 else NAMES),
            self.maybe(self.profile, "another-profile"),
            candidates,
            self.maybe(("ticket 7",), ()),
            self.maybe(f"Because of {self.chance.randrange(3)}.", ""),
        )

    def new_candidate(self) -> Candidate:
        task = self.chance.choice(TASKS)
        if self.chance.random() < 0.2:
            return GovernanceNoteCandidate(self.maybe(task, ""), self.maybe("Retire it.", ""))
        content = self.maybe(f"Read how to {task}.\nThen {task} slowly.", self.chance.choice(["", "Thanks!"]))
        return ProceduralMemoryCandidate(
            RuntimeSkillWrite(content, title=task, topic=self.maybe(task, ""), summary=self.maybe(f"To {task}.", ""))
        )

    async def shown(self) -> Any:
        """Return all that recall and a projection show."""
        recalled = await self.recall(MemoryRecallRequest("How do I bake, wash, prune or tune?", min_score=0))
        block = (await self.project(MemoryProjectionRequest("How do I bake, wash, prune or tune?"))).system_memory_block
        listed = await self.list_runtime_skills(RuntimeSkillListRequest(include_disabled=True))
        hits = [(hit.skill_name, hit.text, hit.score) for hit in recalled.procedural_hits]
        return hits, block, [each.name for each in listed.runtime_skills]

    async def step(self) -> None:
        self.clock.step(timedelta(minutes=5))
        before = await self.shown()
        act = self.chance.choice([self.submit, self.submit, self.submit, self.validate, self.approve, self.reject])
        if not await act():
            assert await self.shown() == before

    async def validate(self) -> bool:
        proposal = self.new_proposal()
        validation = await self.validate_proposal(proposal)
        reasons = expected(proposal, self.profile, self.off)
        assert [each.reason for each in validation.decisions] == reasons
        assert validation.accepted is all(each == "accepted" for each in reasons)
        assert validation.accepted_count + validation.rejected_count == len(reasons)
        return False

    async def submit(self) -> bool:
        proposal = self.new_proposal()
        report = await self.propose(proposal)
        reasons = expected(proposal, self.profile, self.off)
        wrong = next((each for each in reasons if each != "accepted"), None)
        known = self.model.get(proposal.proposal_id)
        if wrong is not None:
            assert (report.accepted, report.changed, report.reason) == (False, False, wrong)
        elif known is not None:
            same = known == ("pending", proposal)
            assert (report.accepted, report.changed, report.reason) == (same, False, "proposal_exists")
        else:
            assert (report.accepted, report.changed, report.reason) == (True, True, "proposed")
            self.model[proposal.proposal_id] = "pending", proposal
        return False

    async def approve(self) -> bool:
        proposal_id = self.chance.choice(NAMES[:-1])
        report = await self.approve_proposal(proposal_id)
        status, proposal = self.model.get(proposal_id, (None, None))
        if status != "pending" or proposal is None:
            assert report.reason == ("no_such_proposal" if status is None else f"proposal_already_{status}")
        elif "proposal_submission" in self.off | profile_of(self.profile).without:
            assert report.reason == "proposal_submission_not_allowed_for_profile"
        elif proposal.notes:
            assert report.reason == "governance_note_requires_future_sdk_operation"
        elif any(write.content == "Thanks!" for write in proposal.writes):
            assert report.reason == "weak_procedure"
        else:
            assert report.accepted
            assert len(report.committed_writes) == report.submitted_candidates == len(proposal.candidates)
            self.model[proposal_id] = "approved", proposal
            self.skills |= {write.title for write in proposal.writes}
            return True
        assert not report.accepted
        assert report.committed_writes == ()
        return False

    async def reject(self) -> bool:
        proposal_id = self.chance.choice(NAMES[:-1])
        report = await self.reject_proposal(proposal_id)
        status, proposal = self.model.get(proposal_id, (None, None))
        assert report.accepted is report.changed is (status == "pending")
        if status == "pending" and proposal is not None:
            self.model[proposal_id] = "rejected", proposal
        return False

    async def compare(self) -> None:
        report = await self.list_proposals(ProposalListRequest(include_decided=True))
        assert {each.proposal_id: str(each.status) for each in report.proposals} == {
            name: status for name, (status, _) in self.model.items()
        }
        assert report.pending == sum(status == "pending" for status, _ in self.model.values())
        for name, (_, proposal) in self.model.items():
            assert replace((await self.get_proposal(name)).proposal) == proposal
        listed = await self.list_runtime_skills(RuntimeSkillListRequest())
        assert {each.title for each in listed.runtime_skills} == self.skills


def test_proposals_live_as_a_plain_model_says_and_unapproved_ones_are_never_shown(location: str) -> None:
    async def whole() -> tuple[int, int]:
        clock, made, written = FixedClock(), 0, 0
        async with hosting(location, clock=clock) as host:
            for seed in range(LIVES):
                life = ProposalLife(host.engine, seed, clock)
                for _ in range(STEPS):
                    await life.step()
                await life.compare()
                made, written = made + len(life.model), written + len(life.skills)
        return made, written

    made, written = asyncio.run(whole())
    assert made > LIVES
    assert written
