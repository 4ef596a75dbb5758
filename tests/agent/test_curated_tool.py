"""The `memory` tool: add, replace and remove entries, and the answers to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest
from curation import Curated

from holdfast.agent.curated import memory_tool


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    return Curated(tmp_path / "memories")


def test_what_is_added_is_in_its_file_and_in_the_next_snapshot(curated: Curated) -> None:
    before = curated.snapshot()
    answer = curated("add", "user", "Ana lives in Lisbon.")
    assert answer == {
        "success": True, "target": "user", "message": "Added.", "entries": ["Ana lives in Lisbon."],
        "usage": "1% — 20 of 1,375 characters",
    }  # fmt: skip
    assert curated("add", content="The tests run with make check.")["target"] == "memory"
    assert curated.text("USER.md") == "Ana lives in Lisbon.\n"
    assert (before.memory, before.user, before.block) == ((), (), "")
    now = curated.snapshot()
    assert (now.memory, now.user) == (("The tests run with make check.",), ("Ana lives in Lisbon.",))
    assert "- Ana lives in Lisbon.\n" in now.block
    assert "- The tests run with make check." in now.block


def test_entries_are_divided_by_a_line_with_a_section_mark(curated: Curated) -> None:
    for number in range(3):
        curated("add", "memory", f"  Fact {number},\nin two lines.\n")
    assert curated.text() == "\n§\n".join(f"Fact {number},\nin two lines." for number in range(3)) + "\n"


def test_an_entry_is_replaced_and_removed_by_a_piece_that_only_it_has(curated: Curated) -> None:
    for content in ("Ana lives in Lisbon.", "Ana works at sea.", "Rex is a dog."):
        curated("add", "memory", content)
    replaced = curated("replace", "memory", "Ana lives in Porto.", "in Lisbon")
    assert (replaced["message"], replaced["entries"][0]) == ("Replaced.", "Ana lives in Porto.")
    removed = curated("remove", "memory", old_text="Rex")
    assert (removed["message"], removed["entries"]) == ("Removed.", ["Ana lives in Porto.", "Ana works at sea."])


def test_a_piece_that_several_entries_have_is_refused_with_previews_of_eighty_characters(curated: Curated) -> None:
    for content in ("Ana lives in Lisbon, " + "a" * 100, "Ana works at sea."):
        curated("add", "memory", content)
    answer = curated("remove", "memory", old_text="Ana")
    assert answer["success"] is False
    assert "'Ana lives in Lisbon, " + "a" * 58 + "…'" in answer["error"]
    assert "'Ana works at sea.'" in answer["error"]
    assert len(answer["entries"]) == 2


def test_of_identical_entries_the_first_is_meant(curated: Curated) -> None:
    curated.folder.mkdir()
    (curated.folder / "MEMORY.md").write_text("Twice.\n§\nOnce.\n§\nTwice.\n")
    assert curated("remove", "memory", old_text="Twice")["entries"] == ["Once.", "Twice."]


def test_a_piece_that_is_nowhere_is_refused_with_the_entries_that_there_are(curated: Curated) -> None:
    curated("add", "memory", "Rex is a dog.")
    answer = curated("replace", "memory", "Rex is a cat.", "Tom")
    assert (answer["success"], answer["entries"]) == (False, ["Rex is a dog."])
    assert "MEMORY.md" in answer["error"]


def test_adding_what_is_there_is_a_success_that_changes_nothing(curated: Curated) -> None:
    curated("add", "memory", "Rex is a dog.")
    written = (curated.folder / "MEMORY.md").stat()
    answer = curated("add", "memory", " Rex is a dog.\n")
    assert (answer["success"], answer["message"], answer["entries"]) == (
        True, "It was there already.", ["Rex is a dog."],
    )  # fmt: skip
    assert (curated.folder / "MEMORY.md").stat().st_ino == written.st_ino


def test_the_limit_counts_the_joined_entries_and_what_is_over_it_is_refused_whole(tmp_path: Path) -> None:
    curated = Curated(tmp_path, memory_chars=23, user_chars=5)
    assert curated("add", "memory", "a" * 10)["success"]
    answer = curated("add", "memory", "b" * 11)
    assert answer["success"] is False
    assert "24 characters" in answer["error"]
    assert (answer["entries"], answer["usage"]) == (["a" * 10], "43% — 10 of 23 characters")
    assert curated("add", "memory", "b" * 10)["usage"] == "100% — 23 of 23 characters"
    assert curated("add", "user", "sixsix")["success"] is False
    assert not (tmp_path / "USER.md").exists()


def test_a_batch_is_measured_by_its_end_alone(tmp_path: Path) -> None:
    curated = Curated(tmp_path, memory_chars=20)
    curated("add", "memory", "a" * 20)
    answer = curated(
        operations=[{"action": "add", "content": "b" * 18}, {"action": "remove", "old_text": "aaa"}], target="memory"
    )
    assert (answer["message"], answer["entries"]) == ("Added, Removed.", ["b" * 18])


def test_a_batch_of_which_one_change_fails_changes_nothing(curated: Curated) -> None:
    curated("add", "memory", "Rex is a dog.")
    answer = curated(
        operations=[
            {"action": "add", "content": "One."},
            {"action": "add", "target": "user", "content": "Two."},
            {"action": "remove", "old_text": "nowhere"},
        ]
    )
    assert answer["success"] is False
    assert answer["entries"] == {"memory": ["Rex is a dog."], "user": []}
    assert curated.snapshot().user == ()


def test_a_batch_may_change_both_files(curated: Curated) -> None:
    answer = curated(
        operations=[{"action": "add", "content": "One."}, {"action": "add", "target": "user", "content": "Two."}]
    )
    assert answer == {
        "success": True, "target": "memory and user", "message": "Added (2).",
        "entries": {"memory": ["One."], "user": ["Two."]},
        "usage": {"memory": "0% — 4 of 2,200 characters", "user": "0% — 4 of 1,375 characters"},
    }  # fmt: skip
    assert sorted(path.name for path in curated.folder.iterdir()) == [".lock", "MEMORY.md", "USER.md"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    {
        "nothing": ({}, "action"),
        "an action that is none": ({"action": "forget"}, "action"),
        "a target that is none": ({"action": "add", "target": "diary", "content": "x"}, "target"),
        "add without content": ({"action": "add"}, "content"),
        "add of blanks": ({"action": "add", "content": " \n"}, "content"),
        "add with an old text": ({"action": "add", "content": "x", "old_text": "y"}, "old_text"),
        "replace without an old text": ({"action": "replace", "content": "x"}, "old_text"),
        "remove with a content": ({"action": "remove", "content": "x", "old_text": "y"}, "content"),
        "a NUL": ({"action": "add", "content": "a\0b"}, "content"),
        "a lone surrogate": ({"action": "add", "content": "a\ud800b"}, "content"),
        "the mark between entries": ({"action": "add", "content": "One.\n § \nTwo."}, "content"),
        "operations and an action": ({"content": "x", "operations": [{"action": "remove"}]}, "operations"),
        "an operation that is none": ({"operations": [{"action": "add", "contents": "x"}]}, "operations"),
        "a bad one among operations": ({"operations": [{"action": "add"}]}, "operations, 1: content"),
        "too many operations": ({"operations": [{"action": "add", "content": "x"}] * 51}, "operations"),
    }.values(),
)  # fmt: skip
def test_what_cannot_be_done_is_answered_with_the_field_that_is_wrong(
    curated: Curated, arguments: dict[str, Any], named: str
) -> None:
    answer = curated(**arguments)
    assert answer["success"] is False
    assert answer["error"].startswith(f"{named}: ") or named in answer["error"].split(":")[0]
    assert not curated.folder.exists()


def test_the_schema_can_be_made_from_the_signature(curated: Curated) -> None:
    tool = memory_tool(curated.service)
    schema = pydantic.TypeAdapter(tool).json_schema()
    assert tool.__name__ == "memory"
    assert "later conversations" in (tool.__doc__ or "")
    assert list(schema["properties"]) == ["action", "target", "content", "old_text", "operations"]
    assert schema["properties"]["target"]["enum"] == ["memory", "user"]
    assert all("description" in each for each in schema["properties"].values())
    assert schema["$defs"]["MemoryOperation"]["required"] == ["action"]
