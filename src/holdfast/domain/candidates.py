"""Governance of memory candidates: accepted, deferred or rejected, with a trust and a reason.

The tables `GROUNDS` and `PRIVACY` decide; a combination that they do not name is an error, never an acceptance. The
weakest evidence decides: the authority that a candidate claims, and that of each message it cites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from holdfast.domain.memory import Plane, Status, Trust
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority


class CandidatePrivacy(StrEnum):
    """The audience of a candidate, as its proposer declares it."""

    SHAREABLE = "shareable"
    STANDARD = "standard"
    PRIVATE = "private"


class Verdict(StrEnum):
    """The decision on a candidate. A deferred one is stored but not recalled until a higher authority confirms it."""

    ACCEPTED = "accepted"
    DEFERRED = "deferred"
    REJECTED = "rejected"


class Reason(StrEnum):
    """The reason of a decision, and the verdict that it leads to: rejected, unless another is named."""

    verdict: Verdict

    def __new__(cls, name: str, verdict: Verdict = Verdict.REJECTED) -> Self:
        reason = str.__new__(cls, name)
        reason._value_ = name
        reason.verdict = verdict
        return reason

    SUFFICIENT_AUTHORITY = "sufficient_authority", Verdict.ACCEPTED
    CONFIRMED = "confirmed", Verdict.ACCEPTED
    MERGED = "merged", Verdict.ACCEPTED
    AUTHORITY_TOO_WEAK = "authority_too_weak", Verdict.DEFERRED
    AWAITS_GOVERNANCE = "awaits_governance", Verdict.DEFERRED
    NO_EVIDENCE = "no_evidence", Verdict.DEFERRED
    NOT_SUPPORTED = "not_supported_by_evidence", Verdict.DEFERRED
    ALREADY_KNOWN = "already_known", Verdict.DEFERRED
    AUTHORITY_NOT_FOR_TARGET = "authority_not_for_target"
    PRIVATE_GROUND = "private_ground"
    OWN_PROJECTION = "own_projection"
    PRIVACY_FORBIDS_TARGET = "privacy_forbids_target"
    EVIDENCE_NOT_FOUND = "evidence_not_found"
    EVIDENCE_NOT_ACTIVE = "evidence_not_active"
    CANDIDATE_ID_REUSED = "candidate_id_reused"
    CORRECTED_SINCE = "corrected_since"
    FORGOTTEN_SINCE = "forgotten_since"
    # Of a candidate that would be a runtime skill, as in `SkillRejection`.
    EMPTY_OR_INVALID = "empty_or_invalid"
    RAW_PAYLOAD_OR_LOG = "raw_payload_or_log"
    WEAK_PROCEDURE = "weak_procedure"


_SEVERITY = list(Verdict)
# The highest trust of a deferred candidate.
DEFERRED_TRUST = Trust.LOW


@dataclass(frozen=True, slots=True)
class Judgement:
    """The reason and the trust of a decision; `verdict` follows from the reason."""

    reason: Reason
    trust: Trust

    @property
    def verdict(self) -> Verdict:
        return self.reason.verdict

    @property
    def status(self) -> Status | None:
        """The status of the memory to store; None if nothing is stored."""
        return {Verdict.ACCEPTED: Status.ACCEPTED, Verdict.DEFERRED: Status.QUARANTINED}.get(self.verdict)


# --- the tables -------------------------------------------------------------------------------------------------------

# The planes that candidates can target. Episodes and resource chunks are made by other means.
TARGETS = (Plane.LONG_TERM, Plane.SHARED_FACT, Plane.PROCEDURAL, Plane.PRIVATE, Plane.SOUL_CANDIDATE)


class Ground(NamedTuple):
    """The rules of an authority. One that only passes on statements needs the original messages as evidence."""

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
    # Memory that was rendered for a model: accepted as new, it would confirm itself.
    _A.SUBJECT_PROJECTION:       _ground(_T.UNTRUSTED, True,  _ECHO,  _ECHO,  _ECHO,  _ECHO, _ECHO),
    # Private content never moves to a plane that everyone reads.
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

# The role of the author overrides the declared authority: an assistant's words are not its user's.
_SPOKEN_BY = {Role.ASSISTANT: Authority.ASSISTANT_UTTERANCE, Role.TOOL: Authority.EXTERNAL_CONTENT}
_OF_A_USER = frozenset({Authority.USER_ASSERTED, Authority.LEGACY_TRANSCRIPT})


def evidence_authority(authority: Authority, role: Role) -> Authority:
    """Return the authority of a message when it is cited as evidence."""
    return _SPOKEN_BY.get(role, authority) if authority in _OF_A_USER else authority


def is_of_a_user(authority: Authority) -> bool:
    """True if a user vouches for the message."""
    return authority in _OF_A_USER


def can_accept(authority: Authority, target: Plane) -> bool:
    """True if a candidate with this authority alone could be accepted on the plane."""
    return GROUNDS[authority].targets[target].verdict is Verdict.ACCEPTED


def may_learn_from(authority: Authority) -> bool:
    """True if a model that extracts memories may see a message of this authority.

    Not external content: no participant vouches for it, and it may be a prompt injection.
    """
    rejected = GROUNDS[authority].targets[Plane.LONG_TERM].verdict is Verdict.REJECTED
    return not rejected and authority is not Authority.EXTERNAL_CONTENT


def judge_candidate(
    authority: Authority,
    target: Plane,
    privacy: CandidatePrivacy,
    evidence: Sequence[Authority],
    *,
    ceiling: Trust = Trust.VERIFIED,
    supported: bool = True,
) -> Judgement:
    """Decide on a candidate that claims `authority` and cites messages of the `evidence` authorities.

    `ceiling` limits the trust by the author of the wording; `supported` is whether its evidence says anything like it.
    """
    grounds = [GROUNDS[each] for each in (authority, *evidence)]
    reasons = [PRIVACY[privacy][target], *(ground.targets[target] for ground in grounds)]
    if grounds[0].needs_evidence and not evidence:
        reasons.append(Reason.NO_EVIDENCE)
    if not supported:
        reasons.append(Reason.NOT_SUPPORTED)
    worst = max(reasons, key=lambda reason: _SEVERITY.index(reason.verdict))
    trust = min(ceiling, *(ground.trust for ground in grounds))
    return Judgement(worst, trust if worst.verdict is Verdict.ACCEPTED else min(trust, DEFERRED_TRUST))


# --- support by evidence ----------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")
# Words that models begin their sentences with.
_FRAME = frozenset(
    {"the", "user", "users", "speaker", "person", "they", "their", "said", "says", "that", "has", "have"}
)
_STEM_CHARS = 4
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
LEAST_SUPPORT = 0.5


def is_supported(text: str, evidence: Sequence[str]) -> bool:
    """True if a text could derive from its evidence: all its numbers and at least half of its words are in it.

    It detects invented text, or text from elsewhere, but allows rewording; a supported text may still be wrong.
    """
    joined = " ".join(evidence)
    if not set(_NUMBER.findall(text)) <= set(_NUMBER.findall(joined)):
        return False
    stems, evidence_stems = set(read_stems(text)), set(read_stems(joined))
    if not stems:
        return False
    return len(stems & evidence_stems) >= LEAST_SUPPORT * len(stems)


def read_stems(text: str) -> Iterator[str]:
    """Yield the prefixes of words, and character bigrams for scripts without spaces."""
    for word in _WORD.findall(text.casefold()):
        if _NO_SPACES.search(word):
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))
        elif (len(word) > 2 or word.isdigit()) and word not in _FRAME:
            yield word[:_STEM_CHARS]
