"""`platform`: each profile's snapshot is a golden file; the command needs no store and creates none.

To accept a change: `HOLDFAST_REFRESH_GOLDEN=1 pytest tests/cli/test_platform.py`, then read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.domain.profiles import PROFILES

from .conftest import Holdfast

GOLDEN = Path(__file__).parent / "golden" / "snapshots"
# Read before the fixtures clear the settings.
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))


def pinned(file: str, printed: str) -> str:
    golden = GOLDEN / file
    if REFRESH:
        golden.write_text(printed, "utf-8")
    return golden.read_text("utf-8")


@pytest.mark.parametrize("name", PROFILES)
def test_the_snapshot_of_a_profile_is_what_it_was(holdfast: Holdfast, name: str) -> None:
    ran = holdfast("platform", "capability-snapshot", "--profile", name, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == pinned(f"{name}.json", ran.out)


def test_a_snapshot_for_people_is_what_it_was(holdfast: Holdfast) -> None:
    ran = holdfast("platform", "capability-snapshot", "--profile", "server-linux-memory-gateway")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == pinned("server-linux-memory-gateway.txt", ran.out)


def test_there_is_no_golden_file_of_a_profile_that_is_gone() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(PROFILES)


def test_a_profile_may_be_named_with_its_prefix(holdfast: Holdfast) -> None:
    plain = holdfast("platform", "capability-snapshot", "--profile", "esp-embedded-sdk", "--json")
    prefixed = holdfast("platform", "capability-snapshot", "--profile", "profile-esp-embedded-sdk", "--json")
    assert prefixed == plain
    assert plain.json["profile"] == "esp-embedded-sdk"


def test_without_a_profile_it_is_the_full_one(holdfast: Holdfast) -> None:
    assert holdfast("platform", "capability-snapshot", "--json").json["profile"] == "server-linux-dev-full"


def test_a_snapshot_says_why_something_is_hidden(holdfast: Holdfast) -> None:
    told = holdfast("platform", "capability-snapshot", "--profile", "esp-embedded-sdk").out.splitlines()
    reasons = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told if line.startswith("  ")}
    assert reasons["store_sqlite"] == ["no", "not in this profile"]
    assert reasons["store_in_memory"] == ["yes"]


def test_an_unknown_profile_is_refused_with_the_names_of_all(holdfast: Holdfast) -> None:
    ran = holdfast("platform", "capability-snapshot", "--profile", "mainframe")
    assert (ran.code, ran.out) == (2, "")
    assert "'mainframe'" in ran.err
    assert all(name in ran.err for name in PROFILES)
    as_json = holdfast("platform", "capability-snapshot", "--profile", "mainframe", "--json")
    assert (as_json.code, as_json.error["code"]) == (2, "invalid_input")


def test_the_profiles_are_listed_with_their_budgets(holdfast: Holdfast) -> None:
    told = holdfast("platform", "profiles")
    assert (told.code, told.err) == (0, "")
    rows = [line.split() for line in told.out.splitlines() if "-" in line.split()[0]]
    assert [row[0] for row in rows] == list(PROFILES)
    assert rows[-1][1:] == "standalone 80,000 32,768 128 MiB 256 KiB 32,768".split()


def test_the_profiles_as_json_have_everything_that_follows_from_a_budget(holdfast: Holdfast) -> None:
    listed = holdfast("platform", "profiles", "--json").json["profiles"]
    assert [one["name"] for one in listed] == list(PROFILES)
    device = listed[0]
    assert device["backends"] == ["in_memory", "embedded"]
    assert device["without"] == [
        "agent_skill_directories", "agent_tool_registries", "benchmark_gate", "compact_proposal_sandbox",
        "full_proposal_sandbox", "full_replay_suite", "memory_harness", "proposal_submission",
    ]  # fmt: skip
    assert device["budget"]["http_body_bytes"] == 16_384
    assert device["transcript"]["host_refs_per_turn"] == 2
    assert device["recent_messages"] == 8


def test_nothing_is_created_and_no_setting_is_needed(
    holdfast: Holdfast, quiet_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", str(quiet_environment / "nowhere" / "memory.db"))
    monkeypatch.setenv("HOLDFAST_BUSY_SECONDS", "never")
    assert holdfast("platform", "capability-snapshot").code == 0
    assert holdfast("platform", "profiles").code == 0
    assert list(quiet_environment.iterdir()) == []
