"""`transcript`: show a conversation, change the lifecycle of its turns, and check it, from the command line."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import pytest

from holdfast.app import open_engine
from holdfast.domain.access import LOCAL_OPERATOR
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity, MemoryScope
from holdfast.domain.profiles import DEFAULT_PROFILE, profile_of
from holdfast.domain.runtime_api.transcripts import MemoryTranscriptCommitRequest, TranscriptTurnInput, TurnMessage
from holdfast.domain.transcript_turns import HostOpaqueRef, HostRefVisibility, Relation
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.settings import Settings
from postgres import ON_POSTGRES
from serving import OPERATOR_KEY, served

from .conftest import Holdfast
from .terminal import at_a_terminal

REF = HostOpaqueRef("crm", "ticket", "T-1", Relation.ORIGIN, HostRefVisibility.HOST_UI, "Ana's complaint")
ANA = ("--subject", "ana", "--conversation", "c1")


async def said(location: str, turns: int) -> None:
    engine = await open_engine(location, Settings(), embedder="fake", work=False)
    profile = profile_of(DEFAULT_PROFILE)
    governance = Governance(MemoryIdentity(subject_id="ana"), profile, catalogue(profile))
    runtime = TranscriptOperations(engine, LOCAL_OPERATOR, governance)
    try:
        for number in range(1, turns + 1):
            messages = (
                TurnMessage(f"Question {number}\x1b[2J"),
                TurnMessage("Inner life.", "assistant", authority="private_garden_internal"),
            )
            turn = TranscriptTurnInput(f"t{number}", messages, MemoryScope(chat_id="chat", conversation_id="c1"))
            await runtime.commit_transcript(MemoryTranscriptCommitRequest(turn, (REF,)))
    finally:
        await engine.close()


@pytest.fixture(params=["file", ON_POSTGRES])
def talked(request: pytest.FixtureRequest, quiet_environment: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A conversation of three turns."""
    place = str(quiet_environment / "memory.db")
    if request.param == "postgres":
        place = request.getfixturevalue("migrated_url")
    monkeypatch.setenv("HOLDFAST_STORE", place)
    asyncio.run(said(place, 3))
    return place


def test_a_replay_shows_what_its_view_may(talked: str, holdfast: Holdfast) -> None:
    shown = holdfast("transcript", "replay", *ANA)
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0] == "transcript:default/local/c1 as host_ui"
    assert lines[2].startswith("1  t1  active  2")
    assert lines[3] == "  user       Question 1\\x1b[2J"
    assert lines[4] == "  assistant  [withheld: private_authority]"
    assert lines[5] == "  reference  origin crm ticket T-1: Ana's complaint"
    assert "Inner life." not in shown.out
    assert "Inner life." in holdfast("transcript", "replay", *ANA, "--view", "raw_owner_only").out


def test_pages_go_on_where_the_one_before_ended(talked: str, holdfast: Holdfast) -> None:
    first = holdfast("transcript", "replay", *ANA, "--limit", "2")
    assert first.out.splitlines()[-1] == "There is more: --cursor 2:t2"
    second = holdfast("transcript", "replay", *ANA, "--limit", "2", "--cursor", "2:t2")
    assert "t3" in second.out
    assert "There is more" not in second.out
    everything = holdfast("transcript", "replay", *ANA, "--limit", "1", "--all")
    assert [line for line in everything.out.splitlines() if "  active  " in line and line[0] in "123"]
    assert everything.out.count("  active  ") == 3
    page = holdfast("transcript", "replay", *ANA, "--limit", "2", "--json").json
    assert (page["next_cursor"], page["has_more"], len(page["slice"]["turns"])) == ("2:t2", True, 2)


def test_a_chat_stands_for_its_conversation(talked: str, holdfast: Holdfast) -> None:
    shown = holdfast("transcript", "replay", "--subject", "ana", "--chat", "chat")
    assert shown.out.startswith("transcript:default/local/c1 as host_ui")


def test_an_export_leaves_labels_and_private_words_behind(talked: str, holdfast: Holdfast) -> None:
    exported = holdfast("transcript", "export", *ANA, "--json")
    assert exported.json["citations"][0] == "transcript:default/local/c1#turn=t1"
    assert exported.json["view"] == "export"
    assert not [word for word in ("Inner life", "complaint") if word in exported.out]
    assert "T-1" not in holdfast("transcript", "export", *ANA).out


