"""`replay`: runs, records and compares fixtures; it exits with 1 if a gate is red."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blank import blank

from .conftest import Holdfast

COMMITTED = Path(__file__).parents[1] / "replay"
STALE = COMMITTED / "fixtures" / "skill-stale.json"


def test_without_a_file_the_harness_runs(holdfast: Holdfast, quiet_environment: Path) -> None:
    ran = holdfast("replay", "run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["passed  sdk-memory-harness: 4 operations on in_memory", "1 of 1 passed."]
    assert list(quiet_environment.iterdir()) == []
    assert holdfast("replay", "run", "--profile", "esp-embedded-sdk").code == 4


def test_fixtures_and_benchmarks_run_together(holdfast: Holdfast) -> None:
    ran = holdfast("replay", "run", str(STALE), str(COMMITTED / "benchmarks"), "--json")
    assert ran.code == 0
    assert ran.json["passed"]
    assert [report.get("fixture_id") or report["suite"] for report in ran.json["reports"]] == [
        "skill-stale",
        "persona_governance",
        "recall",
    ]


def test_a_red_gate_names_the_stage_and_exits_with_1(holdfast: Holdfast, quiet_environment: Path) -> None:
    document = json.loads(STALE.read_text("utf-8"))
    document["expected"]["state_fingerprint"] = "0" * 64
    Path("wrong.json").write_text(json.dumps(document), "utf-8")
    ran = holdfast("replay", "run", "wrong.json")
    assert ran.code == 1
    assert "FAILED  skill-stale" in ran.out
    assert "state_fingerprint: expected 0000" in ran.out
    assert holdfast("replay", "record", "wrong.json").code == 0
    assert json.loads(Path("wrong.json").read_text("utf-8")) == json.loads(STALE.read_text("utf-8"))


def test_a_fixture_of_another_version_is_refused(holdfast: Holdfast, quiet_environment: Path) -> None:
    Path("old.json").write_text(STALE.read_text("utf-8").replace('"version": 1', '"version": 7'), "utf-8")
    ran = holdfast("replay", "run", "old.json", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.error["code"] == "invalid_fixture"
    assert "must be 1, not 7" in ran.error["message"]
    assert holdfast("replay", "run", "nowhere.json").code == 2
    Path("empty").mkdir()
    assert holdfast("replay", "run", "empty").code == 2


def test_stores_are_compared_once(holdfast: Holdfast, quiet_environment: Path) -> None:
    place = str(blank(quiet_environment / "other.db"))
    ran = holdfast("replay", "compare", str(STALE), "--store", place)
    assert (ran.code, ran.out) == (0, "same     skill-stale\n1 of 1 are the same on 2 stores.\n")
    again = holdfast("replay", "compare", str(STALE), "--store", place)
    assert again.code == 1
    assert "was used before" in again.out


def test_a_conversation_is_recorded_without_its_words(ana: Holdfast, quiet_environment: Path) -> None:
    ran = ana("add", "My boat lies in Setubal.", "--subject", "ana", "--conversation", "boats")
    assert ran.code == 0
    recorded = ana("replay", "record", "boats-talk.json", "--conversation", "boats", "--subject", "ana")
    assert (recorded.code, recorded.out) == (0, "Recorded 1 turn to boats-talk.json.\n")
    text = Path("boats-talk.json").read_text("utf-8").casefold()
    assert not [word for word in ("boat ", "lies", "setubal", "ana") if word in text]
    assert ana("replay", "run", "boats-talk.json").code == 0
    assert ana("replay", "record", "boats-talk.json", "--conversation", "boats", "--subject", "ana").code == 2
    assert ana("replay", "record", "none.json", "--conversation", "boats", "--subject", "ben").code == 3
    assert not Path("none.json").exists()


@pytest.mark.parametrize("command", ["run", "record", "compare"])
def test_a_folder_or_store_that_is_missing_is_a_usage_error(holdfast: Holdfast, command: str) -> None:
    more = ("--store", "x.db") if command == "compare" else ()
    ran = holdfast("replay", command, "missing.json", *more)
    assert ran.code == 2
    assert "missing.json" in ran.err
