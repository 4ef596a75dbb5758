"""The reader of a folder of skills: it finds each folder with a `SKILL.md` and reads that file, and no other.

No link is followed: each step of a path is opened below the one before, even if files change meanwhile. A later scan
reads only folders that changed, which it sees by their times, without opening them. A folder that cannot be used is
reported and left out; the others work. Nothing is written, and nothing is run.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from holdfast.domain.visible_text import one_line
from holdfast.skill_folders.document import FILE, Skill, UnusableSkill, parse_skill

S = TypeVar("S")
RESOURCES = ("scripts", "references", "assets")
MAX_SKILLS = 256
MAX_PROBLEMS = 256
MAX_FOLDERS = 4_096
# Entries of one folder.
MAX_ENTRIES = 10_000
_MAX_PATH_CHARS = 200
_MAX_PROBLEM_CHARS = 300
# Windows has none of these flags, and opens no folder: there each root is reported as one that cannot be read.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# Non-blocking: opening a named pipe would wait for a writer.
_DOCUMENT = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
# Clocks of file systems tick this coarsely: a file that changed just before it was read may change again unseen.
_RECENT_NS = 100_000_000
_Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A folder that is not a usable skill, and the reason. The folder `.` is the one that holds the skills."""

    folder: str
    problem: str

    def __str__(self) -> str:
        return f"skill {self.folder!r}: {self.problem}"


class SkillDocument(NamedTuple):
    """A skill, its document as it was read, its path below the root, and its number of files by kind."""

    skill: Skill
    document: str
    path: str
    resources: Mapping[str, int]


class FolderScan(NamedTuple, Generic[S]):
    """The skills in the order of their paths, and the first problems. `documents` counts every `SKILL.md`."""

    skills: list[S]
    problems: list[SkillProblem]
    documents: int


@dataclass(slots=True)
class _FolderState(Generic[S]):
    """A folder as it was read, and what to look at to see that it changed. A stamp of None is never equal."""

    stamps: dict[str, _Stamp | None] = field(default_factory=dict)
    below: tuple[str, ...] = ()
    has_document: bool = False
    skill: S | None = None
    problems: list[SkillProblem] = field(default_factory=list)

    def is_current(self) -> bool:
        try:
            return all(stamp == _stamp_of(os.lstat(path)) for path, stamp in self.stamps.items())
        except OSError:
            return False


