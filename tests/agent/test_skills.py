"""Skills: folders are read, invalid ones are reported, and links are not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.agent.skills import activation_text, read_skills
from holdfast.errors import InvalidInput
from holdfast.skill_folders.document import MAX_BODY_BYTES
from holdfast.skill_folders.reader import MAX_SKILLS


def write(root: Path, name: str, text: str | bytes) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def simple(name: str, body: str = "Do it well.") -> str:
    return f"---\nname: {name}\ndescription: For {name}.\n---\n{body}\n"


def problem_of(tmp_path: Path, text: str | bytes, name: str = "letters") -> str:
    write(tmp_path, name, text)
    found = read_skills(tmp_path)
    assert not found.found
    (problem,) = found.problems
    assert problem.folder == name
    return str(problem)


def test_a_skill_is_its_name_its_description_and_its_instructions(tmp_path: Path) -> None:
    write(
        tmp_path,
        "letters",
        "\ufeff---\r\n# how to write\r\nname: letters\r\ndescription: 'Writing letters: when it''s formal.'\r\n"
        'license: "Apache-2.0" # as all\r\nmetadata:\r\n  author: ana\r\n  version: "1.0"\r\n'
        "allowed-tools: Read Write\r\n---\r\n\r\n# Letters\r\n\r\n---\r\n\r\nBegin with the date.\r\n",
    )
    skill = read_skills(tmp_path).get_skill("letters")
    assert skill.description == "Writing letters: when it's formal."
    assert skill.body == "# Letters\n\n---\n\nBegin with the date."
    assert skill.details == {
        "license": "Apache-2.0",
        "metadata": {"author": "ana", "version": "1.0"},
        "allowed-tools": "Read Write",
    }
    assert activation_text(skill).startswith("[Skill: letters]")
    assert activation_text(skill).endswith(skill.body)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("plain words # and a remark", "plain words"),
        ("plain words\n  over lines", "plain words over lines"),
        ("\n  below the key", "below the key"),
        (">\n  folded\n  over lines\n", "folded over lines"),
        (">-\n  folded\n  over lines", "folded over lines"),
        ("|\n  kept\n  apart", "kept\napart"),
        ('"with \\"quotes\\" and \\\\"', 'with "quotes" and \\'),
        ("C# and #1", "C# and"),
    ],
)
def test_a_description_can_be_written_as_yaml_allows(tmp_path: Path, written: str, read: str) -> None:
    write(tmp_path, "letters", f"---\nname: letters\ndescription: {written}\nlicense: MIT\n---\nDo.\n")
    found = read_skills(tmp_path)
    assert found.problems == ()
    assert found.get_skill("letters").description == read
    assert found.get_skill("letters").details == {"license": "MIT"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Just text.", "must begin"),
        ("", "must begin"),
        ("---\nname: letters\ndescription: x", "does not end"),
        ("---\ndescription: x\n---\nDo.", "name"),
        ("---\nname: letters\n---\nDo.", "description"),
        ("---\nname: letters\ndescription:\n---\nDo.", "description"),
        (f"---\nname: letters\ndescription: {'x' * 1025}\n---\nDo.", "description"),
        ("---\nname: letters\ndescription: x\n---\n \n", "no instructions"),
        ("---\nname: other\ndescription: x\n---\nDo.", "same name"),
        ("---\nname: letters\nname: letters\ndescription: x\n---\nDo.", "twice"),
        ("---\nname: letters\ndescription: [x]\n---\nDo.", "quotes"),
        ('---\nname: letters\ndescription: "x\n---\nDo.', "do not close"),
        ("---\nname: letters\nno colon here\n---\nDo.", "line 3"),
        ("---\nname: letters\ndescription: x\n---\nDo\x00.", "NUL"),
        (b"---\nname: letters\ndescription: \xff\n---\nDo.", "UTF-8"),
        (simple("letters", "x" * (MAX_BODY_BYTES + 1)), "instructions"),
        (simple("letters", "x" * 10 * MAX_BODY_BYTES), "too large"),
    ],
)
def test_a_folder_that_is_no_skill_is_reported_with_the_reason(tmp_path: Path, text: str | bytes, why: str) -> None:
    assert why in problem_of(tmp_path, text)


@pytest.mark.parametrize("name", ["Letters", "-letters", "letters-", "let--ters", "let_ters", "x" * 65, "le tters"])
def test_a_name_is_lowercase_with_single_hyphens(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, simple(name))
    found = read_skills(tmp_path)
    assert not found.found
    assert "lowercase" in str(found.problems[0])


def test_one_that_is_broken_does_not_keep_the_others_from_working(tmp_path: Path) -> None:
    write(tmp_path, "broken", "nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes.txt").write_text("no skill, and no problem")
    for name in ("b-2", "a1"):
        write(tmp_path, name, simple(name))
    found = read_skills(tmp_path)
    assert list(found.found) == ["a1", "b-2"]
    assert [problem.folder for problem in found.problems] == ["broken", "empty"]
    with pytest.raises(InvalidInput, match="cannot be used"):
        found.get_skill("broken")
    with pytest.raises(InvalidInput, match="there is a1, b-2"):
        found.get_skill("c")


def test_instructions_of_exactly_the_limit_are_read(tmp_path: Path) -> None:
    write(tmp_path, "letters", simple("letters", "ß" * (MAX_BODY_BYTES // 2 - 1)))
    assert "letters" in read_skills(tmp_path).found


def test_no_link_is_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "skills", write(tmp_path / "elsewhere", "linked", simple("linked", "hunter2"))
    root.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "inner").mkdir()
    inner = write(tmp_path / "elsewhere", "inner", simple("inner", "hunter2"))
    (root / "inner" / "SKILL.md").symlink_to(inner / "SKILL.md")
    write(root, "real", simple("real"))
    (root / "again").symlink_to(root / "real")
    found = read_skills(root)
    assert list(found.found) == ["real"]
    assert {problem.folder for problem in found.problems} == {"linked", "inner", "again"}
    assert "hunter2" not in str(found)


def test_a_pipe_or_a_folder_in_place_of_the_file_holds_nothing_up(tmp_path: Path) -> None:
    for name in ("pipe", "folder"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "folder" / "SKILL.md").mkdir()
    assert {problem.folder for problem in read_skills(tmp_path).problems} == {"pipe", "folder"}


def test_without_a_folder_there_are_no_skills_and_no_problems(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for missing in (tmp_path / "none", tmp_path / "file"):
        found = read_skills(missing)
        assert (dict(found.found), found.problems) == ({}, ())


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", "letters", simple("letters"))
    (tmp_path / "skills").symlink_to(tmp_path / "real")
    assert list(read_skills(tmp_path / "skills").found) == ["letters"]


def test_there_is_an_end_to_how_many_are_read(tmp_path: Path) -> None:
    for number in range(MAX_SKILLS + 2):
        write(tmp_path, f"s{number:03}", simple(f"s{number:03}"))
    found = read_skills(tmp_path)
    assert (len(found.found), len(found.problems)) == (MAX_SKILLS, 1)
