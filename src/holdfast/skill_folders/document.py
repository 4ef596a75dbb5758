"""The text of a `SKILL.md`: front matter with a name and a description, then instructions.

The front matter is read as the simple part of YAML that skills need. Other syntax is refused, so that nothing is
read otherwise than its author meant it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FILE = "SKILL.md"
MAX_BODY_BYTES = 24 * 1024
MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
# From the beginning of the blanks only: tried at each of them, a long run would take quadratic time.
_COMMENT = re.compile(r"(^|(?<![ \t])[ \t]+)#.*")
_FENCE = "---"
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str
    body: str = field(repr=False)
    details: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)


class UnusableSkill(Exception):
    """The reason why a folder is not a usable skill."""


def parse_skill(folder: str, text: str) -> Skill:
    """Parse the document of the folder of this name. Raises `UnusableSkill`."""
    head, body = _split_front_matter(text)
    details = _details(head)
    name, description = details.pop("name", None), details.pop("description", None)
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise UnusableSkill("needs a name of lowercase letters, digits and single hyphens between them, at most 64")
    if name != folder:
        raise UnusableSkill(f"is named {name!r} in its file; the folder must have the same name")
    if not isinstance(description, str) or not 1 <= len(description.strip()) <= _MAX_DESCRIPTION_CHARS:
        raise UnusableSkill("needs a description of 1 to 1,024 characters that says when to use it")
    if not body.strip():
        raise UnusableSkill("has no instructions below its front matter")
    if len(body.encode()) > MAX_BODY_BYTES:
        raise UnusableSkill(f"has more than {MAX_BODY_BYTES:,} bytes of instructions: move some to other files")
    if "\x00" in text:
        raise UnusableSkill("holds a NUL character; remove it")
    return Skill(name, description.strip(), body.strip("\n"), details)


def _split_front_matter(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise UnusableSkill(f"{FILE} must begin with a line of ---, the front matter, and another line of ---")
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return lines[1:index], "\n".join(lines[index + 1 :])
    raise UnusableSkill("its front matter does not end; put a line of --- after it")


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
            raise UnusableSkill(f"line {index + 1} of {FILE} is not `key: value`")
        key, value = matched.group(1), (matched.group(2) or "").strip()
        below: list[str] = []
        while index < len(lines) and (not lines[index].strip() or lines[index][0] in " \t"):
            below.append(lines[index].strip())
            index += 1
        if key in found:
            raise UnusableSkill(f"has {key} twice; keep one")
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
            raise UnusableSkill(f"the quotes of {key} do not close")
        return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each.group(1), each.group(0)), matched.group(1))
    if value.startswith("'"):
        matched = re.fullmatch(r"'((?:[^']|'')*)'(?:[ \t]+#.*)?", value)
        if matched is None:
            raise UnusableSkill(f"the quotes of {key} do not close")
        return matched.group(1).replace("''", "'")
    if value[:1] in ("{", "[", "&", "*", "!", "%", "@", "`"):
        raise UnusableSkill(f"{key} uses YAML syntax that is not supported; put it in quotes")
    return _COMMENT.sub("", value)
