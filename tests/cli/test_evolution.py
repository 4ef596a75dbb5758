"""`evolution`: proposals reviewed from the command line, with a measurement on a copy before an approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from blank import blank
from holdfast.sdk import (
    GovernanceNoteCandidate,
    MemoryProposal,
    MemoryRuntime,
    MemoryWriteRequest,
    ProceduralMemoryCandidate,
    RuntimeSkillWrite,
)

from .conftest import Holdfast

PROFILE = "server-linux-dev-full"
SHIP = RuntimeSkillWrite("Tag the commit.\nPublish the package.", title="Ship", topic="release", summary="Tag first.")
BAKE = RuntimeSkillWrite("Mix the flour.\nHeat the oven.", title="Bake", topic="bread", summary="Mix it.")
NOTE = GovernanceNoteCandidate("runtime_skill__ship", "Retire it.\x1b[31m")


@pytest.fixture
def proposed(quiet_environment: Path) -> str:
    """A store in which the default owner has a skill, and a proposal of each kind."""
    path = str(blank(quiet_environment / "memory.db"))
    builder = MemoryRuntime.builder().store(path).without_worker()
    with builder.identity(subject_id="owner-default", agent_id="agent-main").open() as runtime:
        runtime.write(MemoryWriteRequest.procedural(SHIP))
        for name, candidate in (("bake-1", ProceduralMemoryCandidate(BAKE)), ("note-1", NOTE)):
            runtime.propose(
                MemoryProposal(name, PROFILE, (candidate,), ("ticket 7", "runtime_skill__ship"), "Why not.")
            )
    return path


def test_proposals_are_listed_and_shown_with_their_evidence(proposed: str, holdfast: Holdfast) -> None:
    assert [each["proposal_id"] for each in holdfast("evolution", "list", "--json").json["proposals"]] == [
        "note-1",
        "bake-1",
    ]
    assert "bake-1" in holdfast("evolution", "list").out
    shown = holdfast("evolution", "show", "bake-1").out
    assert "1. procedural_memory: accepted\n   writes Bake\n" in shown
    assert "rests on ticket 7 (not known here)\nrests on runtime_skill__ship\n" in shown
    assert "\x1b" not in holdfast("evolution", "show", "note-1").out
    assert "There are no proposals." in holdfast("evolution", "list", "--subject", "ben").out


def test_an_approval_shows_what_was_measured_and_writes(proposed: str, holdfast: Holdfast) -> None:
    refused = holdfast("evolution", "approve", "bake-1")
    assert refused.code == 2
    assert "--yes" in refused.err
    ran = holdfast("evolution", "approve", "bake-1", "--reason", "tried", "--yes")
    assert ran.code == 0
    assert "Measured on a copy of this memory" in ran.out
    assert "1 known skill: passed\n  recall     before 1.000  after 1.000\n" in ran.out
    assert ran.out.endswith("runtime_skill__bake written.\n")
    again = holdfast("evolution", "approve", "bake-1", "--yes")
    assert (again.code, again.out) == (1, "Not measured: there is nothing to write.\n")
    assert again.err == "Nothing was written: proposal_already_approved.\n"
    listed = holdfast("evolution", "list", "--include-decided", "--json").json["proposals"]
    assert {each["proposal_id"]: each["status"] for each in listed} == {"bake-1": "approved", "note-1": "pending"}
    assert "approved by operator:local: tried" in holdfast("evolution", "show", "bake-1").out


def test_a_note_is_rejected_after_it_was_followed(proposed: str, holdfast: Holdfast) -> None:
    ran = holdfast("evolution", "approve", "note-1", "--yes", "--json")
    assert (ran.code, ran.json["trial"]) == (1, None)
    assert ran.json["report"]["reason"] == "governance_note_requires_future_sdk_operation"
    assert holdfast("evolution", "reject", "note-1", "--reason", "disabled").out == "note-1 rejected.\n"
    assert holdfast("evolution", "reject", "note-1").err == "Nothing was changed: proposal_already_rejected.\n"
    assert holdfast("evolution", "reject", "nothing").code == 3
    assert holdfast("evolution", "approve", "nothing", "--yes").code == 3


def test_a_profile_without_the_sandbox_says_that_nothing_was_measured(proposed: str, holdfast: Holdfast) -> None:
    ran = holdfast("evolution", "approve", "bake-1", "--yes", "--profile", "linux-device-standalone-memory", "--json")
    assert ran.json["report"]["reason"] == "proposal_validation_failed"
    assert "full_proposal_sandbox" in ran.json["not_measured"]
