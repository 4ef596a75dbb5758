"""The files of curated memory on disk: edited by hand, broken, linked, unreadable, too large."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from curation import Curated

from faults import disk
from holdfast.agent.curated import MemoryStore
from holdfast.errors import ConfigurationError


@pytest.fixture
def curated(tmp_path: Path) -> Curated:
    (tmp_path / "memories").mkdir()
    return Curated(tmp_path / "memories", memory_chars=200, user_chars=100)


def copies(curated: Curated) -> list[Path]:
    return [curated.folder / name for name in curated.names() if ".bak." in name]


# --- edits by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    {
        "no end of the last line": "One.\n§\nTwo,\nin two lines.",
        "blank lines": "\n\nOne.\n\n§\n\n\nTwo,\nin two lines.\n\n\n",
        "blanks around the mark": "One.\n  §\t\nTwo,\nin two lines.\n",
        "ends of lines as on Windows": "One.\r\n§\r\nTwo,\r\nin two lines.\r\n",
        "a mark too many": "§\nOne.\n§\n§\nTwo,\nin two lines.\n§\n",
        "a byte order mark": "\ufeffOne.\n§\nTwo,\nin two lines.\n",
    }.values(),
)
def test_what_people_write_by_hand_is_read_and_written_on(curated: Curated, text: str) -> None:
    (curated.folder / "MEMORY.md").write_bytes(text.encode())
    assert curated.snapshot().memory == ("One.", "Two,\nin two lines.")
    assert curated("add", "memory", "Three.")["success"]
    assert curated.text() == "One.\n§\nTwo,\nin two lines.\n§\nThree.\n"
    assert not copies(curated)


@pytest.fixture
def editor(curated: Curated) -> Iterator[Callable[[str], None]]:
    """Save MEMORY.md by hand when this process is about to write its new text beside the old one."""
    waiting: list[str] = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if waiting and event == "open" and str(arguments[0]) == str(curated.folder / ".new"):
            (curated.folder / "MEMORY.md").write_text(waiting.pop())

    sys.addaudithook(watch)
    yield waiting.append
    waiting.clear()


@pytest.mark.parametrize("targets", [["memory"], ["memory", "user"]])
def test_what_somebody_saves_while_it_is_being_written_is_not_lost(
    curated: Curated, editor: Callable[[str], None], targets: list[str]
) -> None:
    assert curated("add", "memory", "One.")["success"]
    editor("By hand.\n")
    operations = [{"action": "add", "target": target, "content": "Two."} for target in targets]
    answer = curated(operations=operations)
    assert answer["success"] is False
    assert "MEMORY.md was edited by hand just now" in answer["error"]
    assert curated.text() == "By hand.\n"
    assert ".new" not in curated.names()
    assert curated("add", "memory", "Two.")["entries"] == ["By hand.", "Two."]


def test_a_section_mark_within_a_line_divides_nothing(curated: Curated) -> None:
    assert curated("add", "memory", "See § 14.\n§ 15 too.")["entries"] == ["See § 14.\n§ 15 too."]
    assert curated.snapshot().memory == ("See § 14.\n§ 15 too.",)


BROKEN = {
    "not UTF-8": (b"One.\n\xa7\nTwo.\n", "not UTF-8 at byte 5"),
    "binary": (b"One.\n\xc2\xa7\n\x00\x01\x02\n", "control character in line 3"),
    "an unresolved merge": (b"<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> other\n", "unresolved merge in line 1"),
    "an entry over the limit": (b"One.\n\xc2\xa7\n" + b"a" * 201, "entry 2 alone has 201 characters"),
    "far too large": (b"a" * 1_048_577, "larger than 1,048,576 bytes"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_cannot_be_understood_is_neither_shown_nor_written_to(curated: Curated, broken: str) -> None:
    content, why = BROKEN[broken]
    (curated.folder / "MEMORY.md").write_bytes(content)
    answer = curated("add", "memory", "New.")
    assert answer["success"] is False
    assert why in answer["error"]
    assert "by hand" in answer["error"]
    assert (curated.folder / "MEMORY.md").read_bytes() == content
    seen = curated.snapshot()
    assert seen.memory == ()
    [problem] = seen.problems
    assert why in problem
    assert problem in seen.block
    assert curated("add", "user", "The other file is none the worse.")["success"]


def test_a_copy_of_what_cannot_be_understood_is_kept_once_per_content(curated: Curated) -> None:
    for content in (b"\xff", b"\xff", b"\xfe", b"\xff"):
        (curated.folder / "MEMORY.md").write_bytes(content)
        answer = curated("add", "memory", "New.")
        assert any(copy.name in answer["error"] for copy in copies(curated))
    assert sorted(copy.read_bytes() for copy in copies(curated)) == [b"\xfe", b"\xff"]
    assert all(stat.S_IMODE(copy.stat().st_mode) == 0o600 for copy in copies(curated))


def test_of_a_batch_over_both_files_nothing_is_written_if_one_of_them_is_broken(curated: Curated) -> None:
    (curated.folder / "USER.md").write_bytes(b"\xff")
    answer = curated(
        operations=[{"action": "add", "content": "One."}, {"action": "add", "target": "user", "content": "Two."}]
    )
    assert answer["success"] is False
    assert not (curated.folder / "MEMORY.md").exists()


def test_a_file_that_grew_over_its_limit_by_hand_is_shown_in_part_and_can_only_shrink(curated: Curated) -> None:
    entries = [f"{number:02} {'a' * 47}" for number in range(6)]
    text = "\n§\n".join(entries)
    (curated.folder / "MEMORY.md").write_text(text)
    seen = curated.snapshot()
    assert seen.memory == tuple(entries[:3])
    assert seen.problems == ("MEMORY.md is over its limit of 200 characters, so its last entries (3) are not used.",)
    assert "05 aaa" not in seen.block
    refused = curated("remove", "memory", old_text="00")
    assert (refused["success"], refused["usage"]) == (False, "157% — 315 of 200 characters")
    assert curated.text() == text
    assert curated(operations=[{"action": "remove", "old_text": f"0{number} a"} for number in range(3)])["success"]
    assert curated.snapshot().memory == tuple(entries[3:])
    assert [copy.read_text() for copy in copies(curated)] == [text]


# --- links, file types and modes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_neither_read_nor_written_through(curated: Curated, tmp_path: Path, there: bool) -> None:
    outside = tmp_path / "id_rsa"
    if there:
        outside.write_text("the private key")
    (curated.folder / "MEMORY.md").symlink_to(outside)
    seen = curated.snapshot()
    assert seen.memory == ()
    assert "private key" not in seen.block
    answer = curated("add", "memory", "New.")
    assert answer["success"] is False
    assert "it is a link" in answer["error"]
    assert (outside.read_text() == "the private key") if there else not outside.exists()
    assert (curated.folder / "MEMORY.md").is_symlink()
    assert not copies(curated)


def test_a_link_for_the_lock_is_not_followed(curated: Curated, tmp_path: Path) -> None:
    (curated.folder / ".lock").symlink_to(tmp_path / "elsewhere")
    assert curated("add", "memory", "New.")["success"] is False
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_where_the_new_text_is_written_is_not_followed(curated: Curated, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("untouched")
    (curated.folder / ".new").symlink_to(tmp_path / "elsewhere")
    assert curated("add", "memory", "New.")["success"]
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert not (curated.folder / "MEMORY.md").is_symlink()


def test_a_pipe_or_a_folder_in_the_place_of_a_file_holds_nobody_up(curated: Curated) -> None:
    os.mkfifo(curated.folder / "MEMORY.md")
    (curated.folder / "USER.md").mkdir()
    assert len(curated.snapshot().problems) == 2
    assert curated("add", "memory", "New.")["success"] is False
    assert curated("add", "user", "New.")["success"] is False


def test_new_files_are_for_their_owner_alone_and_old_ones_keep_their_mode(tmp_path: Path) -> None:
    curated = Curated(tmp_path / "new" / "memories")
    before = os.umask(0)
    try:
        curated("add", "memory", "One.")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (curated.folder, curated.folder.parent)} == {0o700}
    assert {stat.S_IMODE((curated.folder / name).stat().st_mode) for name in curated.names()} == {0o600}
    (curated.folder / "MEMORY.md").chmod(0o644)
    curated("add", "memory", "Two.")
    assert stat.S_IMODE((curated.folder / "MEMORY.md").stat().st_mode) == 0o644


def test_reading_makes_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    curated = Curated(tmp_path / "memories")
    assert curated.snapshot().block == ""
    assert not curated.folder.exists()


def test_a_full_disk_is_told_of_and_what_was_there_stays(tmp_path: Path) -> None:
    with disk.of_size(1) as folder:
        curated = Curated(folder)
        curated("add", "memory", "One.")
        with pytest.raises(OSError, match="No space left"):
            (folder / "filler").write_bytes(bytes(2 << 20))
        answer = curated("add", "memory", "Two.")
        assert answer["success"] is False
        assert "No space left" in answer["error"]
        assert answer["entries"] == ["One."]
        (folder / "filler").unlink()
        assert curated("add", "memory", "Three.")["entries"] == ["One.", "Three."]


# --- interrupted changes of both files --------------------------------------------------------------------------------


def interrupted(curated: Curated, *, memory: str, user: str) -> None:
    """Write the state after a crash that came after the change was recorded, before any file was replaced."""
    noted = {
        f"{name}.md": {"was": sha256(curated.text(f"{name}.md").encode()).hexdigest(), "text": text}
        for name, text in (("MEMORY", memory), ("USER", user))
    }
    (curated.folder / ".pending.json").write_text(json.dumps(noted))


def test_an_interrupted_change_is_finished_by_whoever_comes_next(curated: Curated) -> None:
    for target in ("memory", "user"):
        curated("add", target, "Old.")
    interrupted(curated, memory="New.\n", user="New too.\n")
    assert curated.snapshot().memory == ("New.",)
    assert curated.texts() == ("New.\n", "New too.\n")
    assert ".pending.json" not in curated.names()


def test_an_interrupted_change_does_not_undo_an_edit_by_hand_that_came_after_it(curated: Curated) -> None:
    for target in ("memory", "user"):
        curated("add", target, "Old.")
    interrupted(curated, memory="New.\n", user="New too.\n")
    (curated.folder / "MEMORY.md").write_text("By hand.\n")
    assert (curated.snapshot().memory, curated.snapshot().user) == (("By hand.",), ("New too.",))


def test_a_note_of_a_change_that_makes_no_sense_is_no_obstacle(curated: Curated) -> None:
    for nonsense in ("{", "[]", '{"MEMORY.md": 1, "USER.md": 2}', '{"../evil.md": {"was": "", "text": "x"}}'):
        (curated.folder / ".pending.json").write_text(nonsense)
        assert curated.snapshot().problems == ()
        assert curated("add", "memory", f"After {len(nonsense)}.")["success"]
    assert not (curated.folder.parent / "evil.md").exists()


def test_a_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        MemoryStore(tmp_path, memory_chars=0)
