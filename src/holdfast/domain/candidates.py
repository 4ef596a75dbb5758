"""What becomes of a candidate for memory: accepted, deferred or rejected, how far it is trusted, and why.

The decisions are the tables `GROUNDS` and `PRIVACY`; what they do not name is an error, never an acceptance. A
candidate stands no firmer than the weakest thing that it rests on: what it claims to be, and each message it cites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from holdfast.domain.governed import Authority
from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.transcript import Role


class CandidatePrivacy(StrEnum):
    """Whom a candidate may be told to, as whoever proposes it says."""

    SHAREABLE = "shareable"
    STANDARD = "standard"
    PRIVATE = "private"


class Verdict(StrEnum):
    """Deferred is kept, but apart: not recalled until something of more authority says the same."""

    ACCEPTED = "accepted"
    DEFERRED = "deferred"
    REJECTED = "rejected"


class Reason(StrEnum):
    SUFFICIENT_AUTHORITY = "sufficient_authority"
    CONFIRMED = "confirmed"
    MERGED = "merged"
    AUTHORITY_TOO_WEAK = "authority_too_weak"
    AWAITS_GOVERNANCE = "awaits_governance"
    NO_EVIDENCE = "no_evidence"
    NOT_SUPPORTED = "not_supported_by_evidence"
    ALREADY_KNOWN = "already_known"
    AUTHORITY_NOT_FOR_TARGET = "authority_not_for_target"
    PRIVATE_GROUND = "private_ground"
    OWN_PROJECTION = "own_projection"
    PRIVACY_FORBIDS_TARGET = "privacy_forbids_target"
    EVIDENCE_NOT_FOUND = "evidence_not_found"
    EVIDENCE_NOT_ACTIVE = "evidence_not_active"
    CANDIDATE_ID_REUSED = "candidate_id_reused"
    CORRECTED_SINCE = "corrected_since"
    FORGOTTEN_SINCE = "forgotten_since"


_R = Reason
VERDICTS: Mapping[Reason, Verdict] = {
    _R.SUFFICIENT_AUTHORITY: Verdict.ACCEPTED,
    _R.CONFIRMED: Verdict.ACCEPTED,
    _R.MERGED: Verdict.ACCEPTED,
    _R.AUTHORITY_TOO_WEAK: Verdict.DEFERRED,
    _R.AWAITS_GOVERNANCE: Verdict.DEFERRED,
    _R.NO_EVIDENCE: Verdict.DEFERRED,
    _R.NOT_SUPPORTED: Verdict.DEFERRED,
    _R.ALREADY_KNOWN: Verdict.DEFERRED,
    _R.AUTHORITY_NOT_FOR_TARGET: Verdict.REJECTED,
    _R.PRIVATE_GROUND: Verdict.REJECTED,
    _R.OWN_PROJECTION: Verdict.REJECTED,
    _R.PRIVACY_FORBIDS_TARGET: Verdict.REJECTED,
    _R.EVIDENCE_NOT_FOUND: Verdict.REJECTED,
    _R.EVIDENCE_NOT_ACTIVE: Verdict.REJECTED,
    _R.CANDIDATE_ID_REUSED: Verdict.REJECTED,
    _R.CORRECTED_SINCE: Verdict.REJECTED,
    _R.FORGOTTEN_SINCE: Verdict.REJECTED,
}
_SEVERITY = list(Verdict)
# The most that is believed of what is only kept apart.
DEFERRED_TRUST = Trust.LOW


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdict` follows from the reason, and cannot say anything else."""

    reason: Reason
    trust: Trust

    @property
    def verdict(self) -> Verdict:
        return VERDICTS[self.reason]

    @property
    def status(self) -> Status | None:
        """What the memory is kept as; None if nothing is kept."""
        return {Verdict.ACCEPTED: Status.ACCEPTED, Verdict.DEFERRED: Status.QUARANTINED}.get(self.verdict)


