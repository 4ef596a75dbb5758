"""Skills: instructions for one kind of task, each a folder with a `SKILL.md`, read when the agent starts.

A skill is as trusted as the configuration beside it, so only files in its own folder are read: no link is followed. A
skill that cannot be used is reported and left out; the others work.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from holdfast.agent.texts import encodable
from holdfast.errors import InvalidInput

FILE = "SKILL.md"
MAX_BODY_BYTES = 24 * 1024
MAX_HEAD_BYTES = 8 * 1024
MAX_SKILLS = 200
_MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_FENCE = "---"
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    body: str = field(repr=False)
    details: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)

    @property
    def activation(self) -> str:
        """The message that activates it: a label, then the instructions verbatim."""
        return f"[Skill: {self.name}] These instructions are active for this task.\n\n{self.body}"


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A folder that is not a usable skill, and the reason."""

    folder: str
    problem: str

    def __str__(self) -> str:
        return f"skill {self.folder!r}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Skills:
    """The usable skills by name, and the folders that could not be read as a skill."""

    found: Mapping[str, Skill] = field(default_factory=dict)
    problems: tuple[SkillProblem, ...] = ()

    def get_skill(self, name: str) -> Skill:
        """Return the skill. The error of an unknown name lists the known ones."""
        if name in self.found:
            return self.found[name]
        for each in self.problems:
            if each.folder == name:
                raise InvalidInput("skill", f"{name!r} cannot be used: {each.problem}")
        there_is = ", ".join(self.found) or "none"
        raise InvalidInput("skill", f"there is no skill named {name[:_MAX_NAME_CHARS]!r}; there is {there_is}")


def read_skills(root: Path) -> Skills:
    """Read all skills directly under `root`, sorted by name. A missing folder has no skills."""
    found: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    try:
        with os.scandir(root) as entries:
            listed = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda each: each.name)
    except (FileNotFoundError, NotADirectoryError):
        return Skills()
    except OSError as error:
        return Skills(problems=(SkillProblem(root.name, f"the folder cannot be read: {error.strerror}"),))
    for entry in listed:
        try:
            if entry.is_symlink():
                raise _Unusable("is a symbolic link; put the folder itself there")
            if not entry.is_dir(follow_symlinks=False):
                continue
            if len(found) >= MAX_SKILLS:
                raise _Unusable(f"there are {MAX_SKILLS} skills already; no more are read")
            found[entry.name] = _skill(entry.name, _text(Path(entry.path)))
        except _Unusable as error:
            problems.append(SkillProblem(encodable(entry.name)[:_MAX_NAME_CHARS], str(error)))
    return Skills(found, tuple(problems))


def activate_skill_tool(activate: Callable[[str], str]) -> Callable[..., Awaitable[str]]:
    """Make the tool by which a model activates a skill for the run; `activate` does it and returns the answer."""

    async def activate_skill(
        name: Annotated[str, Field(min_length=1, max_length=64, description="The name of the skill.")],
    ) -> str:
        """Activate one of the skills that are listed for you. Its instructions then hold for the rest of this task."""
        return activate(name)

    return activate_skill


class _Unusable(Exception):
    """The reason why a folder is not a usable skill."""


def _text(folder: Path) -> str:
    """Read the folder's SKILL.md. Each step of opening it follows no link, even if files change meanwhile."""
    try:
        above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # Non-blocking: opening a named pipe would wait for a writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(FILE, flags, dir_fd=above)
        finally:
            os.close(above)
    except FileNotFoundError:
        raise _Unusable(f"has no {FILE}") from None
    except OSError as error:
        raise _Unusable(f"{FILE} cannot be opened (links are not followed): {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _Unusable(f"{FILE} is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_HEAD_BYTES + MAX_BODY_BYTES + 1)
    except OSError as error:
        raise _Unusable(f"{FILE} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(content) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
        raise _Unusable(
            f"{FILE} is too large; instructions may have {MAX_BODY_BYTES:,} bytes: move some to other files"
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise _Unusable(f"{FILE} is not UTF-8 text") from None


def _skill(folder: str, text: str) -> Skill:
    head, body = _split_front_matter(text)
    details = _details(head)
    name, description = details.pop("name", None), details.pop("description", None)
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise _Unusable("needs a name of lowercase letters, digits and single hyphens between them, at most 64")
    if name != folder:
        raise _Unusable(f"is named {name!r} in its file; the folder must have the same name")
    if not isinstance(description, str) or not 1 <= len(description.strip()) <= _MAX_DESCRIPTION_CHARS:
        raise _Unusable("needs a description of 1 to 1,024 characters that says when to use it")
    if not body.strip():
        raise _Unusable("has no instructions below its front matter")
    if len(body.encode()) > MAX_BODY_BYTES:
        raise _Unusable(f"has more than {MAX_BODY_BYTES:,} bytes of instructions: move some to other files")
    if "\x00" in text:
        raise _Unusable("holds a NUL character; remove it")
    return Skill(name, description.strip(), body.strip("\n"), details)


def _split_front_matter(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise _Unusable(f"{FILE} must begin with a line of ---, the front matter, and another line of ---")
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return lines[1:index], "\n".join(lines[index + 1 :])
    raise _Unusable("its front matter does not end; put a line of --- after it")


def _details(lines: list[str]) -> dict[str, str | Mapping[str, str]]:
    """Parse the front matter: `key: value` lines, multi-line text (`|`, `>` or just indented), and maps of texts."""
    found: dict[str, str | Mapping[str, str]] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        matched = _KEY.fullmatch(line.rstrip())
        if matched is None:
            raise _Unusable(f"line {index + 1} of {FILE} is not `key: value`")
        key, value = matched.group(1), (matched.group(2) or "").strip()
        below: list[str] = []
        while index < len(lines) and (not lines[index].strip() or lines[index][0] in " \t"):
            below.append(lines[index].strip())
            index += 1
        if key in found:
            raise _Unusable(f"has {key} twice; keep one")
        found[key] = _value(key, value, below)
    return found


def _value(key: str, value: str, below: list[str]) -> str | Mapping[str, str]:
    if value[:1] in ("|", ">") and len(value) <= 2:
        return ("\n" if value[0] == "|" else " ").join(below).strip()
    if value or not any(below):
        return _scalar(key, " ".join(part for part in (value, *below) if part))
    inner: dict[str, str] = {}
    for line in below:
        if line and not line.startswith("#"):
            matched = _KEY.fullmatch(line)
            if matched is None:
                return _scalar(key, " ".join(part for part in below if part))
            inner[matched.group(1)] = _scalar(key, (matched.group(2) or "").strip())
    return inner


def _scalar(key: str, value: str) -> str:
    """Parse a text, quoted or plain. Other YAML syntax is refused in a skill's front matter."""
    if value.startswith('"'):
        matched = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:[ \t]+#.*)?', value)
        if matched is None:
            raise _Unusable(f"the quotes of {key} do not close")
        return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each.group(1), each.group(0)), matched.group(1))
    if value.startswith("'"):
        matched = re.fullmatch(r"'((?:[^']|'')*)'(?:[ \t]+#.*)?", value)
        if matched is None:
            raise _Unusable(f"the quotes of {key} do not close")
        return matched.group(1).replace("''", "'")
    if value[:1] in ("{", "[", "&", "*", "!", "%", "@", "`"):
        raise _Unusable(f"{key} uses YAML syntax that is not supported; put it in quotes")
    return re.sub(r"(^|[ \t]+)#.*", "", value)
