"""Proposals: changes of memory that an agent or a host suggests, with evidence. An operator decides on them.

Validation is pure: the same proposal under the same policy has the same decisions, and nothing is stored by it. The
stored form of a proposal is one JSON text, so that forgetting its evidence can erase all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from holdfast.domain.capabilities import MemoryCapabilityCatalog
from holdfast.domain.checks import checked_instance, checked_text
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import PREFIX
from holdfast.domain.runtime_api.skills import RuntimeSkillWrite, check_skill_write
from holdfast.domain.runtime_skills import NAME_PREFIX
from holdfast.errors import InvalidInput

MAX_PROPOSAL_ID_CHARS = 128
MAX_CANDIDATES = 16
MAX_EVIDENCE = 64
MAX_EVIDENCE_CHARS = 256
MAX_RATIONALE_CHARS = 4_000
MAX_NOTE_SUMMARY_CHARS = 1_000
# More undecided proposals of one memory are refused: nobody reviews more.
MAX_PENDING = 256
_RECORD_ID = re.compile(r"(?<![a-z0-9])(?:msg|mem|r)_[0-9a-f]{32}")


class ProposalTier(StrEnum):
    """The extent of a trial: the form of a proposal alone, its procedures too, or also their effect on recall."""

    PREVIEW = "preview"
    COMPACT = "compact"
    FULL = "full"


class ProposalReason(StrEnum):
    """The reason of a decision on a candidate, or on a whole proposal."""

    NO_PREVIEW = "proposal_preview_not_allowed_for_profile"
    OTHER_PROFILE = "proposal_profile_mismatch"
    NO_ID = "proposal_id_empty"
    NO_EVIDENCE = "proposal_evidence_empty"
    NO_RATIONALE = "proposal_rationale_empty"
    NO_CANDIDATES = "proposal_candidates_empty"
    NO_SANDBOX = "procedural_candidate_sandbox_not_allowed"
    INCOMPLETE_PROCEDURE = "procedural_candidate_incomplete"
    INCOMPLETE_NOTE = "governance_note_incomplete"
    ACCEPTED = "accepted"


# --- a proposal -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProceduralMemoryCandidate(Presentable):
    """A procedure to write as a runtime skill, or as a revision of the one it names."""

    write: RuntimeSkillWrite
    kind: str = field(default="procedural_memory", init=False)


@dataclass(frozen=True, slots=True)
class GovernanceNoteCandidate(Presentable):
    """Advice to the operator about a skill or another target. No operation carries it out."""

    target: str
    summary: str
    kind: str = field(default="governance_note", init=False)


Candidate = ProceduralMemoryCandidate | GovernanceNoteCandidate


@dataclass(frozen=True, slots=True)
class MemoryProposal(Presentable):
    """A suggested change. `evidence_refs` are ids of messages, memories and resources, names of skills, or words."""

    proposal_id: str
    profile: str
    candidates: Sequence[Candidate]
    evidence_refs: Sequence[str]
    rationale: str

    @property
    def writes(self) -> tuple[RuntimeSkillWrite, ...]:
        return tuple(each.write for each in self.candidates if isinstance(each, ProceduralMemoryCandidate))

    @property
    def notes(self) -> tuple[GovernanceNoteCandidate, ...]:
        return tuple(each for each in self.candidates if isinstance(each, GovernanceNoteCandidate))

    def references(self) -> Iterator[str]:
        """Yield all that the proposal rests on or speaks about: without it, the proposal has no ground."""
        yield from self.evidence_refs
        yield from (note.target for note in self.notes)
        for write in self.writes:
            yield from write.citations
            yield from () if write.name is None else (write.name,)

    @property
    def record_ids(self) -> tuple[str, ...]:
        """The ids of messages, memories and resources among the references."""
        found = (each for reference in self.references() for each in _RECORD_ID.findall(reference))
        return tuple(dict.fromkeys(found))

    @property
    def skill_names(self) -> tuple[str, ...]:
        """The names of skills among the references."""
        return tuple(dict.fromkeys(each for each in self.references() if each.startswith(NAME_PREFIX)))


def checked_proposal(value: object, max_chars: int) -> MemoryProposal:
    """Check types and sizes. What is empty has a reason of its own in the validation."""
    proposal = checked_instance(value, MemoryProposal)
    for name, most in (("proposal_id", MAX_PROPOSAL_ID_CHARS), ("profile", 64), ("rationale", MAX_RATIONALE_CHARS)):
        _check_unless_blank(getattr(proposal, name), name, most)
    for each in _checked_list(proposal.evidence_refs, "evidence_refs", MAX_EVIDENCE):
        _check_unless_blank(each, "evidence_refs", MAX_EVIDENCE_CHARS)
    used = 0
    for place, candidate in enumerate(_checked_list(proposal.candidates, "candidates", MAX_CANDIDATES)):
        where = f"candidates[{place}]"
        if isinstance(candidate, ProceduralMemoryCandidate):
            write = checked_instance(candidate.write, RuntimeSkillWrite, f"{where}.write")
            check_skill_write(_without_blanks(write), f"{where}.write")
            _check_unless_blank(write.content, f"{where}.write.content", max_chars)
            used += len(write.content)
        elif isinstance(candidate, GovernanceNoteCandidate):
            _check_unless_blank(candidate.target, f"{where}.target", MAX_EVIDENCE_CHARS)
            _check_unless_blank(candidate.summary, f"{where}.summary", MAX_NOTE_SUMMARY_CHARS)
        else:
            raise InvalidInput(where, f"is no candidate but {type(candidate).__name__}")
    if used > max_chars:
        raise InvalidInput("candidates", f"hold {used:,} characters; at most {max_chars:,} are allowed: split them")
    return proposal


def _without_blanks(write: RuntimeSkillWrite) -> RuntimeSkillWrite:
    """Empty the parts that hold only blanks, for which a validation has a reason."""
    blank = [name for name in ("title", "topic", "summary") if str(getattr(write, name)).isspace()]
    emptied: dict[str, Any] = dict.fromkeys(blank, "")
    return replace(write, **emptied)


def _check_unless_blank(value: object, field: str, most: int) -> None:
    if not isinstance(value, str) or value.strip():
        checked_text(value, field, max_chars=most)


def _checked_list(values: object, field: str, most: int) -> Sequence[Any]:
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) > most:
        raise InvalidInput(field, f"expected a tuple of at most {most}")
    return values


# --- validation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProposalPolicy(Presentable):
    """The policy for proposals under a profile."""

    preview: bool
    compact_sandbox: bool
    full_sandbox: bool
    submission: bool

    @classmethod
    def of(cls, capabilities: MemoryCapabilityCatalog) -> Self:
        names = ("proposal_preview", "compact_proposal_sandbox", "full_proposal_sandbox", "proposal_submission")
        return cls(*(capabilities[name].visible for name in names))

    @property
    def tier(self) -> ProposalTier | None:
        """The highest tier; None if proposals are not even previewed."""
        if not self.preview:
            return None
        if self.full_sandbox:
            return ProposalTier.FULL
        return ProposalTier.COMPACT if self.compact_sandbox else ProposalTier.PREVIEW


@dataclass(frozen=True, slots=True)
class CandidateDecision(Presentable):
    index: int
    accepted: bool
    reason: ProposalReason


@dataclass(frozen=True, slots=True)
class ProposalValidation(Presentable):
    """The decisions on the candidates. A proposal that fails as a whole has its reason in every decision."""

    proposal_id: str
    profile: str
    tier: ProposalTier | None
    accepted: bool
    accepted_count: int
    rejected_count: int
    decisions: tuple[CandidateDecision, ...]

    @property
    def reason(self) -> ProposalReason:
        """The first reason of a rejection, else that it is accepted."""
        return next((each.reason for each in self.decisions if not each.accepted), ProposalReason.ACCEPTED)


def validate_proposal(proposal: MemoryProposal, profile: str, policy: ProposalPolicy) -> ProposalValidation:
    """Decide on each candidate under a profile. Nothing is written."""
    whole = _reject_whole(proposal, profile, policy)
    if whole is not None:
        reasons = [whole] * max(1, len(proposal.candidates))
    else:
        reasons = [_judge(candidate, policy) for candidate in proposal.candidates]
    decisions = tuple(
        CandidateDecision(index, reason is ProposalReason.ACCEPTED, reason) for index, reason in enumerate(reasons)
    )
    accepted = sum(each.accepted for each in decisions)
    return ProposalValidation(
        proposal.proposal_id,
        proposal.profile,
        policy.tier,
        accepted == len(decisions),
        accepted,
        len(decisions) - accepted,
        decisions,
    )


def _reject_whole(proposal: MemoryProposal, profile: str, policy: ProposalPolicy) -> ProposalReason | None:
    problems = (
        (not policy.preview, ProposalReason.NO_PREVIEW),
        (proposal.profile.removeprefix(PREFIX) != profile, ProposalReason.OTHER_PROFILE),
        (not proposal.proposal_id.strip(), ProposalReason.NO_ID),
        (not any(each.strip() for each in proposal.evidence_refs), ProposalReason.NO_EVIDENCE),
        (not proposal.rationale.strip(), ProposalReason.NO_RATIONALE),
        (not proposal.candidates, ProposalReason.NO_CANDIDATES),
    )
    return next((reason for is_so, reason in problems if is_so), None)


def _judge(candidate: Candidate, policy: ProposalPolicy) -> ProposalReason:
    if isinstance(candidate, GovernanceNoteCandidate):
        whole = bool(candidate.target.strip() and candidate.summary.strip())
        return ProposalReason.ACCEPTED if whole else ProposalReason.INCOMPLETE_NOTE
    if policy.tier not in (ProposalTier.COMPACT, ProposalTier.FULL):
        return ProposalReason.NO_SANDBOX
    write = candidate.write
    whole = all(isinstance(part, str) and part.strip() for part in (write.topic, write.summary, write.content))
    return ProposalReason.ACCEPTED if whole else ProposalReason.INCOMPLETE_PROCEDURE


# --- the stored form --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProposalRecord:
    """A proposal with its author, and the operator who decided on it."""

    proposal: MemoryProposal
    author: str
    decided_by: str | None = None
    decision_reason: str | None = None

    def to_document(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, default=datetime.isoformat)

    @classmethod
    def from_document(cls, document: str) -> Self:
        found = json.loads(document)
        parts = found.pop("proposal")
        candidates = tuple(_read_candidate(each) for each in parts.pop("candidates"))
        parts["evidence_refs"] = tuple(parts["evidence_refs"])
        return cls(MemoryProposal(candidates=candidates, **parts), **found)


def _read_candidate(parts: dict[str, Any]) -> Candidate:
    if parts.pop("kind") == "governance_note":
        return GovernanceNoteCandidate(**parts)
    write = parts["write"]
    at = write.pop("observed_at")
    write["citations"] = tuple(write["citations"])
    return ProceduralMemoryCandidate(
        RuntimeSkillWrite(**write, observed_at=None if at is None else datetime.fromisoformat(at))
    )