class FolderReader(Generic[S]):
    """Reads one root. `make` makes what is kept of a skill. Not for several threads at once."""

    def __init__(
        self,
        root: Path,
        make: Callable[[SkillDocument], S],
        *,
        max_depth: int,
        max_bytes: int,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._link = root
        self._root = ""
        self._make = make
        self._max_depth, self._max_bytes = max_depth, max_bytes
        self._now_ns = now_ns
        self._known: dict[str, _FolderState[S]] = {}

    def scan(self, max_skills: int = MAX_SKILLS) -> FolderScan[S]:
        """Read what changed: at most `max_skills` documents, usable or not. Raises OSError if the root is no folder."""
        started = self._now_ns()
        # The root itself may be a link, because its owner chose it, and the link may have changed.
        root = os.path.realpath(self._link)
        known, self._known = self._known if root == self._root else {}, {}
        self._root = root
        skills: list[S] = []
        problems: list[SkillProblem] = []
        documents = 0
        waiting = [""]
        while waiting:
            path = waiting.pop()
            if len(self._known) >= MAX_FOLDERS:
                problems.append(SkillProblem(".", f"has more than {MAX_FOLDERS:,} folders; the rest is not read"))
                break
            state = known.get(path)
            if state is None or not state.is_current():
                state = self._read_folder(path, started, documents < max_skills)
            if state.has_document and documents >= max_skills:
                problems.append(SkillProblem(".", f"skills from {_shown_path(path)} on are not read: too many"))
                break
            self._known[path] = state
            documents += state.has_document
            if state.skill is not None:
                skills.append(state.skill)
            problems += state.problems
            waiting += reversed(state.below)
        return FolderScan(skills, problems[:MAX_PROBLEMS], documents)

    def _read_folder(self, path: str, started: int, may_read: bool) -> _FolderState[S]:
        state = _FolderState[S]()
        above = f"{self._root}/{path}" if path else self._root
        state.stamps[above] = None
        try:
            with _open_folder(self._root, path) as handle:
                state.stamps[above] = _stamp_of(os.fstat(handle), started)
                entries = _list_entries(handle)
                state.has_document = path != "" and any(entry.name == FILE for entry in entries)
                parts = [entry.name for entry in entries if entry.name in (FILE, *RESOURCES)]
                if not state.has_document:
                    self._list_below(path, entries, state)
                elif may_read:
                    for name in parts:
                        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                        state.stamps[f"{above}/{name}"] = _stamp_of(status, started)
                    state.skill = self._read_skill(path, handle, parts)
        except UnusableSkill as error:
            state.problems.append(_problem(path, str(error)))
        except OSError as error:
            if not path:
                raise
            state.problems.append(_problem(path, f"cannot be opened (links are not followed): {error.strerror}"))
        return state

    def _list_below(self, path: str, entries: list[os.DirEntry[str]], state: _FolderState[S]) -> None:
        """Note the folders to go on with. A folder that ends the search without a skill is a problem."""
        below: list[str] = []
        for entry in entries:
            inner = f"{path}/{entry.name}" if path else entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                state.problems.append(_problem(inner, "is a symbolic link; put the folder itself there"))
            elif entry.is_dir(follow_symlinks=False):
                below.append(inner)
            elif entry.name == FILE:
                state.problems.append(_problem(".", f"holds a {FILE} itself; put it in a folder of the skill's name"))
        if not path or (below and path.count("/") + 1 < self._max_depth):
            state.below = tuple(below)
        elif below:
            raise UnusableSkill(f"has no {FILE}, and folders below it are too deep to be read")
        else:
            raise UnusableSkill(f"has no {FILE}")

    def _read_skill(self, path: str, handle: int, parts: list[str]) -> S:
        text = _read_document(handle, self._max_bytes)
        skill = parse_skill(path.rpartition("/")[2], text)
        resources = {name: _count_files(handle, name) if name in parts else 0 for name in RESOURCES}
        return self._make(SkillDocument(skill, text, path, resources))


def _problem(path: str, problem: str) -> SkillProblem:
    return SkillProblem(_shown_path(path or "."), one_line(problem)[:_MAX_PROBLEM_CHARS])


def _shown_path(path: str) -> str:
    return one_line(os.fsencode(path).decode("utf-8", "replace"))[:_MAX_PATH_CHARS]


def _stamp_of(status: os.stat_result, started: int | None = None) -> _Stamp | None:
    """Return the stamp of a file; None if the file changed just before `started`."""
    if started is not None and status.st_ctime_ns > started - _RECENT_NS:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _open_folder(root: str, path: str) -> Iterator[int]:
    """Open a folder below the root, one step after the other, so that no link is followed."""
    handle = os.open(root, _FOLDER)
    try:
        for name in path.split("/") if path else ():
            inner = os.open(name, _FOLDER | _NO_LINK, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _list_entries(handle: int) -> list[os.DirEntry[str]]:
    with os.scandir(handle) as entries:
        listed = list(islice(entries, MAX_ENTRIES + 1))
    if len(listed) > MAX_ENTRIES:
        raise UnusableSkill(f"has more than {MAX_ENTRIES:,} entries; put the skills in a folder of their own")
    return sorted(listed, key=lambda entry: entry.name)


def _count_files(handle: int, name: str) -> int:
    """Count the files of a folder of a skill, without links and hidden files; none of them is opened."""
    try:
        inner = os.open(name, _FOLDER | _NO_LINK, dir_fd=handle)
    except OSError:
        return 0
    try:
        with os.scandir(inner) as entries:
            return sum(
                entry.is_file(follow_symlinks=False) and not entry.name.startswith(".")
                for entry in islice(entries, MAX_ENTRIES)
            )
    finally:
        os.close(inner)


def _read_document(folder: int, max_bytes: int) -> str:
    try:
        handle = os.open(FILE, _DOCUMENT, dir_fd=folder)
    except OSError as error:
        raise UnusableSkill(f"{FILE} cannot be opened (links are not followed): {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableSkill(f"{FILE} is not a regular file")
        # One byte more, for a file that grows meanwhile.
        content = b"" if status.st_size > max_bytes else _read_bytes(handle, max_bytes + 1)
    except OSError as error:
        raise UnusableSkill(f"{FILE} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if max(status.st_size, len(content)) > max_bytes:
        raise UnusableSkill(f"{FILE} is too large; it may have {max_bytes:,} bytes: move some to other files")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UnusableSkill(f"{FILE} is not UTF-8 text") from None


def _read_bytes(handle: int, size: int) -> bytes:
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(size)