def test_turns_are_masked_restored_and_deleted(talked: str, holdfast: Holdfast) -> None:
    masked = holdfast("transcript", "lifecycle", "mask", *ANA, "--turn", "t1", "--reason", "asked to")
    assert (masked.code, masked.out) == (0, "1 turn (2 messages) masked.\n")
    assert "[withheld: lifecycle_masked]" in holdfast("transcript", "replay", *ANA).out
    again = holdfast("transcript", "lifecycle", "mask", *ANA, "--turn", "t1", "--reason", "asked to")
    assert again.out.startswith("Nothing was changed: there is no such turn, or it is masked already.")
    assert holdfast("transcript", "lifecycle", "restore", *ANA, "--reason", "sorry").out.endswith("restored.\n")
    deleted = holdfast("transcript", "lifecycle", "delete_raw", *ANA, "--reason", "asked to", "--yes", "--json")
    assert (deleted.json["affected_turns"], deleted.json["changed"]) == (3, True)
    refused = holdfast("transcript", "lifecycle", "restore", *ANA, "--reason", "sorry")
    assert refused.out == "Nothing was changed.\n3 turns cannot be restored: the state does not allow it.\n"
    assert "Question" not in holdfast("transcript", "replay", *ANA, "--view", "raw_owner_only").out


def test_deleting_needs_somebody_to_ask_or_a_yes(talked: str, holdfast: Holdfast) -> None:
    refused = holdfast("transcript", "lifecycle", "delete_raw", *ANA, "--reason", "asked to")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "Question 1" in holdfast("transcript", "replay", *ANA).out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_deleting_shows_what_it_will_touch_and_asks(quiet_environment: Path, holdfast: Holdfast) -> None:
    asyncio.run(said("memory.db", 2))
    delete = ("transcript", "lifecycle", "delete_raw", "--reason", "asked to")
    with at_a_terminal(quiet_environment, *delete, "--conversation", "c1") as terminal:
        assert "[y/N]" not in terminal.see("Give --subject or --agent to name its owner")
        assert terminal.end() == 0
    for answer, code, left in (("n\n", 1, True), ("y\n", 0, False)):
        with at_a_terminal(quiet_environment, *delete, *ANA) as terminal:
            assert "2 turns (4 messages) would be deleted." in terminal.see("[y/N]: ")
            assert terminal.leave(answer) == code
        assert ("Question 1" in holdfast("transcript", "replay", *ANA).out) is left


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("replay", *ANA, "--view", "everything"), "raw_owner_only"),
        (("replay", *ANA, "--cursor", "9:t9"), "cursor_not_found"),
        (("replay", "--subject", "ana"), "--conversation NAME"),
        (("replay", *ANA, "--limit", "0"), "limit"),
        (("replay", *ANA, "--profile", "none"), "profile"),
        (("lifecycle", "burn", *ANA, "--reason", "so"), "TRANSITION: must be one of"),
        (("lifecycle", "mask", *ANA, "--reason", " "), "--reason: is empty; give"),
        (("lifecycle", "mask", *ANA), "--reason"),
        (("replay", *ANA, "--json", "--all"), "next_cursor"),
    ],
)
def test_what_cannot_be_done_is_said(talked: str, holdfast: Holdfast, arguments: tuple[str, ...], told: str) -> None:
    refused = holdfast("transcript", *arguments)
    assert refused.code == 2
    assert told in refused.err
    assert "Traceback" not in refused.err


def test_who_forgets_to_say_whose_a_conversation_is_is_told(talked: str, holdfast: Holdfast) -> None:
    nobodys = ("--conversation", "c1")
    masking = ("lifecycle", "mask", *nobodys, "--reason", "asked to")
    for arguments in (("replay", *nobodys), masking, ("repair", *nobodys)):
        assert "Give --subject or --agent to name its owner" in holdfast("transcript", *arguments).out
    theirs = holdfast("transcript", "replay", "--subject", "ana", "--conversation", "c2")
    assert "--app and --project; a gateway's are `default`" in theirs.out
    place = ("--subject", "ana", "--conversation", "c1", "--app", "shop")
    assert holdfast("transcript", "replay", *place).out.endswith("There are no turns.\n")
    assert holdfast("add", "A parcel.", *place).code == 0
    assert "A parcel." in holdfast("transcript", "replay", *place).out


def test_a_whole_transcript_passes_the_check(talked: str, holdfast: Holdfast) -> None:
    checked = holdfast("transcript", "repair", *ANA)
    assert (checked.code, checked.out) == (0, "0 issues in 3 turns and 0 references.\n")


def test_a_broken_one_does_not(quiet_environment: Path, holdfast: Holdfast) -> None:
    asyncio.run(said("memory.db", 3))
    with sqlite3.connect("memory.db") as broken:
        broken.execute("UPDATE turns SET state = 'lost' WHERE sequence = 2")
    checked = holdfast("transcript", "repair", *ANA)
    assert checked.code == 1
    assert checked.out.startswith("corrupt_record")
    assert holdfast("transcript", "repair", *ANA, "--json").json["fail_closed"] is True


def test_there_must_be_a_store_and_it_must_be_here(quiet_environment: Path, holdfast: Holdfast) -> None:
    missing = holdfast("transcript", "replay", *ANA)
    assert missing.code != 0
    assert "no store" in missing.err
    assert not Path("memory.db").exists()
    with served(str(quiet_environment / "served.db")) as server:
        far = holdfast("transcript", "replay", *ANA, "--store", server.url)
        assert far.code != 0
        assert "server" in far.err
        assert OPERATOR_KEY not in far.err
