"""Replaying and exporting transcripts: in pages, and without anything a view must hide, whatever the store holds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from conversing import CHAT, REF, Talk, talking

from holdfast.domain.access import Action, Actor, ActorKind
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.lifecycle import Disposition, ModeInput, Trigger
from holdfast.domain.operations import Outcome
from holdfast.domain.redaction import AUTHORITIES, REFERENCES, STATES, RefShown
from holdfast.domain.runtime_api.transcripts import (
    MemoryReplayRequest,
    MemoryTranscriptExportRequest,
    TurnMessage,
)
from holdfast.domain.transcript_turns import (
    Authority,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptState,
    View,
)
from holdfast.errors import AccessDenied, InvalidCursor, InvalidInput
from holdfast.testing.full_repr import full_repr

ELSEWHERE = MemoryScope(conversation_id="c2")
SMALL = "esp-embedded-sdk"  # pages of four turns


@pytest.fixture
def talk(location: str, runner: asyncio.Runner) -> Iterator[Talk]:
    with talking(location, runner) as opened:
        yield opened


# --- pages ------------------------------------------------------------------------------------------------------------


def test_pages_follow_one_another_without_gap_or_overlap(talk: Talk) -> None:
    for number in range(1, 8):
        talk.commit(f"turn:{number}", f"Text {number}")
    found, cursor = [], None
    for more in (True, True, False):
        page = talk.replay(limit=3, cursor=cursor)
        found.extend(turn.sequence for turn in page.slice.turns)
        assert page.has_more is more
        assert (page.next_cursor is not None) is more
        cursor = page.next_cursor
    assert found == list(range(1, 8))
    assert talk.replay(limit=3).next_cursor == "3:turn:3"


def test_a_page_that_ends_with_the_conversation_has_no_next(talk: Talk) -> None:
    for number in range(1, 4):
        talk.commit(f"t{number}", "Text")
    page = talk.replay(limit=3)
    assert (page.has_more, page.next_cursor) == (False, None)
    assert talk.replay(limit=3, cursor="3:t3").slice.turns == ()


def test_turns_committed_meanwhile_are_on_the_next_page(talk: Talk) -> None:
    talk.commit("t1", "One")
    talk.commit("t2", "Two")
    cursor = talk.replay(limit=1).next_cursor
    talk.commit("t3", "Three")
    assert [turn.id for turn in talk.replay(cursor=cursor).slice.turns] == ["t2", "t3"]


def test_a_conversation_that_is_not_there_has_no_turns(talk: Talk) -> None:
    page = talk.replay(where=MemoryScope(conversation_id="never"))
    assert (page.slice.turns, page.has_more, page.slice.audit.turns) == ((), False, 0)


@pytest.mark.parametrize(
    "cursor", ["", "7", "x:t1", "-1:t1", "0:t1", "1:", "1:t2", "2:t1", "9:t9", "1:t1 ", "٣:t1", "9" * 30 + ":t1", 7]
)
def test_a_cursor_that_names_no_turn_of_the_conversation_is_refused(talk: Talk, cursor: str) -> None:
    talk.commit("t1", "One")
    talk.commit("t2", "Two")
    with pytest.raises(InvalidCursor, match="cursor_not_found"):
        talk.replay(cursor=cursor)


def test_a_cursor_of_another_conversation_is_refused_with_its_row(talk: Talk) -> None:
    talk.commit("here", "One")
    for number in range(3):
        talk.commit(f"there-{number}", "Two", where=ELSEWHERE)
    cursor = talk.replay(where=ELSEWHERE, limit=1).next_cursor
    with pytest.raises(InvalidCursor, match="cursor_not_found"):
        talk.replay(cursor=cursor)
    row = talk.trail()[-1]
    assert (row.action, row.outcome, row.error_code) == (Action.REPLAY_TRANSCRIPT, Outcome.REFUSED, "invalid_cursor")


@pytest.mark.parametrize("limit", [0, -1, True, 2.0, "3", None, 10**9])
def test_a_limit_is_a_number_of_turns(talk: Talk, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        talk.replay(limit=limit)


@pytest.mark.parametrize("view", ["everything", "", None, "RAW_OWNER_ONLY"])
def test_an_unknown_view_is_refused_with_its_row(talk: Talk, view: str) -> None:
    talk.commit("t1", "One")
    with pytest.raises(InvalidInput, match="raw_owner_only"):
        talk.replay(view)
    assert (talk.trail()[-1].action, talk.trail()[-1].outcome) == (Action.REPLAY_TRANSCRIPT, Outcome.REFUSED)


def test_a_profile_makes_pages_smaller_and_says_so(talk: Talk) -> None:
    small = talk.of(MemoryIdentity(subject_id="ana"), profile=SMALL)
    for number in range(6):
        talk.commit(f"t{number}", "Text")
    page = small.replay(limit=64)
    assert (len(page.slice.turns), page.has_more, page.profile_budget_applied) == (4, True, True)
    assert not small.replay(limit=3).profile_budget_applied
    assert len(small.texts()) == 6


# --- views ------------------------------------------------------------------------------------------------------------


def test_views_are_for_those_whose_they_are(talk: Talk) -> None:
    talk.commit("t1", "Hello.")
    ana = talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ana"))
    assert ana.texts() == ["Hello."]
    with pytest.raises(AccessDenied, match="operators"):
        ana.replay(View.OPERATOR_AUDIT)
    walled = talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.OPERATOR, "o", space="default"))
    assert walled.texts(View.OPERATOR_AUDIT) == ["Hello."]
    with pytest.raises(AccessDenied, match="raw"):
        walled.replay(View.RAW_OWNER_ONLY)
    with pytest.raises(AccessDenied, match="raw"):
        walled.run(walled.operations.export_transcript(MemoryTranscriptExportRequest(CHAT, view=View.RAW_OWNER_ONLY)))
    assert {row.outcome for row in talk.trail()[-2:]} == {Outcome.REFUSED}


def test_nobody_replays_what_is_not_theirs(talk: Talk) -> None:
    talk.commit("t1", "Ana's own.")
    with pytest.raises(AccessDenied):
        talk.of(MemoryIdentity(subject_id="ana"), Actor(ActorKind.USER, "ben")).replay(View.HOST_UI)
    ben = talk.of(MemoryIdentity(subject_id="ben"), Actor(ActorKind.USER, "ben"))
    assert ben.texts(View.HOST_UI) == []
    assert talk.of(MemoryIdentity(space="other", subject_id="ana")).texts(View.HOST_UI) == []


Ground = Authority | HostRefVisibility


def canaries(talk: Talk, chance: random.Random) -> dict[str, tuple[TranscriptState, Ground]]:
    """Commit a random conversation. Each text and label is unique and maps to what decides who may see it."""
    known: dict[str, tuple[TranscriptState, Ground]] = {}
    for number in range(6):
        state = chance.choice(list(TranscriptState))
        messages, refs = [], []
        for _ in range(chance.randint(1, 3)):
            authority = chance.choice([None, *Authority])
            # Without a label, search finds the output of tools that plain `add` stored.
            role = "user" if authority is Authority.LEGACY_TRANSCRIPT else chance.choice(list(_UNLABELLED))
            known[text := f"canary{len(known)}"] = state, authority or _UNLABELLED[role]
            messages.append(TurnMessage(text, role, authority=authority))
        for _ in range(chance.randint(0, 3)):
            visibility = chance.choice(list(HostRefVisibility))
            known[label := f"canary{len(known)}"] = state, visibility
            refs.append(HostOpaqueRef("crm", "ticket", f"T-{len(known)}", Relation.RELATED, visibility, label))
        talk.commit(f"t{number}", *messages, host_refs=tuple(refs))
        before = {TranscriptState.ARCHIVED: "archive", TranscriptState.MASKED: "mask"}
        if state is not TranscriptState.ACTIVE:
            talk.age(before.get(state, "delete_raw"), f"t{number}")
    return known


_UNLABELLED = {
    "user": Authority.USER_ASSERTED,
    "assistant": Authority.ASSISTANT_UTTERANCE,
    "tool": Authority.OPERATOR_DIAGNOSTIC,
    "system": Authority.OPERATOR_DIAGNOSTIC,
}


def visible(view: View, state: TranscriptState, ground: Ground) -> bool:
    rule = STATES[state][view]
    if isinstance(ground, Authority):
        return rule.messages is None and AUTHORITIES[ground][view] is None
    return min(rule.references, REFERENCES[ground][view]) is RefShown.WITH_LABEL


@pytest.mark.parametrize("seed", range(4))
def test_every_view_shows_what_it_may_and_nothing_else(talk: Talk, seed: int) -> None:
    known = canaries(talk, random.Random(seed))
    for view in View:
        shown = full_repr(talk.replay(view))
        exported = full_repr(
            talk.run(talk.operations.export_transcript(MemoryTranscriptExportRequest(CHAT, 64, view=view)))
        )
        expected = {text for text, ground in known.items() if visible(view, *ground)}
        for answer in (shown, exported):
            assert {text for text in known if f"'{text}'" in answer} == expected


@pytest.mark.parametrize("seed", range(2))
def test_search_finds_what_is_active_and_not_private(talk: Talk, seed: int) -> None:
    known = canaries(talk, random.Random(100 + seed))
    private = {Authority.PRIVATE_GARDEN_INTERNAL, Authority.SOUL_GOVERNANCE, Authority.OPERATOR_DIAGNOSTIC}
    for text, (state, ground) in known.items():
        if isinstance(ground, Authority):
            expected = state is TranscriptState.ACTIVE and ground not in private
            assert (text in talk.search(text)) is expected


def test_the_report_counts_what_it_withholds(talk: Talk) -> None:
    secret = TurnMessage("Inner life.", "assistant", authority="private_garden_internal")
    talk.commit("t1", "Hello.", secret, host_refs=(REF, replace(REF, visibility=HostRefVisibility.INTERNAL)))
    page = talk.replay(View.HOST_UI).slice
    assert (page.audit.messages, page.audit.redacted_messages) == (2, 1)
    assert (page.audit.host_refs, page.audit.redacted_host_refs) == (2, 1)
    assert {item.reason for item in page.redactions} == {"private_authority", "host_ref_visibility"}


# --- exports and ledgers ----------------------------------------------------------------------------------------------


def test_an_export_is_cited_and_pages(talk: Talk) -> None:
    talk.commit("t/1", "Hello.", host_refs=(REF, replace(REF, visibility=HostRefVisibility.EXPORT)))
    talk.commit("t2", "More.")
    report = talk.run(talk.operations.export_transcript(MemoryTranscriptExportRequest(CHAT, limit=1)))
    assert report.view is View.EXPORT
    assert report.citations == ("transcript:default/local/c1#turn=t%2F1",)
    assert [shown.ref.label for shown in report.slice.turns[0].host_refs] == [None]
    assert (report.next_cursor, report.lifecycle_report.trigger) == ("1:t/1", Trigger.SNAPSHOT_TRANSFER)
    rest = talk.run(talk.operations.export_transcript(MemoryTranscriptExportRequest(CHAT, cursor=report.next_cursor)))
    assert [turn.id for turn in rest.slice.turns] == ["t2"]


def test_nothing_is_exported_in_recovery(talk: Talk) -> None:
    talk.commit("t1", "Hello.")
    request = MemoryTranscriptExportRequest(CHAT, mode_input=ModeInput(recovery_safe_mode_active=True))
    report = talk.run(talk.operations.export_transcript(request))
    assert (report.slice.turns, report.citations) == ((), ())
    assert report.lifecycle_report.admission.disposition is Disposition.REJECT
    assert not report.lifecycle_report.success
    assert "Hello" not in full_repr(report)


def test_the_ledger_tells_the_last_turns_without_a_word(talk: Talk) -> None:
    for number in range(1, 6):
        talk.commit(f"t{number}", f"Word {number}", "Answer", where=MemoryScope(chat_id="chat"), host_refs=(REF,))
    talk.age("mask", "t4", MemoryScope(chat_id="chat"))
    report = talk.run(talk.operations.replay(MemoryReplayRequest("chat", limit=3)))
    assert [(entry.sequence, entry.state) for entry in report.entries] == [(3, "active"), (4, "masked"), (5, "active")]
    assert {(entry.messages, entry.host_refs) for entry in report.entries} == {(2, 1)}
    assert (report.total_turns, report.inspection_only) == (5, True)
    assert report.lifecycle_report.trigger is Trigger.REPLAY_INSPECTION
    assert not any(word in full_repr(report) for word in ("Word", "Answer", "complaint"))
    assert len(talk.run(talk.operations.replay()).entries) == 5
    small = talk.of(MemoryIdentity(subject_id="ana"), profile=SMALL)
    assert small.run(small.operations.replay(MemoryReplayRequest("chat", 5))).profile_budget_applied
    with pytest.raises(InvalidInput, match="limit"):
        talk.run(talk.operations.replay(MemoryReplayRequest("chat", limit=0)))


def test_every_look_leaves_its_one_row(talk: Talk) -> None:
    talk.commit("t1", "Hello.", "Hi!")
    talk.replay()
    talk.run(talk.operations.export_transcript(MemoryTranscriptExportRequest(CHAT)))
    talk.run(talk.operations.replay())
    talk.run(talk.operations.repair_transcript())
    assert [(row.action, row.record_count) for row in talk.trail()[1:]] == [
        (Action.REPLAY_TRANSCRIPT, 2),
        (Action.EXPORT_TRANSCRIPT, 2),
        (Action.REPLAY, 1),
        (Action.REPAIR_TRANSCRIPT, 1),
    ]
