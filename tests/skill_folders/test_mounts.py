"""Mounted folders of skills: what is read, what is refused, and that nothing unchanged is read again."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.agent_skills import NO_SKILL, SUMMARY_CHARS, AgentSkillDirectoryReport
from holdfast.skill_folders.mounts import MAX_DEPTH, MAX_DOCUMENT_BYTES, SkillMounts
from holdfast.skill_folders.reader import MAX_ENTRIES, MAX_PROBLEMS, MAX_SKILLS
from holdfast.testing.full_repr import full_repr
from skill_files import before_opens, record_opens, write_document, write_skill


def mounts(*folders: Path) -> SkillMounts:
    """Mount folders whose files are old enough to be told apart by their times."""
    return SkillMounts(map(str, folders), now_ns=lambda: time.time_ns() + 10**9)


def scan(*folders: Path) -> AgentSkillDirectoryReport:
    return mounts(*folders).scan()


def problems(report: AgentSkillDirectoryReport) -> dict[str, str]:
    return {each.path: each.problem for each in report.invalid}


def test_a_summary_has_the_description_the_beginning_and_the_counts(tmp_path: Path) -> None:
    folder = write_skill(
        tmp_path / "skills", "office/pdf-forms", "Fill forms in PDF files.", "# Forms\n\n" + "word " * 999
    )
    for name, files in {
        "scripts": ("fill.py", "read.py", ".hidden"),
        "references": ("fields.md",),
        "assets": (),
    }.items():
        (folder / name).mkdir()
        for file in files:
            (folder / name / file).write_text("x")
    (folder / "scripts" / "link.py").symlink_to(folder / "scripts" / "fill.py")
    report = scan(tmp_path / "skills")
    (skill,) = report.entries
    assert (skill.name, skill.description) == ("pdf-forms", "Fill forms in PDF files.")
    assert (skill.directory, skill.path) == (".../skills", "office/pdf-forms")
    assert (skill.scripts, skill.references, skill.assets) == (2, 1, 0)
    assert skill.body_summary.startswith("# Forms word word")
    assert len(skill.body_summary) <= SUMMARY_CHARS
    assert skill.host_execution_required is True
    assert (report.reason, report.invalid) == (None, ())
    assert str(tmp_path) not in full_repr(report)


def test_the_fingerprint_follows_the_document_and_the_counts(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "letters")
    mounted = mounts(tmp_path)
    seen = [mounted.scan().entries[0].fingerprint]
    (folder / "scripts").mkdir()
    seen.append(mounted.scan().entries[0].fingerprint)
    assert seen[0] == seen[1]
    (folder / "scripts" / "run.sh").write_text("x")
    seen.append(mounted.scan().entries[0].fingerprint)
    write_skill(tmp_path, "letters", body="Do it better.")
    seen.append(mounted.scan().entries[0].fingerprint)
    (folder / "scripts" / "run.sh").unlink()
    write_skill(tmp_path, "letters")
    seen.append(mounted.scan().entries[0].fingerprint)
    assert len(set(seen)) == 3
    assert seen[-1] == seen[0]


def test_of_256_folders_none_that_is_unchanged_is_read_again(tmp_path: Path) -> None:
    for number in range(MAX_SKILLS):
        (write_skill(tmp_path, f"group{number % 7}/s{number:03}") / "scripts").mkdir()
    mounted = mounts(tmp_path)
    with record_opens() as first:
        before = mounted.scan()
    assert first.count("SKILL.md") == len(before.entries) == MAX_SKILLS
    with record_opens() as second:
        assert mounted.scan() == before
    assert second == []
    write_skill(tmp_path, "group3/s003", "For something else.")
    with record_opens() as third:
        after = mounted.scan()
    assert third.count("SKILL.md") == 1
    assert set(third) == {str(tmp_path), "group3", "s003", "SKILL.md", "scripts", "os.scandir"}
    assert [new.name for new, old in zip(after.entries, before.entries, strict=True) if new != old] == ["s003"]


def test_nothing_but_skill_documents_is_opened_and_nothing_is_run(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "letters")
    for name in ("scripts/run.sh", "references/more.md", "assets/a.png", "SKILL.py", "notes.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/sh\ntouch ran\n")
        (folder / name).chmod(0o755)
    with record_opens() as opened:
        scan(tmp_path)
    assert set(opened) == {str(tmp_path), "letters", "SKILL.md", "scripts", "references", "assets", "os.scandir"}


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "rewrite", "break", "remove", "link", "rename", "script", "folder"]),
        st.sampled_from(["a", "b", "a/x", "a/y", "b/x", "a/x/z"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


def change(root: Path, kind: str, path: str, number: int) -> None:
    folder = root / path
    if kind == "remove":
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)
    elif kind == "link" and not os.path.lexists(folder) and folder.parent.is_dir():
        folder.symlink_to(root.parent / "outside" / "canary")
    elif kind == "rename" and folder.is_dir() and not folder.is_symlink():
        folder.rename(root / f"renamed{number}{time.monotonic_ns()}")
    elif any(each.is_symlink() for each in (folder, *folder.parents)):
        return
    elif kind == "write":
        write_skill(root, path, f"For number {number}.")
    elif kind == "break":
        write_document(root, path, "---\nno description\n---\n" + "x" * number)
    elif kind == "folder":
        folder.mkdir(parents=True, exist_ok=True)
    elif kind == "script":
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "scripts" / f"run{number}").write_text("x")
    elif (folder / "SKILL.md").is_file():
        # As long as before, in the same file, with the old time of change.
        status = (folder / "SKILL.md").stat()
        with (folder / "SKILL.md").open("r+") as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace("well", f"wel{number}")[: len(text)])
        os.utime(folder / "SKILL.md", ns=(status.st_atime_ns, status.st_mtime_ns))


@settings(max_examples=60, deadline=None)
@given(lives=CHANGES)
def test_after_any_changes_a_scan_is_like_a_first_one_and_shows_nothing_from_outside(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[str, str, int]]
) -> None:
    root = tmp_path_factory.mktemp("life") / "skills"
    root.mkdir()
    write_skill(root.parent / "outside", "canary", "A canary.")
    mounted = SkillMounts([str(root)])
    for kind, path, number in lives:
        change(root, kind, path, number)
        report = mounted.scan()
        assert report == SkillMounts([str(root)]).scan()
        assert "A canary" not in full_repr(report)
    shutil.rmtree(root.parent)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Just text.", "must begin"),
        ("---\nname: letters\n---\nDo.", "description"),
        ("---\nname: letters\ndescription: \u200b\u2060\n---\nDo.", "hidden"),
        ("---\nname: letters\ndescription: x\nbroken\n---\nDo.", "key: value"),
        ("---\nname: letters\ndescription: x\n" + "k" * 9_000 + ": x\n" + "k" * 9_000 + ": y\n---\nDo.", "kkk"),
        ("---\nname: letters\ndescription: x\n---\n" + "x" * MAX_DOCUMENT_BYTES, "24,576 bytes"),
    ],
)
def test_an_invalid_skill_is_reported_and_the_others_work(tmp_path: Path, text: str, why: str) -> None:
    write_document(tmp_path, "letters", text)
    write_skill(tmp_path, "mail")
    report = scan(tmp_path)
    assert [skill.name for skill in report.entries] == ["mail"]
    (invalid,) = report.invalid
    assert (invalid.directory, invalid.path) == (f".../{tmp_path.name}", "letters")
    assert why in invalid.problem
    assert len(invalid.problem) <= 300
    assert [(each.skills, each.invalid) for each in report.directories] == [(1, 1)]


@pytest.mark.parametrize("blank", [" ", "\t", "\u200b", "\n ", "\\", '"'])
def test_a_document_of_nearly_one_character_is_read_in_linear_time(tmp_path: Path, blank: str) -> None:
    """In quadratic time, each document would take seconds."""
    run = blank * (MAX_DOCUMENT_BYTES // len(blank.encode()) - 100)
    for number in range(16):
        name = f"s{number}"
        write_document(tmp_path, name, f"---\nname: {name}\ndescription: Forms.\nlicense: a{run}b\n---\nDo.\n")
    assert len(scan(tmp_path).entries) == 16


def test_names_that_are_no_text_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: letters\ndescription: x\n---\nDo.\n")
    assert list(problems(scan(tmp_path))) == ["\ufffd\ufffd"]


def test_a_document_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    # Sparse: to read the larger one would take all memory.
    for name, size in (("ten-megabytes", 10 * 1024**2), ("one-terabyte", 1024**4)):
        with (write_skill(tmp_path, name) / "SKILL.md").open("r+b") as file:
            file.truncate(size)
    report = scan(tmp_path)
    assert set(problems(report)) == {"ten-megabytes", "one-terabyte"}
    assert all("too large" in problem for problem in problems(report).values())


def test_folders_are_read_four_levels_deep(tmp_path: Path) -> None:
    write_skill(tmp_path, "1/2/3/four")
    write_skill(tmp_path, "1/2/3/4/five")
    write_skill(tmp_path, "1/2/nested")
    write_skill(tmp_path, "1/2/nested/inside")
    report = scan(tmp_path)
    assert [skill.path for skill in report.entries] == ["1/2/3/four", "1/2/nested"]
    assert "too deep" in problems(report)["1/2/3/4"]
    assert MAX_DEPTH == 4


def test_at_most_256_documents_of_all_folders_are_read(tmp_path: Path) -> None:
    for number in range(MAX_SKILLS):
        write_skill(tmp_path / ("one" if number % 2 else "two"), f"s{number:03}")
    write_skill(tmp_path / "two", "t")
    report = scan(tmp_path / "one", tmp_path / "two")
    assert len(report.entries) == MAX_SKILLS
    assert [(each.skills, each.invalid) for each in report.directories] == [(128, 0), (128, 1)]
    assert "from t on" in problems(report)["."]


def test_links_are_skipped_and_reported(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    outside = write_skill(tmp_path / "outside", "linked", "A canary.")
    write_skill(root, "real")
    (root / "linked").symlink_to(outside)
    (root / "loop").symlink_to(root)
    inner = root / "inner"
    inner.mkdir()
    (inner / "SKILL.md").symlink_to(write_skill(tmp_path / "outside", "inner", "A canary.") / "SKILL.md")
    (root / "real" / "scripts").symlink_to("/usr/bin")
    report = scan(root)
    assert [(skill.name, skill.scripts) for skill in report.entries] == [("real", 0)]
    assert set(problems(report)) == {"linked", "loop", "inner"}
    assert "canary" not in full_repr(report)


@pytest.mark.parametrize("swapped", ["group", "group/letters", "group/letters/SKILL.md", "group/letters/scripts"])
def test_a_link_that_takes_a_place_while_it_is_read_is_not_followed(tmp_path: Path, swapped: str) -> None:
    root, outside = tmp_path / "skills", tmp_path / "outside"
    for folder, description in ((root, "Mine."), (outside, "A canary.")):
        (write_skill(folder, "group/letters", description) / "scripts").mkdir()
    (outside / "group" / "letters" / "scripts" / "canary").write_text("x")
    mounted = mounts(root)
    place = root / swapped

    def swap(path: str) -> None:
        if path == place.name and not place.is_symlink():
            place.rename(tmp_path / "aside")
            place.symlink_to(outside / swapped)

    with before_opens(swap):
        report = mounted.scan()
    assert place.is_symlink()
    assert "canary" not in full_repr(report)
    assert sum(skill.scripts for skill in report.entries) == 0
    place.unlink()
    (tmp_path / "aside").rename(place)
    assert [skill.description for skill in mounted.scan().entries] == ["Mine."]


def test_a_file_that_changed_just_before_it_was_read_is_read_again(tmp_path: Path) -> None:
    """Its next change may leave its times as they are: clocks of file systems tick coarsely."""
    document = write_skill(tmp_path, "letters") / "SKILL.md"
    changed_ns = max(path.stat().st_ctime_ns for path in (tmp_path, document.parent, document))
    for later_ns, expected in ((50 * 10**6, 1), (10**9, 0)):
        mounted = SkillMounts([str(tmp_path)], now_ns=lambda later_ns=later_ns: changed_ns + later_ns)  # type: ignore[misc]
        mounted.scan()
        with record_opens() as opened:
            mounted.scan()
        assert opened.count("SKILL.md") == expected


def test_a_folder_with_too_many_entries_or_problems_has_an_end(tmp_path: Path) -> None:
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    for number in range(MAX_ENTRIES + 1):
        (crowd / f"f{number}").symlink_to("nowhere")
    few = tmp_path / "few"
    few.mkdir()
    for number in range(MAX_PROBLEMS + 9):
        (few / f"f{number}").symlink_to("nowhere")
    assert "entries" in problems(scan(tmp_path))["crowd"]
    assert len(scan(few).invalid) == MAX_PROBLEMS


def test_a_folder_that_is_missing_or_a_file_is_reported_and_read_once_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    write_skill(tmp_path / "good", "letters")
    mounted = mounts(tmp_path / "later", tmp_path / "file", tmp_path / "good", tmp_path / "good" / ".")
    report = mounted.scan()
    assert [each.directory for each in report.directories] == [".../later", ".../file", ".../good"]
    assert [each.problem.partition(";")[0] for each in report.invalid] == ["there is no such folder", "is a file"]
    assert [skill.name for skill in report.entries] == ["letters"]
    write_skill(tmp_path / "later", "mail")
    assert [skill.name for skill in mounted.scan().entries] == ["mail", "letters"]
    shutil.rmtree(tmp_path / "good")
    shutil.rmtree(tmp_path / "later")
    gone = mounted.scan()
    assert (gone.entries, gone.reason) == ((), NO_SKILL)


def test_a_mounted_link_leads_to_where_it_points_now(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_skill(tmp_path / name, "letters", f"The {name} one.")
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "first")
    mounted = mounts(link)
    (one,) = mounted.scan().entries
    link.unlink()
    link.symlink_to(tmp_path / "second")
    (two,) = mounted.scan().entries
    assert (one.description, two.description) == ("The first one.", "The second one.")
    assert replace(two, description=one.description, fingerprint=one.fingerprint) == one


def test_a_mounted_folder_that_is_a_skill_itself_says_what_to_do(tmp_path: Path) -> None:
    write_skill(tmp_path, "letters")
    assert "folder of the skill's name" in problems(scan(tmp_path / "letters"))["."]
