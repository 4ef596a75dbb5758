"""Verdicts on candidates, for every authority, plane, privacy and evidence.

The rules are written out here a second time, as lists of names. `wrongs` compares them with the code over all possible
inputs, and with each cell of the tables changed on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import candidates
from holdfast.domain.candidates import (
    GROUNDS,
    PRIVACY,
    TARGETS,
    CandidatePrivacy,
    Ground,
    Judgement,
    Reason,
    Verdict,
    can_accept,
    evidence_authority,
    is_supported,
    judge_candidate,
    may_learn_from,
)
from holdfast.domain.memory import GUARDED_PLANES, Plane, Status, Trust
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority

ACCEPTED = {
    "long_term": "user_asserted runtime_observation world_observation program_memory_canonical archive_evidence"
    " legacy_transcript",
    "shared_fact": "user_asserted runtime_observation world_observation program_memory_canonical",
    "procedural": "user_asserted runtime_observation program_memory_canonical",
    "private": "user_asserted runtime_observation world_observation program_memory_canonical archive_evidence"
    " soul_governance private_garden_internal legacy_transcript",
    "soul_candidate": "soul_governance",
}
DEFERRED = {
    "long_term": "assistant_utterance assistant_self_claim external_content",
    "shared_fact": "assistant_utterance archive_evidence legacy_transcript",
    "procedural": "assistant_utterance assistant_self_claim world_observation archive_evidence external_content"
    " legacy_transcript",
    "private": "assistant_utterance assistant_self_claim operator_diagnostic external_content",
    "soul_candidate": "user_asserted assistant_utterance assistant_self_claim private_garden_internal",
}
SELF_EVIDENT = (
    "runtime_observation program_memory_canonical soul_governance private_garden_internal operator_diagnostic".split()
)
TRUSTED = {
    Trust.VERIFIED: "program_memory_canonical",
    Trust.STATED: "user_asserted soul_governance",
    Trust.MODEST: "runtime_observation world_observation archive_evidence private_garden_internal legacy_transcript",
    Trust.LOW: "assistant_utterance assistant_self_claim operator_diagnostic",
    Trust.UNTRUSTED: "subject_projection external_content",
}
REASONS = {
    ("subject_projection", plane.value): "own_projection" for plane in TARGETS
} | {
    (authority, plane): "private_ground"
    for authority in ("soul_governance", "private_garden_internal", "operator_diagnostic")
    for plane in ("long_term", "shared_fact", "procedural")
}  # fmt: skip


PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "governance.md"


def alone(authority: Authority, target: Plane) -> Verdict:
    if authority in ACCEPTED[target].split():
        return Verdict.ACCEPTED
    return Verdict.DEFERRED if authority in DEFERRED[target].split() else Verdict.REJECTED


def trust_of(authority: Authority) -> Trust:
    return next(trust for trust, names in TRUSTED.items() if authority in names.split())


def allowed(privacy: CandidatePrivacy, target: Plane) -> bool:
    if privacy is CandidatePrivacy.PRIVATE:
        return target in GUARDED_PLANES
    return target is not Plane.SHARED_FACT or privacy is CandidatePrivacy.SHAREABLE


def expected(
    authority: Authority, target: Plane, privacy: CandidatePrivacy, evidence: tuple[Authority, ...]
) -> tuple[Verdict, Trust]:
    verdicts = {alone(each, target) for each in (authority, *evidence)}
    if not evidence and authority not in SELF_EVIDENT:
        verdicts.add(Verdict.DEFERRED)
    if not allowed(privacy, target):
        verdicts.add(Verdict.REJECTED)
    trust = min(trust_of(each) for each in (authority, *evidence))
    if Verdict.REJECTED in verdicts:
        return Verdict.REJECTED, min(trust, Trust.LOW)
    if Verdict.DEFERRED in verdicts:
        return Verdict.DEFERRED, min(trust, Trust.LOW)
    return Verdict.ACCEPTED, trust


def wrongs() -> Iterator[str]:
    """Yield every difference between the tables and the lists above."""
    rests_on = [(), *((each,) for each in Authority), (Authority.USER_ASSERTED, Authority.EXTERNAL_CONTENT)]
    for authority, target, privacy, evidence in product(Authority, TARGETS, CandidatePrivacy, rests_on):
        made = judge_candidate(authority, target, privacy, evidence)
        if (made.verdict, made.trust) != expected(authority, target, privacy, evidence):
            yield f"{authority} {target} {privacy} {evidence}: {made}"
    for (authority_name, target_name), reason in REASONS.items():
        found = candidates.GROUNDS[Authority(authority_name)].targets[Plane(target_name)]
        if found != reason:
            yield f"{authority_name} {target_name}: {found}, not {reason}"
    for each, ground in candidates.GROUNDS.items():
        if (ground.trust, ground.needs_evidence) != (trust_of(each), each not in SELF_EVIDENT):
            yield f"{each}: {ground.trust}, {ground.needs_evidence}"


def test_every_candidate_is_judged_as_the_rules_say() -> None:
    assert list(wrongs()) == []


@pytest.mark.parametrize("authority", Authority)
@pytest.mark.parametrize("target", TARGETS)
def test_a_change_of_any_cell_of_the_table_of_grounds_is_noticed(
    authority: Authority, target: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = GROUNDS[authority]
    for reason in (Reason.SUFFICIENT_AUTHORITY, Reason.AUTHORITY_TOO_WEAK, Reason.AUTHORITY_NOT_FOR_TARGET):
        if reason.verdict is not ground.targets[target].verdict:
            changed = ground._replace(targets={**ground.targets, target: reason})
            monkeypatch.setattr(candidates, "GROUNDS", {**GROUNDS, authority: changed})
            assert any(wrongs()), f"{authority} {target} could be {reason}"


@pytest.mark.parametrize("authority", Authority)
def test_a_change_of_trust_or_of_the_need_for_evidence_is_noticed(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = GROUNDS[authority]
    others: list[Ground] = [ground._replace(trust=trust) for trust in Trust if trust is not ground.trust]
    others.append(ground._replace(needs_evidence=not ground.needs_evidence))
    for changed in others:
        monkeypatch.setattr(candidates, "GROUNDS", {**GROUNDS, authority: changed})
        assert any(wrongs()), f"{authority} could be {changed}"


@pytest.mark.parametrize("privacy", CandidatePrivacy)
@pytest.mark.parametrize("target", TARGETS)
def test_a_change_of_any_cell_of_the_table_of_privacy_is_noticed(
    privacy: CandidatePrivacy, target: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = PRIVACY[privacy][target]
    other = Reason.PRIVACY_FORBIDS_TARGET if now is Reason.SUFFICIENT_AUTHORITY else Reason.SUFFICIENT_AUTHORITY
    monkeypatch.setattr(candidates, "PRIVACY", {**PRIVACY, privacy: {**PRIVACY[privacy], target: other}})
    assert any(wrongs())


def test_every_reason_has_a_verdict_and_every_verdict_a_status() -> None:
    assert all(isinstance(reason.verdict, Verdict) for reason in Reason)
    statuses = {reason: Judgement(reason, Trust.LOW).status for reason in Reason}
    assert {statuses[reason] for reason in Reason if reason.verdict is Verdict.ACCEPTED} == {Status.ACCEPTED}
    assert {statuses[reason] for reason in Reason if reason.verdict is Verdict.DEFERRED} == {Status.QUARANTINED}
    assert {statuses[reason] for reason in Reason if reason.verdict is Verdict.REJECTED} == {None}


@pytest.mark.parametrize("claim", [Authority.ASSISTANT_SELF_CLAIM, Authority.ASSISTANT_UTTERANCE])
def test_what_an_assistant_claims_is_never_accepted_nor_trusted_more_than_little(claim: Authority) -> None:
    for target, privacy, other in product(TARGETS, CandidatePrivacy, Authority):
        for claimed, evidence in ((claim, (other,)), (other, (claim,)), (claim, ())):
            made = judge_candidate(claimed, target, privacy, evidence)
            assert made.verdict is not Verdict.ACCEPTED
            assert made.trust <= Trust.LOW


def test_nothing_private_gets_into_a_plane_that_everybody_reads() -> None:
    private = (Authority.SOUL_GOVERNANCE, Authority.PRIVATE_GARDEN_INTERNAL, Authority.OPERATOR_DIAGNOSTIC)
    for target, privacy, claimed, ground in product(TARGETS, CandidatePrivacy, Authority, private):
        if target not in GUARDED_PLANES:
            assert (
                judge_candidate(claimed, target, privacy, (Authority.USER_ASSERTED, ground)).verdict is Verdict.REJECTED
            )


def test_who_worded_a_candidate_bounds_its_trust() -> None:
    stated = (Authority.USER_ASSERTED, Plane.LONG_TERM, CandidatePrivacy.STANDARD, (Authority.USER_ASSERTED,))
    assert judge_candidate(*stated).trust is Trust.STATED
    assert judge_candidate(*stated, ceiling=Trust.MODEST) == Judgement(Reason.SUFFICIENT_AUTHORITY, Trust.MODEST)
    assert judge_candidate(*stated, supported=False) == Judgement(Reason.NOT_SUPPORTED, Trust.LOW)


@pytest.mark.parametrize(
    ("authority", "role", "ground"),
    [
        (Authority.USER_ASSERTED, Role.USER, Authority.USER_ASSERTED),
        (Authority.USER_ASSERTED, Role.ASSISTANT, Authority.ASSISTANT_UTTERANCE),
        (Authority.USER_ASSERTED, Role.TOOL, Authority.EXTERNAL_CONTENT),
        (Authority.LEGACY_TRANSCRIPT, Role.USER, Authority.LEGACY_TRANSCRIPT),
        (Authority.LEGACY_TRANSCRIPT, Role.ASSISTANT, Authority.ASSISTANT_UTTERANCE),
        (Authority.LEGACY_TRANSCRIPT, Role.TOOL, Authority.EXTERNAL_CONTENT),
        (Authority.RUNTIME_OBSERVATION, Role.TOOL, Authority.RUNTIME_OBSERVATION),
        (Authority.SOUL_GOVERNANCE, Role.ASSISTANT, Authority.SOUL_GOVERNANCE),
    ],
)
def test_a_message_counts_for_no_more_than_whoever_wrote_it(
    authority: Authority, role: Role, ground: Authority
) -> None:
    assert evidence_authority(authority, role) is ground


def test_a_model_sees_nothing_private_nothing_from_outside_and_no_echo() -> None:
    hidden = {authority for authority in Authority if not may_learn_from(authority)}
    assert hidden == {
        Authority.SUBJECT_PROJECTION,
        Authority.SOUL_GOVERNANCE,
        Authority.PRIVATE_GARDEN_INTERNAL,
        Authority.OPERATOR_DIAGNOSTIC,
        Authority.EXTERNAL_CONTENT,
    }
    assert {authority for authority in Authority if can_accept(authority, Plane.LONG_TERM)} == {
        Authority(name) for name in ACCEPTED["long_term"].split()
    }


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("The user lives in Porto.", ["I live in Porto, near the river."]),
        ("The user's dog is called Rex.", ["My dog is called Rex"]),
        ("The user is allergic to peanuts.", ["Careful, I have a peanut allergy!"]),
        ("Der Nutzer wohnt in Köln.", ["Ich wohne in KÖLN"]),
        ("用户住在波尔图", ["我住在波尔图。"]),
        ("The user was born in 1990.", ["I was born", "in 1990 that is"]),
    ],
)
def test_what_is_worded_anew_is_supported(text: str, evidence: list[str]) -> None:
    assert is_supported(text, evidence)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("The user's bank account is 12345678.", ["Thanks, please summarize it."]),
        ("The user was born in 1991.", ["I was born in 1990."]),
        ("The user prefers that all payments go to Mallory.", ["I prefer tea."]),
        ("The user.", ["The user said that."]),
        ("用户喜欢喝咖啡", ["我住在波尔图。"]),
        ("The user lives in Porto.", []),
    ],
)
def test_what_is_made_up_is_not_supported(text: str, evidence: list[str]) -> None:
    assert not is_supported(text, evidence)


def test_the_page_draws_the_tables_as_they_are() -> None:
    text = PAGE.read_text("utf-8")
    for authority, ground in GROUNDS.items():
        cells = [ground.targets[target].verdict.value for target in TARGETS]
        needs = "yes" if ground.needs_evidence else "no"
        assert f"| `{authority}` | {ground.trust} | {needs} | {' | '.join(cells)} |\n" in text
    for privacy, row in PRIVACY.items():
        cells = ["may" if row[target].verdict is Verdict.ACCEPTED else "rejected" for target in TARGETS]
        assert f"| `{privacy}` | {' | '.join(cells)} |\n" in text


@given(st.lists(st.sampled_from("porto Köln dogs 1990 peanuts река 東京都 lighthouse 42 allergic".split()), min_size=1))
def test_what_repeats_its_evidence_is_supported_and_a_number_more_is_not(words: list[str]) -> None:
    text = " ".join(words)
    assert is_supported(text, [f"I said: {text}."])
    assert is_supported(f"The user said that {text}", ["Well,", text])
    assert not is_supported(f"{text} 777", [text])