# --- the tables -------------------------------------------------------------------------------------------------------

# The planes that candidates can be meant for. Episodes and chunks of resources are made by other means.
TARGETS = (Plane.LONG_TERM, Plane.SHARED_FACT, Plane.PROCEDURAL, Plane.PRIVATE, Plane.SOUL_CANDIDATE)


class Ground(NamedTuple):
    """What resting on an authority means. Who only passes on what somebody said needs that somebody's words."""

    trust: Trust
    needs_evidence: bool
    targets: Mapping[Plane, Reason]


def _ground(trust: Trust, needs_evidence: bool, *reasons: Reason) -> Ground:
    return Ground(trust, needs_evidence, dict(zip(TARGETS, reasons, strict=True)))


_YES = Reason.SUFFICIENT_AUTHORITY
_WEAK = Reason.AUTHORITY_TOO_WEAK
_WAIT = Reason.AWAITS_GOVERNANCE
_NEVER = Reason.AUTHORITY_NOT_FOR_TARGET
_INNER = Reason.PRIVATE_GROUND
_ECHO = Reason.OWN_PROJECTION
_T = Trust
_A = Authority

GROUNDS: Mapping[Authority, Ground] = {
    #                            trust           evidence  long_term  shared   procedural  private  soul
    _A.USER_ASSERTED:            _ground(_T.STATED,    True,  _YES,   _YES,   _YES,   _YES,  _WAIT),
    _A.ASSISTANT_UTTERANCE:      _ground(_T.LOW,       True,  _WEAK,  _WEAK,  _WEAK,  _WEAK, _WAIT),
    _A.ASSISTANT_SELF_CLAIM:     _ground(_T.LOW,       True,  _WEAK,  _NEVER, _WEAK,  _WEAK, _WAIT),
    _A.RUNTIME_OBSERVATION:      _ground(_T.MODEST,    False, _YES,   _YES,   _YES,   _YES,  _NEVER),
    _A.WORLD_OBSERVATION:        _ground(_T.MODEST,    True,  _YES,   _YES,   _WEAK,  _YES,  _NEVER),
    _A.PROGRAM_MEMORY_CANONICAL: _ground(_T.VERIFIED,  False, _YES,   _YES,   _YES,   _YES,  _NEVER),
    _A.ARCHIVE_EVIDENCE:         _ground(_T.MODEST,    True,  _YES,   _WEAK,  _WEAK,  _YES,  _NEVER),
    # Memory that was rendered for somebody: taken for new, it would confirm itself.
    _A.SUBJECT_PROJECTION:       _ground(_T.UNTRUSTED, True,  _ECHO,  _ECHO,  _ECHO,  _ECHO, _ECHO),
    # What is private stays behind: no candidate carries it into a plane that everybody reads.
    _A.SOUL_GOVERNANCE:          _ground(_T.STATED,    False, _INNER, _INNER, _INNER, _YES,  _YES),
    _A.PRIVATE_GARDEN_INTERNAL:  _ground(_T.MODEST,    False, _INNER, _INNER, _INNER, _YES,  _WAIT),
    _A.OPERATOR_DIAGNOSTIC:      _ground(_T.LOW,       False, _INNER, _INNER, _INNER, _WEAK, _NEVER),
    _A.EXTERNAL_CONTENT:         _ground(_T.UNTRUSTED, True,  _WEAK,  _NEVER, _WEAK,  _WEAK, _NEVER),
    _A.LEGACY_TRANSCRIPT:        _ground(_T.MODEST,    True,  _YES,   _WEAK,  _WEAK,  _YES,  _NEVER),
}  # fmt: skip

_OUT = Reason.PRIVACY_FORBIDS_TARGET


def _privacy(*reasons: Reason) -> Mapping[Plane, Reason]:
    return dict(zip(TARGETS, reasons, strict=True))


PRIVACY: Mapping[CandidatePrivacy, Mapping[Plane, Reason]] = {
    #                          long_term  shared  procedural  private  soul
    CandidatePrivacy.SHAREABLE: _privacy(_YES, _YES, _YES, _YES, _YES),
    CandidatePrivacy.STANDARD:  _privacy(_YES, _OUT, _YES, _YES, _YES),
    CandidatePrivacy.PRIVATE:   _privacy(_OUT, _OUT, _OUT, _YES, _YES),
}  # fmt: skip

# Who wrote a message matters more than what it was said to rest on: an assistant's words are not its user's.
_SPOKEN_BY = {Role.ASSISTANT: Authority.ASSISTANT_UTTERANCE, Role.TOOL: Authority.EXTERNAL_CONTENT}
_OF_A_USER = frozenset({Authority.USER_ASSERTED, Authority.LEGACY_TRANSCRIPT})


def ground_of(authority: Authority, role: Role) -> Authority:
    """What a message counts as when something rests on it."""
    return _SPOKEN_BY.get(role, authority) if authority in _OF_A_USER else authority


def accepts(authority: Authority, target: Plane) -> bool:
    """Whether something that rests on this authority alone could be accepted there."""
    return VERDICTS[GROUNDS[authority].targets[target]] is Verdict.ACCEPTED


def learned_from(authority: Authority) -> bool:
    """Whether a model that looks for memories may see a message of this ground.

    Not what came from outside: nobody of the conversation vouches for it, and it may be written for the model.
    """
    rejected = VERDICTS[GROUNDS[authority].targets[Plane.LONG_TERM]] is Verdict.REJECTED
    return not rejected and authority is not Authority.EXTERNAL_CONTENT


def judged(
    authority: Authority,
    target: Plane,
    privacy: CandidatePrivacy,
    evidence: Sequence[Authority],
    *,
    ceiling: Trust = Trust.VERIFIED,
    supported: bool = True,
) -> Judgement:
    """What becomes of a candidate that claims `authority` and rests on messages of those others.

    `ceiling` is the most that whoever worded it is trusted; `supported` whether its evidence says anything like it.
    """
    grounds = [GROUNDS[each] for each in (authority, *evidence)]
    reasons = [PRIVACY[privacy][target], *(ground.targets[target] for ground in grounds)]
    if grounds[0].needs_evidence and not evidence:
        reasons.append(Reason.NO_EVIDENCE)
    if not supported:
        reasons.append(Reason.NOT_SUPPORTED)
    worst = max(reasons, key=lambda reason: _SEVERITY.index(VERDICTS[reason]))
    trust = min(ceiling, *(ground.trust for ground in grounds))
    return Judgement(worst, trust if VERDICTS[worst] is Verdict.ACCEPTED else min(trust, DEFERRED_TRUST))


# --- whether evidence says it -----------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")
# What models begin their sentences with, whoever said it.
_FRAME = frozenset(
    {"the", "user", "users", "speaker", "person", "they", "their", "said", "says", "that", "has", "have"}
)
_STEM_CHARS = 4
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
LEAST_SUPPORT = 0.5


def supported(text: str, evidence: Sequence[str]) -> bool:
    """Whether a text could have been made of its evidence: it has its numbers, and at least half of its words from it.

    It tells what was made up, or brought in from elsewhere, from what was worded anew; what it lets through may still
    be wrong.
    """
    said = " ".join(evidence)
    if not set(_NUMBER.findall(text)) <= set(_NUMBER.findall(said)):
        return False
    wanted, given = set(_stems(text)), set(_stems(said))
    if not wanted:
        return False
    return len(wanted & given) >= LEAST_SUPPORT * len(wanted)


def _stems(text: str) -> Iterator[str]:
    """The beginnings of its words, and pairs of characters where a script does not divide them."""
    for word in _WORD.findall(text.casefold()):
        if _NO_SPACES.search(word):
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))
        elif (len(word) > 2 or word.isdigit()) and word not in _FRAME:
            yield word[:_STEM_CHARS]
